"""Problems that a search takes in the place of another: with units without time held by their hosts.

:func:`attached` loses nothing.  :func:`relaxed` leaves out what some units occupy, or what they touch: its value is a
bound.  :func:`held` is narrower than the problem: what it allows, the problem allows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placedsl.algorithms.colocation import with_colocation
from placedsl.algorithms.presolve.free_units import Attaching, FreeUnits, free_units
from placedsl.algorithms.presolve.homes import Homes, homes, nearest
from placedsl.algorithms.supports import Supports, ignored
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.graph.order import joined_partitions
from placedsl.problem.problem import Problem
from placedsl.records import dataclass

#: A unit is inside the graph where it has at most so many times as many others beside it as units with time have.
_INSIDE = 1.5
#: Names what is held together; no attribute of a node is called so.
_ATTACHED = "operators without time, and their hosts"


@dataclass(frozen=True, eq=False)
class Attached:
    """A problem with every unit without time that is dominated attached to its host.

    ``written``  the problem that was asked for;  ``problem``  the same optimum, with fewer units
    ``units``    the units of what was asked for;  ``root``  u: the unit that each is part of
    ``open``     u: units without time that some placement may want elsewhere
    ``inside``   u: those of them that are ordered against as many others as units that take time are
    """

    written: Problem
    problem: Problem
    units: FreeUnits
    root: Integers
    open: Booleans
    inside: Booleans

    @property
    def moved(self) -> int:
        """How many units have a host."""
        return int(np.count_nonzero(self.root != np.arange(len(self.root))))

    def labels(self, unit_labels: Integers) -> Integers:
        """n: labels of nodes from labels of units."""
        out: Integers = unit_labels[self.units.unit_of_node]
        return out


def attached(problem: Problem, supports: Supports) -> Attached | None:
    """The problem with what is dominated attached; None where nothing is free, or rules are asked for that might care.

    ``supports``: what whoever asks knows of; other rules may name operators, count them or add them up.
    """
    if problem.constraint("contiguous") is None or problem.execution.options is not None or ignored(problem, supports):
        return None
    if problem.streaming.any:
        return None  # what a unit occupies takes time wherever it is streamed
    units = free_units(problem)
    if not units.free.any():
        return None
    start = Attaching(units, units.memory)
    start.attach()
    root = np.array([start.of(v) for v in range(units.units)], dtype=np.int64)
    still = np.zeros(units.units, dtype=bool)
    still[list(start.touching)] = True
    smaller = problem if (root == np.arange(units.units)).all() else _together(problem, root[units.unit_of_node])
    return Attached(problem, smaller, units, root, still, still & _inside(start))


def _inside(attaching: Attaching) -> Booleans:
    """u: units that hang nowhere off the graph: to count them adds few ideals."""
    beside, timed = attaching.beside(), ~attaching.units.free
    if beside is None or not timed.any():
        return np.zeros(attaching.units.units, dtype=bool)
    return np.asarray(beside <= _INSIDE * beside[timed].mean(), dtype=np.bool_)


def _together(problem: Problem, labels: Integers) -> Problem:
    return with_colocation(problem, labels, _ATTACHED)


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A relaxation of a problem.  u units, n nodes.

    ``root``  u: the unit that each is part of there;  ``out``  u: units that it leaves out
    ``behind``  2 x n memory that counts nothing in the problem, but has to be held by devices that do not come before
                that of the node, and by devices that do not come after it
    ``homes``   where the units that count no memory are at home;  ``node``  u: a node of each unit
    """

    problem: Problem
    root: Integers
    out: Booleans
    behind: Floats
    homes: Homes
    node: Integers


def relaxed(known: Attached, kept: Booleans) -> Relaxation:
    """A relaxation of the problem.

    ``kept``: u units of which everything counts.  The memory of the others counts nothing; what has no host even so is
    left out of the tensors that it touches and of the order, where that leaves the costs between others as they are.
    """
    units, problem = known.units, known.written
    dropped = known.open & ~kept
    memory = np.where(dropped, 0.0, units.memory)
    attaching = Attaching(units, memory)
    attaching.attach()
    out = np.zeros(units.units, dtype=bool)
    for v in [v for v in attaching.touching if dropped[v]]:
        bridge = any(attaching.producer[i] != v and attaching.readers[i] == {v} for i in attaching.touching[v]) and any(
            attaching.producer[i] == v and attaching.readers[i] for i in attaching.touching[v]
        )
        out[v] = not bridge
    graph = replace(problem.graph, memory=np.where(dropped[units.unit_of_node], 0.0, problem.graph.memory))
    if not out.any():
        root = np.array([attaching.of(v) for v in range(units.units)], dtype=np.int64)
        smaller = _together(replace(problem, graph=graph), root[units.unit_of_node])
    else:
        smaller, root, out = _without(replace(problem, graph=graph), attaching, out)
    # Only units that take time, or memory that counts, are where the placement itself has them.
    stays = ~units.free | (known.open & ~dropped & (units.memory > 0.0))
    left = dropped & (units.memory > 0.0) & units.tight
    near = nearest(units, stays, left)
    node = np.full(units.units, -1, dtype=np.int64)
    node[units.unit_of_node[::-1]] = np.arange(len(units.unit_of_node))[::-1]
    return Relaxation(smaller, root, out, _behind(known, left, near, node), homes(units, near, stays, root, out), node)


