"""A Python script that states the program for python-mip and solves it with CBC."""

from __future__ import annotations

from collections.abc import Iterator

from placedsl.export.programs.algebraic_layer import Layer, script
from placedsl.export.programs.named_program import Family, named_program
from placedsl.export.programs.script import index_lines
from placedsl.problem.formulation import Formulation
from placedsl.problem.problem import Problem

_KINDS = {"binary": "mip.BINARY", "integer": "mip.INTEGER", "real": "mip.CONTINUOUS"}
_ADD_ROWS = '''
def add_rows(rows):
    """Add the rows of a table."""
    for row, sense, right, coefficients, positions in rows:
        terms = mip.LinExpr([columns[i] for i in positions], list(coefficients))
        model.add_constr(COMPARE[sense](terms, right))

'''
_MAIN = """
def main():
    parser = argparse.ArgumentParser(description="Solve, and print the objective and the device of each node.")
    parser.add_argument("--placement", metavar="FILE", help="write the placement as JSON, for placedsl evaluate")
    arguments = parser.parse_args()
    model.verbose = 0
    model.max_mip_gap, model.max_mip_gap_abs = 1e-7, 1e-12
    goals = [(name, unit, mip.xsum([expression])) for name, unit, expression in OBJECTIVES]
    for name, unit, expression in goals:
        # CBC takes what is better by less than 1e-5 for the same: the objective is multiplied for its sake.
        model.objective = mip.minimize(1000 * expression)
        status = model.optimize()
        if status != mip.OptimizationStatus.OPTIMAL:
            print(status.name.lower())
            return 3
        value = expression.x
        print(f"{name} = {value:.9g} {unit}".rstrip())
        if expression is not goals[-1][2] and expression.expr:
            # What comes next may not make this one worse.
            model.add_constr(expression <= value + 1e-7 * abs(value))
    placement = {}
    for name, nodes in NODES.items():
        chosen = max((d for d in DEVICES if (name, d) in on), key=lambda d: on[name, d].x)
        placement |= dict.fromkeys(nodes, chosen)"""


def write(problem: Problem, formulation: Formulation) -> Iterator[str]:
    """The lines of the script."""
    layer = Layer(
        about=("Run it with Python: python FILE.  It needs the package mip, which brings CBC along.",),
        imports=(
            "import argparse", "import itertools", "import json", "import operator", "import sys", "", "import mip", "",
            "model = mip.Model(sense=mip.MINIMIZE, solver_name=mip.CBC)",
        ),
        summed="mip.xsum", infinite=("-mip.INF", "mip.INF"), declare=_declare,
        row=_row, family=lambda _: "", add_rows=_ADD_ROWS, add_table="add_rows({0}_rows)", main=_MAIN,
        value="column.x * size",
    )  # fmt: skip
    return script(named_program(problem, formulation), layer)


def _declare(name: str, family: Family, kind: str, low: str, high: str) -> Iterator[str]:
    if not family.keys[0]:
        yield f"{name} = model.add_var(lb={low}, ub={high}, var_type={_KINDS[kind]})"
        return
    yield from index_lines(name, family.keys)
    lists = {side: text for side, text in (("low", low), ("high", high)) if text == f"{name}_{side}"}
    bounds = f"lb={'low' if 'low' in lists else low}, ub={'high' if 'high' in lists else high}"
    made = f"model.add_var({bounds}, var_type={_KINDS[kind]})"
    if lists:
        ranged = f"for i, {', '.join(lists)} in zip({name}_index, {', '.join(lists.values())})"
    else:
        ranged = f"for i in {name}_index"
    yield f"{name} = {{i: {made} {ranged}}}"


def _row(name: str, index: str, label: str) -> tuple[str, str]:  # noqa: ARG001
    return "model.add_constr(", f", {label})"
