"""The nodes of a path that cut an instance into blocks.

Between two cuts lie the successors of the one that are predecessors of the other.  Work beside a cut is in no block,
and the bound by blocks does not count it: cuts are chosen so that as much work as possible is in blocks that can be
solved.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import all_predecessors
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.arrays import Booleans, Floats, Integers

#: The number of candidates for cuts: the nodes with the least work beside them.
_MOST_CANDIDATES = 300
#: Rows of the table of predecessors that are converted to numbers at a time.
_ROWS = 512
#: The weight of work in blocks that are too large to be solved.
_LARGE = 0.5


def chosen_cuts(instance: SchedulingInstance, most: int) -> Integers:
    """Nodes of a path, in its order, such that most of the work is in blocks of at most ``most`` nodes."""
    before = all_predecessors(instance)  # [v, w]: w comes before v
    work = np.where(np.isfinite(instance.time), instance.time, np.inf).min(axis=1)
    beside = work.sum() - work
    for rows in np.array_split(
        np.arange(instance.nodes), instance.nodes // _ROWS + 1
    ):  # not all of it as numbers at once
        beside[rows] -= before[rows] @ work
        beside -= work[rows] @ before[rows]
    place = np.empty(instance.nodes, dtype=np.int64)
    place[instance.topological] = np.arange(instance.nodes)
    found = np.argsort(beside, kind="stable")[:_MOST_CANDIDATES]
    found = found[np.argsort(place[found])]
    return _best_path(before, work, found, most)


def _best_path(before: Booleans, work: Floats, candidates: Integers, most: int) -> Integers:
    """The chain of candidates with the largest total value of its blocks; more cuts on ties."""
    count = len(candidates)
    worth = np.full(count + 1, -np.inf)  # of the best chain that ends in a candidate; the last: in none
    came = np.full(count + 1, -1, dtype=np.int64)
    small = 1e-9 * float(work.sum())
    after = before[:, candidates].T  # [i, v]: v comes after candidate i
    for j in range(count + 1):
        earlier = before[candidates[j]] if j < count else np.ones(len(work), dtype=bool)
        own = work[candidates[j]] + small if j < count else 0.0
        worth[j] = _value(earlier, work, most) + own
        previous = np.arange(count) if j == count else np.flatnonzero(earlier[candidates])
        if not len(previous):
            continue
        inside = after[previous] & earlier
        value = inside @ work
        value = np.where(inside.sum(axis=1) <= most, value, _LARGE * value) + worth[previous] + own
        best = int(value.argmax())
        if value[best] > worth[j]:
            worth[j], came[j] = value[best], previous[best]
    path, j = [], int(came[count])
    while j >= 0:
        path.append(int(candidates[j]))
        j = int(came[j])
    return np.array(path[::-1], dtype=np.int64)


def _value(inside: Booleans, work: Floats, most: int) -> float:
    """The work in a block, discounted if the block has more than ``most`` nodes."""
    value = float(work[inside].sum())
    return value if int(inside.sum()) <= most else _LARGE * value
