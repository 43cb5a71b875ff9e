"""The baseline "local-search": steepest descent over reassignments of single units, from ten random placements.

Tarnawski et al. 2020, section 6: start at random, make the reassignment that lowers the largest load most until none
does, and take the best of ten starts.  The stronger search is :mod:`placedsl.algorithms.partitions.search`; this one is
a baseline for comparison.  Units are those of the dynamic program (Appendix B).  Moves and starts respect memory limits
where there is room; a host takes only units that no accelerator supports.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.baselines.supported_problems import THROUGHPUT
from placedsl.algorithms.interface import NothingFoundError, Progress
from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.partitions.instance import state_of
from placedsl.algorithms.partitions.load_kernel import PartitionInstance, loads_after_move, move_unit
from placedsl.algorithms.supports import reasons_against
from placedsl.algorithms.units import placement_units
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.budget import Budget
from placedsl.graph.contraction import Quotient
from placedsl.graph.order import csr
from placedsl.problem.problem import Problem
from placedsl.problem.streaming import Streaming
from placedsl.tolerances import EQUAL_COSTS

STARTS = 10
#: Moves between two checks of the time limit.
MOVES = 20


def fits(problem: Problem) -> Sequence[str]:
    """Why it does not apply, in the user's words."""
    return reasons_against(problem, THROUGHPUT)


def solve(problem: Problem, budget: Budget, progress: Progress) -> tuple[Sequence[int] | None, float]:
    """The best local optimum; a start that was stopped half-way counts as far as it came."""
    quotient = placement_units(problem, contiguous=True)
    work = allowed(quotient.work, problem.accelerators)
    if not np.isfinite(work).any(axis=0).all():
        raise NothingFoundError("some node, or group of nodes that must share a device, is supported by no device")
    instance = partition_instance(quotient, work, problem.memory_limits, problem.streaming)
    best, best_value = None, np.inf
    for start in range(STARTS):
        rng = np.random.default_rng((budget.seed, start))
        state = state_of(instance, random_start(work, quotient.memory, instance.capacity, rng))
        stop = False
        while not stop:
            made = descend(instance, state, MOVES)
            stop = progress(None, -np.inf)
            if made < MOVES:
                break
        # Placements that exceed the memory count only if there are no others.
        value = float(state.load.max(initial=0.0)) if (state.memory_used <= instance.capacity).all() else np.inf
        if best is None or value < best_value:
            best, best_value = state.device[quotient.unit_of_node].tolist(), value
        if stop or progress(best, -np.inf):
            break
    return best, -np.inf


def partition_instance(quotient: Quotient, work: Floats, capacity: Floats, streaming: Streaming) -> PartitionInstance:
    """The arrays of the quotient with running times ``work`` (D x u); each tensor is a hyperedge of its own."""
    tensors = np.repeat(np.arange(len(quotient.tensor_producer)), np.diff(quotient.pin_start))
    touch_start, touched = csr(quotient.pin_unit, tensors, quotient.units)
    position = np.arange(quotient.units)
    return PartitionInstance(
        work=work, memory=quotient.memory, capacity=capacity,
        touch_start=touch_start, touched=touched, pin_start=quotient.pin_start,
        pin=quotient.pin_unit, transfer=quotient.transfer,
        order=position, rank=position, per_byte=streaming.per_byte, room=streaming.room,
    )  # fmt: skip


@kernel()
def descend(instance, state, moves):  # type: ignore[no-untyped-def]
    """Make the best move up to ``moves`` times; returns how many were made (fewer: no single move improves)."""
    units, devices = len(state.device), len(state.load)
    for made in range(moves):
        top = 0
        for d in range(devices):
            if state.load[d] > state.load[top]:
                top = d
        best, best_unit, best_device = state.load[top] * (1.0 - EQUAL_COSTS), -1, -1
        for u in range(units):
            a = state.device[u]
            for b in range(devices):
                # A move that leaves the busiest device as it is cannot help.
                if b == a or top not in (a, b):
                    continue
                if not np.isfinite(instance.work[b, u]):
                    continue
                if state.memory_used[b] + instance.memory[u] > instance.capacity[b]:
                    continue
                load_a, load_b = loads_after_move(instance, state, u, b)
                largest = max(load_a, load_b)
                for d in range(devices):
                    if d not in (a, b) and state.load[d] > largest:
                        largest = state.load[d]
                if largest < best:
                    best, best_unit, best_device = largest, u, b
        if best_unit < 0:
            return made
        move_unit(instance, state, best_unit, best_device)
    return moves


def allowed(work: Floats, accelerators: Booleans) -> Floats:
    """D x u: the times of units on devices, inf on hosts for units that some accelerator supports."""
    elsewhere = np.isfinite(work[accelerators]).any(axis=0)
    out: Floats = np.where(~accelerators[:, None] & elsewhere, np.inf, work)
    return out


def random_start(work: Floats, memory: Floats, capacity: Floats, random: np.random.Generator) -> Integers:
    """u: a random device for each unit among those that support it, if possible with room; the largest units first."""
    device = np.empty(len(memory), dtype=np.int64)
    held = np.zeros(len(capacity))
    for u in np.argsort(-memory, kind="stable").tolist():
        possible = np.flatnonzero(np.isfinite(work[:, u]))
        roomy = possible[held[possible] + memory[u] <= capacity[possible]]
        device[u] = random.choice(roomy if len(roomy) else possible)
        held[device[u]] += memory[u]
    return device
