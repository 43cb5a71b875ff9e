"""Names and numbers survive the way to a file and back, whatever the words of the spec are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.program_readers import close, read

from placedsl import load
from placedsl.export.programs import lp, mps
from placedsl.export.programs.display_units import fitting_unit, in_units
from placedsl.export.programs.legal_names import LP, MPS, PYTHON, legal_names
from placedsl.export.programs.named_program import Goal, NamedProgram, families
from placedsl.export.programs.script import literal
from placedsl.ir.program import LinearProgram, Origin

INF = np.inf
WORDS = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="ab[]()_.,: \"'\\\n\t+-*/^<>=%$#é", max_size=8),
    st.sampled_from(
        ["", "end", "Bounds", "e1", "1e5", "inf", "free", "st", "RHS", "x" * 300, "x" * 299 + "y", "node 1"]
    ),
)


@pytest.fixture(scope="module", autouse=True)
def _pools():
    yield
    close()


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=12))
def test_names_are_legal_and_differ(words: list[str]) -> None:
    for alphabet, legal in (
        (LP, r"[A-DF-Za-df-z_][A-Za-z0-9_.]*"),
        (MPS, r"[A-Za-z_][A-Za-z0-9_.,()\[\]]*"),
        (PYTHON, r"[A-Za-z][A-Za-z0-9_]*"),
    ):
        names = legal_names(words, alphabet, ("obj",))
        assert len(set(names)) == len(words)
        assert "obj" not in names
        assert all(re.fullmatch(legal, name) and len(name) <= 100 for name in names), names
        if alphabet is not PYTHON:
            assert not {name.lower() for name in names} & {"end", "bounds", "free", "st", "rhs", "inf"}
        assert legal_names(words, alphabet, ("obj",)) == names


@given(st.text())
def test_texts_in_scripts_are_what_they_were(text: str) -> None:
    written = literal(text)
    assert "\n" not in written
    assert eval(written) == text
    written.encode()


@pytest.mark.rotates(1)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(WORDS.filter(lambda w: len(w) < 200), min_size=2, max_size=4, unique=True),
    format_name=st.sampled_from(["lp", "mps"]),
)
def test_a_graph_with_such_names(words: list[str], format_name: str, tmp_path: Path) -> None:
    """Ids and names of a file's nodes end in names that readers take, as many as there are columns."""
    nodes = [
        {"id": i, "name": word, "time": {"accelerator": 1 + i, "host": 3}, "memory": 1, "output": 10}
        for i, word in enumerate(words)
    ]
    edges = [{"from": i, "to": i + 1} for i in range(len(words) - 1)]
    graph = {"format": "placedsl-graph", "version": 1, "nodes": nodes, "edges": edges}
    (tmp_path / "graph.json").write_text(json.dumps(graph), encoding="utf-8")
    spec = tmp_path / "spec.place"
    devices = "device gpu[2]: accelerator\ninterconnect { bandwidth = 1 GB/s }\n"
    spec.write_text(f'graph from "graph.json"\n{devices}minimize time_per_sample\n', encoding="utf-8")
    loaded = load(spec)
    target = tmp_path / f"program.{format_name}"
    target.write_text(loaded.emit(format_name), encoding="ascii")
    found = read("highs", target)
    assert len(set(found.names)) == found.columns >= 2 * len(words)
    for script in ("pyomo", "mip", "cp-sat"):
        compile(loaded.emit(script), "script", "exec")


def named_program(program: LinearProgram) -> NamedProgram:
    """A program that comes from no spec."""
    problem = SimpleNamespace(objectives=[SimpleNamespace(span=SimpleNamespace(source=SimpleNamespace(name="hand")))])
    return NamedProgram(
        problem, SimpleNamespace(name="by_hand"), None, program,
        families((Origin("x"),), np.array([0, program.columns])), families((Origin("r"),), np.array([0, program.rows])),
        (Goal("cost", program.cost, program.offset, "", 1.0),), (),
    )  # fmt: skip


NUMBERS = st.one_of(
    st.integers(-9, 9).map(float),
    st.floats(-1e6, 1e6).map(lambda v: round(v, 6)),
    st.sampled_from([1e-7, 0.1 + 0.2, 1e12]),
)


