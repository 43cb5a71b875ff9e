"""A Python script that states the program for CP-SAT: integers, with conditions, maxima and products as they are.

The integers are those that the solver itself is given: see :mod:`placedsl.solvers.integer_scaling`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.diagnostics import Diagnostic, InputError
from placedsl.export.programs.named_program import Family, NamedProgram, families, named_program
from placedsl.export.programs.script import (
    MOST_WRITTEN_OUT,
    column_list,
    constant_or_list,
    elements,
    identifiers,
    index_lines,
    listed,
    literal,
    opening,
    placement_lines,
    products,
    total,
)
from placedsl.export.programs.script_ending import ending, variable_lines
from placedsl.export.programs.text import comments, number, title
from placedsl.ir.program import LinearProgram
from placedsl.lowering.lower import lower
from placedsl.problem.formulation import Formulation
from placedsl.problem.problem import Problem
from placedsl.solvers.bound_propagation import finite_bounds
from placedsl.solvers.cp_sat import CpSat, without_bounds
from placedsl.solvers.cp_sat_parameters import defect_switches
from placedsl.solvers.integer_program import (
    AT_LEAST_ONE,
    AT_MOST_ONE,
    EXACTLY_ONE,
    LINEAR,
    IntegerBlock,
    IntegerProgram,
    Intervals,
    booleans,
    differing,
    integer_program,
)
from placedsl.solvers.integer_scaling import GREATEST, LEAST, grid, integer_objective
from placedsl.tolerances import CONTRADICTION

_SUM = "cp_model.LinearExpr.sum"
_SETS = {EXACTLY_ONE: "add_exactly_one", AT_MOST_ONE: "add_at_most_one", AT_LEAST_ONE: "add_bool_or"}
_ABOUT = (
    "CP-SAT computes with integers: a real column is counted in small steps, and a row is multiplied until its numbers",
    "are whole, and widened by what rounding may do.  Every placement that satisfies the spec satisfies these rows.",
    "Run it with Python: python FILE.  It needs the package ortools.",
)
_IMPORTS = (
    "import argparse", "import itertools", "import json", "import sys", "",
    "from ortools.sat.python import cp_model", "", "model = cp_model.CpModel()",
)  # fmt: skip
_ADD_ROWS = '''
def add_rows(rows):
    """Add the rows of a table; a condition below zero is the negation of column -condition - 1."""
    for low, high, coefficients, positions, conditions in rows:
        terms = cp_model.LinearExpr.weighted_sum([columns[i] for i in positions], coefficients)
        row = model.add_linear_constraint(terms, low, high)
        if conditions:
            row.only_enforce_if([columns[i] if i >= 0 else ~columns[-i - 1] for i in conditions])

'''
_MAIN = """
def main():
    parser = argparse.ArgumentParser(description="Solve, and print the objective and the device of each node.")
    parser.add_argument("--placement", metavar="FILE", help="write the placement as JSON, for placedsl evaluate")
    arguments = parser.parse_args()
    solver = cp_model.CpSolver()
    # Version 9.15 can cut off optimal points in a presolve step (or-tools issue 5293), and err in probing intervals.
@PARAMETERS@
    for position, (name, unit, expression, scale, constant) in enumerate(OBJECTIVES):
        model.minimize(expression)
        status = solver.solve(model)
        if status != cp_model.OPTIMAL:
            print(solver.status_name(status).lower())
            return 3
        reached = solver.value(expression)
        print(f"{name} = {reached / scale + constant:.9g} {unit}".rstrip())
        if position + 1 < len(OBJECTIVES):
            # What comes next may not make this one worse.
            model.add(expression <= reached + int(1e-7 * abs(reached)))
    placement = {}
    for name, nodes in NODES.items():
        chosen = max((d for d in DEVICES if (name, d) in on), key=lambda d: solver.value(on[name, d]))
        placement |= dict.fromkeys(nodes, chosen)"""


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of one family within a block of the integer program."""

    family: Family
    block: IntegerBlock

    @property
    def large(self) -> bool:
        """Whether it is written as a table."""
        start = self.block.rows.start
        return int(start[self.family.stop] - start[self.family.start]) > MOST_WRITTEN_OUT


