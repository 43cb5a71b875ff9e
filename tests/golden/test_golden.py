"""Examples end as they did when they were recorded: termination, values, bounds, and programs that are no larger."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import golden
import pytest
from support.paths import EXAMPLES, ROOT

import placedsl

RECORDED = json.loads((Path(__file__).parent / "digest.json").read_text(encoding="utf-8"))
CASES = {case.key: case for case in golden.examples(ROOT)}


#: Examples of which the graph is a published workload, and those workloads.
PUBLISHED, INPUTS = "bert_l-3_", "dnn-partitioning/throughput-inputs/*/bert_l-3_*.json"


def _published(key: str) -> bool:
    return PUBLISHED in (EXAMPLES / CASES[key].spec).read_text(encoding="utf-8")


@pytest.fixture
def folder(key: str, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The examples, with the workload beside them that one of them needs."""
    if not _published(key):
        return EXAMPLES
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    for path in request.getfixturevalue("workloads").glob(INPUTS):
        shutil.copy(path, tmp_path / "examples")
    return tmp_path / "examples"


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=[pytest.mark.workloads] * _published(key)) for key in sorted(CASES)]
)
def test_an_example_ends_as_recorded(key: str, folder: Path) -> None:
    case, before = CASES[key], RECORDED[key]
    given = list(zip(case.options[::2], case.options[1::2], strict=True))
    parameters = dict(value.split("=", 1) for name, value in given if name == "--set")
    data = [folder / value for name, value in given if name == "--data"]
    path = folder / case.spec
    if before["explain"]:
        with pytest.raises(placedsl.InputError):
            placedsl.load(path, parameters, *data).check()
        return
    spec = placedsl.load(path, parameters, *data)
    answer = spec.solve(seed=0, workers=1, time_limit=60)
    assert answer.termination == before["termination"]
    values = () if answer.evaluation is None else answer.evaluation.objectives
    assert list(values) == pytest.approx([value for value in before["values"] if value is not None], rel=1e-5)
    for bound, recorded in zip(answer.bounds, before["bounds"], strict=True):
        # Where nothing is allowed, the bound is what one of several processes had found by then.
        if recorded is not None and answer.termination != "infeasible":
            assert bound == pytest.approx(recorded, rel=1e-5)
    if "program" in before:
        found = spec.explanation().program
        program = {"rows": found.rows, "columns": found.columns, "entries": len(found.column)}
        sizes = [int(number) for number in re.findall(r"(\d+) ", before["program"])]
        assert all(program[name] <= most for name, most in zip(("rows", "columns", "entries"), sizes, strict=True)), (
            program,
            before["program"],
        )


def test_every_example_is_recorded() -> None:
    assert {key for key in RECORDED if key.startswith("examples/")} == set(CASES)
