"""What formulations of plans speak of: ways to run an operator, shapes of a stage, and what ways move.

A *way* is an option of a node.  A *shape* is a number of copies, the devices of each, and the samples in flight on
each; with the copies of the stage and all later ones for which a stage has so many in flight.  A *slot* is a part of
the model that a stage of some shape holds: one, or several chunks, where shapes say how many stages there are and which
of them it is.  *Moments* are those of a batch, by what is held of each chunk.
"""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.grounding.cluster_universe import PlanUniverse, of_clusters, runs_of_stages, sent_per_sample
from placedsl.grounding.likeness import Likeness
from placedsl.problem.execution import DataParallelism
from placedsl.problem.expressions import Sort
from placedsl.problem.problem import Problem

#: Attributes that are elements.
ELEMENTS = frozenset(
    [
        ("way", "operator"),
        ("slot", "shape"),
        *((moved, of) for moved in ("gathering", "scattering") for of in ("way", "tensor")),
    ]
)


def of_plans(problem: Problem, tensor_of: Integers, likeness: Likeness | None) -> PlanUniverse:
    """Over nodes as they are; nothing where the spec asks for no plan.

    ``tensor_of``: per tensor of the graph that of the universe (-1: none).  The first of devices that nothing tells
    apart lead stages, in the order of their numbers: as many as there are nodes are enough, and as many clusters of
    such ones.
    """
    sharing, costs = problem.execution.data_parallelism, problem.execution.options
    if sharing is None or costs is None:
        return PlanUniverse()
    likeness = likeness or Likeness.none(problem)
    turns, leads = likeness.devices, likeness.leaders(problem)
    first, second = np.nonzero(np.triu((turns[:, None] == turns) & leads[:, None] & leads, 1))
    runs = np.isfinite(costs.time) & leads
    able = np.zeros((problem.graph.nodes, len(problem.machine.devices)), dtype=bool)
    np.logical_or.at(able, costs.node, runs)
    shapes, slots, held = slots_of_stages(problem, sharing)
    attributes: dict[tuple[Sort, str], np.ndarray] = {
        ("node", "supported"): able, ("device", "turn"): turns.astype(float),
        ("way", "operator"): costs.node, ("way", "name"): np.array(costs.name, dtype=object),
        ("way", "number"): np.arange(len(costs.node), dtype=float), ("way", "tensor"): costs.degree.astype(float),
        ("way", "supported"): runs, ("way", "time"): costs.time, ("way", "weights"): costs.weights,
        ("way", "stash"): costs.stash, ("way", "memory"): costs.memory, ("way", "sharded"): costs.sharded,
        **{("shape", name): shapes[:, k] for k, name in enumerate(_SHAPE)},
        **{("slot", name): slots[:, k] for k, name in enumerate(_SLOT)},
        ("slot", "shape"): slots[:, -1].astype(np.int64), ("slot", "held"): held,
    }  # fmt: skip
    sizes = {"way": len(costs.node), "shape": len(shapes), "slot": len(slots), "moment": held.shape[1]}
    sets: dict[str, tuple[Integers, ...]] = {
        "ways": (np.arange(len(costs.node)),), "shapes": (np.arange(len(shapes)),),
        "slots": (np.arange(len(slots)),), "moments": (np.arange(held.shape[1]),),
        "leaders": (np.flatnonzero(leads),), "successors": (first, second), "ordered_devices": (first, second),
    }  # fmt: skip
    names = problem.graph.names
    taken = zip(costs.node.tolist(), costs.name, costs.degree.tolist(), strict=True)
    shown = [f"{c:g} x {t:g}" + (f", {p:g} of {n:g}" if n else f", {q:g} in flight")
             for c, t, q, *_, n, p in shapes.tolist()]  # fmt: skip
    labels = {
        "way": tuple(f"{names[v]} {name}/{t}" for v, name, t in taken), "shape": tuple(shown),
        "slot": tuple(shown[int(row[-1])] + (f", chunk {row[4]:g}" if row[5] else "") for row in slots.tolist()),
        "moment": tuple(str(m + 1) for m in range(held.shape[1])),
    }  # fmt: skip
    for sort, moved in (("gathering", costs.gathered), ("scattering", costs.scattered)):
        there = tensor_of[moved.tensor] >= 0
        option, tensor = moved.option[there], tensor_of[moved.tensor[there]]
        attributes[sort, "way"], attributes[sort, "tensor"] = option, tensor
        attributes[sort, "time"] = moved.amount[there, None] * costs.per_byte
        sizes[sort], sets[f"{sort}s"] = len(option), (np.arange(len(option)),)
        labels[sort] = tuple(labels["way"][o] for o in option.tolist())
    further = of_clusters(problem, sharing, costs, tensor_of, likeness, leads)
    return PlanUniverse(
        {**sets, **further.sets}, {**attributes, **further.attributes}, {**sizes, **further.sizes},
        {**labels, **further.labels},
    )  # fmt: skip


