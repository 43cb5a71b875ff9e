"""Placements for a first answer, within milliseconds and without compiled code: devices filled in topological order.

Nothing is searched; what a placement costs, and whether it keeps what else is asked for, is for the evaluator to say.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from placedsl.algorithms.units import placement_units
from placedsl.arrays import Floats, Integers
from placedsl.graph.contraction import Quotient
from placedsl.graph.order import topological
from placedsl.problem.problem import Problem

#: Up to so many devices, all sequences of them are tried.
_ALL_SEQUENCES = 4
#: How much of an even share of the work a device takes before the next is filled (inf: as much as it has room for).
_SHARES = (np.inf, 1.0, 0.5)


def first_placements(problem: Problem) -> Iterator[Integers]:
    """A device for each node, different ones: one device after the other full, then each with its share."""
    quotient = placement_units(problem)
    for unit_device in filled(
        _order(problem, quotient), quotient.work.T, quotient.memory, problem.memory_limits, _SHARES
    ):
        yield unit_device[quotient.unit_of_node]


def filled(
    order: list[int], work: Floats, memory: Floats, limit: Floats, shares: tuple[float, ...] = (np.inf,)
) -> Iterator[Integers]:
    """The device of each unit where devices are filled one after the other, in several sequences of the devices.

    ``work`` u x D (inf: not supported), ``memory`` a unit, ``limit`` a device.  A device takes up to each of the
    ``shares`` of an even part of the work.  What comes out twice is told once.
    """
    supported = np.isfinite(work)
    amount, number = np.where(supported, work, 0.0).sum(axis=0), np.maximum(supported.sum(axis=0), 1)
    devices = len(limit)
    # Devices that support much come first, then the fast ones.
    fast = sorted(range(devices), key=lambda d: (-number[d], amount[d] / number[d], d))
    sequences = list(itertools.permutations(fast)) if devices <= _ALL_SEQUENCES else [tuple(fast), tuple(fast[::-1])]
    seen = set()
    rows, sizes = work.tolist(), memory.tolist()
    for share, sequence in itertools.product(shares, sequences):
        most = share * amount / devices if np.isfinite(share) else np.full(devices, np.inf)
        found = _filled(order, rows, sizes, limit, sequence, most)
        if found is not None and found.tobytes() not in seen:
            seen.add(found.tobytes())
            yield found


def _order(problem: Problem, quotient: Quotient) -> list[int]:
    """Units in the order of their first nodes."""
    graph = problem.graph
    nodes = topological(graph.nodes, graph.edge_source, graph.edge_target)
    assert nodes is not None  # graphs are acyclic
    return list(dict.fromkeys(quotient.unit_of_node[nodes].tolist()))


def _filled(
    order: list[int],
    work: list[list[float]],
    memory: list[float],
    limit: Floats,
    sequence: tuple[int, ...],
    most: Floats,
) -> Integers | None:
    """One device of the sequence after the other; a unit that the current one does not take goes to the next that does.

    ``most``: the work after which a device is left for the next.  None where some unit finds no room.
    """
    left, done = limit.tolist(), [0.0] * len(limit)
    out = np.full(len(memory), -1, dtype=np.int64)
    current = 0
    for u in order:
        while current < len(sequence) - 1 and done[sequence[current]] >= most[sequence[current]]:
            current += 1
        turns = (*sequence[current:], *sequence[:current])
        d = next((d for d in turns if work[u][d] < np.inf and memory[u] <= left[d]), -1)
        if d < 0:
            return None
        out[u] = d
        left[d] -= memory[u]
        done[d] += work[u][d]
    return out