@st.composite
def programs(draw: st.DrawFn, ranges: bool) -> LinearProgram:
    """Free and half-bounded columns, integers of all kinds, equalities, rows of two sides, a constant."""
    columns, rows = draw(st.integers(1, 5)), draw(st.integers(1, 4))

    def pairs(size: int, kinds: list[str]) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.full(size, -INF), np.full(size, INF)
        for i in range(size):
            kind, value = draw(st.sampled_from(kinds)), draw(NUMBERS)
            width = draw(st.integers(1, 5))
            low[i] = -INF if kind in ("free", "high") else value
            high[i] = INF if kind in ("free", "low") else value + (width if kind == "both" else 0)
        return low, high

    lower, upper = pairs(columns, ["free", "low", "high", "both", "fixed"])
    integer = np.array([draw(st.booleans()) for _ in range(columns)])
    lower, upper = (np.where(integer & np.isfinite(b), np.round(b), b) for b in (lower, upper))
    binary = np.array([draw(st.integers(0, 3)) == 0 for _ in range(columns)]) & integer
    lower, upper = np.where(binary, 0.0, lower), np.where(binary, 1.0, upper)
    row_lower, row_upper = pairs(rows, ["low", "high", "fixed"] + ["both"] * ranges)
    entries = [sorted(draw(st.sets(st.integers(0, columns - 1), min_size=1))) for _ in range(rows)]
    coefficient = [draw(NUMBERS.filter(lambda v: abs(v) > 1e-8)) for row in entries for _ in row]
    cost = np.array([draw(NUMBERS) for _ in range(columns)])
    return LinearProgram(
        cost, draw(NUMBERS), lower, upper, integer, np.cumsum([0, *map(len, entries)]),
        np.array([j for row in entries for j in row]), np.array(coefficient), row_lower, row_upper,
    )  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), format_name=st.sampled_from(["lp", "mps"]))
def test_every_number_comes_back(data: st.DataObject, format_name: str, tmp_path: Path) -> None:
    """HiGHS reads the very program that was written: costs, bounds, sides, coefficients, which columns are whole."""
    program = data.draw(programs(ranges=format_name == "mps"))
    named = named_program(program)
    path = tmp_path / f"program.{format_name}"
    writer = {"lp": lp, "mps": mps}[format_name]
    path.write_text("\n".join(writer.lines(named)) + "\n", encoding="utf-8")
    back = read("highs_data", path)
    columns, rows = named.names(*{"lp": (LP, "{}.{}", "."), "mps": (MPS, "{}[{}]", ",")}[format_name])
    constant = back.columns.pop("objective_constant", None)
    assert (constant[0] if constant else back.offset) == program.offset
    assert constant is None or constant[1:3] == (1.0, 1.0)
    assert back.columns == {
        name: (cost, low, high, bool(whole))
        for name, cost, low, high, whole in zip(
            columns, program.cost, program.lower, program.upper, program.integer, strict=True
        )
    }
    assert back.rows == {
        name: (low, high, {columns[j]: a for j, a in zip(program.column[p:q], program.coefficient[p:q], strict=True)})
        for name, low, high, p, q in zip(
            rows, program.row_lower, program.row_upper, program.start[:-1], program.start[1:], strict=True
        )
    }


def test_units_make_numbers_short() -> None:
    assert fitting_unit(np.array([0.004, 0.009, 0.0105])) == 1e-3
    assert fitting_unit(np.array([2.0**31, 3 * 2.0**30, 2.0**30])) == 2.0**30
    assert fitting_unit(np.array([2e9, 3e9])) == 1e9
    assert fitting_unit(np.array([0.0, 1.0, 5.0])) == 1.0
    assert fitting_unit(np.zeros(0)) == 1.0
    assert in_units(np.array([0.009, 0.0011, INF, -INF]), 1e-3).tolist() == [9.0, 1.1, INF, -INF]


@given(st.floats(1e-9, 1e12), st.sampled_from([1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e9, 2.0**10, 2.0**30]))
def test_units_change_no_value(value: float, unit: float) -> None:
    (found,) = in_units(np.array([value]), unit).tolist()
    assert abs(found * unit - value) <= 2e-15 * value
