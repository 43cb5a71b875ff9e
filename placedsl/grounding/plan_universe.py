"""What formulations of plans speak of: ways to run an operator, shapes of a stage, and what ways move.

A *way* is an option of a node.  A *shape* is a number of copies, the devices of each, and the samples in flight on
each; with the copies of the stage and all later ones for which a stage has so many in flight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from placedsl.arrays import Integers
from placedsl.problem.execution import DataParallelism
from placedsl.problem.expressions import Sort
from placedsl.problem.problem import Problem

#: Attributes that are elements.
ELEMENTS = frozenset(
    [("way", "operator"), *((moved, of) for moved in ("gathering", "scattering") for of in ("way", "tensor"))]
)


@dataclass(frozen=True, eq=False)
class PlanUniverse:
    """Sets, attribute columns, sizes and labels, as in :class:`placedsl.grounding.universe.Universe`."""

    sets: Mapping[str, tuple[Integers, ...]] = field(default_factory=dict)
    attributes: Mapping[tuple[Sort, str], np.ndarray] = field(default_factory=dict)
    sizes: Mapping[Sort, int] = field(default_factory=dict)
    labels: Mapping[Sort, tuple[str, ...]] = field(default_factory=dict)


def of_plans(problem: Problem, tensor_of: Integers, turns: Integers | None) -> PlanUniverse:
    """Over nodes as they are; nothing where the spec asks for no plan.

    ``tensor_of``: per tensor of the graph that of the universe (-1: none).  ``turns``: a number a device, the same
    where nothing tells two of them apart (None: all are told apart).  The first of such devices lead stages, in the
    order of their numbers: as many as there are nodes are enough.
    """
    sharing, costs = problem.execution.data_parallelism, problem.execution.options
    if sharing is None or costs is None:
        return PlanUniverse()
    turns = np.arange(len(problem.machine.devices)) if turns is None else turns
    leads = np.tril(turns[:, None] == turns, -1).sum(axis=1) < problem.graph.nodes
    first, second = np.nonzero(np.triu((turns[:, None] == turns) & leads[:, None] & leads, 1))
    runs = np.isfinite(costs.time) & leads
    able = np.zeros((problem.graph.nodes, len(problem.machine.devices)), dtype=bool)
    np.logical_or.at(able, costs.node, runs)
    shapes = shapes_of_stages(problem, sharing)
    attributes: dict[tuple[Sort, str], np.ndarray] = {
        ("node", "supported"): able, ("device", "turn"): turns.astype(float),
        ("way", "operator"): costs.node, ("way", "name"): np.array(costs.name, dtype=object),
        ("way", "number"): np.arange(len(costs.node), dtype=float), ("way", "tensor"): costs.degree.astype(float),
        ("way", "supported"): runs, ("way", "time"): costs.time, ("way", "weights"): costs.weights,
        ("way", "stash"): costs.stash, ("way", "memory"): costs.memory, ("way", "sharded"): costs.sharded,
        **{("shape", name): shapes[:, k] for k, name in enumerate(_SHAPE)},
    }  # fmt: skip
    sizes = {"way": len(costs.node), "shape": len(shapes)}
    sets: dict[str, tuple[Integers, ...]] = {
        "ways": (np.arange(len(costs.node)),), "shapes": (np.arange(len(shapes)),),
        "leaders": (np.flatnonzero(leads),), "successors": (first, second),
    }  # fmt: skip
    names = problem.graph.names
    labels = {
        "way": tuple(f"{names[v]} {name}/{t}" for v, name, t in zip(costs.node.tolist(), costs.name,
                                                                  costs.degree.tolist(), strict=True)),
        "shape": tuple(f"{c:g} x {t:g}, {q:g} in flight" for c, t, q in shapes[:, :3].tolist()),
    }  # fmt: skip
    for sort, moved in (("gathering", costs.gathered), ("scattering", costs.scattered)):
        there = tensor_of[moved.tensor] >= 0
        option, tensor = moved.option[there], tensor_of[moved.tensor[there]]
        attributes[sort, "way"], attributes[sort, "tensor"] = option, tensor
        attributes[sort, "time"] = moved.amount[there, None] * costs.per_byte
        sizes[sort], sets[f"{sort}s"] = len(option), (np.arange(len(option)),)
        labels[sort] = tuple(labels["way"][o] for o in option.tolist())
    return PlanUniverse(sets, attributes, sizes, labels)


_SHAPE = ("copies", "tensor", "in_flight", "least", "most", "exchanges")


def shapes_of_stages(problem: Problem, sharing: DataParallelism) -> np.ndarray:
    """s x 6: copies, devices of each, samples in flight on each; the least and the most copies of this stage and all
    later ones that make so many; and how often the weights of a stage cross a device's link per sample."""
    most = int(np.bincount(problem.interchangeable()).max())
    every = len(problem.machine.devices)
    together = every if sharing.most_in_pipeline is None else min(every, sharing.most_in_pipeline)
    out = []
    for copies in sharing.degrees:
        exchanges = (copies - 1) / copies * sharing.sent(copies)
        held: dict[int, list[int]] = {}
        for behind in range(copies, together + 1):
            held.setdefault(sharing.in_flight(copies, behind), []).append(behind)
        for tensor in sharing.tensor:
            if copies * tensor <= most:
                out += [(copies, tensor, q, min(n), max(n), exchanges) for q, n in held.items()]
    return np.array(out, dtype=float).reshape(-1, len(_SHAPE))
