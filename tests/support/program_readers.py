"""Programs that know nothing of this one read what was written, and solve it; each in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from placedsl import Spec
from placedsl.units import parse_quantity
from support.apart import Apart


@dataclass(frozen=True)
class Read:
    """What a reader made of a file: its size, and the optimum or "infeasible"."""

    columns: int
    rows: int
    entries: int
    integers: int
    names: tuple[str, ...]
    row_names: tuple[str, ...]
    optimum: float | str
    values: tuple[float, ...] = ()


def highs(path: str) -> Read:
    import highspy

    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    assert model.readModel(path) == highspy.HighsStatus.kOk
    model.setOptionValue("mip_rel_gap", 1e-7)
    model.run()
    status, linear = model.getModelStatus(), model.getLp()
    found: float | str = str(status)
    if status == highspy.HighsModelStatus.kOptimal:
        found = float(model.getInfo().objective_function_value)
    elif status == highspy.HighsModelStatus.kInfeasible:
        found = "infeasible"
    integers = sum(kind == highspy.HighsVarType.kInteger for kind in linear.integrality_)
    return Read(
        linear.num_col_, linear.num_row_, model.getNumNz(), integers, tuple(linear.col_names_),
        tuple(linear.row_names_), found, tuple(model.getSolution().col_value),
    )  # fmt: skip


def cbc(path: str) -> Read:
    """Names and size by way of python-mip, the optimum from CBC itself."""
    import cbcbox
    import mip

    model = mip.Model(solver_name=mip.CBC)
    model.verbose = 0
    model.read(path)
    names, row_names = tuple(v.name for v in model.vars), tuple(c.name for c in model.constrs)
    solution = Path(path).with_suffix(".solution")
    solution.unlink(missing_ok=True)
    command = [str(cbcbox.cbc_bin_path()), path, "-increment", "1e-9", "-solve", "-solution", str(solution)]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    status = solution.read_text(encoding="utf-8").split("\n")[0]
    found: float | str = status
    if status.startswith("Optimal"):
        found = float(status.split()[-1])
    elif "nfeasible" in status:
        found = "infeasible"
    return Read(model.num_cols, model.num_rows, model.num_nz, model.num_int, names, row_names, found)


def scip(path: str) -> Read:
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(path)
    columns, rows = model.getVars(), model.getConss()
    entries = sum(len(model.getValsLinear(row)) for row in rows)
    integers = sum(v.vtype() in ("BINARY", "INTEGER") for v in columns)
    names, row_names = tuple(v.name for v in columns), tuple(r.name for r in rows)
    model.optimize()
    found: float | str = model.getStatus()
    if found == "optimal":
        found = float(model.getObjVal())
    return Read(len(columns), len(rows), entries, integers, names, row_names, found)


@dataclass(frozen=True)
class Data:
    """Every number that HiGHS read: cost, bounds and kind of each column, sides and entries of each row."""

    columns: dict[str, tuple[float, float, float, bool]]
    rows: dict[str, tuple[float, float, dict[str, float]]]
    offset: float


def highs_data(path: str) -> Data:
    import highspy

    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    assert model.readModel(path) == highspy.HighsStatus.kOk
    linear = model.getLp()
    names, start = list(linear.col_names_), list(linear.a_matrix_.start_)
    kinds = list(linear.integrality_) or [highspy.HighsVarType.kContinuous] * len(names)
    whole = [kind == highspy.HighsVarType.kInteger for kind in kinds]
    columns = zip(linear.col_cost_, linear.col_lower_, linear.col_upper_, whole, strict=True)
    entries: list[dict[str, float]] = [{} for _ in linear.row_names_]
    for j, name in enumerate(names):
        for k in range(start[j], start[j + 1]):
            entries[linear.a_matrix_.index_[k]][name] = float(linear.a_matrix_.value_[k])
    sides = zip(linear.row_lower_, linear.row_upper_, entries, strict=True)
    return Data(
        {n: (float(c), float(a), float(b), w) for n, (c, a, b, w) in zip(names, columns, strict=True)},
        {n: (float(a), float(b), e) for n, (a, b, e) in zip(linear.row_names_, sides, strict=True)},
        float(linear.offset_),
    )


READERS = {"highs": highs, "cbc": cbc}
if importlib.util.find_spec("pyscipopt") is not None:
    READERS["scip"] = scip
_APART = Apart()


def read(reader: str, path: Path) -> Any:
    return _APART.call(reader, {**READERS, "highs_data": highs_data}[reader], str(path), seconds=120.0)


def close() -> None:
    _APART.close()


def in_si(number: float, unit: str) -> float:
    """``9.5``, ``ms`` to seconds; ``3``, ``units of 1000`` to 3000; ``2``, ``1000 USD`` to 2000."""
    unit = unit.removeprefix("units of ")
    size = parse_quantity(unit if re.match(r"\d", unit) else f"1 {unit}") if unit else parse_quantity("1")
    return size.times(number)


def unit_of(text: str) -> str:
    """The unit of the first objective, as the head of a file has it."""
    line = next(line for line in text.split("\n") if line[2:].startswith("minimize "))
    return line.rpartition(", in ")[2] if ", in " in line else ""


@dataclass(frozen=True)
class Ran:
    """What a script printed and wrote: exit code, objectives in SI by name, placement, the spec's own variables."""

    code: int
    objectives: dict[str, float]
    placement: dict[str, str]
    variables: dict[str, Any]
    output: str


def run(spec: Spec, format_name: str, folder: Path) -> Ran:
    """Write a script, run it, and read what it printed and wrote."""
    script, placement = folder / f"script_{format_name}.py".replace("-", "_"), folder / "placement.json"
    script.write_text(spec.emit(format_name), encoding="utf-8")
    placement.unlink(missing_ok=True)
    command = [sys.executable, str(script), "--placement", str(placement)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False)
    assert not done.stderr, done.stderr
    found = {}
    for goal in spec.problem.objectives:
        shown = re.search(rf"^{re.escape(goal.name)} = (\S+) ?(.*)$", done.stdout, re.MULTILINE)
        if shown:
            found[goal.name] = in_si(float(shown[1]), shown[2])
    written = json.loads(placement.read_text(encoding="utf-8")) if placement.exists() else {}
    variables: dict[str, Any] = {}
    if written and (spec.problem.variables or spec.problem.execution.schedule_decisions):
        assert set(written) == {"placement", "variables"}
        written, variables = written["placement"], written["variables"]
        assert values_shown(done.stdout) == pytest.approx(dict(values_written(variables)), rel=1e-8)
    assert all(f"  {node} -> {device}\n" in done.stdout for node, device in written.items())
    return Ran(done.returncode, found, written, variables, done.stdout)


def values_shown(output: str) -> dict[str, float]:
    """``  slack[gpu[1]] = 3 ms``: what a script printed of the spec's own variables, in SI."""
    lines = re.findall(r"^  (\w+(?:\[.*\])?) = (\S+) ?(.*)$", output, re.MULTILINE)
    return {name: in_si(float(value), unit) for name, value, unit in lines}


def values_written(variables: dict[str, Any], *path: str) -> Iterator[tuple[str, float]]:
    """The same of what it wrote: those that are not zero, under the names that are printed."""
    for word, inner in variables.items():
        words = (*path, word)
        if isinstance(inner, dict):
            yield from values_written(inner, *words)
        elif inner:
            yield f"{words[0]}[{', '.join(words[1:])}]" if words[1:] else words[0], inner
