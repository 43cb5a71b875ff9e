"""The baseline "greedy": nodes in topological order, one device filled after the other.

Tarnawski et al. 2020, section 7, define it for latency: as many nodes as fit into the memory of each accelerator, the
rest on the host.  For throughput an accelerator is also full when its work reaches a cap; caps are multiples of the
even share, and the last is infinite, which is the paper's method.  The best placement of all caps counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.baselines.supported_problems import ANY_PLACEMENT
from placedsl.algorithms.interface import NothingFoundError, Progress
from placedsl.algorithms.supports import reasons_against
from placedsl.algorithms.units import placement_units
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.budget import Budget
from placedsl.graph.contraction import Quotient
from placedsl.graph.order import topological
from placedsl.problem.problem import Problem

#: Multiples of the even share of the work at which a device is full.
CAPS = (1.0, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0, np.inf)


def fits(problem: Problem) -> Sequence[str]:
    """Why it does not apply: more to decide than a placement."""
    return reasons_against(problem, ANY_PLACEMENT)


def solve(problem: Problem, _budget: Budget, progress: Progress) -> tuple[Sequence[int] | None, float]:
    """One placement per cap; the evaluator keeps the best."""
    quotient = placement_units(problem, contiguous=True)
    order = topological(quotient.units, quotient.before, quotient.after)
    assert order is not None  # cycles are contracted
    accelerators = problem.accelerators
    chained = problem.constraint("contiguous") is not None or problem.constraint("convex") is not None
    preferred = accelerators if accelerators.any() else ~accelerators
    least = quotient.work[preferred].min(axis=0)
    share = float(least[np.isfinite(least)].sum()) / int(preferred.sum())
    placed = None
    for cap in CAPS:
        unit_device = filled(quotient, order, accelerators, problem.memory_limits, cap * share, chained)
        if unit_device is None:
            continue
        placed = unit_device[quotient.unit_of_node].tolist()
        if progress(placed, -np.inf):
            break
    if placed is None:
        raise NothingFoundError(
            "filled in topological order, the devices run out before the nodes do; "
            "it does not go back to a device that it has left"
        )
    return placed, -np.inf


def filled(
    quotient: Quotient, order: Integers, accelerators: Booleans, capacity: Floats, cap: float, chained: bool
) -> Integers | None:
    """u: the device of each unit, or None if some unit finds no room.

    ``cap`` is the work in seconds at which an accelerator is full, unless no other is left.  Units that no accelerator
    supports go to a host; if stages must be ``chained`` no device is used again once it was left, else hosts are.
    """
    device = np.empty(quotient.units, dtype=np.int64)
    load, held = np.zeros(len(capacity)), np.zeros(len(capacity))
    unused = [*np.flatnonzero(accelerators).tolist(), *np.flatnonzero(~accelerators).tolist()]
    hosts = np.flatnonzero(~accelerators).tolist()
    anywhere = np.isfinite(quotient.work[accelerators].min(axis=0, initial=np.inf))
    current = -1

    def takes(d: int, u: int) -> bool:
        fitting = bool(np.isfinite(quotient.work[d, u])) and held[d] + quotient.memory[u] <= capacity[d]
        limited = d not in hosts and any(e not in hosts for e in unused) and load[d] > 0.0
        return fitting and not (limited and load[d] + quotient.work[d, u] > cap)

    for u in order.tolist():
        chosen = current if current >= 0 and takes(current, u) else -1
        if chosen in hosts and any(e not in hosts and takes(e, u) for e in unused):
            chosen = -1  # a host is left as soon as an accelerator can continue
        if chosen < 0 and not chained and not anywhere[u]:
            chosen = min((d for d in hosts if takes(d, u)), key=lambda d: quotient.work[d, u], default=-1)
        elif chosen < 0:
            again = [] if chained else hosts
            current = chosen = next((d for d in (*unused, *again) if takes(d, u)), -1)
        if chosen < 0:
            return None
        if chosen in unused:
            unused.remove(chosen)
        device[u] = chosen
        load[chosen] += quotient.work[chosen, u]
        held[chosen] += quotient.memory[u]
    return device
