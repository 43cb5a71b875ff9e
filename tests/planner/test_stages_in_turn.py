"""Stages that hold several chunks of the model in turn: search, programs, evaluator and timeline say the same."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from support.chunked_plans import drawn_with_chunks, moments, optimum_with_chunks, spec_with_chunks
from support.piper_workloads import Asked

import placedsl
from placedsl import InputError
from placedsl.api.timelines import shown_timeline
from placedsl.diagnostics import Source
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.answer import Answer
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from placedsl.problem.execution import DataParallelism
from placedsl.problem.placement_files import read, read_values
from placedsl.report.json.answer_document import document

BLOCKS = Path(__file__).parents[2] / "docs" / "language"
SPEC = """
graph from "blocks.json"
device gpu[4]: accelerator {{ memory = {memory} GiB }}
interconnect {{ bandwidth = 16 GiB/s }}
parallelism {{ microbatches = 16, data = divisors(microbatches), exchange = batch, chunks = 2{more} }}
minimize time_per_sample
subject to
    memory
    contiguous
{rules}"""


def loaded(memory: int = 40, more: str = "", rules: str = "") -> placedsl.Spec:
    return placedsl.loads(SPEC.format(memory=memory, more=more, rules=rules), BLOCKS)


def solved(asked: Asked, chunks: int, folder: Path, request: Request, rule: str = "") -> Answer:
    (folder / "w.json").write_text(json.dumps(asked.workload), encoding="utf-8")
    spec = placedsl.loads(spec_with_chunks(asked, chunks, "w.json") + rule, folder)
    # Solvers do not share a process, nor does a search need one of its own.
    return solve(spec.problem, spec.elaborated.checked_formulations, request, isolated=request.method == "program")


def confirm(seed: int, folder: Path, request: Request, most: int = 6) -> Answer | None:
    asked, chunks = drawn_with_chunks(seed, most)
    answer, best = solved(asked, chunks, folder, request), optimum_with_chunks(asked, chunks)
    if best is None:
        assert answer.termination == "infeasible", (seed, answer)
        return None
    assert answer.termination == "optimal", (seed, answer)
    assert answer.value == pytest.approx(float(best), rel=1e-9), seed
    assert answer.evaluation is not None
    assert answer.evaluation.feasible
    return answer


@pytest.mark.sampled(8)
@pytest.mark.parametrize("first", range(0, 1600, 20))
def test_random_problems_against_enumeration(first: int, tmp_path: Path) -> None:
    """Options, tensor parallelism, exchanges, every way to hold samples; and what the timeline measures of memory."""
    known = 0
    for seed in range(first, first + 20):
        answer = confirm(seed, tmp_path, Request(workers=1))
        if answer is None or answer.placement is None or answer.evaluation is None:
            continue
        known += 1
        timeline = shown_timeline(answer.problem, answer.placement, answer.evaluation, None, None, None)
        assert timeline.memory is not None
        for stage in answer.plan.stages:
            devices = [timeline.problem.machine.positions[name] for name in stage.devices]
            assert timeline.memory[devices].max() == pytest.approx(stage.memory, rel=1e-12), seed
            assert timeline.loads[devices].tolist() == pytest.approx([stage.load] * len(devices), rel=1e-9), seed
    assert known


@pytest.mark.sampled(4)
@pytest.mark.parametrize("solver", ["highs", "cp-sat", "mip", "pyomo", "cvxpy"])
@pytest.mark.parametrize("first", range(5000, 5040, 5))
def test_programs_against_enumeration(solver: str, first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 5):
        confirm(seed, tmp_path, Request(solver, "program", workers=1), most=4)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("first", range(0, 640, 10))
def test_limits_of_devices_against_enumeration(first: int, tmp_path: Path) -> None:
    """The search keeps to the most; with at least so many it proves a plan that has them by itself, or bounds it."""
    for seed in range(first, first + 10):
        asked, chunks = drawn_with_chunks(seed)
        number = 1 + seed % 4
        answer = solved(asked, chunks, tmp_path, Request(method="dp"), f"    few: devices_used <= {number}\n")
        best = optimum_with_chunks(asked, chunks, lambda taken: taken <= number)  # noqa: B023
        assert answer.termination == ("infeasible" if best is None else "optimal"), (seed, answer.message)
        if best is not None:
            assert answer.value == pytest.approx(float(best), rel=1e-9), seed
        answer = solved(asked, chunks, tmp_path, Request(method="dp"), f"    many: devices_used >= {number}\n")
        best = optimum_with_chunks(asked, chunks, lambda taken: taken >= number)  # noqa: B023
        if answer.termination == "optimal":
            assert answer.value == pytest.approx(float(best or 0), rel=1e-9), seed
        assert best is None or answer.bound <= float(best) * (1 + 1e-9), seed


@pytest.mark.rotates(1)
def test_sums_that_others_are_taken_from(tmp_path: Path) -> None:
    """A rounding error of a sum ruled out the best plan."""
    confirm(1371, tmp_path, Request(workers=1, method="dp"))


@pytest.mark.parametrize("held", ["pipeline", "batch", "sample"])
def test_what_is_held_is_what_the_order_of_passes_holds(held: str) -> None:
    """The closed form keeps moments, and those at which most is held, whatever a sample takes in each chunk."""
    rng = random.Random(1)
    none = np.zeros((1, 1))
    for stages in range(1, 6):
        for chunks in (2, 3, 4):
            for rounds in (1, 2, 5):
                place = placedsl.loads(
                    "graph { node a { time = 1 s } }\ndevice d: accelerator\nminimize time_per_sample"
                )
                sharing = DataParallelism(
                    (1,), none[0], none, place.problem.objectives[0].span, microbatches=stages * rounds, held=held,
                    chunks=chunks,
                )  # type: ignore[arg-type]  # fmt: skip
                for at in range(stages):
                    said = sharing.held_at_once(1, stages, at)
                    every = moments(stages, at, chunks, stages * rounds, held)
                    assert set(said) <= every
                    for _ in range(20):
                        stash = [rng.choice((0, 1, 2, 7)) for _ in range(chunks)]
                        most = max(sum(a * b for a, b in zip(m, stash, strict=True)) for m in every)
                        assert most == max(sum(a * b for a, b in zip(m, stash, strict=True)) for m in said)


def test_the_answer_is_read_back(tmp_path: Path) -> None:
    spec = loaded(rules="    two: stages_used == 2\n")
    answer = spec.solve()
    assert [stage.chunk for stage in answer.plan.stages] == [1, 1, 2, 2]
    assert [len(stage.devices) for stage in answer.plan.stages] == [2, 2, 2, 2]
    source = Source("answer.json", json.dumps(document(answer)))
    again = evaluate(spec.problem, read(spec.problem, source), read_values(spec.problem, source))
    assert again.feasible
    assert again.objectives == answer.evaluation.objectives
    assert again.memory == answer.evaluation.memory


def test_a_placement_without_chunks_is_divided_into_pieces() -> None:
    spec = loaded(80, rules="    one: copies_used == 2\n")
    judged = spec.evaluate({"block1": "gpu[1]", "block2": "gpu[2]", "block3": "gpu[1]", "block4": "gpu[2]"})
    assert judged.feasible
    assert judged.values["chunk"] == {(0,): 1.0, (1,): 1.0, (2,): 2.0, (3,): 2.0}


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ({"block1": "gpu[1]", "block2": "gpu[1]", "block3": "gpu[2]", "block4": "gpu[2]"}, "chunks without a node"),
        ({"block1": "gpu[1]", "block2": "gpu[2]", "block3": "gpu[3]", "block4": "gpu[1]"}, "chunks without a node"),
    ],
)
def test_what_is_no_plan_is_told(nodes: dict[str, str], message: str) -> None:
    violations = loaded(80).evaluate(nodes).violations
    assert any(message in v.message for v in violations), violations


def test_rounds_are_whole() -> None:
    """Three stages, and a batch of 16."""
    text = SPEC.format(memory=200, more="", rules="    three: stages_used == 3\n").replace('"blocks.json"', "{CHAIN}")
    chain = "{\n" + "\n".join(f"    node n{k} {{ time = 1 s, output = 1 MiB }}" for k in range(6)) + "\n    "
    chain += " -> ".join(f"n{k}" for k in range(6)) + "\n}"
    spec = placedsl.loads(text.replace("from {CHAIN}", chain))
    assert spec.solve(method="dp").termination == "infeasible"
    even = placedsl.loads(text.replace("from {CHAIN}", chain).replace("microbatches = 16", "microbatches = 12"))
    assert even.solve(method="dp").proven()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (", chunks = 3", "given twice"), ("", ""),
    ],
)  # fmt: skip
def test_entries(more: str, message: str) -> None:
    if not message:
        assert loaded().problem.execution.chunks == 2
        return
    with pytest.raises(InputError, match=message):
        loaded(more=more)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("microbatches = 16, data = divisors(microbatches), exchange = batch", "data = 1",
         "require the number of microbatches"),
        ("data = divisors(microbatches), exchange = batch", "data = 1..3", "cannot be shared evenly by 3 copies"),
        ("chunks = 2", "chunks = 0", "chunks"),
    ],
)  # fmt: skip
def test_what_chunks_require(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        placedsl.loads(SPEC.format(memory=40, more="", rules="").replace(old, new), BLOCKS)


def test_methods_that_do_not_know_them_say_so() -> None:
    with pytest.raises(placedsl.UsageError, match="it does not know stages of several chunks"):
        loaded().solve(method="equi")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", ["auto", "program"])
@pytest.mark.parametrize(
    "rule",
    [
        "stages_used == 2", "forall v in nodes: data(v) == 1", "chunk(block2) == 1", "stage(block3) == 1",
        "forall v in nodes: in_flight(v) <= 4", "block1 on gpu[2]", "forall d in devices: memory(d) <= 36 GiB",
        "devices_used <= 3", "devices_used == 2", "devices_used >= 3", "devices_used <= 2 or copies_used == 2",
    ],
)  # fmt: skip
def test_constraints_on_top(rule: str, method: str) -> None:
    """Search and program agree under constraints that either knows."""
    found = loaded(rules=f"    rule: {rule}\n").solve(method=method, workers=1)
    assert found.proven(), (found, found.message)
    other = loaded(rules=f"    rule: {rule}\n").solve(method="program", solver="cp-sat", workers=1)
    assert found.termination == other.termination
    if found.evaluation is not None and other.evaluation is not None:
        assert found.value == pytest.approx(other.value, rel=1e-6)
