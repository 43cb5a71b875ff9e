"""The least time per sample of a path that satisfies the rules: one threshold after another.

A question is whether there is a path whose largest load lies above a proven bound and within a threshold.  Its linear
relaxation refutes thresholds that are far too low; the program decides the others.  What no row states (balance between
devices) divides the question into boxes until paths satisfy it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.pipelines.path_program.box import Box, FamilyRange, StageChoice, broken
from placedsl.algorithms.pipelines.path_program.device_counts import groups, refuted_by_counts
from placedsl.algorithms.pipelines.path_program.instance import PathInstance
from placedsl.algorithms.pipelines.path_program.labels import path_by_labels, refuted_by_labels
from placedsl.algorithms.pipelines.path_program.path_bound import Priced, priced
from placedsl.algorithms.pipelines.path_program.path_rows import PathRows, path_rows
from placedsl.algorithms.pipelines.path_program.program import asked, question
from placedsl.algorithms.pipelines.path_program.stage_table import StageTable, stage_table
from placedsl.arrays import Floats, Integers
from placedsl.tolerances import EQUAL_COSTS, SAME_VALUE

#: Thresholds are refuted by relaxations until the two sides are this near.
_RELAXED_GAP = 2e-3
#: The first threshold of the program lies this share above that of the relaxation; then it grows.
_FIRST_STEP = 2e-3
#: Boxes inside one another; more are not decided.
_DEEPEST = 60
#: Paths that are refused one after another in one box.
_MOST_REFUSED = 20
#: Ways to choose among like devices that are tried for a path.
_MOST_WAYS = 100

#: Units with the groups of device classes that they may be on.
Sides = tuple[tuple[int, tuple[frozenset[int], ...]], ...]


@dataclass(frozen=True)
class _Effort:
    """How hard a question is tried.

    ``labels``        labels times stages, about: so many are kept at an ideal
    ``parts``         parts by numbers of devices that a box is divided into
    ``relaxes``       labels of a relaxation are asked first, eight times as many
    ``most_columns``  programs of no more columns are solved where labels do not decide
    ``near``          thresholds are tried until the two sides are this near
    ``looked_at``     labels and comparisons of them that one run may take
    ``seconds``       a program may take
    """

    labels: int
    parts: int
    relaxes: bool
    most_columns: int
    near: float
    looked_at: int
    seconds: float


_EFFORTS = (
    _Effort(3_000_000, 12, False, 10_000, 5e-3, 30_000_000, 3.0),
    _Effort(20_000_000, 60, True, 10_000, 5e-3, 200_000_000, 1.0),
    _Effort(200_000_000, 500, True, 20_000, SAME_VALUE, 2_000_000_000, 10.0),
    _Effort(10_000_000_000, 5_000, False, 1_000_000, SAME_VALUE, 10**12, 600.0),
)
#: Labels that are kept at an ideal.
_FEWEST_LABELS, _MOST_LABELS = 64, 50_000
#: What a relaxation rounds sums to, as a share of their limits, and which difference of work it overlooks, of the load.
_GRID, _NEAR = 1e-3, 2e-3


@dataclass(frozen=True, eq=False)
class Verdict:
    """What became of a question: a path with its largest load (None: none was found), and whether that is decided."""

    path: Integers | None
    value: float
    decided: bool


class PathSearch:
    """From a bound and no path to the best path.

    ``accept``   hears of each path's placement and says whether the evaluator takes it (True: yes)
    ``prove``    hears of each better bound; infinity where there is no path at all
    """

    def __init__(
        self, instance: PathInstance, accept: Callable[[Integers], bool], prove: Callable[[float], None],
        stop: Callable[[], float | None], seed: int = 0,
    ) -> None:  # fmt: skip
        self.instance, self.accept, self.prove, self.seconds_left, self.seed = instance, accept, prove, stop, seed
        self.bound, self.value = instance.least, np.inf
        self.table: StageTable | None = None
        self.choice: StageChoice | None = None
        self.reach = 0.0
        self.effort = 0
        self.counted = groups(instance)

    def run(self) -> bool:
        """Search; whether all is settled."""
        if self.instance.rules.impossible:
            self.prove(np.inf)
            return True
        low = self._by_relaxation()
        if low is None:
            return False
        if low == np.inf:
            self.prove(np.inf)
            return True
        return self._by_programs(low)

    def _most(self) -> float:
        """No time per sample is of interest beyond this."""
        return self.instance.rules.most_time * (1.0 + EQUAL_COSTS)

    def _stages(self, threshold: float) -> StageChoice | None:
        """The stages within a threshold; None where there are too many."""
        if self.choice is None or threshold > self.reach:
            reach = max(1.5 * threshold, 1.5 * self.bound)
            table = stage_table(self.instance.ideals, reach)
            if table is None:
                reach = threshold
                table = stage_table(self.instance.ideals, reach)
            if table is None:
                return None
            self.table, self.reach = table, reach
            self.choice = StageChoice(self.instance, table)
        return self.choice

    def _box(self, high: float) -> Box:
        return Box(self.bound, high, tuple(FamilyRange() for _ in self.instance.rules.families))

    def _refuted(self, threshold: float) -> bool | None:
        """Whether the relaxation has no path within a threshold; None where that is not known."""
        choice = self._stages(threshold)
        if choice is None:
            return None
        return self._refutes(choice, self._box(threshold), choice.sides())

    def _refutes(self, choice: StageChoice, box: Box, sides: Sides) -> bool:
        """Whether the relaxation has no path in a box, nor in its parts by where units are."""
        rows = path_rows(choice, box)
        if rows is None or self._priced(choice, rows, *rows.limits(box)).refuted:
            return True
        if not sides:
            return False
        (unit, groups), *rest = sides
        return all(self._refutes(choice, box.with_side(unit, group), tuple(rest)) for group in groups)

    def _by_counts(self, choice: StageChoice, rows: PathRows, values: Floats, limits: Floats) -> bool:
        """Whether no path of a box is left once the numbers of stages on groups of devices are whole."""
        parts = _EFFORTS[self.effort].parts
        return refuted_by_counts(choice.table, rows, values, limits, self.counted, parts, self._over)

    def _priced(
        self, choice: StageChoice, rows: PathRows, values: Floats, limits: Floats, *, thorough: bool = False
    ) -> Priced:
        table = choice.table
        base, goal = table.base[rows.stages], table.goal[rows.stages]
        return priced(base, goal, values, limits, table.ideals.count, thorough=thorough)

    def _by_relaxation(self) -> float | None:
        """A threshold that the relaxation does not refute, near the largest that it does; infinity: it refutes all."""
        start = max(self.bound, 1e-300) if self.bound > 0.0 else self._smallest()
        if start is None:
            return None
        threshold, most = start, self._most()
        total = self._largest()
        while True:
            refuted = self._refuted(min(threshold, most))
            if refuted is None:
                return None
            if not refuted:
                break
            self._proven(min(threshold, most))
            if threshold >= most or threshold > total:
                return np.inf
            threshold *= 1.25
        high = min(threshold, most)
        while high - self.bound > _RELAXED_GAP * high:
            middle = (self.bound + high) / 2.0
            refuted = self._refuted(middle)
            if refuted is None:
                return None
            if refuted:
                self._proven(middle)
            else:
                high = middle
        return high

    def _smallest(self) -> float | None:
        """The least load of a stage that is not 0."""
        choice = self._stages(self._largest())
        if choice is None:
            return None
        load = choice.table.load
        return float(load[load > 0.0].min(initial=np.inf)) if (load > 0.0).any() else 1e-300

    def _largest(self) -> float:
        """No stage has a larger load."""
        costs = self.instance.ideals.costs
        edges = (costs.input_cost + costs.output_cost)[: costs.loads].max(axis=1).sum()
        alone = costs.unit_cost[: costs.loads].max(axis=1).sum() + costs.most_streamed.max(initial=0.0)
        return float(edges + alone) * (1.0 + EQUAL_COSTS)

    def _by_programs(self, low: float) -> bool:
        """Ask for thresholds from ``low`` on, until bound and value meet: with little effort first."""
        most = min(self._most(), self._largest())
        for self.effort in range(len(_EFFORTS)):
            if self.value == np.inf and self._first_path(low, most):
                return True
            if not self._closer():
                return False
            if self.value < np.inf and self.value - self.bound <= SAME_VALUE * self.value:
                return True
        return False

    def _closer(self) -> bool:
        """Thresholds below the value in search of paths, and above the bound in search of proofs, until the two sides
        are near or none of these is decided; False where it is time to stop."""
        near = _EFFORTS[self.effort].near
        no_path, no_proof = self.bound, self.value
        while self.value < np.inf and self.value - self.bound > near * self.value:
            no_path, no_proof = max(no_path, self.bound), min(no_proof, self.value)
            thresholds = []
            if self.value - no_path > near * self.value:
                thresholds.append((no_path, self.value))
            if no_proof - self.bound > near * self.value:
                thresholds.append((self.bound, no_proof))
            if not thresholds:
                break
            for low, high in dict.fromkeys(thresholds):
                threshold = self._between(low, high)
                if threshold <= self.bound:
                    continue  # the first of them has proven more
                verdict = self._ask(threshold)
                if verdict is None or self._over():
                    return False
                if verdict.path is None and not verdict.decided:
                    no_path, no_proof = max(no_path, threshold), min(no_proof, threshold)
        return True

    def _first_path(self, low: float, most: float) -> bool:
        """Larger and larger thresholds, until there is a path; whether it is proven that there is none."""
        step = _FIRST_STEP
        while not self._over():
            threshold = min(max(low, self.bound) * (1.0 + step), most)
            verdict = self._ask(threshold)
            if verdict is None or verdict.path is not None:
                return False
            if threshold >= most:
                if verdict.decided:
                    self.prove(np.inf)
                return verdict.decided
            step = 2.0 * step + _FIRST_STEP
        return False

    def _between(self, low: float, high: float) -> float:
        """The next threshold: the load of a stage halfway between two thresholds."""
        assert self.choice is not None
        load = self.choice.table.load[self.choice.open]
        inside = np.unique(load[(load > low) & (load < high * (1.0 - EQUAL_COSTS))])
        if not len(inside):
            return high * (1.0 - 2.0 * EQUAL_COSTS)
        middle = (low + high) / 2.0
        below = inside[inside <= middle]
        return float(below[-1] if len(below) else inside[0])

    def _ask(self, threshold: float) -> Verdict | None:
        """Is there a path within a threshold?  Bound and value are kept up."""
        choice = self._stages(threshold)
        if choice is None:
            return None
        verdict = self._decide(choice, self._box(threshold), 0)
        if verdict.path is None and verdict.decided:
            self._proven(threshold)
        return verdict

    def _decide(self, choice: StageChoice, box: Box, depth: int) -> Verdict:
        """Is there a path in a box that satisfies all?"""
        excluded: list[Integers] = []
        while True:
            there, path = self._path(choice, box, excluded)
            if not there:
                return Verdict(None, np.inf, there is not None)
            value = float(choice.table.load[path].max())
            divided = broken(choice.families, box, path, value)
            if divided is None:
                taken = self._taken(choice, path, value)
                if taken:
                    return Verdict(path, value, True)
                excluded.append(path)
                if taken is None or len(excluded) > _MOST_REFUSED:
                    return Verdict(None, np.inf, False)
                continue
            return self._halves(choice, box, divided, depth)

    def _path(self, choice: StageChoice, box: Box, excluded: list[Integers]) -> tuple[bool | None, Integers]:
        """Whether there is a path in a box (None: not known), and the path."""
        none = np.zeros(0, dtype=np.int64)
        rows = path_rows(choice, box)
        if rows is None:
            return False, none
        values, limits = rows.limits(box)
        known = self._priced(choice, rows, values, limits, thorough=True)
        if known.refuted:
            return False, none
        if len(box.sides) < len(sides := choice.sides()):
            return self._by_sides(choice, box, excluded, sides[len(box.sides)])
        if self._by_counts(choice, rows, values, limits):
            return False, none
        mixed = bool(self.instance.rules.general) or bool(excluded)
        effort = _EFFORTS[self.effort]
        room = int(np.clip(effort.labels // len(rows.stages), _FEWEST_LABELS, _MOST_LABELS))
        asked_for = choice.table, rows.stages, values, limits, known
        if not mixed and effort.relaxes:
            wider = min(8 * room, _MOST_LABELS)
            if refuted_by_labels(*asked_for, wider, effort.looked_at, _GRID, _NEAR * box.high):
                return False, none
        if not mixed and not self._over():
            there, path = path_by_labels(*asked_for, room, effort.looked_at)
            if there is not None:
                return there, path
        left = self.seconds_left()
        if self._over() or not (mixed or len(rows.stages) <= effort.most_columns):
            return None, none
        most = effort.seconds if left is None else min(left, effort.seconds)
        ended, point = asked(question(choice, box, rows, excluded), most, self.seed)
        if point is None:
            return (False if ended == "infeasible" else None), none
        return True, rows.stages[np.flatnonzero(point[: len(rows.stages)] > 0.5)]

    def _by_sides(
        self, choice: StageChoice, box: Box, excluded: list[Integers], side: tuple[int, tuple[frozenset[int], ...]]
    ) -> tuple[bool | None, Integers]:
        """The same, for each group of classes that a unit may be on."""
        unit, groups = side
        decided = True
        for group in groups:
            there, path = self._path(choice, box.with_side(unit, group), excluded)
            if there:
                return True, path
            decided &= there is not None
        return (False if decided else None), np.zeros(0, dtype=np.int64)

    def _over(self) -> bool:
        left = self.seconds_left()
        return left is not None and left <= 0.0

    def _halves(
        self, choice: StageChoice, box: Box,
        divided: tuple[int, FamilyRange, FamilyRange] | tuple[int, float, None], depth: int,
    ) -> Verdict:  # fmt: skip
        """The same in two smaller boxes."""
        k, first, second = divided
        if depth >= _DEEPEST:
            return Verdict(None, np.inf, False)
        if second is None:
            assert isinstance(first, float)
            if not box.low < first < box.high:
                return Verdict(None, np.inf, False)
            halves = [replace(box, high=first), replace(box, low=first)]
        else:
            assert isinstance(first, FamilyRange)
            halves = [box.with_family(k, first), box.with_family(k, second)]
        decided = True
        for half in halves:
            verdict = self._decide(choice, half, depth + 1)
            if verdict.path is not None:
                return verdict
            decided &= verdict.decided
        return Verdict(None, np.inf, decided)

    def _taken(self, choice: StageChoice, path: Integers, value: float) -> bool | None:
        """Whether the evaluator accepts a path; None where it refuses some of the ways to choose among like devices,
        and there are more."""
        table = choice.table
        stages = [
            (table.ideals.units(int(table.base[s]), int(table.goal[s])), int(table.kind[s])) for s in path.tolist()
        ]
        for number, placement in enumerate(self.instance.placements(stages)):
            if number == _MOST_WAYS:
                return None
            if self.accept(placement):
                self.value = min(self.value, value)
                return True
        return False

    def _proven(self, threshold: float) -> None:
        """No path is within a threshold."""
        if threshold > self.bound:
            self.bound = threshold
            self.prove(threshold * (1.0 - EQUAL_COSTS))
