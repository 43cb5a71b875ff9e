"""Intervals of time of which no two may overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from placedsl.evaluation.binder_loops import Env
from placedsl.evaluation.conditions import approximate
from placedsl.evaluation.tolerance import same
from placedsl.problem import expressions as core
from placedsl.tolerances import SOLVER_ROW
from placedsl.units import NUMBER, Dimension, show

if TYPE_CHECKING:
    from placedsl.evaluation.expressions import Compiler


class Overlap(NamedTuple):
    """Two intervals, by what they belong to, and for how long they overlap."""

    first: str
    second: str
    amount: float

    def text(self, dimension: Dimension) -> str:
        """In words, with the unit of the times."""
        by = f"{self.amount:.10g}" if dimension == NUMBER else show(self.amount, dimension)
        return f"{self.first} and {self.second} overlap by {by}"


def overlapping_pairs(intervals: Sequence[tuple[float, float, str]], *, loosely: bool) -> Iterator[Overlap]:
    """Each interval (start, finish, name) that begins before one that began earlier has ended, with that one.

    What overlaps by less than the tolerance does not; an interval of no length overlaps nothing.  ``loosely``: the ends
    come from a solver.
    """

    def before(left: float, right: float) -> bool:
        slack = SOLVER_ROW * max(abs(left), abs(right)) if loosely else 0.0
        return left < right - slack and not same(left, right)

    long = sorted(one for one in intervals if before(one[0], one[1]))
    last: tuple[float, float, str] | None = None
    for start, finish, name in long:
        if last is not None and before(start, last[1]):
            yield Overlap(last[2], name, min(finish, last[1]) - start)
        if last is None or finish > last[1]:
            last = start, finish, name


def overlaps(node: core.NoOverlap, compiler: Compiler) -> Callable[[Env], Iterator[Overlap]]:
    """What gives the intervals of ``no_overlap`` that overlap."""
    loosely, label = approximate(node, compiler), compiler.data.label
    with compiler.bound(node.binders) as loop:
        slots = [(compiler.registers[s], sort) for b in node.binders for s, sort in zip(b.slots, b.sorts, strict=True)]
        there = None if node.presence is None else compiler.truth(node.presence)
        start, finish = compiler.number(node.start), compiler.number(node.finish)

    def found(env: Env) -> Iterator[Overlap]:
        intervals = [
            (start(env), finish(env), ", ".join(label(sort, env[register]) for register, sort in slots))
            for _ in loop(env)
            if there is None or there(env)
        ]
        return overlapping_pairs(intervals, loosely=loosely)

    return found
