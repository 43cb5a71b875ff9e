"""What the scripts for the modelling layers have in common: names, indices, expressions, tables of rows.

A row is written out as an expression; the rows of a large family stand in a table, a line a row.
"""

from __future__ import annotations

import builtins
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.export.programs.legal_names import PYTHON, legal_names
from placedsl.export.programs.named_program import Family, Key, NamedProgram
from placedsl.export.programs.text import comments, number, numbers
from placedsl.grounding.build import Grounded

#: A family with more entries than this is a table.
MOST_WRITTEN_OUT = 5_000
#: An expression with more terms than this is a sum over a list.
_MOST_TERMS = 8
_WIDTH = 118
#: What a script uses itself.
_TAKEN = """
argparse itertools json operator sys mip pyo cp_model LinearExpression model solver columns main add_rows row rows sense
right coefficients positions conditions low high on found value name nodes unit expression scale constant reached
arguments parser file placement status chosen goal NODES DEVICES OBJECTIVES COMPARE VARIABLES slack dual rc suffix
config component variables
"""


def identifiers(columns: Sequence[Family], rows: Sequence[Family]) -> tuple[list[str], list[str]]:
    """A Python name for each family."""
    found = legal_names((f.name for f in (*columns, *rows)), PYTHON, {*_TAKEN.split(), *dir(builtins)})
    return found[: len(columns)], found[len(columns) :]


def literal(text: str | int) -> str:
    """A text or number as Python has it."""
    if isinstance(text, int):
        return str(text)
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else repr(text)


def key_text(key: Key) -> str:
    """An index as Python has it: ``("embed", "gpu[1]")``, or a text alone."""
    return literal(key[0]) if len(key) == 1 else f"({', '.join(map(literal, key))})"


def element(name: str, key: Key) -> str:
    """``x["embed", "gpu[1]"]``, or the name alone."""
    return f"{name}[{', '.join(map(literal, key))}]" if key else name


def elements(columns: Sequence[Family], names: Sequence[str]) -> list[str]:
    """How a script calls each column."""
    return [element(name, key) for family, name in zip(columns, names, strict=True) for key in family.keys]


def listed(head: str, items: Iterable[str], tail: str, width: int = _WIDTH) -> Iterator[str]:
    """``head item, item, tail`` on one line where it fits, else the items on lines of their own."""
    items = list(items)
    joined = ", ".join(items)
    if len(head) + len(joined) + len(tail) <= width:
        yield head + joined + tail
        return
    yield head
    line: list[str] = []
    length = 4
    for item in items:
        if line and length + len(item) + 2 > width:
            yield "    " + ", ".join(line) + ","
            line, length = [], 4
        line.append(item)
        length += len(item) + 2
    yield "    " + ", ".join(line) + ","
    yield tail


def index_lines(name: str, keys: Sequence[Key]) -> Iterator[str]:
    """``x_index = […]``: as a product where it is one."""
    parts = [list(dict.fromkeys(part)) for part in zip(*keys, strict=False)]
    if len({len(k) for k in keys}) == 1 and len(parts) > 1:
        size = int(np.prod([len(p) for p in parts]))
        if size == len(keys) and all(a == b for a, b in zip(keys, itertools.product(*parts), strict=True)):
            yield f"{name}_index = list(itertools.product("
            for part in parts:
                for line in listed("[", map(literal, part), "],"):
                    yield "    " + line
            yield "))"
            return
    yield from listed(f"{name}_index = [", map(key_text, keys), "]")


def constant_or_list(name: str, texts: Sequence[str]) -> tuple[list[str], str]:
    """Lines that define a list, and what to say for it; one text that holds for all needs no list."""
    if len(set(texts)) == 1:
        return [], texts[0]
    return list(listed(f"{name} = [", texts, "]")), name


def products(names: Sequence[str], coefficients: Sequence[str]) -> list[str]:
    """``2 * x``, ``-y`` …"""
    out = []
    for name, text in zip(names, coefficients, strict=True):
        sign, size = ("-", text[1:]) if text[0] == "-" else ("", text)
        out.append(f"{sign}{name}" if size == "1" else f"{sign}{size} * {name}")
    return out


