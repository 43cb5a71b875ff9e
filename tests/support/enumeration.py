"""The least objectives of a small problem by enumeration: placements up to symmetry of the machine, and what an answer
decides beside them.

Devices that are alike may be exchanged, and clusters that are alike with all that is in them.  Of placements that only
differ so, one is evaluated: the one whose alike parts are first used in their order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem
from support.one_sample import latency_of

Objectives = tuple[float, ...]


def enumerated(problem: Problem) -> list[Objectives]:
    """The objectives of all that satisfies the constraints; ``latency`` of operators is that of the best order."""
    out: list[Objectives] = []
    for place in placements(problem):
        if problem.execution.run == "operators":
            found = evaluate(problem, place)
            if not found.violations:
                latency = latency_of(problem, place)
                named = zip(problem.objectives, found.objectives, strict=True)
                out.append(tuple(latency if goal.name == "latency" else value for goal, value in named))
            continue
        for values in _decisions(problem, place):
            found = evaluate(problem, place, values)
            if not found.violations:
                out.append(found.objectives)
    return out


def least(every: Sequence[Objectives]) -> Objectives:
    """Least in order of importance; values that differ by rounding are equal.  All inf where there are none."""
    found = list(every)
    if not found:
        return (math.inf,)
    for position in range(len(found[0])):
        smallest = min(objectives[position] for objectives in found)
        found = [o for o in found if o[position] <= smallest + 1e-9 * abs(smallest)]
    return found[0]


def placements(problem: Problem) -> Iterator[list[int]]:
    """One of each class of placements that symmetry makes alike, within memory limits; one ``colocated by`` at most."""
    labels = next(iter(problem.colocation_groups()), np.arange(problem.graph.nodes))
    groups = [np.flatnonzero(labels == label).tolist() for label in np.unique(labels)]
    alike = _alike(problem)
    for chosen in itertools.product(range(len(problem.machine.devices)), repeat=len(groups)):
        place = [0] * problem.graph.nodes
        for group, device in zip(groups, chosen, strict=True):
            for v in group:
                place[v] = device
        if not all(np.isfinite(problem.time[v, d]) for v, d in enumerate(place)):
            continue
        held = np.bincount(place, problem.graph.memory, minlength=len(problem.machine.devices))
        if (held > problem.memory_limits).any():
            continue
        first = {device: v for v, device in reversed(list(enumerate(place)))}
        used = [[min((first.get(d, math.inf) for d in part), default=math.inf) for part in parts] for parts in alike]
        if all(a <= b for parts in used for a, b in itertools.pairwise(parts)):
            yield place


def _alike(problem: Problem) -> list[list[tuple[int, ...]]]:
    """Lists of sets of devices that may be exchanged with one another, within each cluster and outermost."""
    machine, sharing = problem.machine, problem.execution.data_parallelism

    def device(d: int) -> Hashable:
        one = machine.devices[d]
        weights = b"" if sharing is None else sharing.synchronisation[:, d].tobytes()
        costs = problem.time[:, d].tobytes(), problem.transfer[:, d].tobytes(), weights
        return "device", one.family, one.kind, one.memory, tuple(sorted(one.attributes.items())), costs

    def within(parent: int) -> list[tuple[Hashable, tuple[int, ...]]]:
        """What lies directly in a cluster (-1: in the machine): clusters, and devices by themselves."""
        out = []
        for c, cluster in enumerate(machine.clusters):
            if cluster.parent == parent and not cluster.alone:
                link = cluster.interconnect
                speed = None if link is None else (link.bandwidth, link.latency)
                inside = tuple(sorted((repr(key) for key, _ in within(c))))
                out.append((("cluster", cluster.family, speed, inside), cluster.devices))
        out += [(device(d), (d,)) for d in range(len(machine.devices)) if machine.innermost(d) == parent]
        return out

    found: list[list[tuple[int, ...]]] = []
    for parent in [-1, *(c for c, cluster in enumerate(machine.clusters) if not cluster.alone)]:
        by_key: dict[Hashable, list[tuple[int, ...]]] = {}
        for key, devices in within(parent):
            by_key.setdefault(key, []).append(devices)
        found += [parts for parts in by_key.values() if len(parts) > 1]
    return found


def _decisions(problem: Problem, place: list[int]) -> Iterator[dict[str, dict[tuple[int, ...], float]]]:
    """All that an answer says beside the placement: numbers of calls, or of devices that share stages."""
    execution, used = problem.execution, sorted(set(place))
    if execution.run == "subgraph_calls":
        slots = [range(1, 1 + (execution.slots if problem.accelerators[d] else 1)) for d in place]
        for pieces in itertools.product(*slots):
            yield {"piece": {(v,): float(p) for v, p in enumerate(pieces)}}
    elif execution.data_parallelism is not None:
        for copies in itertools.product(execution.data_parallelism.degrees, repeat=len(used)):
            known = dict.fromkeys(range(len(problem.machine.devices)), 0.0) | dict(
                zip(used, map(float, copies), strict=True)
            )
            yield {"copies": {(d,): number for d, number in known.items()}}
    else:
        yield {}
