"""The units that every algorithm places: nodes that must share a device, contracted, and the tensors between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.arrays import Floats, whole_numbers
from placedsl.graph.contraction import Quotient, contract
from placedsl.problem.problem import Problem
from placedsl.records import dataclass
from placedsl.tolerances import EVALUATION


def placement_units(problem: Problem, *, contiguous: bool = False, devices: Sequence[int] | None = None) -> Quotient:
    """The graph with nodes that must share a device as one unit.

    Work and transfer times have one row per device, or per device of ``devices``.  ``contiguous``: nodes on a cycle of
    the precedence pairs are one unit as well.
    """
    graph = problem.graph
    rows = slice(None) if devices is None else list(devices)
    return contract(
        memory=graph.memory, work=problem.time.T[rows], groups=problem.colocation_groups(),
        before=problem.precedence_source if contiguous else None,
        after=problem.precedence_target if contiguous else None,
        tensor_producer=graph.tensor_producer, read_tensor=graph.edge_tensor, read_node=graph.edge_target,
        transfer=problem.transfer.T[rows],
    )  # fmt: skip


def with_rounding(limit: Floats, memory: Floats) -> Floats:
    """Limits in bytes on sums of ``memory``, as the evaluator takes them: exact where all sizes are whole numbers."""
    return limit if whole_numbers(memory).all() else limit * (1.0 + EVALUATION)


def unit_name(problem: Problem, quotient: Quotient, unit: int) -> str:
    """A unit in messages: the id of its first node, and how many further nodes share a device with it."""
    members = np.flatnonzero(quotient.unit_of_node == unit)
    more = f" and the {len(members) - 1} that share a device with it" if len(members) > 1 else ""
    return f"'{problem.graph.ids[int(members[0])]}'{more}"


@dataclass(frozen=True, eq=False)
class Hyperedges:
    """Tensors by the units that touch them: ``pins[i]`` (at least two, ascending), and ``cost[..., i]``.

    The cost is the transfer time that a device pays if it holds some of the pins and not all: a row per device, or the
    times of one device.
    """

    pins: tuple[tuple[int, ...], ...]
    cost: Floats


def hyperedges(quotient: Quotient, device: int | None = None) -> Hyperedges:
    """The tensors that cost something on some device (on one, where ``device`` names its row), merged by their units.

    The producer makes no difference: either way a device pays that holds some of the units and not all.  So the tensors
    of one set of units are one hyperedge, backward ones and forward ones, and their times add up.
    """
    transfer = quotient.transfer if device is None else quotient.transfer[device]
    total: dict[tuple[int, ...], Floats] = {}
    for t in np.flatnonzero(np.atleast_2d(transfer).max(axis=0, initial=0.0) > 0.0).tolist():
        pins = tuple(sorted(quotient.pin_unit[quotient.pin_start[t] : quotient.pin_start[t + 1]].tolist()))
        total[pins] = total.get(pins, 0.0) + transfer[..., t]
    cost = np.array(list(total.values()), dtype=float).reshape(len(total), *transfer.shape[:-1])
    return Hyperedges(tuple(total), np.ascontiguousarray(cost.T))


def read_once(problem: Problem) -> bool:
    """Whether no tensor is read by two units beside the one that makes it."""
    quotient = placement_units(problem, contiguous=problem.constraint("contiguous") is not None)
    return bool((np.diff(quotient.pin_start) <= 2).all())
