"""What a stage of a pipeline costs: a set of units on one device, as sums over units and over cut edges.

A *cost component* of a stage is a sum of unit costs and of edge costs.  An edge is a tensor with all units that touch
it; its input cost is paid by a stage that reads it without producing it, its output cost by a stage that produces it
without holding all readers.  The first components are loads, and the largest of them is minimised; all components have
limits, one per device class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers, distinct
from placedsl.diagnostics import PlacedslError
from placedsl.graph.contraction import Quotient
from placedsl.graph.order import csr
from placedsl.problem.execution import Communication
from placedsl.problem.streaming import Streaming
from placedsl.records import dataclass


@dataclass(frozen=True, eq=False)
class DeviceClasses:
    """Device classes: how many devices each has, the memory of one (inf: no limit), and their positions.

    ``per_byte``, ``room``   seconds for each byte of a stage beyond so many that is streamed, a number a class (empty:
    none streams)
    """

    counts: tuple[int, ...]
    memory: tuple[float, ...]
    devices: tuple[Integers, ...]
    per_byte: tuple[float, ...] = ()
    room: tuple[float, ...] = ()

    @property
    def total(self) -> int:
        """How many devices there are."""
        return sum(self.counts)

    @property
    def states(self) -> int:
        """In how many ways devices can have been used."""
        return int(np.prod([c + 1 for c in self.counts], dtype=float))


def device_classes(kinds: Integers, memory: Floats, streaming: Streaming) -> DeviceClasses:
    """Device classes from a class number and a memory limit a device, and how devices stream."""
    members = tuple(np.flatnonzero(kinds == k) for k in range(int(kinds.max(initial=-1)) + 1))
    classes = DeviceClasses(tuple(len(m) for m in members), tuple(float(memory[m[0]]) for m in members), members)
    if not streaming.any:
        return classes
    per_byte, room = (tuple(float(values[m[0]]) for m in members) for values in (streaming.per_byte, streaming.room))
    return replace(classes, per_byte=per_byte, room=room)


@dataclass(frozen=True, eq=False)
class StageCostModel:
    """u units, e edges, c device classes, m cost components of which the first ``loads`` are loads.

    ``classes``    the device classes
    ``before``, ``after``   pairs of units along which the pipeline goes forward
    ``work``       c x u time of the unit alone (inf: not supported), part of the loads
    ``memory``     u what a unit occupies
    ``touch_start``, ``touched``, ``role``   unit i touches edges ``touched[touch_start[i]:touch_start[i+1]]``;
                   role 1 where the unit makes the tensor, 2 where it reads it
    ``readers``    e how many units read it
    ``unit_cost``  m x c x u;  ``input_cost``, ``output_cost``  m x c x e
    ``limit``      m x c the largest value of a component (inf: none); for loads on top of the search's own bound
    ``capped``     how many components after the loads are loads as well that are not minimised: ``limit`` is their cap
    ``exchanges``  devices that share a stage exchange its weights in the loads, rather than in those that are capped
    ``beyond``     how long a device may compute beyond its load: the cap
    ``behind``     2 x u memory beside that of the units (empty: none): what the devices after a boundary must hold
                   where the unit is not before it, and what the devices before it must hold where the unit is
    ``per_byte``, ``room``   c: a stage streams each byte of the last component, its memory, beyond its room; that is
                   part of its first load (empty: nothing is streamed)
    """

    classes: DeviceClasses
    before: Integers
    after: Integers
    work: Floats
    touch_start: Integers
    touched: np.ndarray
    role: np.ndarray
    readers: np.ndarray
    unit_cost: Floats
    input_cost: Floats
    output_cost: Floats
    limit: Floats
    loads: int
    memory: Floats
    capped: int = 0
    exchanges: bool = True
    beyond: float = 0.0
    behind: Floats = field(default_factory=lambda: np.zeros((2, 0)))
    per_byte: Floats = field(default_factory=lambda: np.zeros(0))
    room: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def units(self) -> int:
        """How many units there are."""
        return len(self.memory)

    @property
    def every_load(self) -> int:
        """How many components are loads, minimised or capped."""
        return self.loads + self.capped

    @property
    def most_streamed(self) -> Floats:
        """c: how long a device would stream that had all units."""
        if not self.per_byte.size:
            return np.zeros(len(self.classes.counts))
        return np.maximum(float(self.memory.sum()) - self.room, 0.0) * self.per_byte

    @property
    def share(self) -> float:
        """What the largest load cannot undercut: its share of the least work of all units."""
        return max(0.0, float(self.least.sum()) / self.classes.total - self.beyond)

    @property
    def supported(self) -> Booleans:
        """c x u: whether the class runs the unit."""
        return np.isfinite(self.work)

    @property
    def least(self) -> Floats:
        """u: the time of a unit on the class that is quickest at it."""
        out: Floats = self.work.min(axis=0)
        return out

    def within(self, load: float) -> StageCostModel:
        """The same for stages whose loads are no larger: what alone costs twice as much costs just that.

        Such costs hide the others in sums over ideals, of which stages are differences.
        """
        if not 0.0 < load < np.inf:
            return self
        most = np.where(np.arange(len(self.limit)) < self.loads, 2.0 * load, np.inf)[:, None, None]
        return replace(
            self, unit_cost=np.minimum(self.unit_cost, most), input_cost=np.minimum(self.input_cost, most),
            output_cost=np.minimum(self.output_cost, most),
        )  # fmt: skip

    def load(self, own: Integers, kind: int) -> float:
        """The largest load of a stage, from its units alone."""
        return float(self.components(own, kind)[: self.loads].max())

    def components(self, own: Integers, kind: int) -> Floats:
        """m: the cost components of a stage, from its units alone."""
        chosen = np.zeros(self.units, dtype=bool)
        chosen[own] = True
        touching = np.repeat(chosen, np.diff(self.touch_start))
        code = np.bincount(self.touched[touching], weights=self.role[touching], minlength=len(self.readers))
        inside = code.astype(np.int64)
        made, read = (inside & 1).astype(bool), inside >> 1
        reading: Floats = self.unit_cost[:, kind, own].sum(axis=1)
        reading += self.output_cost[:, kind][:, made & (read < self.readers)].sum(axis=1)
        reading += self.input_cost[:, kind][:, ~made & (read > 0)].sum(axis=1)
        if self.per_byte.size:
            reading[0] += max(0.0, float(reading[-1]) - float(self.room[kind])) * float(self.per_byte[kind])
        return reading


class Load(NamedTuple):
    """What a load of a stage adds up: the work of its units, its transfers in, its transfers out, what it streams."""

    computation: bool
    inputs: bool
    outputs: bool
    streams: bool = False


def cost_model_of(quotient: Quotient, classes: DeviceClasses, loads: Sequence[Load]) -> StageCostModel:
    """The cost model of a stage that takes as long as the largest of ``loads``, with memory as a limited component."""
    edges = Edges.of(quotient)
    work = np.where(np.isfinite(quotient.work), quotient.work, 0.0)
    nothing = np.zeros_like(edges.transfer)
    streams = loads[0].streams and bool(classes.per_byte)
    return StageCostModel(
        classes=classes, before=quotient.before, after=quotient.after, work=quotient.work, memory=quotient.memory,
        touch_start=edges.touch_start, touched=edges.touched, role=edges.role, readers=edges.readers,
        unit_cost=np.stack(
            [*(one.computation * work for one in loads), np.broadcast_to(quotient.memory, work.shape)]
        ),
        input_cost=np.stack([*(edges.transfer if one.inputs else nothing for one in loads), nothing]),
        output_cost=np.stack([*(edges.transfer if one.outputs else nothing for one in loads), nothing]),
        limit=np.array([*([np.inf] * len(classes.counts) for _ in loads), classes.memory]),
        loads=len(loads), per_byte=np.array(classes.per_byte if streams else ()),
        room=np.array(classes.room if streams else ()),
    )  # fmt: skip


#: Makes the cost model of the stages of a contracted graph on classes of devices.
StageCosts = Callable[[Quotient, DeviceClasses], StageCostModel]
#: The loads of a stage in one pass, by communication model.  What has no row here is no communication model that
#: searches for pipelines support.
STAGE_COSTS: dict[Communication, tuple[Load, ...]] = {
    # Section 3 of Tarnawski et al. 2020: transfers in, computation, transfers out, one after another.
    "sequential": (Load(True, True, True, streams=True),),
    # Appendix C.1: computation on one side, all transfers on the other; the longer of the two.
    "overlapped": (Load(True, False, False), Load(False, True, True)),
    # Appendix C.1, full duplex: computation, transfers in, transfers out; the longest of the three.
    "full_duplex": (Load(True, False, False), Load(False, True, False), Load(False, False, True)),
}


def loads_under(communication: Communication) -> tuple[Load, ...]:
    """The row of :data:`STAGE_COSTS`; whoever asks has made sure that there is one, by ``Supports.communications``."""
    if communication not in STAGE_COSTS:
        raise PlacedslError(f"internal error: no costs of stages are known under communication {communication}")
    return STAGE_COSTS[communication]


def stage_costs(communication: Communication) -> StageCosts:
    """The costs of stages in which all that a device does is one pass."""
    return partial(cost_model_of, loads=loads_under(communication))


def memory_costs(counted: Booleans) -> StageCosts:
    """The memory of a stage as its load, on those devices where it counts (D)."""

    def costs(quotient: Quotient, classes: DeviceClasses) -> StageCostModel:
        occupied = np.outer([counted[int(members[0])] for members in classes.devices], quotient.memory)
        work = np.where(np.isfinite(quotient.work), occupied, np.inf)
        still = replace(quotient, work=work, transfer=np.zeros_like(quotient.transfer))
        return cost_model_of(still, classes, [Load(True, False, False)])

    return costs


#: Transfers in, computation, transfers out, one after another.
after_computation = stage_costs("sequential")


@dataclass(frozen=True, eq=False)
class Edges:
    """Tensors by the units that touch them: see :class:`StageCostModel`.  ``transfer`` is c x e."""

    touch_start: Integers
    touched: np.ndarray
    role: np.ndarray
    readers: np.ndarray
    transfer: Floats

    @classmethod
    def of(cls, quotient: Quotient) -> Edges:
        """The tensors of a quotient that cost something somewhere."""
        pins = np.diff(quotient.pin_start)
        reader = np.ones(len(quotient.pin_unit), dtype=bool)
        reader[quotient.pin_start[:-1]] = False
        edge = np.repeat(np.arange(len(pins)), pins)
        made, _ = cls.made(
            quotient.units, quotient.tensor_producer, edge[reader], quotient.pin_unit[reader], quotient.transfer
        )
        return made

    @classmethod
    def made(
        cls, units: int, producer: Integers, read_edge: Integers, read_unit: Integers, transfer: Floats
    ) -> tuple[Edges, Integers]:
        """The edges that cost something and leave their unit, from who makes and who reads them; which these are."""
        costly: Booleans = np.any(transfer > 0.0, axis=0)
        outside = (read_unit != producer[read_edge]) & costly[read_edge]
        key = distinct(read_edge[outside] * units + read_unit[outside])
        kept, edge = np.unique(key // max(1, units), return_inverse=True)
        entry_edge = np.concatenate((np.arange(len(kept)), edge)).astype(np.int32)
        entry_unit = np.concatenate((producer[kept], key % max(1, units)))
        role = np.repeat(np.array([1, 2], dtype=np.int32), (len(kept), len(edge)))
        start, order = csr(entry_unit, np.arange(len(entry_unit)), units)
        readers = np.bincount(edge, minlength=len(kept)).astype(np.int32)
        return cls(start, entry_edge[order], role[order], readers, np.ascontiguousarray(transfer[:, kept])), kept
