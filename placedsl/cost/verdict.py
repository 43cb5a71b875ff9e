"""What the evaluator reports."""

from __future__ import annotations

from dataclasses import dataclass

from placedsl.diagnostics import Span


@dataclass(frozen=True)
class Violation:
    """A rule that a placement breaks; ``amount`` is by how much (0 where that means nothing)."""

    rule: str
    message: str
    span: Span | None
    amount: float


@dataclass(frozen=True)
class Evaluation:
    """Objective values in order, what is violated, and load, memory and nodes of each device."""

    objectives: tuple[float, ...]
    violations: tuple[Violation, ...]
    loads: tuple[float, ...]
    memory: tuple[float, ...]
    nodes: tuple[tuple[int, ...], ...]

    @property
    def feasible(self) -> bool:
        """Nothing is violated."""
        return not self.violations