def _behind(known: Attached, dropped: Booleans, near: Integers, node: Integers) -> Floats:
    """What the units that count no memory hold, by the nodes that they come after, and before.

    Of several units around one the last before it and the first after it say most.
    """
    units = known.units
    out = np.zeros((2, len(units.unit_of_node)))
    for side in (0, 1):
        own = np.flatnonzero(dropped & (near[side] >= 0))
        np.add.at(out[side], node[near[side, own]], units.memory[own])
    return out


def _without(problem: Problem, attaching: Attaching, out: Booleans) -> tuple[Problem, Integers, Booleans]:
    """The problem without some units: they touch no tensor, and what came before them comes before what came after."""
    units = attaching.units
    # What has been attached to a unit that is left out is left out as well.
    out = np.array([bool(out[attaching.of(v)]) for v in range(units.units)])
    gone = out[units.unit_of_node]
    graph = problem.graph
    stays = ~(gone[graph.edge_source] | gone[graph.edge_target])
    graph = replace(
        graph, edge_source=graph.edge_source[stays], edge_target=graph.edge_target[stays],
        edge_tensor=graph.edge_tensor[stays],
    )  # fmt: skip
    before, after = _bypassed(units.before, units.after, out)
    node = np.full(units.units, -1, dtype=np.int64)
    node[units.unit_of_node[::-1]] = np.arange(graph.nodes)[::-1]
    inside = ~(gone[problem.precedence_source] | gone[problem.precedence_target])
    smaller = replace(
        problem, graph=graph, time=np.where(gone[:, None], 0.0, problem.time),
        precedence_source=np.concatenate((problem.precedence_source[inside], node[before])),
        precedence_target=np.concatenate((problem.precedence_target[inside], node[after])),
    )  # fmt: skip
    # Wherever they are, they cost nothing: with any unit.
    root = np.array([attaching.of(v) for v in range(units.units)], dtype=np.int64)
    host = np.flatnonzero(~out)
    if len(host):
        root[out] = root[host[0]]
    return _together(smaller, root[units.unit_of_node]), root, out


def _bypassed(before: Integers, after: Integers, out: Booleans) -> tuple[Integers, Integers]:
    """Pairs around the units that are left out: from what came before a row of them to what came after it."""
    near = out[before] | out[after]
    earlier: dict[int, set[int]] = {}
    later: dict[int, set[int]] = {}
    for u, v in zip(before[near].tolist(), after[near].tolist(), strict=True):
        later.setdefault(u, set()).add(v)
        earlier.setdefault(v, set()).add(u)
    pairs: set[tuple[int, int]] = set()
    for v in np.flatnonzero(out).tolist():
        ahead, behind = earlier.pop(v, set()), later.pop(v, set())
        for u in ahead:
            later[u].discard(v)
        for w in behind:
            earlier[w].discard(v)
        for u in ahead:
            for w in behind:
                later.setdefault(u, set()).add(w)
                earlier.setdefault(w, set()).add(u)
    pairs.update((u, w) for u, known in later.items() for w in known)
    if not pairs:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    first, second = np.array(sorted(pairs), dtype=np.int64).T
    return first, second


def held(known: Attached, labels: Integers) -> Problem:
    """The problem where units of one label (u of them) share a device."""
    both = [known.root, labels]
    return _together(known.written, known.labels(joined_partitions(known.units.units, both)))


def first_relaxation(known: Attached) -> Problem:
    """What the search is over first: the problem itself where no unit is open."""
    return relaxed(known, known.inside).problem if known.open.any() else known.problem


def said(known: Attached) -> str:
    """What is done, in words."""
    free, moved = int(np.count_nonzero(known.units.free)), known.moved
    left = int(np.count_nonzero(known.open & ~known.inside))
    text = f"{free} of {known.units.units} units take no time; {moved} of them share the device of another without loss"
    return text + (f", {left} are left out at first and counted where they matter" if left else "")