def total(head: str, terms: Sequence[str], tail: str, summed: str) -> Iterator[str]:
    """``head a + b - c tail``; ``summed`` is the layer's function for longer sums."""
    joined = " + ".join(terms).replace(" + -", " - ")
    if 0 < len(terms) <= _MOST_TERMS and len(head) + len(joined) + len(tail) <= _WIDTH:
        yield head + joined + tail
    else:
        yield from listed(f"{head}{summed}([", terms, f"]){tail}")


def goal_lines(named: NamedProgram, calls: Sequence[str], summed: str) -> Iterator[str]:
    """``OBJECTIVES``: name, unit and expression of each."""
    yield "# What is minimised, the most important first: name, unit, expression."
    yield "OBJECTIVES = ["
    for goal in named.goals:
        used = np.flatnonzero(goal.cost)
        terms = products([calls[j] for j in used.tolist()], numbers(goal.cost[used]))
        if goal.constant or not terms:
            terms.append(number(goal.constant))
        yield f"    ({literal(goal.name)}, {literal(goal.unit)},"
        yield from ("     " + line for line in total("", terms, "),", summed))
    yield "]"


def table(name: str, keys: Sequence[Key], sides: Sequence[tuple[str, str]], start: Sequence[int],
          coefficients: Sequence[str], positions: Sequence[str]) -> Iterator[str]:  # fmt: skip
    """The rows of a family: index, sense, right-hand side, coefficients and the positions of their columns."""
    yield f"{name}_rows = ["
    yield "    # row, sense, right-hand side, coefficients, their positions in columns"
    for key, (sense, right), first, past in zip(keys, sides, start[:-1], start[1:], strict=True):
        terms = f"({', '.join(coefficients[first:past])},), ({', '.join(positions[first:past])},)"
        yield f'    ({key_text(key)}, "{sense}", {right}, {terms}),'
    yield "]"


def column_list(columns: Sequence[Family], names: Sequence[str]) -> Iterator[str]:
    """``columns``: every column in the order that tables count in, from 0."""
    parts = (f"*{name}.values()" if f.keys[0] else name for f, name in zip(columns, names, strict=True))
    yield "# Every column, in the order in which tables of rows count them."
    yield from listed("columns = [", parts, "]")


def placement_lines(
    grounded: Grounded, ids: Sequence[int | str], devices: Sequence[str], columns: Sequence[Family],
    names: Sequence[str], calls: Sequence[str], units: Sequence[str],
) -> Iterator[str]:  # fmt: skip
    """``NODES``, ``DEVICES`` and ``on``: from the columns to the device of each node."""
    together: list[list[str]] = [[] for _ in units]
    for node, unit in zip(ids, grounded.quotient.unit_of_node.tolist(), strict=True):
        together[unit].append(literal(str(node)))
    yield "# The nodes of the graph, by what is placed as one."
    yield "NODES = {"
    for unit, nodes in zip(units, together, strict=True):
        yield from ("    " + line for line in listed(f"{literal(unit)}: [", nodes, "],"))
    yield "}"
    yield from listed("DEVICES = [", map(literal, devices), "]")
    pairs = {(unit, device): int(column) for unit, row in zip(units, grounded.on, strict=True)
             for device, column in zip(devices, row.tolist(), strict=True) if column >= 0}  # fmt: skip
    yield "# on[unit, device] is one where the unit is on the device."
    for family, name in zip(columns, names, strict=True):
        if pairs == dict(zip(family.keys, range(family.start, family.stop), strict=True)):
            yield f"on = {name}"
            return
    yield from listed("on = {", (f"{key_text(k)}: {calls[c]}" for k, c in pairs.items()), "}")


def opening(header: Iterable[str], about: Sequence[str], imports: Sequence[str]) -> Iterator[str]:
    """The head of a script."""
    yield "#!/usr/bin/env python3"
    yield from comments([*header, *about], "#", plain=False)
    yield ""
    yield from imports
    yield ""


def sides_of(low: Floats, high: Floats) -> list[tuple[str, str]]:
    """Sense and right-hand side of rows that have one side, or two that are equal."""
    equal, least = low == high, low > -np.inf
    right = numbers(np.where(least, low, high))
    senses = np.where(equal, "==", np.where(least, ">=", "<=")).tolist()
    return list(zip(senses, right, strict=True))


def starts_of(start: Integers, first: int, past: int) -> list[int]:
    """Where the entries of some rows begin and end."""
    return [int(i) for i in start[first : past + 1].tolist()]
