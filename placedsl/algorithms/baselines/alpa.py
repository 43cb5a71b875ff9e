"""The baseline "alpa": the program between operators of Zheng et al. 2022 ("Alpa: automating inter- and intra-operator
parallelism for distributed deep learning", section 5), as far as its paper says how.

Layers stand in one order.  Stages are segments of it, on 1, 2, 4 ... devices each, all devices in all.  For each
bound of the load of a stage, a dynamic program from the last layer on minimises the sum of loads; what counts is that
sum and the largest load for all other microbatches, as a batch takes them that enters an empty pipeline.

What was taken as what: the ways to run a stage are its copies and the devices of each, with options of one name; the
samples in flight are those that the spec says; a bound is tried where it is more than a thousandth above the last
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placedsl.algorithms.baselines.even_splits import EvenPlans, StageOfPlan, fits, in_order, placed
from placedsl.algorithms.interface import NothingFoundError, Progress
from placedsl.arrays import Floats, Integers
from placedsl.budget import Budget
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values

__all__ = ["fits", "solve"]

#: A bound of the load is tried where it is so much above the last one.
_STEP = 1e-3


class Ways(NamedTuple):
    """Segments of layers and ways to run them, by load: w each.

    ``most``: samples in flight that fit on each copy
    """

    load: Floats
    first: Integers
    end: Integers
    copies: Integers
    degree: Integers
    name: Integers
    most: Floats


class Tables(NamedTuple):
    """By the first layer and the devices of what is left: the least sum of loads, the copies of that, the way taken."""

    least: Floats
    copies: Integers
    way: Integers


def solve(
    problem: Problem,
    budget: Budget,  # noqa: ARG001 - between bounds it is asked whether to stop
    progress: Progress,
) -> tuple[Sequence[int] | None, float] | tuple[Sequence[int] | None, float, Values]:
    """The best segments; without a bound."""
    plans, layers = EvenPlans(problem), in_order(problem.graph)
    names = list(plans.option)
    ways = _ways(plans, layers, names)
    batch = float(plans.batch)
    best: tuple[float, Tables] | None = None
    low, high = 0, len(ways.load)
    while low < high and not progress(None, -np.inf):  # the least bound with which there is a plan
        middle = (low + high) // 2
        found = _best(plans, len(layers), ways, middle + 1)
        low, high = (low, middle) if np.isfinite(found.least[0, plans.devices]) else (middle + 1, high)
    at = low
    while at < len(ways.load):
        bound = ways.load[at]
        if progress(None, -np.inf) or (best is not None and (batch - 1.0) * bound >= best[0]):
            break
        count = int(np.searchsorted(ways.load, bound, side="right"))
        found = _best(plans, len(layers), ways, count)
        whole = found.least[0, plans.devices] + (batch - 1.0) * bound
        if best is None or whole < best[0]:
            best = whole, found
        at = int(np.searchsorted(ways.load, bound * (1.0 + _STEP), side="right"))
    if best is None or not np.isfinite(best[0]):
        raise NothingFoundError("no segments of layers fit on 1, 2, 4 ... devices each that are all devices together")
    stages, options = list[StageOfPlan](), np.empty(problem.graph.nodes, dtype=np.int64)
    first, left = 0, plans.devices
    while first < len(layers):
        way = best[1].way[first, left]
        nodes = [v for layer in layers[first : ways.end[way]] for v in layer]
        stages.append(StageOfPlan(nodes, int(ways.copies[way]), int(ways.degree[way])))
        options[nodes] = plans.option[names[ways.name[way]]][nodes]
        first, left = int(ways.end[way]), left - int(ways.copies[way] * ways.degree[way])
    return placed(problem, stages, options)


def _ways(plans: EvenPlans, layers: list[list[int]], names: Sequence[tuple[int, str]]) -> Ways:
    """All segments and ways to run them that fit with one sample in flight, by load."""
    layer = np.empty(plans.problem.graph.nodes, dtype=np.int64)
    for k, nodes in enumerate(layers):
        layer[nodes] = k
    costs, sharing = plans.costs, plans.sharing
    first, end = (ends + add for ends, add in zip(np.triu_indices(len(layers)), (0, 1), strict=True))
    sizes = {2**k for k in range(plans.devices.bit_length())}
    out: list[tuple[Floats | Integers, ...]] = [(np.zeros(0),) * 7]
    for name, (degree, _) in enumerate(names):
        options = plans.option[names[name]]
        columns = (costs.time[:, 0], costs.weights[:, 0], costs.stash, costs.memory, costs.sharded)
        sums = [np.bincount(layer, column[options], len(layers)) for column in columns]
        time, weights, stash, memory, sharded = (
            np.concatenate(([0.0], np.cumsum(own)))[end] - np.concatenate(([0.0], np.cumsum(own)))[first]
            for own in sums
        )
        time = time + _moved(plans, layer, len(layers), sharing.tensor.index(degree))[first, end]
        for copies in (d for d in sharing.degrees if d * degree in sizes and d <= plans.most):
            load = time / copies + sharing.sent(float(copies)) * (copies - 1) / copies * weights
            with np.errstate(divide="ignore", invalid="ignore"):
                most = np.floor((plans.capacity - memory - sharded / copies) / stash)
            room = plans.capacity >= memory + sharded / copies
            most = np.where(stash > 0.0, most, np.where(room, np.inf, 0.0))
            kept = np.flatnonzero(room & (most >= 1.0))
            same = [np.full(len(kept), one) for one in (copies, degree, name)]
            out.append((load[kept], first[kept], end[kept], *same, most[kept]))
    every = [np.concatenate(parts) for parts in zip(*out, strict=True)]
    order = np.argsort(every[0], kind="stable")
    load, *whole, most = (column[order] for column in every)
    first, end, copies_of, degree_of, name_of = (column.astype(np.int64) for column in whole)
    return Ways(load, first, end, copies_of, degree_of, name_of, most)


def _moved(plans: EvenPlans, layer: Integers, count: int, g: int) -> Floats:
    """Seconds per sample that segments pay for tensors in and out, by the first layer and the end."""
    graph = plans.problem.graph
    made, readers = layer[graph.tensor_producer], layer[graph.edge_target]
    last = made.copy()
    np.maximum.at(last, graph.edge_tensor, readers)
    leaving = np.zeros((count + 1, count + 1))  # made before, and read at or after
    np.add.at(leaving, (made + 1, last), plans.out_of[g])
    leaving = leaving.cumsum(axis=0)[:, ::-1].cumsum(axis=1)[:, ::-1]
    places = np.arange(count + 1)
    out = leaving[places, places][None, :] - leaving
    following = np.full(graph.tensors, count)
    for first in reversed(range(count)):
        following[graph.edge_tensor[readers == first]] = first
        before = made < first
        entering = np.bincount(following[before], plans.into[g, before], count + 1)
        out[first, 1:] += entering.cumsum()[:-1]
    return out


def _best(plans: EvenPlans, layers: int, ways: Ways, count: int) -> Tables:
    """The least sum of loads with the first so many ways."""
    devices, sharing = plans.devices, plans.sharing
    least = np.full((layers + 1, devices + 1), np.inf)
    copies, way = np.zeros((layers + 1, devices + 1), dtype=np.int64), np.full((layers + 1, devices + 1), -1)
    least[layers, 0] = 0.0
    order = np.argsort(-ways.first[:count], kind="stable")
    for w in order.tolist():
        d, first, end = int(ways.copies[w]), int(ways.first[w]), int(ways.end[w])
        size = d * int(ways.degree[w])
        if size > devices:
            continue
        behind = copies[end, : devices + 1 - size] + d
        if sharing.held == "pipeline":
            room = (behind <= plans.most) & (-(-behind // d) <= ways.most[w])
        else:
            room = (behind <= plans.most) & (sharing.in_flight(d, d) <= ways.most[w])
        total = least[end, : devices + 1 - size] + ways.load[w]
        better = np.flatnonzero(room & (total < least[first, size:]))
        if len(better):
            least[first, size + better], way[first, size + better] = total[better], w
            copies[first, size + better] = behind[better]
    return Tables(least, copies, way)
