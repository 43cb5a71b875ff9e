"""What formulations of plans speak of where clusters share samples: shapes of clusters, and what crosses their links.

A *shape* of a cluster is in how many clusters of its level the same runs, and how often what is around it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from placedsl.arrays import Booleans, Integers
from placedsl.grounding.likeness import Likeness
from placedsl.problem.cluster_levels import ClusterLevels
from placedsl.problem.execution import DataParallelism, OptionCosts
from placedsl.problem.expressions import Sort
from placedsl.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class PlanUniverse:
    """Sets, attribute columns, sizes and labels, as in :class:`placedsl.grounding.universe.Universe`."""

    sets: Mapping[str, tuple[Integers, ...]] = field(default_factory=dict)
    attributes: Mapping[tuple[Sort, str], np.ndarray] = field(default_factory=dict)
    sizes: Mapping[Sort, int] = field(default_factory=dict)
    labels: Mapping[Sort, tuple[str, ...]] = field(default_factory=dict)


def runs_of_stages(levels: ClusterLevels, copies: int) -> tuple[int, ...]:
    """How often an innermost cluster can run that has an equal part of so many copies."""
    return tuple(runs for runs in _runs(levels.size[1:]) if copies % runs == 0)


def sent_per_sample(sharing: DataParallelism, copies: int, runs: int) -> float:
    """How often copies exchange weights per sample, where what they are in runs so often."""
    return sharing.sent(copies) / (1 if sharing.exchange == "batch" else runs)


def of_clusters(
    problem: Problem, sharing: DataParallelism, costs: OptionCosts, tensor_of: Integers, likeness: Likeness,
    leads: Booleans,
) -> PlanUniverse:  # fmt: skip
    """Clusters that share samples; nothing where none does.  ``leads``: the devices that can lead a stage."""
    levels = sharing.across
    if levels is None:
        return PlanUniverse()
    clusters, order = len(problem.machine.clusters), np.flatnonzero(leads).tolist()
    level = [problem.machine.clusters[own[0]].level for own in levels.clusters]
    shapes = np.array(
        [
            (level[k], own, around, own * around, (own - 1) / own * sent_per_sample(sharing, own, around))
            for k, own, around in _shapes(levels, sharing)
        ],
        dtype=float,
    ).reshape(-1, len(_SHAPE))
    parents = [(c, levels.parent[c]) for own in levels.clusters[:-1] for c in own]
    number = likeness.clusters
    like = [(b, c) for own in levels.clusters for c in own for b in own if b < c and number[b] == number[c]]
    members = {c: [d for d in levels.members(c) if leads[d]] for own in levels.clusters for c in own}
    numbered = [(d, e) for d in order for e in order if d < e and likeness.devices[d] == likeness.devices[e]]
    numbered += [(d, e) for b, c in like for d in members[b] for e in members[c]]
    mates = [(d, e, f) for own in members.values() for d, e in pairwise(own) for f in order if f not in own]
    there = np.flatnonzero(tensor_of >= 0)
    crossing = np.zeros((int(tensor_of.max(initial=-1)) + 1, clusters))
    sent = np.zeros((len(costs.node), clusters))
    rate = costs.per_byte[0]
    size = costs.weights[:, 0] / rate * costs.degree if rate > 0.0 else np.zeros(len(costs.node))
    for k, own in enumerate(levels.clusters):
        for cluster in own:
            np.add.at(crossing[:, cluster], tensor_of[there], levels.crossing[k, there])
            sent[:, cluster] = size * levels.per_byte[k]
    attributes: dict[tuple[Sort, str], np.ndarray] = {
        **{("cluster_shape", name): shapes[:, k] for k, name in enumerate(_SHAPE)},
        ("tensor", "crossing"): crossing, ("way", "sent"): sent,
    }  # fmt: skip
    sets: dict[str, tuple[Integers, ...]] = {
        "cluster_shapes": (np.arange(len(shapes)),),
        "cluster_runs": (np.array(_runs(levels.size[1:]), dtype=np.int64),),
        "cluster_parents": _columns(parents, 2), "like_clusters": _columns(like, 2),
        "ordered_devices": _columns(numbered, 2), "cluster_mates": _columns(mates, 3),
    }  # fmt: skip
    shown = tuple(f"{c:g} of level {k:g}" + (f", {r:g} times" if r > 1 else "") for k, c, r, *_ in shapes.tolist())
    return PlanUniverse(sets, attributes, {"cluster_shape": len(shapes)}, {"cluster_shape": shown})


def columns_of_clusters(levels: ClusterLevels, sharing: DataParallelism, ways: int) -> int:
    """How many columns programs have for what is in clusters, about."""
    return ways * sum(len(levels.clusters[level]) for level, _, _ in _shapes(levels, sharing))


def _shapes(levels: ClusterLevels, sharing: DataParallelism) -> list[tuple[int, int, int]]:
    """Levels, copies of a cluster, and how often what is around it runs: those that some number of copies allows."""
    return [
        (k, own, around)
        for k in range(len(levels.clusters))
        for around in _runs(levels.size[k + 2 :])
        for own in range(1, levels.size[k + 1] + 1)
        if any(copies % (own * around) == 0 for copies in sharing.degrees)
    ]


_SHAPE = ("level", "copies", "around", "runs", "exchanges")


def _runs(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The products of one number for each size, from 1 to that size."""
    out = {1}
    for size in sizes:
        out = {known * copies for known in out for copies in range(1, size + 1)}
    return tuple(sorted(out))


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> tuple[Integers, ...]:
    return tuple(np.array(rows, dtype=np.int64).reshape(-1, width).T)