_SHAPE = ("copies", "tensor", "in_flight", "least", "most", "exchanges", "within", "runs", "stages", "place")
_SLOT = ("copies", "tensor", "in_flight", "exchanges", "chunk", "position")


def slots_of_stages(problem: Problem, sharing: DataParallelism) -> tuple[Floats, Floats, Floats]:
    """Shapes of stages (s x 10), the slots in them (z x 7, the last one the shape), and z x m samples that are held."""
    if sharing.chunks == 1:
        shapes = shapes_of_stages(problem, sharing)
        first, none = np.arange(len(shapes), dtype=float), np.zeros((len(shapes), 1))
        slots = np.concatenate((shapes[:, [0, 1, 2, 5]], none + 1.0, none, first[:, None]), axis=1)
        return np.concatenate((shapes, none, none), axis=1), slots, shapes[:, 2:3]
    most, rows = int(np.bincount(problem.interchangeable()).max()), list[tuple[float, ...]]()
    parts, samples = list[tuple[float, ...]](), list[list[int]]()
    for copies in sharing.degrees:
        exchanges = (copies - 1) / copies * sharing.sent(copies)
        for stages in range(1, min(len(problem.machine.devices) // copies, problem.graph.nodes // sharing.chunks) + 1):
            if sharing.in_turns and (sharing.microbatches or 1) % (copies * stages):
                continue
            for place in range(stages):
                moments = sharing.held_at_once(copies, stages, place)
                for tensor in (t for t in sharing.tensor if copies * t <= most):
                    for chunk, held in enumerate(zip(*moments, strict=True), 1):
                        at = (chunk - 1) * stages + place + 1
                        parts.append((copies, tensor, max(held), exchanges, chunk, at, len(rows)))
                        samples.append(list(held))
                    rows.append((copies, tensor, 0, 0, 0, exchanges, copies, 1, stages, place + 1))
    width = max(map(len, samples), default=1)
    return (
        np.array(rows, dtype=float).reshape(-1, len(_SHAPE)), np.array(parts, dtype=float).reshape(-1, len(_SLOT) + 1),
        np.array([held + held[-1:] * (width - len(held)) for held in samples], dtype=float).reshape(-1, width),
    )  # fmt: skip


def shapes_of_stages(problem: Problem, sharing: DataParallelism) -> np.ndarray:
    """s x 8: copies, devices of each, samples in flight on each; the least and the most copies of this stage and all
    later ones that make so many; how often the weights of a stage cross a device's link per sample; and the copies
    within a cluster, and how often that runs, where clusters share samples."""
    most = int(np.bincount(problem.interchangeable()).max())
    every = len(problem.machine.devices)
    together = every if sharing.most_in_pipeline is None else min(every, sharing.most_in_pipeline)
    out = []
    for copies in sharing.degrees:
        held: dict[int, list[int]] = {}
        for behind in range(copies, together + 1):
            held.setdefault(sharing.in_flight(copies, behind), []).append(behind)
        for runs in (1,) if sharing.across is None else runs_of_stages(sharing.across, copies):
            within = copies // runs
            exchanges = (within - 1) / within * sent_per_sample(sharing, within, runs)
            for tensor in sharing.tensor:
                if within * tensor <= most:
                    out += [(copies, tensor, q, min(n), max(n), exchanges, within, runs) for q, n in held.items()]
    return np.array(out, dtype=float).reshape(-1, 8)
