"""What is planned: units with options for each degree of tensor parallelism, on devices that are all alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from placedsl.algorithms.pipelines.parallel_plans.options import OptionTable
from placedsl.algorithms.stages.stage_costs import DeviceClasses, StageCostModel
from placedsl.arrays import Floats, Integers
from placedsl.graph.order import csr

#: What the copies of a stage exchange their weights once per: each sample, each round (a sample on each copy), or each
#: batch of microbatches.
Exchange = Literal["sample", "round", "batch"]
#: What plans are measured by.
Goal = Literal["time_per_sample", "devices_used", "stages_used", "copies_used"]
#: A number of copies, or of samples, that no plan has.
ANY_NUMBER = 2**40


@dataclass(frozen=True, eq=False)
class Options:
    """How each kind of node can run.  o options, by degree and then by kind.

    ``degree``   o devices that a copy of the stage has
    ``kind``     o the kind of nodes that it is an option of
    ``time``     o seconds per sample;  ``weights``  o seconds to send the node's weights once over the link of a device
    ``stash``    o bytes per sample in flight;  ``memory``  o bytes whatever is in flight
    ``sharded``  o bytes that the copies of a stage divide among them, the same for all options of a kind and degree
    """

    degree: Integers
    kind: Integers
    time: Floats
    weights: Floats
    stash: Floats
    memory: Floats
    sharded: Floats


@dataclass(frozen=True, eq=False)
class PlanLimits:
    """What a spec requires of plans beyond memory.  c kinds of nodes.

    ``fewest``, ``most``   c copies that a stage with a node of that kind has;  ``in_flight``  c samples on each of them
    ``stages``, ``copies`` fewest and most stages, and copies that all stages have together (None: any number)
    ``devices``            fewest devices that take part;  ``load``  seconds per sample of a stage
    """

    fewest: Integers
    most: Integers
    in_flight: Integers
    stages: tuple[int, int | None] = (0, None)
    copies: tuple[int, int | None] = (0, None)
    devices: int = 0
    load: float = np.inf

    @classmethod
    def none(cls, kinds: int) -> PlanLimits:
        """Nothing."""
        any_number = np.full(kinds, ANY_NUMBER, dtype=np.int64)
        return cls(np.zeros(kinds, dtype=np.int64), any_number, any_number)

    @property
    def of_kinds(self) -> bool:
        """Whether it matters which kinds of nodes a stage has."""
        return bool((self.fewest > 1).any() or (np.minimum(self.most, self.in_flight) < ANY_NUMBER).any())


@dataclass(frozen=True, eq=False)
class PlanInstance:
    """n nodes of c kinds in u units, which no stage divides; e tensors, g degrees.

    ``kind``      n the kind of each node: nodes of a kind have the same options
    ``unit``      n the unit that each node is in
    ``producer``  e the unit that makes each tensor;  ``reads``  pairs (tensor, unit)
    ``input_cost``, ``output_cost``   g x e seconds per sample for a stage that reads, or sends, a tensor
    ``before``, ``after``  pairs of units along which the pipeline goes forward
    ``degrees``   g tensor-parallel degrees, ascending
    ``copies``    data-parallel degrees, ascending, 1 among them
    ``devices``   how many there are, each with ``capacity`` bytes
    ``microbatches``  samples of a batch, and the most that may be in the pipeline
    ``traffic``   how often the weights cross a device's link in one exchange among many copies
    ``limits``    further ones (None: there are none)
    ``held``      samples that the copies of a stage hold at once, together (0: those in the pipeline, under 1F1B)
    """

    kind: Integers
    unit: Integers
    options: Options
    producer: Integers
    reads: tuple[Integers, Integers]
    input_cost: Floats
    output_cost: Floats
    before: Integers
    after: Integers
    degrees: tuple[int, ...]
    copies: tuple[int, ...]
    devices: int
    capacity: float
    microbatches: int
    exchange: Exchange
    traffic: float
    limits: PlanLimits | None = None
    held: int = 0

    @cached_property
    def units(self) -> int:
        """How many units there are."""
        return int(self.unit.max(initial=-1)) + 1

    @cached_property
    def kinds(self) -> int:
        """How many kinds of nodes there are."""
        return int(max(self.kind.max(initial=-1), self.options.kind.max(initial=-1))) + 1

    def least(self, values: Floats) -> Floats:
        """g x u: the least of a value (o) over the options of each unit's nodes, added up; inf where one has none."""
        out = np.full((len(self.degrees), self.kinds), np.inf)
        allowed, degree, kind = self._allowed
        np.minimum.at(out, (degree, kind), values[allowed])
        return self.of_units(out[:, self.kind])

    @cached_property
    def _allowed(self) -> tuple[Integers, Integers, Integers]:
        """The options with a degree that is allowed, its position, and their kinds."""
        allowed = np.flatnonzero(np.isin(self.options.degree, self.degrees))
        return allowed, np.searchsorted(self.degrees, self.options.degree[allowed]), self.options.kind[allowed]

    def rows_by_degree(self) -> tuple[Integers, Integers]:
        """The options with a degree that is allowed, by degree, then by kind; and both of these as one number."""
        allowed, degree, kind = self._allowed
        order = np.lexsort((kind, degree))
        return allowed[order], degree[order] * self.kinds + kind[order]

    def option_table(self, rows: Integers, key: Integers) -> OptionTable:
        """The options at ``rows``, which come by ``key``: degree and kind as one number."""
        options = self.options
        start = np.searchsorted(key, np.arange(len(self.degrees) * self.kinds + 1))
        return OptionTable(
            self.kinds, start, options.time[rows], options.weights[rows], options.stash[rows], options.memory[rows]
        )

    def of_units(self, of_nodes: Floats) -> Floats:
        """… x u: values of nodes (… x n) added up."""
        order, start = self._by_unit
        out: Floats = np.add.reduceat(of_nodes[..., order], start, axis=-1)
        return out

    @cached_property
    def _by_unit(self) -> tuple[Integers, Integers]:
        """The nodes unit by unit, and where each unit begins."""
        order = np.argsort(self.unit, kind="stable")
        return order, np.searchsorted(self.unit[order], np.arange(self.units))

    def stage_costs(self) -> StageCostModel:
        """The cost model of stages from the loss towards the input, on one class per degree: its one component is the
        time of a sample under the quickest options."""
        work = self.least(self.options.time)
        tensor, unit = self.reads
        touching = np.concatenate((self.producer, unit))
        start, touched = csr(touching, np.concatenate((np.arange(len(self.producer)), tensor)), self.units)
        role = np.where(np.arange(len(touching)) < len(self.producer), 1, 2)
        by_unit = np.argsort(touching, kind="stable")
        classes = len(self.degrees)
        return StageCostModel(
            classes=DeviceClasses((1,) * classes, (np.inf,) * classes, (np.zeros(1, dtype=np.int64),) * classes),
            before=self.after, after=self.before, work=work, touch_start=start,
            touched=touched.astype(np.int32), role=role[by_unit].astype(np.int32),
            readers=np.bincount(tensor, minlength=len(self.producer)).astype(np.int32),
            unit_cost=np.where(np.isfinite(work), work, 0.0)[None], input_cost=self.input_cost[None],
            output_cost=self.output_cost[None], limit=np.full((1, classes), np.inf), loads=1,
            memory=np.zeros(self.units),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class PlannedStage:
    """A stage: its nodes, its data- and tensor-parallel degrees, samples in flight per copy, its load, the bytes on
    each device, and the option of each node (a position in ``Options``).  Where clusters share samples: its first
    device, and in how many clusters of each level the same runs, innermost first.  Where stages hold several chunks:
    their nodes, the input's first, and the samples of each in flight."""

    nodes: Integers
    copies: int
    degree: int
    in_flight: int
    load: float
    memory: float
    option: Mapping[int, int]
    first: int = -1
    across: tuple[int, ...] = ()
    chunks: tuple[Integers, ...] = ()
    chunk_in_flight: tuple[int, ...] = ()


class Plan:
    """Stages in order, that of the input first."""

    def __init__(self, stages: tuple[PlannedStage, ...]) -> None:
        self._stages = stages
        self._traced: Callable[[], tuple[PlannedStage, ...]] | None = None

    @classmethod
    def traced(cls, traced: Callable[[], tuple[PlannedStage, ...]], value: float, devices: int) -> Plan:
        """A plan whose stages are worked out when they are first looked at."""
        plan = cls(())
        plan._traced = traced
        plan.__dict__["value"], plan.__dict__["devices"] = value, devices
        return plan

    @property
    def stages(self) -> tuple[PlannedStage, ...]:
        """Its stages; what they are worked out from is forgotten then."""
        if self._traced is not None:
            self._stages, self._traced = self._traced(), None
        return self._stages

    @cached_property
    def value(self) -> float:
        """The largest load."""
        return max(stage.load for stage in self.stages)

    @cached_property
    def devices(self) -> int:
        """How many devices take part."""
        return sum(stage.copies * stage.degree for stage in self.stages)
