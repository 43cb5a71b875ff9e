"""The ideals that matter within a load, by numbers of devices used, and the search over them."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.ideals.chain_cover import ChainCover
from placedsl.algorithms.kernels import between_looks
from placedsl.algorithms.pipelines.load_pruning import LoadPruning
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.pipelines.state_dp_kernel import IdealLattice, Progress, join, previous
from placedsl.algorithms.stages.cut_edges_kernel import cut_costs
from placedsl.algorithms.stages.stage_costs import StageCostModel
from placedsl.algorithms.stages.stage_pairs import between, by_weight, cuts_of, cuts_taken, ideal_sums, stage_pairs
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.records import dataclass
from placedsl.tolerances import IMPROVEMENT

#: Pairs between two looks at the clock.
_PATIENCE = 10_000_000


@dataclass(frozen=True, eq=False)
class StateDPResult:
    """The best pipeline found: its largest load and the device of each unit (inf and None where there is none).

    ``complete``: the value is proven the least, or that no pipeline is allowed.  ``bound``: no load is below it.
    ``fewest``: no pipeline that good has fewer devices.  ``too_many``: more ideals matter than may be stored.
    ``met``, ``stored``: ideals that were met and stored; ``pairs``: stages looked at, of which subsets, evaluated.
    """

    value: float
    device: Integers | None
    complete: bool
    bound: float = 0.0
    fewest: bool = False
    too_many: bool = False
    met: int = 0
    stored: int = 0
    pairs: tuple[int, int, int] = (0, 0, 0)


def _holds(costs: StageCostModel, pruning: LoadPruning, memory: Floats, later: Floats, earlier: Floats) -> Booleans:
    """K x s: whether the devices on either side of an ideal have room for what they must hold, beside units as well."""
    whole, beside = float(costs.memory.sum()), costs.behind.sum(axis=1)
    most = whole + float(beside.sum())
    room = np.minimum(np.array(costs.classes.memory), 2.0 * most + 1.0)
    after = (whole - memory + float(beside[0]) - later)[:, None] <= pruning.left @ room + 1e-9 * most
    before = (memory + earlier)[:, None] <= pruning.digits @ room + 1e-9 * most
    return np.asarray(after & before, dtype=np.bool_)


class StateTable:
    """Ideals with their costs, and the search over them; ``wide``: they are more than the prefixes of one order."""

    def __init__(
        self, costs: StageCostModel, cover: ChainCover, positions: np.ndarray, pruning: LoadPruning, *, wide: bool
    ) -> None:
        self.costs, self.cover = costs, cover
        costs = costs.within(pruning.bound)
        cuts = cuts_of(costs, cover, positions)
        weight = ideal_sums(cover, positions, pruning.weight)
        fits = pruning.prune(cover, weight, cuts, transfers=wide)
        if costs.behind.size:
            fits &= _holds(costs, pruning, *ideal_sums(cover, positions, np.vstack((costs.memory, costs.behind))))
        self.states = pruning.states
        rows = by_weight(positions, weight, np.flatnonzero(fits.any(axis=1)))
        cuts, positions = cuts_taken(cuts, rows), positions[rows]
        self.fits, self.positions = fits[rows], positions
        pairs = stage_pairs(costs, cover, positions, weight[rows], cuts)
        # Edges that a stage cannot cut on both sides are paid in full on each.
        short = np.stack([pruning.short(cover, c) for c in range(len(self.states.share))])
        ahead, behind = cut_costs(cuts, costs.input_cost[:1] * short, costs.output_cost[:1] * short)
        self.lattice = IdealLattice(
            pairs, ideal_sums(cover, positions, costs.memory), pairs.unit_sum[0] + ahead[0],
            pairs.unit_sum[0] - behind[0],
        )  # fmt: skip

    @property
    def count(self) -> int:
        """How many ideals there are."""
        return len(self.positions)

    @property
    def reaches_all(self) -> bool:
        """Both nothing and everything are among the ideals."""
        last = np.diff(self.cover.start)
        return bool(self.count and not self.positions[0].any() and (self.positions[-1] == last).all())

    def search(self, limit: float, limits: SearchLimits, *, exact: bool) -> StateDPResult:
        """The best chain within a load, or any (with the fewest devices) where not ``exact``."""
        count = self.count
        if not self.reaches_all:
            return StateDPResult(np.inf, None, True)  # not even nothing can be gone on from
        value = np.where(self.fits, np.inf, np.nan)
        value[0, 0] = -np.inf if exact else 0.0
        progress = Progress(np.array([limit]), np.zeros(3, np.int64), np.zeros(3, np.int64), np.zeros(1, np.int64))
        complete = False
        while not (complete or limits.passed):
            progress.left[0] = between_looks(_PATIENCE)
            complete = join(exact, self.lattice, self.states, value, progress)
        pairs = (int(progress.seen[0]), int(progress.seen[1]), int(progress.seen[2]))
        final = np.where(np.isnan(value[count - 1]), np.inf, value[count - 1])
        if not np.isfinite(final.min()):
            return StateDPResult(np.inf, None, complete, pairs=pairs)
        good = np.flatnonzero(final <= final.min() * (1.0 + IMPROVEMENT))
        state = int(good[np.argmin(self.states.digits[good].sum(axis=1))])
        device, load = self._chain(state, value, limit, exact)
        return StateDPResult(load, device, complete, pairs=pairs)

    def _chain(self, state: int, value: Floats, limit: float, exact: bool) -> tuple[Integers, float]:
        """The device of each unit, from everything back to nothing, and the largest load."""
        costs, cover = self.costs, self.cover
        device = np.full(costs.units, -1, dtype=np.int64)
        used = [0] * len(costs.classes.counts)
        goal, largest = len(value) - 1, 0.0
        while goal:
            base, kind = previous(goal, state, exact, self.lattice, self.states, value, limit)
            own = between(cover, self.positions, base, goal)
            device[own] = costs.classes.devices[kind][used[kind]]
            used[kind] += 1
            largest = max(largest, costs.load(own, kind))
            goal, state = base, state - int(self.states.stride[kind])
        return device, largest