def write(problem: Problem, formulation: Formulation) -> Iterator[str]:
    """The lines of the script; InputError where a column has no bounds."""
    named = named_program(problem, formulation)
    features = CpSat.features
    linear = lower(named.grounded.program, native=features.native, integral=features.integers_only).program
    costs = [
        np.bincount(goal.column, weights=goal.coefficient, minlength=linear.columns).astype(float)
        for goal in named.grounded.program.objectives
    ]
    program, impossible = _integers(problem, linear, costs)
    columns = (*families(linear.column_origins, linear.column_start), *_selectors(program, linear.columns))
    rows = [_Rows(family, block) for block in program.blocks for family in families(block.origins, block.origin_start)]
    names, row_names = identifiers(columns, [r.family for r in rows])
    calls = elements(columns, names)
    yield from opening(_header(named, linear, program), _ABOUT, _IMPORTS)
    yield from _columns(columns, names, program)
    if impossible or named.impossible:
        yield from ["", "# What cannot be satisfied (above) is a choice among nothing.", "model.add_bool_or([])"]
    if any(r.large for r in rows):
        yield from column_list(columns, names)
        yield from _ADD_ROWS.split("\n")
    for one, name in zip(rows, row_names, strict=True):
        yield from _rows(one, name, calls)
    for origin_choices in program.choices:
        yield from ["", "# A maximum is one of its terms."]
        for literals in origin_choices:
            yield from listed("model.add_bool_or([", (calls[j] for j in literals), "])")
    for intervals in program.intervals:
        yield from _intervals(intervals, calls)
    yield ""
    yield from _goals(named, costs, program, calls)
    yield ""
    devices = [d.name for d in problem.machine.devices]
    yield from placement_lines(named.grounded, problem.graph.ids, devices, columns, names, calls, named.units)
    yield from variable_lines(named, columns, names, calls, program.unknowns.scale)
    yield ""
    switches = defect_switches(intervals=bool(program.intervals))
    parameters = "\n".join(f"    solver.parameters.{name} = {value}" for name, value in switches)
    yield from _MAIN.replace("@PARAMETERS@", parameters).split("\n")
    yield from ending(problem, "solver.value(column) / steps", "(column, steps)")


def _integers(problem: Problem, linear: LinearProgram, costs: Sequence[Floats]) -> tuple[IntegerProgram, bool]:
    """The program over integers that serves all objectives, and whether the bounds alone cannot be satisfied."""
    least, most = np.minimum.reduce(costs), np.maximum.reduce(costs)
    # Where one objective wants a column large and another wants it small, neither may bound it: nan is no sign.
    cost = np.where(least >= 0, most, np.where(most <= 0, least, np.nan))
    low, high = finite_bounds(replace(linear, cost=cost))
    crossed = bool((low > high + CONTRADICTION * np.maximum(1.0, np.abs(np.where(np.isfinite(low), low, 0.0)))).any())
    high = np.maximum(low, high)
    loose = without_bounds(linear, low, high)
    if loose:
        raise InputError([Diagnostic(loose, problem.objectives[0].span, "or write it in another format")])
    whole = linear.integer | booleans(linear)
    return integer_program(linear, grid(low, high, whole, differing(linear, whole))), crossed


def _selectors(program: IntegerProgram, first: int) -> tuple[Family, ...]:
    return tuple(replace(f, start=f.start + first) for f in families(program.selectors, program.selector_start))


def _header(named: NamedProgram, linear: LinearProgram, program: IntegerProgram) -> Iterator[str]:
    yield from named.subject(only_first=False)
    unknowns = linear.columns + int(program.selector_start[-1])
    rows = sum(len(block.rows.lower) for block in program.blocks)
    yield f"formulation {named.formulation.name}: {unknowns} unknowns, {rows} rows"


def _columns(columns: Sequence[Family], names: Sequence[str], program: IntegerProgram) -> Iterator[str]:
    unknowns, count = program.unknowns, int(program.selector_start[-1])
    low = [*unknowns.low.tolist(), *[0] * count]
    high = [*unknowns.high.tolist(), *[1] * count]
    scale = [*unknowns.scale.tolist(), *[1.0] * count]
    for family, name in zip(columns, names, strict=True):
        own = slice(family.start, family.stop)
        yield ""
        yield from comments([title(family)], "#", plain=False)
        steps = sorted(set(scale[own]))
        if steps != [1.0]:
            yield f"# counted in steps of 1/{steps[0]:.10g}" + ("" if len(steps) == 1 else f" to 1/{steps[-1]:.10g}")
        low_lines, least = constant_or_list(f"{name}_low", [str(v) for v in low[own]])
        high_lines, most = constant_or_list(f"{name}_high", [str(v) for v in high[own]])
        yield from low_lines
        yield from high_lines
        if not family.keys[0]:
            yield f"{name} = model.new_int_var({least}, {most}, {literal(name)})"
            continue
        yield from index_lines(name, family.keys)
        lists = {side: text for side, text in (("low", least), ("high", most)) if text == f"{name}_{side}"}
        bounds = f"{'low' if 'low' in lists else least}, {'high' if 'high' in lists else most}"
        made = f'model.new_int_var({bounds}, f"{name}[{{i}}]")'
        if lists:
            yield f"{name} = {{i: {made} for i, {', '.join(lists)} in zip({name}_index, {', '.join(lists.values())})}}"
        else:
            yield f"{name} = {{i: {made} for i in {name}_index}}"


