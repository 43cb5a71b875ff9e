"""Cycles of directed graphs."""

from __future__ import annotations

from collections.abc import Sequence


def acyclic(vertices: int, arcs: Sequence[tuple[int, int]]) -> bool:
    """Whether there is no cycle."""
    return len(sorted_vertices(vertices, arcs)) == vertices


def sorted_vertices(vertices: int, arcs: Sequence[tuple[int, int]]) -> list[int]:
    """The vertices, none before one from which an arc leads to it; those after a cycle are left out."""
    out_of: list[set[int]] = [set() for _ in range(vertices)]
    for a, b in arcs:
        out_of[a].add(b)
    into = [0] * vertices
    for own in out_of:
        for b in own:
            into[b] += 1
    ready = [v for v in range(vertices) if not into[v]]
    for v in ready:
        for b in out_of[v]:
            into[b] -= 1
            if not into[b]:
                ready.append(b)
    return ready


def components(vertices: int, arcs: Sequence[tuple[int, int]]) -> list[int]:
    """A number for each vertex from 0, the same for those on a cycle: two passes in depth first."""
    ahead: list[list[int]] = [[] for _ in range(vertices)]
    back: list[list[int]] = [[] for _ in range(vertices)]
    for a, b in arcs:
        ahead[a].append(b)
        back[b].append(a)
    ended: list[int] = []
    seen = [False] * vertices
    for root in range(vertices):
        stack = [] if seen[root] else [(root, 0)]
        seen[root] = True
        while stack:
            v, k = stack.pop()
            if k == len(ahead[v]):
                ended.append(v)
                continue
            stack.append((v, k + 1))
            w = ahead[v][k]
            if not seen[w]:
                seen[w] = True
                stack.append((w, 0))
    number, count = [-1] * vertices, 0
    for root in reversed(ended):
        if number[root] >= 0:
            continue
        number[root], waiting = count, [root]
        while waiting:
            for w in back[waiting.pop()]:
                if number[w] < 0:
                    number[w] = count
                    waiting.append(w)
        count += 1
    return number
