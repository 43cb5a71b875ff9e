"""A Python script that states the program for Pyomo and solves it, with HiGHS unless told otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from placedsl.export.programs.algebraic_layer import Layer, script
from placedsl.export.programs.named_program import Family, named_program
from placedsl.export.programs.script import index_lines
from placedsl.problem.formulation import Formulation
from placedsl.problem.problem import Problem

_DOMAINS = {"binary": "pyo.Binary", "integer": "pyo.Integers", "real": "pyo.Reals"}
_ADD_ROWS = '''
def add_rows(component, rows):
    """Put the rows of a table into a constraint."""
    for row, sense, right, coefficients, positions in rows:
        terms = LinearExpression(linear_coefs=list(coefficients), linear_vars=[columns[i] for i in positions])
        component[row] = COMPARE[sense](terms, right)

'''
_MAIN = """
def main():
    parser = argparse.ArgumentParser(description="Solve, and print the objective and the device of each node.")
    parser.add_argument("--solver", default="appsi_highs", help="a solver that Pyomo knows (default: %(default)s)")
    parser.add_argument("--placement", metavar="FILE", help="write the placement as JSON, for placedsl evaluate")
    arguments = parser.parse_args()
    if not pyo.SolverFactory(arguments.solver).available(exception_flag=False):
        parser.error(f"Pyomo finds no solver '{arguments.solver}'")
    model.goal = pyo.Objective(expr=0.0)
    model.reached = pyo.ConstraintList()
    for name, unit, expression in OBJECTIVES:
        model.goal.set_value(expression)
        solver = pyo.SolverFactory(arguments.solver)
        if arguments.solver == "appsi_highs":
            solver.options["mip_rel_gap"] = 1e-7
        found = solver.solve(model, load_solutions=False)
        if not pyo.check_optimal_termination(found):
            print(found.solver.termination_condition)
            return 3
        model.solutions.load_from(found)
        value = pyo.value(expression)
        print(f"{name} = {value:.9g} {unit}".rstrip())
        if expression is not OBJECTIVES[-1][2] and not isinstance(expression, (int, float)):
            # What comes next may not make this one worse.
            model.reached.add(expression <= value + 1e-7 * abs(value))
    placement = {}
    for name, nodes in NODES.items():
        chosen = max((d for d in DEVICES if (name, d) in on), key=lambda d: on[name, d].value or 0.0)
        placement |= dict.fromkeys(nodes, chosen)"""


def write(problem: Problem, formulation: Formulation) -> Iterator[str]:
    """The lines of the script."""
    layer = Layer(
        about=("Run it with Python: python FILE.  It needs the packages pyomo and highspy.",),
        imports=(
            "import argparse", "import itertools", "import json", "import operator", "import sys", "",
            "import pyomo.environ as pyo", "from pyomo.core.expr.numeric_expr import LinearExpression", "",
            "model = pyo.ConcreteModel()",
        ),
        summed="pyo.quicksum", infinite=("None", "None"), declare=_declare, row=_row, family=_family,
        add_rows=_ADD_ROWS, add_table="add_rows({0}, {0}_rows)", main=_MAIN,
        # What neither a row nor an objective asks for has no value.
        value="(column.value or 0.0) * size",
    )  # fmt: skip
    return script(named_program(problem, formulation), layer)


def _declare(name: str, family: Family, kind: str, low: str, high: str) -> Iterator[str]:
    made = f"{name} = model.{name} = pyo.Var("
    if not family.keys[0]:
        yield f"{made}domain={_DOMAINS[kind]}, bounds=({low}, {high}))"
        return
    yield from index_lines(name, family.keys)
    bounds = f"({low}, {high})"
    if f"{name}_low" in (low, high) or f"{name}_high" in (low, high):
        pairs = ", ".join(t if t.startswith(name) else f"itertools.repeat({t})" for t in (low, high))
        bounds = f"dict(zip({name}_index, zip({pairs})))"
    yield f"{made}{name}_index, domain={_DOMAINS[kind]}" + ("" if kind == "binary" else f", bounds={bounds}") + ")"


def _family(name: str) -> str:
    return f"{name} = model.{name} = pyo.Constraint(pyo.Any)"


def _row(name: str, index: str, label: str) -> tuple[str, str]:  # noqa: ARG001
    return (f"{name}[{index}] = ", "") if index else (f"model.{name} = pyo.Constraint(expr=", ")")