def _rows(one: _Rows, name: str, calls: list[str]) -> Iterator[str]:
    family, block = one.family, one.block
    rows, first, past = block.rows, family.start, family.stop
    yield ""
    yield from comments([title(family)], "#", plain=False)
    start = [int(i) for i in rows.start[first : past + 1]]
    entries = slice(start[0], start[-1])
    columns, coefficients = rows.column[entries].tolist(), rows.coefficient[entries].tolist()
    low, high = rows.lower[first:past].tolist(), rows.upper[first:past].tolist()
    kinds = block.kinds[first:past].tolist()
    conditions = [[] for _ in kinds] if block.conditions is None else block.conditions[first:past]
    if one.large:
        yield f"{name}_rows = ["
        yield "    # from, to, coefficients, their positions in columns, conditions"
    for i, kind in enumerate(kinds):
        own = slice(start[i] - start[0], start[i + 1] - start[0])
        if (low[i], high[i]) == (LEAST, GREATEST) or (own.start == own.stop and low[i] <= 0 <= high[i]):
            continue
        if one.large:
            yield f"    ({_table_row(low[i], high[i], coefficients[own], columns[own], conditions[i])}),"
            continue
        called = [calls[j] for j in columns[own]]
        after = "".join(
            [f".only_enforce_if({', '.join(_literal(calls, c) for c in conditions[i])})"] if conditions[i] else []
        )
        if low[i] > high[i] or own.start == own.stop:
            yield f"model.add_bool_or([]){after}"
        elif kind != LINEAR:
            yield from listed(f"model.{_SETS[kind]}([", called, "])")
        else:
            terms = products(called, [str(c) for c in coefficients[own]])
            yield from _comparison(terms, low[i], high[i], after)
    if one.large:
        yield "]"
        yield f"add_rows({name}_rows)"


def _intervals(given: Intervals, calls: list[str]) -> Iterator[str]:
    """Intervals of which no two of a group overlap."""
    groups: dict[int, list[str]] = {}
    parts = (given.group, given.present, given.start, given.factor, given.size)
    for group, present, start, factor, size in zip(*(part.tolist() for part in parts), strict=True):
        (begin,) = products([calls[start]], [str(factor)])
        kind, there = ("optional_", f", {calls[present]}") if present >= 0 else ("", "")
        groups.setdefault(group, []).append(f'model.new_{kind}fixed_size_interval_var({begin}, {size}{there}, "")')
    yield ""
    yield from comments(
        [title(Family(given.origin.name, given.origin.span, (), 0)), "Of these intervals no two overlap."],
        "#",
        plain=False,
    )
    for members in groups.values():
        yield from listed("model.add_no_overlap([", members, "])")


def _comparison(terms: list[str], low: int, high: int, after: str) -> Iterator[str]:
    if low == high:
        yield from total("model.add(", terms, f" == {low}){after}", _SUM)
    elif high == GREATEST:
        yield from total("model.add(", terms, f" >= {low}){after}", _SUM)
    elif low == LEAST:
        yield from total("model.add(", terms, f" <= {high}){after}", _SUM)
    else:
        yield from total("model.add_linear_constraint(", terms, f", {low}, {high}){after}", _SUM)


def _table_row(low: int, high: int, coefficients: list[int], positions: list[int], conditions: list[int]) -> str:
    if low > high:
        # What no sum of these terms can be.
        low, high, coefficients, positions = 1, 1, [], []
    return f"{low}, {high}, {coefficients}, {positions}, {conditions}"


def _literal(calls: list[str], condition: int) -> str:
    return calls[condition] if condition >= 0 else f"~{calls[-condition - 1]}"


def _goals(named: NamedProgram, costs: Sequence[Floats], program: IntegerProgram, calls: list[str]) -> Iterator[str]:
    yield "# What is minimised, the most important first: name, unit, expression, scale, constant.  The value of each"
    yield "# is that of its expression over the scale, and the constant."
    yield "OBJECTIVES = ["
    for goal, cost in zip(named.goals, costs, strict=True):
        scaled = integer_objective(cost, program.unknowns)
        column: Integers = scaled.column
        terms = products([calls[j] for j in column.tolist()], [str(c) for c in scaled.coefficient.tolist()])
        scale = scaled.multiplier * goal.factor
        yield from comments([f"{goal} is multiplied by {number(scale)}"], "    #", plain=False)
        yield f"    ({literal(goal.name)}, {literal(goal.unit)},"
        lines = total("", terms or ["0"], f", {number(scale)}, {number(goal.constant)}),", _SUM)
        yield from ("     " + line for line in lines)
    yield "]"
