"""Which path a problem takes, and that nothing a solver says is believed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from placedsl import loads
from placedsl.budget import Budget
from placedsl.diagnostics import InputError, UsageError
from placedsl.ir.program import LinearProgram
from placedsl.planner.answer import Answer
from placedsl.planner.request import Request, solvers_for
from placedsl.planner.solve import solve
from placedsl.solvers.interface import Outcome, Progress
from placedsl.solvers.isolated import run_isolated
from placedsl.solvers.outcome import heard_by_nobody

pytestmark = pytest.mark.rotates(2)

GRAPH = """
graph {
    node a { time = {accelerator: 4 ms, host: 9 ms}, memory = 2 GiB, output = 8 MiB }
    node b { time = {accelerator: 6 ms, host: 40 ms}, memory = 3 GiB, output = 8 MiB }
    node c { time = {accelerator: 5 ms, host: 35 ms}, memory = 3 GiB, output = 8 MiB }
    a -> b -> c
}
device gpu[2]: accelerator { memory = 6 GiB }
device cpu: host
interconnect { bandwidth = 16 GiB/s }
"""
CONTIGUOUS = GRAPH + "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n"
FREE = GRAPH + "minimize time_per_sample\nsubject to\n    memory\n"


def answer_of(text: str, **wanted: object) -> Answer:
    return loads(text).solve(**wanted)


def test_contiguous_throughput_goes_to_dynamic_programming() -> None:
    answer = answer_of(CONTIGUOUS)
    assert (answer.method, answer.solver, answer.termination) == ("dp", "", "optimal")
    assert answer.bound == answer.value


@pytest.mark.parametrize(
    "text", [FREE, CONTIGUOUS.replace("time_per_sample", "communication"), FREE + "schedule gpipe\n"]
)
def test_what_the_dynamic_program_does_not_fit_goes_to_a_solver(text: str) -> None:
    answer = answer_of(text)
    assert answer.method == "program"
    assert answer.termination == "optimal"
    with pytest.raises(UsageError, match="method dp does not fit"):
        answer_of(text, method="dp")


def test_custom_constraint_that_the_relaxed_answer_satisfies() -> None:
    answer = answer_of(CONTIGUOUS + "    few: forall d in gpu: count(v in nodes: v on d) <= 3\n")
    assert answer.method == "dp"
    assert answer.termination == "optimal"
    assert "does not look at few" in answer.notes[0]


def test_custom_constraint_that_it_does_not_satisfy() -> None:
    """The relaxed value is a bound, and a solver goes on."""
    relaxed = answer_of(CONTIGUOUS)
    answer = answer_of(CONTIGUOUS + "    free: forall v in nodes: not (v on cpu)\n")
    assert answer.method == "program"
    assert answer.termination == "optimal"
    assert answer.value > relaxed.value
    assert "dynamic programming bounds time_per_sample" in answer.notes[0]
    with_dp_only = answer_of(CONTIGUOUS + "    free: forall v in nodes: not (v on cpu)\n", method="dp")
    assert with_dp_only.termination == "error"
    assert with_dp_only.bound == relaxed.value
    assert "cannot take free" in with_dp_only.message


def test_further_objectives() -> None:
    """The second decides among the best of the first; what is proven is told for each."""
    for text in (CONTIGUOUS, FREE):
        one = answer_of(text)
        two = answer_of(text.replace("time_per_sample", "time_per_sample then devices_used"))
        assert two.value == pytest.approx(one.value)
        assert two.termination == "optimal"
        assert two.bounds[1] == two.evaluation.objectives[1]
    wide = answer_of(FREE.replace("time_per_sample", "time_per_sample then devices_used"), gap=0.5)
    assert wide.termination == ("optimal" if wide.gap <= 1e-6 else "gap_reached")


def test_too_many_ideals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placedsl.algorithms.pipelines.solve.MOST_IDEALS", 2)
    answer = answer_of(CONTIGUOUS)
    assert answer.method == "program"
    assert answer.termination == "optimal"
    assert "ideals" in answer.notes[0]
    alone = answer_of(CONTIGUOUS, method="dp")
    assert alone.termination == "error"
    assert "use --method program" in alone.message


def test_solver_by_kind_of_problem() -> None:
    assert solvers_for(loads(CONTIGUOUS).problem, "auto") == ("cp-sat", "highs")
    assert solvers_for(loads(FREE).problem, None) == ("highs", "cp-sat")
    assert solvers_for(loads(FREE).problem, "mip") == ("mip",)


def lying(monkeypatch: pytest.MonkeyPatch, change: Callable[[str, Outcome], Outcome]) -> None:
    """Let a solver run, and change what it says; what it would have said before the end is not heard."""

    def run(name: str, program: LinearProgram, budget: Budget, progress: Progress) -> Outcome:
        return change(name, run_isolated(name, program, budget, heard_by_nobody))

    monkeypatch.setattr("placedsl.planner.strategies.program.run_isolated", run)


def outcome(found: Outcome, termination: str, point: np.ndarray | None, bound: float) -> Outcome:
    return Outcome(termination, point, 0.0, bound)


def test_a_bound_above_a_verified_value_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    lying(monkeypatch, lambda _, f: outcome(f, "optimal", f.incumbent, 2 * f.bound))
    answer = answer_of(FREE, solver="highs")
    assert answer.termination == "error"
    assert "a verified placement refutes" in answer.message
    assert answer.bound <= answer.value
    assert answer.exit_code == 4


def test_infeasible_is_not_believed_against_a_verified_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    lying(monkeypatch, lambda _, f: outcome(f, "infeasible", None, -np.inf))
    answer = answer_of(FREE, solver="highs")
    assert answer.termination == "error"
    assert answer.placement is not None


def test_a_placement_that_breaks_a_rule_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The point says that everything sits on the first device, where there is no room."""
    lying(monkeypatch, lambda _, f: outcome(f, "optimal", np.ones_like(f.incumbent), f.bound))
    spec = loads(FREE)
    answer = solve(spec.problem, spec.elaborated.checked_formulations, Request("highs", "program", start=False))
    assert answer.placement is None
    assert answer.termination == "error"
    assert "the evaluator refuses the placement that highs gave" in answer.message


