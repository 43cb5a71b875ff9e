"""The baseline "local-search": steepest descent over reassignments of single units, from ten random placements.

Tarnawski et al. 2020, section 6: start at random, make the reassignment that lowers the largest load most until none
does, take the best of ten starts.  What search does better, ``local_search`` does; this is what others are held
against.  A unit is what the dynamic program has for one (Appendix B).  Moves and starts keep to memory where there is
room; a host takes only what no accelerator supports.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.baseline import beyond_throughput, room, units_of
from placedsl.algorithms.interface import Budget, NothingFoundError, Progress
from placedsl.graph.contraction import Quotient
from placedsl.graph.graph import Booleans, Floats, Integers
from placedsl.problem import Problem

STARTS = 10
#: So many moves are made between two looks at the clock.
MOVES = 20


def fits(problem: Problem) -> Sequence[str]:
    """Why it does not apply, in the user's words."""
    return beyond_throughput(problem, ("memory", "colocated"))


def solve(problem: Problem, budget: Budget, progress: Progress) -> tuple[Sequence[int] | None, float]:
    """The best local optimum; a start that was stopped half-way counts as far as it came."""
    from placedsl.algorithms.reassignment_kernel import descend

    quotient = units_of(problem, in_order=True)
    work = allowed(quotient.work, problem.accelerators)
    nowhere = np.flatnonzero(~np.isfinite(work).any(axis=0))
    if len(nowhere):
        raise NothingFoundError("some node, or group of nodes that must share a device, is supported by no device")
    capacity = room(problem)
    tensors = np.repeat(np.arange(len(quotient.tensor_producer)), np.diff(quotient.pin_start))
    by_unit = np.argsort(quotient.pin_unit, kind="stable")
    touch_start = np.searchsorted(quotient.pin_unit[by_unit], np.arange(quotient.units + 1))
    touched = tensors[by_unit]
    pins = np.diff(quotient.pin_start)
    best, best_value = None, np.inf
    for start in range(STARTS):
        device = random_start(work, quotient.memory, capacity, np.random.default_rng((budget.seed, start)))
        inside = np.zeros((len(pins), len(capacity)), dtype=np.int64)
        np.add.at(inside, (tensors, device[quotient.pin_unit]), 1)
        load, held = loads(quotient, work, device, inside, pins), np.bincount(device, quotient.memory, len(capacity))
        stop = False
        while not stop:
            made = descend(
                device, work, quotient.memory, capacity, touch_start, touched, pins, quotient.transfer, inside, load,
                held, MOVES,
            )  # fmt: skip
            stop = progress(None, -np.inf)
            if made < MOVES:
                break
        # Of placements that do not fit, the evaluator is told only when there is no other.
        value = float(load.max(initial=0.0)) if (held <= capacity).all() else np.inf
        if best is None or value < best_value:
            best, best_value = device[quotient.unit_of_node].tolist(), value
        if stop or progress(best, -np.inf):
            break
    return best, -np.inf


def allowed(work: Floats, accelerators: Booleans) -> Floats:
    """The times of units on devices, inf on hosts for what some accelerator supports."""
    elsewhere = np.isfinite(work[accelerators]).any(axis=0)
    out: Floats = np.where(~accelerators[:, None] & elsewhere, np.inf, work)
    return out


def random_start(work: Floats, memory: Floats, capacity: Floats, random: np.random.Generator) -> Integers:
    """A random device for each unit among those that take it, with room if one has it; the largest units first."""
    device = np.empty(len(memory), dtype=np.int64)
    held = np.zeros(len(capacity))
    for u in np.argsort(-memory, kind="stable").tolist():
        possible = np.flatnonzero(np.isfinite(work[:, u]))
        roomy = possible[held[possible] + memory[u] <= capacity[possible]]
        device[u] = random.choice(roomy if len(roomy) else possible)
        held[device[u]] += memory[u]
    return device


def loads(quotient: Quotient, work: Floats, device: Integers, inside: Integers, pins: Integers) -> Floats:
    """The load of each device: its units, and the tensors that some but not all of its units touch."""
    cut = (inside > 0) & (inside < pins[:, None])
    load: Floats = (cut * quotient.transfer.T).sum(axis=0)
    np.add.at(load, device, work[device, np.arange(len(device))])
    return load
