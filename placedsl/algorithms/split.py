"""The split that a search works on: units and the edges between them, with the value of a split of the units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.split_kernel import Split, State, fill
from placedsl.graph.contraction import Quotient, contract
from placedsl.graph.graph import Floats, Integers
from placedsl.graph.order import topological
from placedsl.problem import Problem

#: What the evaluator allows memory to be exceeded by, relatively.
_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Units:
    """A problem's units as arrays, and the unit of each node."""

    split: Split
    unit_of_node: Integers

    def device_of(self, placement: Integers) -> Integers:
        """The device of each unit, from one of each node."""
        device = np.empty(len(self.split.memory), dtype=np.int64)
        device[self.unit_of_node] = placement
        return device

    def placement(self, device: Integers) -> Integers:
        """The device of each node, from one of each unit."""
        return device[self.unit_of_node]


def units_of(problem: Problem) -> Units:
    """Contract what must share a device, and merge what moves between the same units.

    Which unit writes a tensor makes no difference: either way a device pays that holds some of its units and not
    all.  So the tensors of one set of units are one edge, backward ones with forward ones.
    """
    graph = problem.graph
    quotient = contract(
        memory=graph.memory, work=problem.time.T, groups=problem.colocation_groups(), before=None, after=None,
        tensor_producer=graph.tensor_producer, read_tensor=graph.edge_tensor, read_node=graph.edge_target,
        transfer=problem.transfer.T,
    )  # fmt: skip
    devices = len(problem.machine.devices)
    sets, transfer = _edges(quotient, devices)
    lengths = np.array([len(pins) for pins in sets], dtype=np.int64)
    pin_start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))
    pin = np.array([u for pins in sets for u in pins], dtype=np.int64)
    by_unit = np.argsort(pin, kind="stable")
    order = _order(problem, quotient)
    rank = np.empty(quotient.units, dtype=np.int64)
    rank[order] = np.arange(quotient.units)
    limited = problem.rule("memory") is not None
    split = Split(
        work=np.ascontiguousarray(quotient.work), memory=quotient.memory,
        capacity=problem.device_memory if limited else np.full(devices, np.inf),
        touch_start=np.searchsorted(pin[by_unit], np.arange(quotient.units + 1)),
        touched=np.repeat(np.arange(len(sets)), lengths)[by_unit],
        pin_start=pin_start, pin=pin, transfer=transfer, order=order, rank=rank,
    )  # fmt: skip
    return Units(split, quotient.unit_of_node)


def _edges(quotient: Quotient, devices: int) -> tuple[list[tuple[int, ...]], Floats]:
    """The sets of units that tensors touch, each once, and the sum of what moving them takes on each device."""
    total: dict[tuple[int, ...], Floats] = {}
    for t in np.flatnonzero(quotient.transfer.max(axis=0, initial=0.0) > 0.0).tolist():
        pins = tuple(sorted(quotient.pin_unit[quotient.pin_start[t] : quotient.pin_start[t + 1]].tolist()))
        total[pins] = total.get(pins, 0.0) + quotient.transfer[:, t]
    transfer = np.array(list(total.values()), dtype=float).reshape(len(total), devices)
    return list(total), np.ascontiguousarray(transfer.T)


def _order(problem: Problem, quotient: Quotient) -> Integers:
    """The units by where their forward nodes stand in the graph, on average (where there are none, all nodes)."""
    graph = problem.graph
    known = topological(graph.nodes, graph.edge_source, graph.edge_target)
    # A graph is acyclic once it is read.
    places = np.arange(graph.nodes) if known is None else known
    place = np.empty(graph.nodes)
    place[places] = np.arange(graph.nodes)
    forward = ~graph.backward
    has = np.bincount(quotient.unit_of_node, weights=forward, minlength=quotient.units) > 0
    weight = (forward | ~has[quotient.unit_of_node]).astype(float)
    total = np.bincount(quotient.unit_of_node, weights=place * weight, minlength=quotient.units)
    count = np.bincount(quotient.unit_of_node, weights=weight, minlength=quotient.units)
    return np.argsort(total / count, kind="stable")


def state_of(split: Split, device: Integers) -> State:
    """The state of a split, computed anew."""
    devices = len(split.capacity)
    inside = np.zeros((len(split.pin_start) - 1, devices), dtype=np.int64)
    state = State(np.array(device, dtype=np.int64), inside, np.zeros(devices), np.zeros(devices))
    fill(split, state)
    return state


def value_of(split: Split, device: Integers) -> float:
    """The largest load of a split; inf when some memory is exceeded or some unit not supported."""
    state = state_of(split, device)
    if (state.held > split.capacity * (1 + _TOLERANCE)).any():
        return float("inf")
    return float(state.load.max(initial=0.0))


def chunks(split: Split, rng: np.random.Generator | None = None) -> Integers:
    """Consecutive pieces of the order, one a device, of about even work where all goes well: a start.

    Units that the device of their piece does not support go to the device that does with the least time.  With ``rng``
    the devices come in a random order and the pieces have random sizes.
    """
    units, devices = len(split.memory), len(split.capacity)
    least = split.work.min(axis=0)
    share = np.cumsum(least[split.order]) / max(float(least.sum()), 1e-300)
    ends = np.arange(1, devices + 1) / devices
    sequence = np.arange(devices)
    # A device that takes much longer than the others is left for what nothing else runs.
    slow = np.array([_sum(split.work[d]) > 3.0 * float(least.sum()) for d in range(devices)])
    sequence = np.concatenate((sequence[~slow], sequence[slow]))
    if (~slow).any():
        ends = np.minimum(1.0, np.arange(1, devices + 1) / int((~slow).sum()))
    if rng is not None:
        fast = int((~slow).sum())
        sequence[:fast] = rng.permutation(sequence[:fast])
        ends = np.sort(np.concatenate((np.clip(ends[:-1] + rng.normal(0.0, 0.05, devices - 1), 0.0, 1.0), [1.0])))
    device = np.empty(units, dtype=np.int64)
    device[split.order] = sequence[np.minimum(np.searchsorted(ends, share - 1e-12), devices - 1)]
    wrong = ~np.isfinite(split.work[device, np.arange(units)])
    device[wrong] = np.argmin(split.work[:, wrong], axis=0)
    return device


def _sum(times: Floats) -> float:
    finite = np.isfinite(times)
    return float(times[finite].sum()) * len(times) / max(1, int(finite.sum()))
