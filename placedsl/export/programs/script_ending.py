"""The end of a script: the placement, and the values of what else an answer says, in the words of the spec.

These are the variables that the spec has of its own, and under a schedule of one sample the decisions of the schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.export.programs.display_units import unit_name
from placedsl.export.programs.named_program import Family, Key, NamedProgram
from placedsl.export.programs.script import key_text, listed, literal
from placedsl.export.programs.text import number, numbers
from placedsl.ir.affine import single_columns
from placedsl.problem.problem import Labels, Problem
from placedsl.units import NUMBER, TIME, Dimension

_PLACEMENT = """
    for name, chosen in placement.items():
        print(f"  {name} -> {chosen}")
"""
_VALUES = """
    variables = {name: {} for name, *_ in VARIABLES}
    for name, unit, size, low, high, whole, columns in VARIABLES:
        for index, @COLUMN in columns.items():
            # Solvers meet bounds and whole numbers within a tolerance.
            value = min(max(low, float(f"{@VALUE:.12g}")), high)
            value = round(value) if whole else value
            words = [name, *(index if isinstance(index, tuple) else (index,))]
            if abs(value) > 1e-9 * size:
                shown = f"{name}[{', '.join(map(str, words[1:]))}]" if words[1:] else name
                print(f"  {shown} = {value / size:.9g} {unit}".rstrip())
            inside = variables
            for word in words[:-1]:
                inside = inside.setdefault(str(word), {})
            inside[str(words[-1])] = value
"""
_WRITE = """
    if arguments.placement:
        with open(arguments.placement, "w", encoding="utf-8") as file:
            json.dump(@WRITTEN, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
"""


def variable_lines(
    named: NamedProgram, columns: Sequence[Family], names: Sequence[str], calls: Sequence[str],
    steps: Floats | None = None,
) -> Iterator[str]:  # fmt: skip
    """``VARIABLES``: from the columns to the spec's own variables; nothing where it has none.

    ``steps``: how many steps of each column make one, in SI, where columns count steps.
    """
    said = list(_reported(named))
    if not said:
        return
    yield "# What an answer says besides: name, unit, its size in SI, bounds in SI, whether whole, columns by"
    yield "# index " + (
        "(each in that unit)." if steps is None else "(each with how many of its steps are one, in SI)."
    )
    yield "VARIABLES = ["
    labels = Labels(named.problem)
    for one in said:
        keys = _keys(labels, one.sorts, one.slots)
        first = int(one.column[0]) if len(one.column) else -1
        size = next((f.unit for f in named.columns if f.start <= first < f.stop), 1.0)
        low, high = (number(b) if np.isfinite(b) else f'float("{b}")' for b in (one.low, one.high))
        unit = literal(unit_name(size, one.dimension))
        yield f"    ({literal(one.name)}, {unit}, {number(size)}, {low}, {high}, {one.integer},"
        in_turn = bool((np.diff(one.column) == 1).all())
        called = [calls[c] for c in one.column]
        block_name = _block_name(keys, first, columns, names) if in_turn else ""
        if steps is not None:
            called = [f"({c}, {s})" for c, s in zip(called, numbers(steps[one.column]), strict=True)]
        if steps is None and block_name:
            yield f"     {block_name}),"
            continue
        pairs = (f"{key_text(key) if key else '()'}: {text}" for key, text in zip(keys, called, strict=True))
        yield from ("     " + line for line in listed("{", pairs, "}),"))
    yield "]"


@dataclass(frozen=True)
class _Reported:
    """Columns that an answer says, by the positions of their indices."""

    name: str
    sorts: tuple[str, ...]
    slots: tuple[Integers, ...]
    column: Integers
    low: float
    high: float
    integer: bool
    dimension: Dimension


def _reported(named: NamedProgram) -> Iterator[_Reported]:
    """The spec's own variables, and decisions of a schedule of one sample where each of them is a column."""
    grounded, problem = named.grounded, named.problem
    for name, (block, slots) in grounded.own.items():
        own = problem.variables[name]
        columns = np.arange(block.start, block.start + block.size)
        yield _Reported(name, own.sorts, slots, columns, own.low, own.high, own.integer, own.dimension)
    for name, decision in grounded.schedule_decisions.items():
        column = single_columns(decision.value)
        if column is not None:
            # Several tensors may have one producer: they go by their numbers.
            sorts = tuple("integer" if s == "tensor" else s for s in named.formulation.provides[name].sorts)
            variable = int(column[0]) if len(column) else 0
            whole = bool(grounded.program.integer[variable])
            dimension = TIME if problem.graph.time_in_seconds and not whole else NUMBER
            yield _Reported(name, sorts, decision.positions, column, 0.0, np.inf, whole, dimension)


def _keys(labels: Labels, sorts: Sequence[str], slots: Sequence[Integers]) -> list[Key]:
    """The index of each column, in the words of the spec's answers."""
    if not sorts:
        return [()]
    words = ([labels.of(sort, i) for i in slot.tolist()] for sort, slot in zip(sorts, slots, strict=True))
    return list(zip(*words, strict=True))


def _block_name(keys: Sequence[Key], start: int, columns: Sequence[Family], names: Sequence[str]) -> str:
    """What the script calls the block of these columns; empty where its index has other words."""
    for family, name in zip(columns, names, strict=True):
        if family.start == start and family.keys[0] and [tuple(map(str, key)) for key in family.keys] == keys:
            return name
    return ""


def ending(problem: Problem, value: str, column: str = "column") -> Iterator[str]:
    """The rest of ``main`` once ``placement`` is known, and the call of it.

    ``column`` is what ``VARIABLES`` holds for an index, ``value`` how the layer says its value in SI.
    """
    own = bool(problem.variables or problem.execution.one_sample)
    values = _VALUES.replace("@COLUMN", column).replace("@VALUE", value) if own else "\n"
    written = '{"placement": placement, "variables": variables}' if own else "placement"
    text = _PLACEMENT.strip("\n") + values + _WRITE.strip("\n").replace("@WRITTEN", written)
    yield from text.split("\n")
