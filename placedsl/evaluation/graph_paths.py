"""Paths that leave a set and come back, and cycles between sets, with witnesses."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)
Pair = tuple[int, int]


class Return(NamedTuple):
    """A path from ``start`` in the set through ``outside`` to ``end`` in the set."""

    start: int
    outside: int
    end: int


def successors(edges: Iterable[Pair], among: Collection[int]) -> dict[int, list[int]]:
    """The edges with both ends among these nodes, by source."""
    out: dict[int, list[int]] = {}
    for u, v in edges:
        if u in among and v in among:
            out.setdefault(u, []).append(v)
    return out


def coming_back(members: Collection[int], after: Mapping[int, Sequence[int]]) -> Return | None:
    """A path that leaves the members and comes back to them, if there is one."""
    start: dict[int, int] = {}
    waiting: deque[int] = deque()
    for u in sorted(members):
        for w in after.get(u, ()):
            if w not in members and w not in start:
                start[w] = u
                waiting.append(w)
    while waiting:
        w = waiting.popleft()
        for v in after.get(w, ()):
            if v in members:
                return Return(start[w], w, v)
            if v not in start:
                start[v] = start[w]
                waiting.append(v)
    return None


def shortest_cycle(after: Mapping[Key, Collection[Key]], through: Iterable[Key]) -> list[Key]:
    """A cycle that passes one of these vertices, starting there, with as few steps as any from it; or nothing."""
    for root in through:
        came: dict[Key, Key] = {}
        waiting: deque[Key] = deque([root])
        while waiting:
            here = waiting.popleft()
            for there in after.get(here, ()):
                if there == root:
                    out = [here]
                    while out[-1] != root:
                        out.append(came[out[-1]])
                    return out[::-1]
                if there not in came:
                    came[there] = here
                    waiting.append(there)
    return []


class Cycle(NamedTuple):
    """Sets (or single nodes) round a cycle; ``steps[i]`` is a pair that leads from vertex i to the next."""

    vertices: tuple[tuple[str, int], ...]
    steps: tuple[Pair, ...]


def cycle_of_sets(set_of: Mapping[int, int], pairs: Iterable[Pair]) -> Cycle | None:
    """A cycle through some set when every set is drawn together into one vertex.

    ``set_of`` names the set of a node; nodes in no set stay vertices of their own, so that a path may
    run through them.  Vertices are ``("set", number)`` and ``("node", position)``.
    """
    witness: dict[tuple[str, int], dict[tuple[str, int], Pair]] = {}
    for u, v in pairs:
        a = ("set", set_of[u]) if u in set_of else ("node", u)
        b = ("set", set_of[v]) if v in set_of else ("node", v)
        if a != b:
            witness.setdefault(a, {}).setdefault(b, (u, v))
    found = shortest_cycle(witness, [vertex for vertex in sorted(witness) if vertex[0] == "set"])
    if not found:
        return None
    steps = tuple(witness[a][b] for a, b in zip(found, [*found[1:], found[0]], strict=True))
    return Cycle(tuple(found), steps)
