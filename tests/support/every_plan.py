"""All plans of a small problem, for enumeration by the evaluator."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from placedsl.problem.cluster_levels import ClusterLevels
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values


def every_plan(problem: Problem) -> Iterator[tuple[list[int], Values]]:
    """All placements on leading devices, copies, devices of each, options, orders, chunks, and how often clusters run
    that share samples; most are none."""
    costs, sharing = problem.execution.options, problem.execution.data_parallelism
    assert costs is not None
    assert sharing is not None
    count, nodes = len(problem.machine.devices), problem.graph.nodes
    options = [[o for o, v in enumerate(costs.node.tolist()) if v == node] for node in range(nodes)]
    for placement in itertools.product(range(count), repeat=nodes):
        used = sorted(set(placement))
        chunked = list(_chunks(placement, sharing.chunks))
        for shapes in itertools.product(itertools.product(sharing.degrees, sharing.tensor), repeat=len(used)):
            if not chunked or sum(copies * degree for copies, degree in shapes) > count:
                continue
            of_stage = dict(zip(used, shapes, strict=True))
            fitting = [[o for o in options[v] if costs.degree[o] == of_stage[placement[v]][1]] for v in range(nodes)]
            orders = itertools.permutations(range(len(used)))
            for chosen, order, chunks in itertools.product(itertools.product(*fitting), orders, chunked):
                values = {
                    "copies": {(d,): float(of_stage[d][0]) if d in of_stage else 0.0 for d in range(count)},
                    "copy_size": {(d,): float(of_stage[d][1]) for d in used},
                    "option": {(v,): float(o) for v, o in enumerate(chosen)},
                    "order": {(d,): float(k) for d, k in zip(used, order, strict=True)},
                }
                if sharing.chunks > 1:
                    values["chunk"] = {(v,): float(own) for v, own in enumerate(chunks)}
                if sharing.across is None:
                    yield list(placement), values
                    continue
                for runs in _runs(sharing.across, used):
                    yield list(placement), {**values, "cluster_copies": runs}


def _runs(levels: ClusterLevels, used: list[int]) -> Iterator[dict[tuple[int, ...], float]]:
    """In how many clusters of its level each that holds a stage runs."""
    clusters = sorted({cluster for d in used for cluster in levels.around[d]})
    numbers = (range(1, levels.size[levels.level_of[cluster] + 1] + 1) for cluster in clusters)
    for copies in itertools.product(*numbers):
        yield {(cluster,): float(number) for cluster, number in zip(clusters, copies, strict=True)}


def _chunks(placement: tuple[int, ...], most: int) -> Iterator[tuple[int, ...]]:
    """The chunk of each node, from 1; each device has nodes of all chunks."""
    wanted = len(set(placement)) * most
    for chunks in itertools.product(range(1, most + 1), repeat=len(placement)):
        if len({*zip(placement, chunks, strict=True)}) == wanted:
            yield chunks
