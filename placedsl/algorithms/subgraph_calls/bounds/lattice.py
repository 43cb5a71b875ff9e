"""The ideals of a reduced instance as arrays for the kernels, and which of them are narrow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.subgraph_calls.bounds.reduction import ReducedInstance
from placedsl.algorithms.subgraph_calls.bounds.tables import ExplorationScratch, IdealLattice, StateTable
from placedsl.arrays import Integers

#: A state knows which pairs so many calls have parted.
_KNOWN = 2


def ideal_lattice(problem: ReducedInstance, most: int) -> IdealLattice | None:
    """All ideals, without bounds on the remaining time (None: more than ``most``).

    The nodes are in the order of ``problem.order()``.
    """
    nodes = problem.order()
    number = {v: i for i, v in enumerate(nodes)}
    makers = problem.makers()
    maker = [sorted(number[u] for u in makers[v]) for v in nodes]
    readers = [sorted(number[r] for r in problem.readers(v)) for v in nodes]
    found = _ideals(maker, readers, most)
    if found is None:
        return None
    masks, steps = found
    inside = np.array([[mask >> v & 1 for v in range(len(nodes))] for mask in masks], dtype=bool)
    inside = inside.reshape(len(masks), len(nodes))
    read_by = [sum(1 << r for r in some) for some in readers]
    opened = [
        [v for v in np.flatnonzero(inside[i]).tolist() if read_by[v] & ~mask] for i, mask in enumerate(masks)
    ]  # fmt: skip
    tensors = [(t, number[v]) for v in nodes for t in problem.made[v]]
    reads = [sorted(number[r] for r in t.readers) for t, _ in tensors]
    made: list[list[int]] = [[] for _ in nodes]
    for t, (_, v) in enumerate(tensors):
        made[v].append(t)
    reads_mask = [sum(1 << r for r in some) for some in reads]
    left = [
        sum(tensors[t][0].out for t in made[v] if reads_mask[t] & ~mask)
        for mask, some in zip(masks, opened, strict=True)
        for v in some
    ]
    unread = np.array([not some for some in made], dtype=bool)
    source = np.array([a for a, _, _ in steps], dtype=np.int64)
    entries = problem.budget + 1
    partner = np.full(len(nodes), -1, dtype=np.int64)
    for u, w in problem.pairs():
        partner[number[u]] = number[w]
    paired = np.flatnonzero(partner >= 0)
    parted = [paired[half].tolist() for half in inside[:, paired] & ~inside[:, partner[paired]]]
    return IdealLattice(
        fast=np.array([problem.fast[v] for v in nodes]), slow=np.array([problem.slow[v] for v in nodes]),
        memory=np.array([problem.memory[v] for v in nodes]), capacity=problem.capacity, budget=problem.budget,
        grain=problem.grain, part=np.array([problem.part.get(v, 0.0) for v in nodes]), shared=problem.slots > 2,
        partner=partner, parted_start=_starts(parted), parted=_flat(parted),
        out=np.array([t.out for t, _ in tensors]), into=np.array([t.into for t, _ in tensors]),
        read_start=_starts(reads), reader=_flat(reads), made_start=_starts(made), made=_flat(made),
        maker_start=_starts(maker), maker=_flat(maker), inside=inside,
        next_start=np.searchsorted(source, np.arange(len(masks) + 1)),
        next_ideal=np.array([b for _, b, _ in steps], dtype=np.int64),
        next_node=np.array([v for _, _, v in steps], dtype=np.int64),
        open_start=_starts(opened), open_node=_flat(opened), open_out=np.array(left),
        ends=inside[:, unread].sum(axis=1),
        tail=np.zeros((sum(map(len, opened)), entries)), ahead=np.zeros((len(masks), entries)),
        narrow=np.full(len(masks), -1, dtype=np.int64),
    )  # fmt: skip


def _ideals(
    maker: list[list[int]], readers: list[list[int]], most: int
) -> tuple[list[int], list[tuple[int, int, int]]] | None:
    """Ideals as bit masks, by size, and the steps between them: (from, to, the additional node)."""
    behind = [sum(1 << u for u in some) for some in maker]
    level = {0: [v for v, some in enumerate(maker) if not some]}
    masks: list[int] = []
    index: dict[int, int] = {}
    steps: list[tuple[int, int, int]] = []
    while level:
        following: dict[int, list[int]] = {}
        for mask, able in level.items():
            index[mask] = len(masks)
            masks.append(mask)
            for v in able:
                larger = mask | 1 << v
                steps.append((mask, larger, v))
                if larger not in following:
                    freed = [r for r in readers[v] if not behind[r] & ~larger]
                    following[larger] = [u for u in able if u != v] + freed
        if len(masks) + len(following) > most:
            return None
        level = following
    return masks, [(index[a], index[b], v) for a, b, v in steps]


def _starts(lists: Sequence[Sequence[int]]) -> Integers:
    return np.cumsum([0, *map(len, lists)], dtype=np.int64)


def _flat(lists: Sequence[Sequence[int]]) -> Integers:
    return np.array([x for some in lists for x in some], dtype=np.int64)


def narrow_ideals(lattice: IdealLattice) -> list[tuple[int, int]]:
    """The ideals with their last nodes in which all others come before one node, which all outside come after.

    The last ideal, of all nodes, is left out, and so are those that part a pair.
    """
    nodes = len(lattice.fast)
    before = np.zeros((nodes, nodes), dtype=bool)
    for v in range(nodes):
        for u in lattice.maker[lattice.maker_start[v] : lattice.maker_start[v + 1]].tolist():
            before[v] |= before[u]
            before[v, u] = True
    comparable = before.sum(axis=0) + before.sum(axis=1) == nodes - 1
    size = lattice.inside.sum(axis=1)
    out = []
    for i in np.flatnonzero(np.diff(lattice.open_start) == 1).tolist():
        v = int(lattice.open_node[lattice.open_start[i]])
        if comparable[v] and lattice.partner[v] < 0 and size[i] == before[v].sum() + 1:
            out.append((i, v))
    return out


def without_last(lattice: IdealLattice, ideal: int, node: int) -> int:
    """The ideal from which ``ideal`` is reached by its last node, ``node``."""
    step = np.flatnonzero((lattice.next_ideal == ideal) & (lattice.next_node == node))[0]
    return int(np.searchsorted(lattice.next_start, step, side="right")) - 1


def new_tables(lattice: IdealLattice, most_states: int) -> tuple[StateTable, ExplorationScratch]:
    """Space for so many states."""
    ideals, nodes = lattice.inside.shape
    width = int(np.diff(lattice.open_start).max(initial=0)) + 1
    known, groups = (_KNOWN, _KNOWN + 1) if len(lattice.parted) else (0, 0)
    states = StateTable(
        used=np.empty(most_states, dtype=np.int64), times=np.empty((most_states, width)),
        later=np.empty(most_states, dtype=np.int64), first=np.full(ideals, -1, dtype=np.int64),
        number=np.zeros(2, dtype=np.int64), ideal=np.empty(most_states, dtype=np.int64),
        before=np.empty(most_states, dtype=np.int64), called=np.empty(most_states, dtype=np.bool_),
        since=np.empty((most_states, known), dtype=np.int64), held=np.empty((most_states, groups)),
        found=np.full((lattice.budget + 1, 4), -1, dtype=np.int64),
    )  # fmt: skip
    scratch = ExplorationScratch(
        stamp=np.full(ideals, -1, dtype=np.int64), queue=np.empty(ideals, dtype=np.int64), held=np.empty(ideals),
        length=np.empty(ideals), where=np.empty(nodes, dtype=np.int64), times=np.empty(width),
        needed=np.empty(width, dtype=np.bool_), since=np.empty(known, dtype=np.int64), room=np.empty(groups),
    )  # fmt: skip
    return states, scratch
