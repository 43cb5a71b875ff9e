"""The baseline "galvatron": the planner of Miao et al. 2022 ("Galvatron: efficient transformer training over multiple
GPUs using automatic parallelism"), as far as its paper says how.

Devices are divided into 1, 2, 4 ... equal groups, one for each stage, and layers evenly among the stages.  For each
stage a dynamic program over its layers and whole units of memory finds the quickest option of each layer that fits.

What was taken as what: the copies and the devices of each copy are those of the stage, the best that fill its group,
where the paper lets each layer choose them; the samples in flight are those that the spec says, and memory has 1,024
units.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.baselines.even_splits import EvenPlans, StageOfPlan, evenly, fits, in_order, placed
from placedsl.algorithms.interface import NothingFoundError, Progress
from placedsl.arrays import Floats, Integers
from placedsl.budget import Budget
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values

__all__ = ["fits", "solve"]

#: Into so many units the memory of a device is divided.
_UNITS = 1024


def solve(
    problem: Problem,
    budget: Budget,  # noqa: ARG001 - a second at most, and between numbers of stages it is asked whether to stop
    progress: Progress,
) -> tuple[Sequence[int] | None, float] | tuple[Sequence[int] | None, float, Values]:
    """The best number of stages; without a bound."""
    plans, layers = EvenPlans(problem), in_order(problem.graph)
    best: tuple[float, list[StageOfPlan], Integers] | None = None
    count = 1
    while count <= min(len(layers), plans.devices) and not progress(None, -np.inf):
        found = _of(plans, evenly(layers, count), plans.devices // count)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
        count *= 2
    if best is None:
        raise NothingFoundError("no number of equal groups of devices fits with layers divided evenly among them")
    return placed(problem, best[1], best[2])


def _of(plans: EvenPlans, groups: list[list[int]], size: int) -> tuple[float, list[StageOfPlan], Integers] | None:
    """The largest load, the stages and the options of nodes, for stages on so many devices each; None: nothing fits."""
    nodes = plans.problem.graph.nodes
    stage, options = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    for k, group in enumerate(groups):
        stage[group] = k
    moved = {t: plans.transfers(stage, len(groups), g) for g, t in enumerate(plans.sharing.tensor)}
    out, load, behind = list[StageOfPlan](), 0.0, 0
    for k in reversed(range(len(groups))):
        found: list[tuple[float, int, int, Integers]] = []
        for degree in plans.sharing.tensor:
            copies = size // degree
            if copies * degree != size or copies not in plans.sharing.degrees or behind + copies > plans.most:
                continue
            in_flight = plans.sharing.in_flight(copies, behind + copies)
            chosen = _quickest(plans, groups[k], degree, copies, in_flight)
            if chosen is not None:
                time, weights = (column[chosen].sum() for column in (plans.costs.time[:, 0], plans.costs.weights[:, 0]))
                sent = plans.sharing.sent(float(copies)) * (copies - 1) / copies * weights
                found.append(((time + moved[degree][k]) / copies + sent, copies, degree, chosen))
        if not found:
            return None
        own, copies, degree, chosen = min(found, key=lambda one: one[:3])
        out.append(StageOfPlan(groups[k], copies, degree))
        options[groups[k]] = chosen
        load, behind = max(load, own), behind + copies
    return load, out[::-1], options


def _quickest(plans: EvenPlans, nodes: list[int], degree: int, copies: int, in_flight: int) -> Integers | None:
    """The option of each node of a stage with the least time in all that fits in whole units of memory."""
    costs = plans.costs
    held = costs.stash * in_flight + costs.memory + costs.sharded / copies
    unit = plans.capacity / _UNITS if np.isfinite(plans.capacity) and plans.capacity > 0.0 else np.inf
    units = np.ceil(held / unit).astype(np.int64) if np.isfinite(unit) else np.zeros(len(held), dtype=np.int64)
    least: Floats = np.zeros(_UNITS + 1)
    taken = np.empty((len(nodes), _UNITS + 1), dtype=np.int64)
    for place, v in enumerate(nodes):
        own = np.full(_UNITS + 1, np.inf)
        for option in plans.options_of(v, degree).tolist():
            if units[option] <= _UNITS:
                shifted = least[: _UNITS + 1 - units[option]] + costs.time[option, 0]
                better = shifted < own[units[option] :]
                own[units[option] :][better] = shifted[better]
                taken[place, units[option] :][better] = option
        least = own
    if not np.isfinite(least[-1]):
        return None
    out, left = np.empty(len(nodes), dtype=np.int64), _UNITS
    for place in reversed(range(len(nodes))):
        out[place] = taken[place, left]
        left -= units[out[place]]
    return out
