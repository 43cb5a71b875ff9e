"""A first placement that keeps whatever a spec asks for, by min-conflicts search with the evaluator.

Minton et al. 1992: one part of an assignment is changed at a time, and the change is kept where no more constraints are
violated than before.  The parts are the device of each unit of nodes, the call of each node under uninterrupted calls,
and the values of the spec's own variables.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.fill_devices import first_placements
from placedsl.algorithms.units import placement_units
from placedsl.arrays import Integers
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem, Variable
from placedsl.problem.values import Values
from placedsl.units import TIME

#: So many values of the spec's own variables are chosen at most, each from so many numbers.
_MOST_VALUES, _MOST_NUMBERS = 64, 1_000
#: The search starts anew after so many changes for each part without fewer violations.
_PATIENCE = 12


@dataclass(frozen=True)
class FoundPlacement:
    """A device position for each of n nodes, and what else an answer says: calls, and the spec's own variables."""

    placement: Integers
    values: Values


def repaired(problem: Problem, seed: int, seconds: float) -> FoundPlacement | None:
    """A placement without violations, if one is found within ``seconds``.

    None also where the spec has more variables, or wider ones, than values can be guessed of: these are for programs.
    """
    choices = _choices(problem)
    if choices is None or not choices.parts:
        return None
    rng, end = random.Random(seed), time.monotonic() + seconds
    for start in itertools.chain(choices.starts(), itertools.repeat(None)):
        found = _search(choices, start if start is not None else choices.at_random(rng), rng, end)
        if found is not None or time.monotonic() > end:
            return found
    return None


def _search(choices: _Choices, state: list[float], rng: random.Random, end: float) -> FoundPlacement | None:
    """Changes from one assignment on, until nothing is violated, it takes too long, or nothing has become better."""
    current, stale = choices.violations(state), 0
    while current:
        if stale > _PATIENCE * len(state) or time.monotonic() > end:
            return None
        changed = list(state)
        for _ in range(1 + (rng.random() < 0.3)):
            part = rng.randrange(len(state))
            changed[part] = rng.choice(choices.parts[part])
        value = choices.violations(changed)
        stale = 0 if value < current else stale + 1
        if value <= current:
            state, current = changed, value
    return choices.found(state)


@dataclass(frozen=True, eq=False)
class _Choices:
    """An assignment is a list of numbers, one a part, each from ``parts``: devices of units, calls of nodes, values.

    ``unit_of_node`` n; ``calls``: whether nodes are given calls; ``keys``: name and indices of each value.
    """

    problem: Problem
    unit_of_node: Integers
    units: int
    calls: bool
    parts: list[Sequence[float]]
    keys: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)

    def at_random(self, rng: random.Random) -> list[float]:
        """Any assignment."""
        return [rng.choice(part) for part in self.parts]

    def starts(self) -> Iterator[list[float]]:
        """Devices filled one after the other; first calls, least values."""
        for placement in itertools.islice(first_placements(self.problem), 2):
            devices = [0.0] * self.units
            for v, u in enumerate(self.unit_of_node.tolist()):
                devices[u] = float(placement[v])
            yield devices + [part[0] for part in self.parts[self.units :]]

    def found(self, state: list[float]) -> FoundPlacement:
        """What an assignment stands for."""
        placement = np.array(state[: self.units], dtype=np.int64)[self.unit_of_node]
        nodes = len(placement) if self.calls else 0
        values: dict[str, dict[tuple[int, ...], float]] = {name: {} for name in self.problem.variables}
        if self.calls:
            values["piece"] = {(v,): state[self.units + v] for v in range(nodes)}
        for (name, indices), value in zip(self.keys, state[self.units + nodes :], strict=True):
            values[name][indices] = value
        return FoundPlacement(placement, values)

    def violations(self, state: list[float]) -> int:
        """How many constraints an assignment violates; one more than there are where the sample cannot run."""
        one = self.found(state)
        evaluation = evaluate(self.problem, one.placement.tolist(), one.values)
        if evaluation.times is None and evaluation.violations:
            return len(self.problem.constraints) + len(evaluation.violations)
        return len(evaluation.violations)


def _choices(problem: Problem) -> _Choices | None:
    """The parts of a problem; None where some unit has no device, or variables are too many or too wide."""
    quotient = placement_units(problem)
    parts: list[Sequence[float]] = [np.flatnonzero(np.isfinite(row)).tolist() for row in quotient.work.T]
    units = len(parts)
    calls = problem.execution.run == "subgraph_calls" and problem.execution.slots > 1
    parts += [range(1, problem.execution.slots + 1)] * problem.graph.nodes if calls else []
    sizes = {"device": len(problem.machine.devices), "node": problem.graph.nodes, "tensor": problem.graph.tensors}
    keys: list[tuple[str, tuple[int, ...]]] = []
    for name, variable in problem.variables.items():
        numbers = _numbers(problem, variable)
        if not numbers or any(sort not in sizes for sort in variable.sorts):
            return None
        if len(keys) + np.prod([sizes[sort] for sort in variable.sorts], dtype=float) > _MOST_VALUES:
            return None
        indices = list(itertools.product(*(range(sizes[sort]) for sort in variable.sorts)))
        keys += [(name, one) for one in indices]
        parts += [numbers] * len(indices)
    if not all(len(part) for part in parts):
        return None
    return _Choices(problem, quotient.unit_of_node, units, calls, parts, keys)


def _numbers(problem: Problem, variable: Variable) -> Sequence[float]:
    """What a variable may be, of a small range; else the ends of its range, and for a time what is never short.

    That is the time of all nodes and transfers one after the other, each on the device where it takes longest.
    """
    low, high = variable.low, variable.high
    if variable.integer and high - low < _MOST_NUMBERS:
        return range(int(low), int(high) + 1)
    wide = [low, high]
    if variable.dimension == TIME:
        of_nodes = np.where(np.isfinite(problem.time), problem.time, 0.0).max(axis=1, initial=0.0).sum()
        wide.append(of_nodes + problem.transfer.max(axis=1, initial=0.0).sum())
    return sorted({number for number in wide if low <= number <= high and np.isfinite(number)})
