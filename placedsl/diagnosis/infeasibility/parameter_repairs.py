"""Repairs by another value of one parameter of the spec: fewer samples in a batch, say, or more devices.

The spec is read anew with each value that is tried, and the value is told as it was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from placedsl.diagnosis.infeasibility.feasibility import Feasibility
from placedsl.diagnostics import InputError, PlacedslError, UsageError
from placedsl.problem.formulation import Formulation, choose
from placedsl.problem.problem import Problem
from placedsl.units import DATA, NUMBER, Dimension, parse_quantity, show

#: The factors that a value is multiplied and divided by, in turn; where the last does not help, nothing is told.
_FACTORS = (2.0, 4.0, 8.0)
_LARGEST = _FACTORS[-1]
#: Whole numbers up to so much away from the value are tried one by one.
_STEPS = 4
#: A batch of this many samples or more, if it is a power of two, stays one.
_LEAST_POWER = 8
#: So many values between one that is enough and one that is not are tried.
_MOST_BETWEEN = 6


@dataclass(frozen=True)
class Parameters:
    """The numbers among the parameters of a spec, and the problem that another value makes.

    ``values``: by name, in SI, with the dimension.  ``problem`` reads the spec with one parameter set to a text, as
    ``--set`` does; InputError and UsageError where that value cannot be.
    """

    values: Mapping[str, tuple[float, Dimension]]
    problem: Callable[[str, str], tuple[Problem, list[Formulation]]]


def _unknown(name: str, text: str) -> tuple[Problem, list[Formulation]]:
    raise UsageError(f"there is no parameter '{name}' that could be {text}")


#: Of a problem that was not read from a spec.
NONE = Parameters({}, _unknown)


@dataclass(frozen=True)
class ParameterRepair:
    """What is told, and what it changes of the machine: ("devices" or "memory", family)."""

    text: str
    changed: frozenset[tuple[str, str]]


def parameter_repairs(asked: Feasibility, parameters: Parameters) -> Iterator[ParameterRepair]:
    """For each parameter the value closest to its own, of those tried, with which there is a placement."""
    for name, (value, dimension) in parameters.values.items():
        whole = dimension == NUMBER and value == int(value)
        if asked.left == 0.0 or value < 0.0 or (value == 0.0 and not whole):
            continue
        asked.progress(f"what would repair it? {name}")
        search = _Search(asked, parameters, name, value, dimension)
        found = search.found()
        if found is not None:
            proven = "" if search.all_refuted else " (a smaller change may be enough)"
            text = f"{name} = {found} instead of {show(value, dimension)}{proven}"
            yield ParameterRepair(text, search.changed)


class _Search:
    """The values of one parameter that are tried, and what came of them."""

    def __init__(
        self, asked: Feasibility, parameters: Parameters, name: str, value: float, dimension: Dimension
    ) -> None:
        self.asked, self.parameters, self.name, self.value = asked, parameters, name, value
        self.dimension = dimension
        self.whole = dimension == NUMBER and value == int(value)
        self.all_refuted = self.whole
        self.changed: frozenset[tuple[str, str]] = frozenset()

    def found(self) -> str | None:
        """The text of the closest value that is enough; None where neither the largest nor the smallest tried is."""
        tried = self._tried()
        ways = [way for way in (0, 1) if self._holds(self._text(tried[-1][way]))]
        self.all_refuted = self.whole  # of the ends of what is tried nothing is said
        for distance, values in enumerate(tried):
            for way in ways:
                text = self._text(values[way])
                if text is not None and self._holds(text):
                    others = [] if len(ways) > 1 or not self.all_refuted else tried[: distance + 1]
                    if any(self._holds(self._text(pair[1 - way])) for pair in others):
                        self.all_refuted = False
                    return self._closer(text) if distance >= self._single else text
        return None

    @property
    def _single(self) -> int:
        """How many of the values that are tried lie side by side."""
        return len(_FACTORS) if self._is_power() else _STEPS if self.whole else 0

    def _is_power(self) -> bool:
        number = int(self.value)
        return self.whole and number >= _LEAST_POWER and number & (number - 1) == 0

    def _tried(self) -> list[tuple[float, float]]:
        """Pairs of a larger and a smaller value, further and further away."""
        steps = [(self.value + step, self.value - step) for step in range(1, _STEPS + 1)]
        if self.value == 0.0:
            return steps
        factors = [(self.value * factor, self.value / factor) for factor in _FACTORS]
        if not self.whole or self._is_power():
            return factors
        return steps + factors

    def _closer(self, text: str) -> str:
        """A value between the parameter's own and one that is enough, as close to its own as is found."""
        far, near = parse_quantity(text).value, self.value
        for _ in range(_MOST_BETWEEN):
            between = self._text((far + near) / 2)
            if between is None or between in (text, self._text(near)):
                break
            if self._holds(between):
                text, far = between, parse_quantity(between).value
            else:
                near = parse_quantity(between).value
        self.all_refuted = self.all_refuted and abs(far - near) <= 1.0
        return text

    def _text(self, value: float) -> str | None:
        """A value as ``--set`` takes it, in few digits; None where a whole number would be none."""
        if self.whole:
            return f"{int(value)}" if value >= 0.0 else None
        text = show(value, self.dimension)
        number, _, unit = text.partition(" ")
        digits = 2 if self.dimension != DATA or float(number) < 100.0 else 3
        return f"{float(f'{float(number):.{digits}g}'):g} {unit}".rstrip()

    def _holds(self, text: str | None) -> bool:
        """Whether there is a placement with this value; what is not known is noted."""
        if text is None:
            return False
        if self.asked.left == 0.0:
            self.all_refuted = False
            return False
        try:
            problem, formulations = self.parameters.problem(self.name, text)
            held = Feasibility(
                problem, choose(problem, formulations), self.asked.request, self.asked.deadline, self.asked.isolated,
                progress=self.asked.progress, purpose=f"what would repair it? {self.name} = {text}",
            ).together(problem.constraints)  # fmt: skip
        except (InputError, PlacedslError):
            return False  # the spec has errors with this value
        if held:
            self.changed = frozenset(_changed(self.asked.problem, problem))
        self.all_refuted = self.all_refuted and held is not None
        return bool(held)


def _changed(before: Problem, after: Problem) -> Iterator[tuple[str, str]]:
    """The families of which there are more devices, and those whose devices have more memory."""
    for family in dict.fromkeys(d.family for d in before.machine.devices):
        own, other = ([d.memory for d in p.machine.devices if d.family == family] for p in (before, after))
        if len(own) != len(other):
            yield "devices", family
        if own and other and max(own) != max(other):
            yield "memory", family
