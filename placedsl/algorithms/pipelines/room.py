"""Whether any pipeline below a load has room for units whose memory a relaxation leaves out.

A stage that is too full with all that is at home in it sends some of that elsewhere, and its device pays.  What is on
its way is followed as one sum: the least that any pipeline to an ideal has left.  docs/presolve.md has the proof.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from placedsl.algorithms.ideals.chain_cover import chain_cover
from placedsl.algorithms.pipelines.room_kernel import AtHome, least_away, leaving
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.pipelines.state_dp import PipelineSearch
from placedsl.algorithms.pipelines.state_table import StateDPResult, StateTable
from placedsl.algorithms.presolve.homes import Homes
from placedsl.algorithms.stages.stage_costs import StageCostModel
from placedsl.algorithms.stages.stage_pairs import between, ideal_sums
from placedsl.arrays import Booleans, Integers
from placedsl.records import dataclass

#: More ideals are not walked over, and more pairs of those that are left, and of pairs and groups, not looked at.
_MOST_IDEALS, _MOST_PAIRS, _MOST_ENTRIES = 100_000, 100_000_000, 20_000_000


@dataclass(frozen=True, eq=False)
class RoomResult:
    """``known``: whether the question is answered; ``device``: of each unit, in a pipeline that may have room (None:
    there is none); ``leaves``: g, the groups that are elsewhere there, for the least that each device can pay."""

    known: bool
    device: Integers | None = None
    leaves: Booleans = field(default_factory=lambda: np.zeros(0, dtype=bool))


def with_room(costs: StageCostModel, homes: Homes, below: float, limits: SearchLimits) -> RoomResult:
    """A pipeline with no load above ``below`` that may have room for what is at home; units are those of ``costs``."""
    cover = chain_cover(costs.units, costs.before, costs.after)
    if cover is None:
        return RoomResult(False)
    nothing = StateDPResult(np.inf, None, False)
    search = PipelineSearch(costs, cover, limits, nothing, 0.0, below)
    table = search.table(below, _MOST_IDEALS)
    if table is None or limits.passed:
        return RoomResult(False)
    if not table.reaches_all:
        return RoomResult(True)
    if _pairs(table) > _MOST_PAIRS or table.count * len(homes.unit) > _MOST_ENTRIES:
        return RoomResult(False)
    tolerance = 1e-9 * float(costs.memory.sum() + homes.memory.sum())
    at_home = _at_home(table, homes)
    away, by, load = least_away(table.lattice.pairs, at_home, table.states, table.fits, below, tolerance)
    ends = np.flatnonzero(away[-1] <= tolerance)
    if not len(ends):
        return RoomResult(True)
    # From everything back to nothing.
    digits, stride = table.states.digits, table.states.stride
    goal, state = table.count - 1, int(ends[np.argmin(digits[ends].sum(axis=1))])
    device, used = np.full(costs.units, -1, dtype=np.int64), [0] * len(stride)
    leaves, own = np.zeros(len(homes.unit), dtype=bool), np.zeros(len(homes.unit), dtype=bool)
    while (base := int(by[goal, state, 0])) >= 0:
        kind = int(by[goal, state, 1])
        if base != goal:
            device[between(cover, table.positions, base, goal)] = costs.classes.devices[kind][used[kind]]
            leaving(at_home, base, goal, kind, below - load[goal, state], tolerance, own)
            leaves |= own
        used[kind] += 1
        goal, state = base, state - int(stride[kind])
    return RoomResult(True, device, leaves)


def _pairs(table: StateTable) -> int:
    """How many pairs of ideals are looked at, at most."""
    number, states = table.fits.sum(axis=0, dtype=np.int64), table.states
    into = [(s, s - stride) for c, stride in enumerate(states.stride) for s in np.flatnonzero(states.digits[:, c])]
    return int(sum(number[s] * number[p] for s, p in into))


def _at_home(table: StateTable, homes: Homes) -> AtHome:
    costs, cover = table.costs, table.cover
    classes = costs.classes
    at_home = np.bincount(homes.unit, homes.memory, minlength=costs.units)
    held = ideal_sums(cover, table.positions, costs.memory + at_home)

    def holds(units: Integers) -> Booleans:
        """K x their number: the ideals that have them."""
        return np.ascontiguousarray(table.positions[:, cover.chain[units]] > cover.position[units])

    inside = holds(homes.unit)
    paid = np.zeros_like(inside)
    for g, there in zip(homes.group_of_reader.tolist(), holds(homes.reader).T, strict=True):
        paid[:, g] |= ~there
    cost = homes.cost.T[[int(members[0]) for members in classes.devices]]
    order = np.argsort(cost / homes.memory, axis=1, kind="stable")
    advance = ~inside[:, ~homes.later] @ homes.memory[~homes.later]
    limit = np.minimum(np.array(classes.memory), 2.0 * held[-1] + 1.0)
    return AtHome(held, limit, inside, paid, homes.memory, np.ascontiguousarray(cost), order, advance)
