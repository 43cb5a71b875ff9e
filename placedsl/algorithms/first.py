"""Placements for a first answer, within milliseconds and without compiled code: devices filled in topological order.

Nothing is searched; what a placement costs, and whether it keeps what else is asked for, is for the evaluator to say.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from placedsl.algorithms.baseline import room, units_of
from placedsl.graph.contraction import Quotient
from placedsl.graph.graph import Floats, Integers
from placedsl.graph.order import topological
from placedsl.problem import Problem

#: Up to so many devices, all sequences of them are tried.
_ALL_SEQUENCES = 4
#: How much of an even share of the work a device takes before the next is filled (inf: as much as it has room for).
_SHARES = (np.inf, 1.0, 0.5)


def first_placements(problem: Problem) -> Iterator[Integers]:
    """A device for each node, different ones: one device after the other full, then each with its share."""
    quotient, limit = units_of(problem), room(problem)
    order = _order(problem, quotient)
    work = np.where(np.isfinite(quotient.work), quotient.work, 0.0)
    number = np.maximum(np.isfinite(quotient.work).sum(axis=1), 1)
    devices = len(limit)
    # Devices that support much come first, then the fast ones.
    fast = sorted(range(devices), key=lambda d: (-number[d], work[d].sum() / number[d], d))
    sequences = list(itertools.permutations(fast)) if devices <= _ALL_SEQUENCES else [tuple(fast), tuple(fast[::-1])]
    seen = set()
    for share, sequence in itertools.product(_SHARES, sequences):
        most = share * work.sum(axis=1) / devices if np.isfinite(share) else np.full(devices, np.inf)
        unit_device = _filled(order, quotient, limit, sequence, most)
        if unit_device is not None and unit_device.tobytes() not in seen:
            seen.add(unit_device.tobytes())
            yield unit_device[quotient.unit_of_node]


def _order(problem: Problem, quotient: Quotient) -> list[int]:
    """Units in the order of their first nodes."""
    graph = problem.graph
    nodes = topological(graph.nodes, graph.edge_source, graph.edge_target)
    assert nodes is not None  # graphs are acyclic
    return list(dict.fromkeys(quotient.unit_of_node[nodes].tolist()))


def _filled(
    order: list[int], quotient: Quotient, limit: Floats, sequence: tuple[int, ...], most: Floats
) -> Integers | None:
    """One device of the sequence after the other; a unit that the current one does not take goes to the next that does.

    ``most``: the work after which a device is left for the next.  None where some unit finds no room.
    """
    left, done = limit.tolist(), [0.0] * len(limit)
    memory, work = quotient.memory.tolist(), quotient.work.T.tolist()
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
