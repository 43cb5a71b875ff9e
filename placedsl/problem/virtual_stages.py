"""Cutting a placement into virtual stages: the virtual devices of Tarnawski et al. 2020, section 5.2.

A virtual stage is a set of nodes of one device that runs without a break.  The graph of stages has no cycle, and no two
stages of one owner could be one without making a cycle.  The owner of a node is its device, and where the passes of
a training graph are apart, its device and pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from heapq import heapify, heappop, heappush

from placedsl.problem.problem import Problem
from placedsl.records import dataclass

Arcs = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class VirtualStage:
    """Nodes of one device, and of one pass where passes are apart, that run without a break.

    ``name`` is what tables and pictures say: the device, the pass, a number where there are several.
    """

    device: int
    backward: bool
    nodes: tuple[int, ...]
    name: str


def virtual_stages(problem: Problem, placement: Sequence[int], *, passes: bool) -> tuple[VirtualStage, ...]:
    """The stages of a placement in a topological order; ``passes``: forward and backward nodes are kept apart."""
    graph = problem.graph
    backward = [passes and bool(flag) for flag in graph.backward.tolist()]
    owners = list(zip(placement, backward, strict=True))
    edges = list(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))
    sets = cut(edges, owners)
    number_of: dict[Hashable, int] = {}
    several = {owner for owner in owners if sum(owners[nodes[0]] == owner for nodes in sets) > 1}
    training = any(backward)
    out = []
    for nodes in sets:
        device, back = owner = owners[nodes[0]]
        number_of[owner] = number_of.get(owner, 0) + 1
        words = [problem.machine.devices[device].name]
        words += [("backward" if back else "forward")] if training else []
        words += [str(number_of[owner])] if owner in several else []
        out.append(VirtualStage(device, back, tuple(nodes), " ".join(words)))
    return tuple(out)


def arcs_of(problem: Problem, stages: Sequence[VirtualStage]) -> Arcs:
    """Which stage reads from which: (from, to), without those within a stage."""
    graph = problem.graph
    stage_of = {v: p for p, stage in enumerate(stages) for v in stage.nodes}
    ends = zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)
    return frozenset((stage_of[u], stage_of[v]) for u, v in ends if stage_of[u] != stage_of[v])


def cut(edges: Sequence[tuple[int, int]], owners: Sequence[Hashable]) -> list[list[int]]:
    """The nodes as sets of one owner each, in a topological order of the sets; no two of them can be merged."""
    label = [0] * len(owners)
    for number, nodes in enumerate(_runs(edges, owners)):
        for v in nodes:
            label[v] = number
    _merge(edges, owners, label)
    after = _quotient(edges, label)
    sets: dict[int, list[int]] = {number: [] for number in after}
    for v, number in enumerate(label):
        sets[number].append(v)
    return [sets[number] for number in _order(after)]


def _runs(edges: Sequence[tuple[int, int]], owners: Sequence[Hashable]) -> list[list[int]]:
    """Runs of one owner after another.  An owner that can finish is taken first: so a pipeline is one run a device."""
    after: list[list[int]] = [[] for _ in owners]
    missing = [0] * len(owners)
    for u, v in edges:
        after[u].append(v)
        missing[v] += 1
    left: dict[Hashable, int] = {}
    for owner in owners:
        left[owner] = left.get(owner, 0) + 1
    ready: dict[Hashable, list[int]] = {owner: [] for owner in left}
    for v, count in enumerate(missing):
        if not count:
            ready[owners[v]].append(v)
    possible: dict[Hashable, list[int]] = {}
    out = []
    while any(left.values()):
        for owner, first in ready.items():
            if first and owner not in possible:
                possible[owner] = _closure(first, owners, after, missing)
        best = max(possible, key=lambda owner: len(possible[owner]) / left[owner])
        run = possible.pop(best)
        ready[best] = []
        left[best] -= len(run)
        out.append(run)
        for u in run:
            for v in after[u]:
                missing[v] -= 1
                if owners[v] != best:
                    possible.pop(owners[v], None)  # what can follow there may be more now
                    if not missing[v]:
                        ready[owners[v]].append(v)
    return out


def _closure(
    first: Sequence[int], owners: Sequence[Hashable], after: Sequence[Sequence[int]], missing: Sequence[int]
) -> list[int]:
    """These nodes, and all of their owner that can follow when nobody else does anything."""
    run = list(first)
    still: dict[int, int] = {}
    for u in run:  # grows while it is read
        for v in after[u]:
            if owners[v] == owners[u]:
                still[v] = still.get(v, missing[v]) - 1
                if not still[v]:
                    run.append(v)
    return run


def _merge(edges: Sequence[tuple[int, int]], owners: Sequence[Hashable], label: list[int]) -> None:
    """Give two sets of one owner one label wherever no path leads from one through a third to the other."""
    owner_of = {number: owners[v] for v, number in enumerate(label)}
    found = True
    while found:
        found = False
        after = _quotient(edges, label)
        reach = _reach(after)
        for p in sorted(owner_of):
            for q in [q for q in owner_of if q > p and owner_of[q] == owner_of.get(p)]:
                if _apart(p, q, after, reach) or _apart(q, p, after, reach):
                    continue
                label[:] = [p if number == q else number for number in label]
                del owner_of[q]
                after = _quotient(edges, label)
                reach = _reach(after)
                found = True


def _apart(p: int, q: int, after: dict[int, set[int]], reach: dict[int, int]) -> bool:
    """Whether a path leads from p through a third set to q."""
    return any(reach[x] >> q & 1 for x in after[p] if x != q)


def _quotient(edges: Sequence[tuple[int, int]], label: Sequence[int]) -> dict[int, set[int]]:
    after: dict[int, set[int]] = {number: set() for number in label}
    for u, v in edges:
        if label[u] != label[v]:
            after[label[u]].add(label[v])
    return after


def _reach(after: dict[int, set[int]]) -> dict[int, int]:
    """What each set reaches, itself too, as the bits of a number."""
    reach: dict[int, int] = {}
    for p in reversed(_order(after)):
        reach[p] = 1 << p
        for q in after[p]:
            reach[p] |= reach[q]
    return reach


def _order(after: dict[int, set[int]]) -> list[int]:
    """A topological order, the smallest number first where there is a choice."""
    missing = dict.fromkeys(after, 0)
    for followers in after.values():
        for q in followers:
            missing[q] += 1
    waiting = [p for p, count in missing.items() if not count]
    heapify(waiting)
    out = []
    while waiting:
        p = heappop(waiting)
        out.append(p)
        for q in after[p]:
            missing[q] -= 1
            if not missing[q]:
                heappush(waiting, q)
    return out
