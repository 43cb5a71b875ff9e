"""Loops over the combinations of bound variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

#: One position per bound variable.
Env = list[int]
Truth = Callable[[Env], bool]
Elements = Callable[[Env], Sequence[Any]]
Loop = Callable[[Env], Iterator[None]]


def as_element(parts: tuple[int, ...]) -> Any:
    """What a set holds: a position, or a tuple of several."""
    return parts[0] if len(parts) == 1 else parts


def loop_over(elements: Elements, registers: range, condition: Truth | None) -> Loop:
    """Run one binder through its elements."""
    if len(registers) == 1:
        register = registers[0]

        def single(env: Env) -> Iterator[None]:
            for element in elements(env):
                env[register] = element
                if condition is None or condition(env):
                    yield

        return single
    start, stop = registers.start, registers.stop

    def several(env: Env) -> Iterator[None]:
        for element in elements(env):
            env[start:stop] = element
            if condition is None or condition(env):
                yield

    return several


def nested(loops: list[Loop]) -> Loop:
    """One loop within the other; without any, a single round."""
    if not loops:
        return lambda _: iter((None,))
    if len(loops) == 1:
        return loops[0]
    first, rest = loops[0], nested(loops[1:])

    def both(env: Env) -> Iterator[None]:
        for _ in first(env):
            yield from rest(env)

    return both
