"""The end of a script: the placement, and the values of the variables that the spec has of its own, in its words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from placedsl.export.measures import unit_name
from placedsl.export.named import Family, Key, NamedProgram
from placedsl.export.script import key_text, listed, literal
from placedsl.export.text import number, numbers
from placedsl.problem import Labels, Problem
from placedsl.program.program import Floats, Integers

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
    if not named.grounded.own:
        return
    yield "# The spec's own variables: name, unit, its size in SI, bounds in SI, whether whole, columns by index"
    yield "# (each in that unit)." if steps is None else "# (each with how many of its steps are one, in SI)."
    yield "VARIABLES = ["
    labels = Labels(named.problem)
    for name, (block, slots) in named.grounded.own.items():
        variable = named.problem.variables[name]
        keys = _keys(labels, variable.sorts, slots)
        size = next((f.unit for f in named.columns if f.start <= block.start < f.stop), 1.0) if block.size else 1.0
        low, high = (number(b) if np.isfinite(b) else f'float("{b}")' for b in (variable.low, variable.high))
        unit = literal(unit_name(size, variable.dimension))
        yield f"    ({literal(name)}, {unit}, {number(size)}, {low}, {high}, {variable.integer},"
        past = block.start + block.size
        called, block_name = list(calls[block.start : past]), _block_name(keys, block.start, columns, names)
        if steps is not None:
            called = [f"({c}, {s})" for c, s in zip(called, numbers(steps[block.start : past]), strict=True)]
        if steps is None and block_name:
            yield f"     {block_name}),"
            continue
        pairs = (f"{key_text(key) if key else '()'}: {text}" for key, text in zip(keys, called, strict=True))
        yield from ("     " + line for line in listed("{", pairs, "}),"))
    yield "]"


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
    own = bool(problem.variables)
    values = _VALUES.replace("@COLUMN", column).replace("@VALUE", value) if own else "\n"
    written = '{"placement": placement, "variables": variables}' if own else "placement"
    text = _PLACEMENT.strip("\n") + values + _WRITE.strip("\n").replace("@WRITTEN", written)
    yield from text.split("\n")