def test_optimal_without_proof_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    lying(monkeypatch, lambda _, f: outcome(f, "optimal", f.incumbent, 0.5 * f.bound))
    answer = answer_of(FREE, solver="highs")
    assert answer.gap > 0.1
    assert answer.termination == "error"
    assert "the verified value is" in answer.message


def test_a_grid_that_is_too_coarse_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What CP-SAT proves on its grid of integers is no proof of the value."""
    lying(monkeypatch, lambda n, f: outcome(f, "optimal", f.incumbent, 0.5 * f.bound) if n == "cp-sat" else f)
    named = answer_of(FREE, solver="cp-sat")
    assert named.termination == "error"
    assert named.bound < named.value
    assert named.message.endswith("too many powers of ten apart for a grid of integers; try --solver highs")


def test_another_solver_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    lying(monkeypatch, lambda n, f: outcome(f, "error", None, -np.inf) if n == "highs" else f)
    answer = answer_of(FREE)
    assert answer.solver == "cp-sat"
    assert answer.termination == "optimal"
    assert any(note.startswith("highs failed (") and note.endswith("continued with cp-sat") for note in answer.notes)
    named = answer_of(FREE, solver="highs")
    assert named.termination == "error"


OWN = """
formulation mine {
    schedule pipedream
    var y[v in nodes, d in devices where v.supported[d]]: binary
    var cut[t in tensors, d in accelerators] in 0..1
    provides v on d = y[v, d]
    provides memory(d) = sum(v in nodes: v.memory * y[v, d])
    provides load(d) = sum(v in nodes: v.time[d] * y[v, d]) + sum(t in tensors: t.transfer[d] * cut[t, d])
    provides time_per_sample = max(d in devices: load(d))
    subject to
        once: forall v in nodes: sum(d in devices: y[v, d]) == 1
        into: forall (t, v) in reads, d in accelerators: cut[t, d] >= y[v, d] - y[t.producer, d]
        away: forall (t, v) in reads, d in accelerators: cut[t, d] >= y[t.producer, d] - y[v, d]
}
"""


def test_formulation_of_the_spec_comes_first() -> None:
    spec = loads(FREE + OWN)
    assert "formulation mine (<text>)" in spec.explain()
    answer = spec.solve()
    assert answer.termination == "optimal"
    assert answer.value == pytest.approx(answer_of(FREE).value)
    assert loads(spec.explain()).solve().value == pytest.approx(answer.value)


def test_a_formulation_that_lacks_a_quantity_is_passed_over() -> None:
    spec = loads(FREE + "    quiet: traffic(gpu[1], gpu[2]) <= 100 MiB\n" + OWN)
    reason = "formulation 'mine' is not taken: it does not provide traffic"
    assert reason in spec.explain()
    assert reason in spec.solve().notes


def test_a_wrong_formulation_is_found_out() -> None:
    """Its program counts half of the work; what it proves is not what the evaluator finds."""
    wrong = OWN.replace("provides load(d) = sum", "provides load(d) = 0.5 * sum")
    assert wrong != OWN
    answer = answer_of(FREE + wrong)
    assert answer.termination == "error"
    assert answer.placement is not None


def test_a_node_that_no_device_runs_is_an_error_of_the_spec() -> None:
    with pytest.raises(InputError) as caught:
        answer_of(
            FREE.replace("time = {accelerator: 4 ms, host: 9 ms}", "time = {tpu: 1 ms}")
            + "device tpu[0]: accelerator\n"
        )
    (found,) = caught.value.diagnostics
    assert found.message == "node 'a' runs on none of these devices"


def test_impossible_before_any_solver() -> None:
    """What must share a device has none in common."""
    text = FREE.replace("time = {accelerator: 4 ms, host: 9 ms}", "time = {host: 1 ms}, layer = 1")
    text = text.replace(
        "node b { time = {accelerator: 6 ms, host: 40 ms}", "node b { time = {accelerator: 6 ms}, layer = 1"
    )
    assert text.count("layer = 1") == 2
    answer = answer_of(text + "    colocated by layer\n")
    assert answer.termination == "infeasible"
    assert "no device that supports it" in answer.message


def test_a_condition_of_two_nodes_within_a_count() -> None:
    """Its rows are more than the devices that the constraint ranges over."""
    rule = "    odd: forall d in gpu: count(v in nodes: v on d and b on d) <= 1\n"
    answer = answer_of(FREE + rule, solver="highs")
    assert answer.termination == "optimal"
    assert answer.evaluation is not None
    together = next(held for held in answer.evaluation.nodes if 1 in held)
    assert together == (1,), "b is alone on its GPU"
