"""A script for a modelling layer that takes linear rows over real and integer columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from placedsl.export.programs.legal_names import MPS
from placedsl.export.programs.named_program import Family, NamedProgram
from placedsl.export.programs.script import (
    MOST_WRITTEN_OUT,
    column_list,
    constant_or_list,
    elements,
    goal_lines,
    identifiers,
    key_text,
    literal,
    opening,
    placement_lines,
    products,
    sides_of,
    starts_of,
    table,
    total,
)
from placedsl.export.programs.script_ending import ending, variable_lines
from placedsl.export.programs.text import comments, numbers, title


@dataclass(frozen=True)
class Layer:
    """How a layer says things.

    ``about``, ``imports``  lines at the head of the script
    ``summed``     its function for long sums
    ``infinite``   what it calls no lower and no upper bound
    ``declare``    name, family, kind (binary, integer, real), bounds: lines that make the columns of a family
    ``family``     name: the line before the rows of a family (or nothing)
    ``row``        name, index, label: what stands before and after the comparison of a row
    ``add_rows``   a function that adds the rows of a table; ``add_table`` the form of its call
    ``main``       how it solves and what it makes of the placement
    ``value``      the value of ``column``, of a unit of ``size``, in SI
    """

    about: tuple[str, ...]
    imports: tuple[str, ...]
    summed: str
    infinite: tuple[str, str]
    declare: Callable[[str, Family, str, str, str], Iterator[str]]
    family: Callable[[str], str]
    row: Callable[[str, str, str], tuple[str, str]]
    add_rows: str
    add_table: str
    main: str
    value: str


def script(named: NamedProgram, layer: Layer) -> Iterator[str]:
    """The lines of the script."""
    names, row_names = identifiers(named.columns, named.rows)
    calls = elements(named.columns, names)
    yield from opening(named.header(only_first=False), layer.about, layer.imports)
    yield from _columns(named, layer, names)
    start = named.linear.start
    large = [int(start[f.stop] - start[f.start]) > MOST_WRITTEN_OUT for f in named.rows]
    if any(large):
        yield from column_list(named.columns, names)
        yield 'COMPARE = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}'
        yield from layer.add_rows.split("\n")
    yield from _rows(named, layer, row_names, calls, large)
    yield ""
    yield from goal_lines(named, calls, layer.summed)
    yield ""
    problem = named.problem
    devices = [d.name for d in problem.machine.devices]
    yield from placement_lines(named.grounded, problem.graph.ids, devices, named.columns, names, calls, named.units)
    yield from variable_lines(named, named.columns, names, calls)
    yield ""
    yield from layer.main.split("\n")
    yield from ending(problem, layer.value)


def _columns(named: NamedProgram, layer: Layer, names: list[str]) -> Iterator[str]:
    linear = named.linear
    low, high = ([layer.infinite[k] if t.endswith("inf") else t for t in numbers(bounds)]
                 for k, bounds in enumerate((linear.lower, linear.upper)))  # fmt: skip
    whole = linear.integer.tolist()
    for family, name in zip(named.columns, names, strict=True):
        own = slice(family.start, family.stop)
        low_lines, least = constant_or_list(f"{name}_low", low[own])
        high_lines, most = constant_or_list(f"{name}_high", high[own])
        kind = "real" if not whole[family.start] else "binary" if (least, most) == ("0", "1") else "integer"
        yield ""
        yield from comments([title(family)], "#", plain=False)
        yield from low_lines
        yield from high_lines
        yield from layer.declare(name, family, kind, least, most)
    yield ""


def _rows(named: NamedProgram, layer: Layer, names: list[str], calls: list[str], large: list[bool]) -> Iterator[str]:
    linear = named.linear
    coefficients, sides = numbers(linear.coefficient), sides_of(linear.row_lower, linear.row_upper)
    positions = linear.column.tolist()
    labels = named.names(MPS, "{}[{}]", ",")[1]
    for family, name, as_table in zip(named.rows, names, large, strict=True):
        start = starts_of(linear.start, family.start, family.stop)
        own = sides[family.start : family.stop]
        yield ""
        yield from comments([title(family)], "#", plain=False)
        keys = ((1,),) if as_table and not family.keys[0] else family.keys
        head = layer.family(name)
        if head and keys[0]:
            yield head
        if as_table:
            yield from table(name, keys, own, start, coefficients, [str(j) for j in positions])
            yield layer.add_table.format(name)
            continue
        for i, (key, (sense, right)) in enumerate(zip(keys, own, strict=True)):
            entries = slice(start[i], start[i + 1])
            terms = products([calls[j] for j in positions[entries]], coefficients[entries])
            index = key_text(key).removeprefix("(").removesuffix(")") if len(key) > 1 else key_text(key) if key else ""
            before, after = layer.row(name, index, literal(labels[family.start + i]))
            yield from total(before, terms, f" {sense} {right}{after}", layer.summed)
