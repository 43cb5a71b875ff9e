"""Rows that no formulation has by itself: a tensor that is cut is cut by two devices at the least."""

from __future__ import annotations

import re

import pytest
from support.random_specs import random_spec

import placedsl
from placedsl.grounding.build import build
from placedsl.lowering.lower import lower
from placedsl.problem.formulation import choose

#: The formulations that count transfers in and out as one, by schedule.
EXTENDED = {"": "max_load", "overlapped": "overlapped"}
SHARED = """graph {
    node a { time = {accelerator: 4 ms}, memory = 1 GiB, output = 64 MiB }
    node b { time = {accelerator: 9 ms}, memory = 1 GiB, output = 64 MiB }
    node c { time = {accelerator: 5 ms}, memory = 2 GiB, output = 64 MiB }
    a -> b -> c
    a -> c
}
cluster server[2] {
    device gpu[2]: accelerator { memory = 3 GiB }
    interconnect { bandwidth = 16 GiB/s }
}
interconnect { bandwidth = 4 GiB/s }
parallelism { data = 1..2, weights = memory }
"""


def schedule(text: str) -> str:
    found = re.search(r"^schedule (\w+)$", text, re.MULTILINE)
    return found[1] if found else ""


def solved(text: str) -> tuple[str, float]:
    answer = placedsl.loads(text).solve(method="program", solver="cp-sat")
    return answer.termination, answer.value


def with_rows(text: str, formulation: str) -> str:
    return text.replace("minimize", f"extend {formulation} {{\n    use cut_twice\n}}\nminimize", 1)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", [s for s in range(60) if schedule(random_spec(s)) in EXTENDED])
def test_the_rows_keep_the_optimum(seed: int) -> None:
    text = random_spec(seed)
    termination, value = solved(text)
    stronger = solved(with_rows(text, EXTENDED[schedule(text)]))
    assert stronger[0] == termination
    assert termination == "infeasible" or stronger[1] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("rules", ["memory", "memory\n    contiguous"])
def test_stages_that_devices_share(rules: str) -> None:
    text = f"{SHARED}minimize time_per_sample\nsubject to\n    {rules}\n"
    assert solved(with_rows(text, "replicated")) == (
        "optimal", pytest.approx(solved(text)[1], rel=1e-6),
    )  # fmt: skip


def rows(text: str) -> int:
    spec = placedsl.loads(text)
    formulation = choose(spec.problem, spec.elaborated.checked_formulations())
    return len(lower(build(spec.problem, formulation).program).program.row_lower)


def test_there_is_a_row_for_each_tensor_and_accelerator() -> None:
    text = f"{SHARED}minimize time_per_sample\n"
    assert rows(with_rows(text, "replicated")) == rows(text) + 2 * 4
