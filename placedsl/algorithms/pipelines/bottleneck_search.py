"""The least load by asking, of one load after another, whether a pipeline stays within it.

Too low a load leaves few ideals and is soon refuted, which is a proof; a pipeline found lowers what is asked next.  The
last question is always whether there is anything below the best.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from placedsl.algorithms.ideals.chain_cover import ChainCover
from placedsl.algorithms.ideals.enumeration import ideals
from placedsl.algorithms.pipelines.load_pruning import LoadPruning
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.pipelines.state_table import StateDPResult
from placedsl.algorithms.stages.stage_costs import StageCostModel
from placedsl.algorithms.stages.topological_orders import orders
from placedsl.arrays import Integers
from placedsl.tolerances import EQUAL_COSTS

#: Too many ideals from some load on: it is closed in on until the two sides are this share apart.
_CROWDED_GAP = 2.5e-4
#: With fewer ideals than this, or from this share between the two sides on, every other question is whether there is
#: anything below the best.
_FEW = 20_000
_LATE_GAP = 1e-2
#: Slices of an order are improved on until the two sides are this share apart.
_SLICING_GAP = 5e-3
#: A table serves for loads down to this share below the one that it was made for.
_TABLE_SHARE = 5e-3


@dataclass(frozen=True, eq=False)
class GroupedPipeline:
    """A pipeline of groups of devices: its largest load and the device of each unit, the first one of its group.

    ``groups``: all devices that share the stage of each such device, itself first.
    """

    value: float
    device: Integers
    groups: Mapping[int, tuple[int, ...]]

    @property
    def devices(self) -> int:
        """How many devices take part."""
        return sum(map(len, self.groups.values()))


@dataclass(frozen=True, eq=False)
class BottleneckResult(StateDPResult):
    """The best pipeline found.

    ``groups``: all devices that share the stage of each device that ``device`` names, itself first.
    """

    groups: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def devices(self) -> int:
        """How many devices take part."""
        return sum(map(len, self.groups.values()))

    def better(self, plan: GroupedPipeline | None) -> BottleneckResult:
        """This with another pipeline, if there is one."""
        return self if plan is None else replace(self, value=plan.value, device=plan.device, groups=plan.groups)

    def after(self, asked: FeasibilityResult) -> BottleneckResult:
        """This with the effort of one more question."""
        a, b, c = (x + y for x, y in zip(self.pairs, asked.pairs, strict=True))
        return replace(self, met=asked.met or self.met, stored=asked.stored or self.stored, pairs=(a, b, c))


@dataclass(frozen=True, eq=False)
class FeasibilityResult:
    """What one load gave: a pipeline or none, and whether that is certain; ideals met and stored, pairs looked at.

    ``too_many``: more ideals matter than may be stored; ``late``: than there is time for.
    """

    plan: GroupedPipeline | None
    complete: bool
    too_many: bool = False
    met: int = 0
    stored: int = 0
    pairs: tuple[int, int, int] = (0, 0, 0)
    late: bool = False


class FeasibilityTable(Protocol):
    """Ideals with their costs."""

    def within(self, load: float, limits: SearchLimits, *, fewest: bool) -> FeasibilityResult:
        """A pipeline over these ideals within the load; where ``fewest``, one with the fewest devices."""


#: Makes a table of ideals, given as positions on chains in the order of a walk, for loads up to some (inf: any); None
#: where that is too large.
TableOf = Callable[[ChainCover, np.ndarray, float], FeasibilityTable | None]


class FeasibilityOracle:
    """Answers whether a pipeline stays within a load, from a table of the ideals that matter there."""

    def __init__(
        self, costs: StageCostModel, cover: ChainCover, table_of: TableOf, most: int, limits: SearchLimits
    ) -> None:
        self.costs, self.cover, self.table_of, self.most, self.limits = costs, cover, table_of, most, limits
        self.known: tuple[float, FeasibilityTable, int, int] | None = None

    def feasible_within(self, load: float, *, fewest: bool = False) -> FeasibilityResult:
        """A pipeline within the load, if there is one."""
        if self.known is None or not load <= self.known[0] <= load * (1.0 + _TABLE_SHARE):
            self.known = None
            pruning = LoadPruning(self.costs, load)
            walked = ideals(
                self.cover, pruning.weight, pruning.weight_ranges(), most=self.most, deadline=self.limits.deadline,
                stop=self.limits.stop,
            )  # fmt: skip
            met, stored = walked.met, len(walked.positions)
            if not walked.complete:
                return FeasibilityResult(None, False, walked.too_many, met, stored)
            if not self.limits.time_for(stored):
                return FeasibilityResult(None, False, False, met, stored, late=True)
            began = time.monotonic()
            table = self.table_of(self.cover, walked.positions, load)
            self.limits.made(stored, began)
            if table is None:
                return FeasibilityResult(None, False, True, met, stored)
            self.known = load, table, met, stored
        _, table, met, stored = self.known
        return replace(table.within(load, self.limits, fewest=fewest), met=met, stored=stored)


def minimise_bottleneck(
    tables: FeasibilityOracle,
    start: GroupedPipeline | None,
    bound: float,
    *,
    at_most: float = np.inf,
    fewest: bool,
) -> BottleneckResult:
    """The least load below ``at_most`` within which there is a pipeline, from a first one and a proven bound."""
    best = BottleneckResult(at_most, None, False, bound)
    best = best if start is None or start.value >= at_most else best.better(start)
    ceiling = max_stage_load(tables.costs)
    crowded = np.inf  # loads from which too many ideals matter
    last = late = False
    while best.value > best.bound * (1.0 + EQUAL_COSTS):
        top = min(best.value, crowded)
        gap = top - best.bound
        if crowded <= best.value and gap <= _CROWDED_GAP * best.bound:
            return replace(best, too_many=not late)
        ready = gap <= _LATE_GAP * top or 0 < best.stored <= _FEW
        last = np.isfinite(best.value) and best.value < crowded and (best.bound <= 0.0 or (ready and not last))
        if last:
            load = best.value * (1.0 - EQUAL_COSTS)
        elif np.isfinite(top):
            load = best.bound + gap / 2.0
        else:
            load = 2.0 * best.bound if 0.0 < 2.0 * best.bound < ceiling else np.inf
        asked = tables.feasible_within(load)
        best = best.after(asked).better(asked.plan)
        if asked.plan is None:
            if asked.complete:
                best = replace(best, bound=best.value if last or load == np.inf else load)
            elif (asked.too_many or asked.late) and best.bound > 0.0:
                crowded, late = load, asked.late
            else:
                return replace(best, too_many=asked.too_many)
        if tables.limits.passed and best.value > best.bound * (1.0 + EQUAL_COSTS):
            return best
    best = replace(best, complete=True, bound=best.value)
    return _fewest(tables, best) if fewest else best


def _fewest(tables: FeasibilityOracle, best: BottleneckResult) -> BottleneckResult:
    """The best, or one that is as good and uses fewer devices."""
    if best.device is None or best.devices == 1:
        return replace(best, fewest=True)
    asked = tables.feasible_within(best.value * (1.0 + EQUAL_COSTS / 10.0), fewest=True)
    best = best.after(asked)
    if asked.plan is not None and asked.plan.devices < best.devices:
        best = replace(best.better(asked.plan), value=best.value)
    return replace(best, fewest=asked.complete)


def slices(
    costs: StageCostModel, table_of: TableOf, limits: SearchLimits, low: float, best: GroupedPipeline | None = None
) -> GroupedPipeline | None:
    """The best pipeline, nearly, whose stages are slices of a few topological orders; it proves nothing.

    ``low``: a load that none is below;  ``best``: what is known already.
    """
    for order in orders(costs):
        line, most = ChainCover.of_order(order), np.inf if best is None else best.value
        table = None if limits.passed else table_of(line, line.prefixes(order), most)
        if table is None:
            return best
        best = improved(table, limits, low, best)
    return best


def improved(
    table: FeasibilityTable, limits: SearchLimits, low: float, best: GroupedPipeline | None
) -> GroupedPipeline | None:
    """The best pipeline over the ideals of a table, nearly, if it is clearly better than one that is known."""
    high, under = np.inf if best is None else best.value * (1.0 - _SLICING_GAP), low
    load = high
    while under < load and not limits.passed:
        plan = table.within(load, limits, fewest=False).plan
        if plan is not None:
            best, high = plan, plan.value
        elif load == high:
            break
        else:
            under = load
        if high - under <= _SLICING_GAP * high:
            break
        load = (under + high) / 2.0 if under <= 0.0 or high < 4.0 * under else float(np.sqrt(under * high))
    return best


def max_stage_load(costs: StageCostModel) -> float:
    """A load that no stage exceeds, beyond which one is as good as none."""
    units = costs.unit_cost.sum(axis=2)
    edges = (costs.input_cost + costs.output_cost).sum(axis=2)
    return float((units + edges)[: costs.loads].max(initial=0.0) + costs.most_streamed.max(initial=0.0))
