"""Data x tensor x pipeline plans from spec to answer: against enumeration from the file, and published optima."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from support.piper_workloads import Asked, drawn, native, optimum, with_shares

import placedsl
from placedsl import InputError
from placedsl.algorithms.pipelines.parallel_plans import plans_of_problems
from placedsl.algorithms.pipelines.parallel_plans import search as plans
from placedsl.algorithms.pipelines.parallel_plans.instance import PlanInstance
from placedsl.problem.placement_files import read, read_values
from placedsl.report.json.answer_document import document

#: Optima of the workloads of Tarnawski et al. 2021 (exchange per batch, 25 GiB/s), by devices and GiB on each.
BERT = {
    (8, 8): 0.16585575, (8, 80): 0.12200726935, (32, 2): 0.0665495, (64, 2): 0.0320300812349,
    (64, 8): 0.0202005502945, (256, 80): 0.00425169709584, (512, 8): 0.00256112784601, (2048, 2): 0.00092718415333,
    (2048, 8): 0.000703591184443, (2048, 80): 0.000663712740281, (16, 2): None,
}  # fmt: skip
RESNET = {
    (8, 4): 73.493286, (16, 2): 76.5213125, (32, 1.5): 50.97719531, (32, 2): 24.03139852, (64, 1.5): 16.98388281,
    (128, 2): 5.360820316, (128, 8): 3.894504087, (8, 2): None,
}  # fmt: skip
SPEC = """
graph from "{file}" {{ time_unit = 1 s }}
device gpu[{devices}]: accelerator {{ memory = {gib} GiB }}
interconnect {{ bandwidth = 25 GiB/s }}
parallelism {{ microbatches = {batch}, data = divisors(microbatches), exchange = batch, weights_traffic = 4 }}
minimize time_per_sample
subject to
    memory
    contiguous
"""


def solved(asked: Asked, folder: Path) -> placedsl.Answer:
    (folder / "w.json").write_text(json.dumps(asked.workload), encoding="utf-8")
    return placedsl.loads(asked.spec("w.json"), folder).solve(workers=1)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("first", range(0, 600, 20))
def test_agrees_with_enumeration_from_the_file(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 20):
        asked = drawn(seed)
        answer, exact = solved(asked, tmp_path), optimum(asked)
        if exact is None:
            assert answer.termination == "infeasible", f"seed {seed}"
        else:
            assert answer.termination == "optimal", f"seed {seed}"
            assert (answer.value, answer.bound) == pytest.approx((float(exact),) * 2, rel=1e-9), f"seed {seed}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("first", range(700, 850, 50))
def test_options_in_a_graph_of_ones_own(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 50):
        asked = drawn(seed)
        asked = Asked(**{**vars(asked), "workload": with_shares(asked.workload, random.Random(seed))})
        exact = optimum(asked)
        answer = solved(Asked(**{**vars(asked), "workload": native(asked.workload)}), tmp_path)
        assert (answer.termination == "infeasible") == (exact is None), f"seed {seed}"
        assert exact is None or answer.value == pytest.approx(float(exact), rel=1e-9), f"seed {seed}"


@pytest.mark.parametrize("seed", range(3))
def test_memory_to_the_byte(seed: int, tmp_path: Path) -> None:
    """What a plan takes is enough for it, and one byte less is not."""
    asked = drawn(1000 + seed)
    answer = solved(asked, tmp_path)
    while answer.evaluation is None or not max(answer.evaluation.memory):
        seed += 7
        asked = drawn(1000 + seed)
        answer = solved(asked, tmp_path)
    taken = round(max(answer.evaluation.memory))
    for memory in (taken, taken - 1):
        less = Asked(**{**vars(asked), "memory": memory})
        again, exact = solved(less, tmp_path), optimum(less)
        assert (again.termination == "infeasible") == (exact is None)
        assert exact is None or again.value == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.workloads
@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("file", "batch", "devices", "gib", "value"),
    [
        *(("bert32a100.json", 1920, *machine, value) for machine, value in BERT.items()),
        *(("resnet.json", 7680, *machine, value) for machine, value in RESNET.items()),
    ],
)
def test_published_workloads(
    workloads: Path, file: str, batch: int, devices: int, gib: float, value: float | None
) -> None:
    text = SPEC.format(file=workloads / "piper" / file, devices=devices, gib=gib, batch=batch)
    answer = placedsl.loads(text).solve(workers=1)
    if value is None:
        assert answer.termination == "infeasible"
    else:
        assert answer.termination == "optimal"
        assert (answer.value, answer.bound) == pytest.approx((value, value), rel=1e-9)


@pytest.mark.workloads
@pytest.mark.parametrize(("devices", "gib", "value"), [(8, 8, 164.159), (32, 16, 27.2214), (16, 4, None)])
def test_published_even_splits(workloads: Path, devices: int, gib: int, value: float | None) -> None:
    """Tarnawski et al. 2021, Table 1: ResNet50, exchange per round."""
    text = SPEC.format(file=workloads / "piper" / "resnet.json", devices=devices, gib=gib, batch=devices)
    text = text.replace("divisors(microbatches)", f"1..{devices}").replace("exchange = batch", "exchange = round")
    answer = placedsl.loads(text).solve(method="equi")
    if value is None:
        assert answer.placement is None
    else:
        assert float(f"{answer.value:.6g}") == value


@pytest.fixture
def small(tmp_path: Path) -> tuple[placedsl.Spec, placedsl.Answer]:
    """A problem whose plan has stages that read from one another."""
    for seed in range(5000, 5400):
        asked = drawn(seed)
        answer = solved(asked, tmp_path)
        graph, place = answer.problem.graph, answer.placement
        ends = zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)
        if place is not None and any(place[u] != place[v] for u, v in ends):
            return placedsl.loads(asked.spec("w.json"), tmp_path), answer
    raise AssertionError("no such problem")


def test_an_answer_is_evaluated_as_it_was_found(small: tuple[placedsl.Spec, placedsl.Answer]) -> None:
    from placedsl.evaluation.evaluate import evaluate

    spec, answer = small
    assert answer.evaluation is not None
    source = placedsl.diagnostics.Source("answer.json", json.dumps(document(answer)))
    found = evaluate(spec.problem, read(spec.problem, source), read_values(spec.problem, source))
    assert found.violations == ()
    assert found.objectives == answer.evaluation.objectives
    assert found.memory == answer.evaluation.memory


def test_the_plan_of_an_answer_says_how_stages_run(small: tuple[placedsl.Spec, placedsl.Answer]) -> None:
    _, answer = small
    stages = document(answer)["plan"]["stages"]
    behind = sum(stage["data"] for stage in stages)
    for stage in stages:
        copies = stage["data"]
        assert len(stage["devices"]) == copies * stage["tensor"]
        assert stage["in_flight"] == -(-behind // copies)
        assert {str(node["id"]) for node in stage["nodes"]} == set(stage["options"])
        behind -= copies
    assert max(stage["load"] for stage in stages) == pytest.approx(answer.value, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "change", "rule"),
    [
        ("order", lambda values: {key: -value for key, value in values.items()}, "stage"),
        ("order", lambda values: dict.fromkeys(values, 1.0), "stage"),
        ("copy_size", lambda values: dict.fromkeys(values, 7.0), "tensor"),
        ("option", lambda values: dict.fromkeys(values, 0.0), "options"),
        ("copies", lambda values: {key: 9.0 * bool(value) for key, value in values.items()}, "copies"),
    ],
)
def test_what_does_not_hold_of_a_plan(
    small: tuple[placedsl.Spec, placedsl.Answer], name: str, change: object, rule: str
) -> None:
    from placedsl.evaluation.evaluate import evaluate

    spec, answer = small
    assert answer.evaluation is not None
    assert callable(change)
    values = {**answer.evaluation.values, name: change(answer.evaluation.values[name])}
    found = evaluate(spec.problem, answer.placement or (), values)
    assert rule in {violation.rule for violation in found.violations}


LAYERS = {
    "nodes": [
        {"id": v, "name": f"layer{v}", "TMPCs": {"1": [
            {"id": "vanilla", "timePerSample": 1, "parameterSize": 0, "memoryUsageA": 4, "memoryUsageB": 2,
             "syncTimeFw": {}, "syncTimeBw": {}},
            {"id": "recompute", "timePerSample": 2, "parameterSize": 0, "memoryUsageA": 1, "memoryUsageB": 2,
             "syncTimeFw": {}, "syncTimeBw": {}},
        ]}}
        for v in range(3)
    ],
    "edges": [{"sourceId": v, "destId": v + 1, "communicationCost": 0} for v in range(2)],
}  # fmt: skip
MACHINE = """graph from "layers.json" {{ time_unit = 1 s }}
device gpu[3]: accelerator {{ memory = {memory} B }}
interconnect {{ bandwidth = 1 KiB/s }}
"""
GOAL = "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n"


@pytest.fixture
def layers(tmp_path: Path) -> Path:
    (tmp_path / "layers.json").write_text(json.dumps(LAYERS), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ("", "the operators of this graph have options, and nothing says how stages may use devices"),
        ("parallelism { data = 1, tensor = {1, 3} }", "no node has an option for 3 devices"),
        ("parallelism { data = 1..3, exchange = batch }", "requires the number of microbatches"),
        ("parallelism { data = 1..3, exchange = batch, microbatches = 4 }", "cannot be shared evenly by 3 copies"),
        ("parallelism { data = 1, exchange = rounds }", "this is no period of the exchange of weights"),
        ("parallelism { data = 1, in_flight = batches }", "this does not say which samples are in flight"),
        ("parallelism { data = 1, in_flight = batch }", "require the number of microbatches"),
        ("parallelism { data = divisors(microbatches) }", "does not say how many microbatches there are"),
        ("parallelism { data = 1, weights_traffic = 2 s }", "a number known beforehand, 0 or more, is expected"),
        ("parallelism { data = {2, 3} }", "1 must be among the numbers of devices"),
        ("schedule gpipe\nparallelism { data = 1 }", "not known under schedule gpipe"),
        ("schedule 1f1b { transfers = direct }\nparallelism { data = 1 }", "not known with transfers = direct"),
        ("schedule dataflow\nparallelism { data = 1 }", "schedule dataflow runs one sample"),
    ],
)
def test_wrong_statements_are_told_at_their_places(layers: Path, statements: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        placedsl.loads(MACHINE.format(memory=100) + statements + "\n" + GOAL, layers)
    assert any(message in diagnostic.message for diagnostic in caught.value.diagnostics)
    assert all(diagnostic.span is not None for diagnostic in caught.value.diagnostics)


def test_what_the_search_is_not_for_is_a_program(layers: Path) -> None:
    """Stages have an order that work follows, also where nothing asks for contiguous ones."""
    rules = "parallelism { data = 1 }\nminimize time_per_sample\nsubject to\n    memory\n"
    spec = placedsl.loads(MACHINE.format(memory=100) + rules, layers)
    spec.check()
    answer = spec.solve()
    assert (answer.termination, answer.method, answer.value) == ("optimal", "program", 1.0)


def test_a_constraint_that_the_best_plan_satisfies(layers: Path) -> None:
    rules = "    all: sum(d in devices: d.number * load(d)) >= 1 s\n"
    answer = placedsl.loads(MACHINE.format(memory=100) + "parallelism { data = 1 }\n" + GOAL + rules, layers).solve()
    assert (answer.termination, answer.value) == ("optimal", 1.0)
    assert any("does not look at all" in note for note in answer.notes)


@pytest.mark.rotates(1)
def test_a_constraint_that_the_search_does_not_decide(layers: Path) -> None:
    """What it found breaks the constraint: a program goes on; under method dp a bound is left."""
    text = MACHINE.format(memory=100) + "parallelism { data = 1 }\n" + GOAL
    early = placedsl.loads(text + '    early: stage(nodes["2"]) <= 2\n', layers)
    answer = early.solve()
    assert (answer.termination, answer.method, answer.value) == ("optimal", "program", 2.0)
    assert any("it does not know: early" in note for note in answer.notes)
    answer = early.solve(method="dp")
    assert (answer.termination, answer.placement, answer.bound) == ("ended", None, 1.0)
    assert "does not decide early" in answer.message
    spec = placedsl.loads(text + '    late: stage(nodes["0"]) >= 2\n', layers)
    assert spec.solve().termination == "infeasible"
    found = spec.conflict()
    assert found is not None
    assert "late" in [member.name for member in found.members]


def test_too_little_memory_is_a_conflict_with_its_repair(layers: Path) -> None:
    """The first of three stages holds three samples of 1 B under recomputation, and 2 B."""
    spec = placedsl.loads(MACHINE.format(memory=4) + "parallelism { data = 1 }\n" + GOAL, layers)
    assert spec.solve().termination == "infeasible"
    found = spec.conflict()
    assert found is not None
    assert [member.name for member in found.members] == ["memory"]
    assert found.repair == ("memory of gpu: 5 B instead of 4 B",)
    enough = placedsl.loads(MACHINE.format(memory=5) + "parallelism { data = 1 }\n" + GOAL, layers).solve()
    assert (enough.termination, enough.value) == ("optimal", 2.0)


def test_rules_that_cannot_hold_together_are_a_conflict(layers: Path) -> None:
    """One stage of all layers holds 3 + 6 B under recomputation; several stages would do."""
    rules = "    few: stages_used <= 1\n    many: devices_used <= 2\n    wide: forall v in nodes: data(v) <= 3\n"
    spec = placedsl.loads(MACHINE.format(memory=8) + "parallelism { data = 1 }\n" + GOAL + rules, layers)
    assert spec.solve().termination == "infeasible"
    found = spec.conflict()
    assert found is not None
    assert [(member.name, member.cures) for member in found.members] == [("memory", True), ("few", True)]
    assert found.repair == ("memory of gpu: 9 B instead of 8 B",)


def test_a_backward_part_is_refused(layers: Path) -> None:
    text = (
        """graph {
    node f { time = 1 s, output = 1 B }
    node b { time = 2 s, backward = true }
    f -> b
}
device gpu[2]: accelerator
"""
        + "parallelism { data = 1, tensor = 1 }\n"
        + GOAL
    )
    with pytest.raises(InputError, match="plans are for nodes that do both passes, and 'b' is of the backward part"):
        placedsl.loads(text, layers).check()


def test_without_rules_the_search_looks_at_no_limits_of_kinds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where fewer copies are allowed than there are devices, and more samples than can be in flight."""
    seen = []

    def spied(instance: PlanInstance, *others: object) -> plans.PlanResult:
        seen.append(instance.limits)
        return plans.best_plan(instance, *others)  # type: ignore[arg-type]

    nodes = [{"id": i, "time": 1, "options": [{"name": "split", "tensor": 2, "time": 0.6}]} for i in range(3)]
    graph = {"format": "placedsl-graph", "nodes": nodes, "edges": [{"from": 0, "to": 1}]}
    (tmp_path / "g.json").write_text(json.dumps(graph), encoding="utf-8")
    spec = placedsl.loads(SPEC.format(file="g.json", devices=7, gib=1, batch=12), tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(plans_of_problems, "best_plan", spied)
        assert spec.solve().termination == "optimal"
    assert [limits.of_kinds for limits in seen if limits is not None] == [False] * len(seen) != []


@pytest.mark.parametrize(("held", "expected"), [("pipeline", [2, 1]), ("batch", [6, 6]), ("sample", [1, 1])])
def test_samples_in_flight_of_an_answer_are_the_evaluators(held: str, expected: list[int], tmp_path: Path) -> None:
    nodes = [{"id": i, "time": 1, "stash": 2**20} for i in range(2)]
    graph = {"format": "placedsl-graph", "nodes": nodes, "edges": [{"from": 0, "to": 1}]}
    (tmp_path / "g.json").write_text(json.dumps(graph), encoding="utf-8")
    text = SPEC.format(file="g.json", devices=6, gib=1, batch=12).replace("exchange", f"in_flight = {held}, exchange")
    rules = '    wide: data(nodes["0"]) == 2\n    two: stages_used == 2\n    last: data(nodes["1"]) == 2\n'
    answer = placedsl.loads(text + rules, tmp_path).solve()
    found = document(answer)["plan"]["stages"]
    assert [stage["in_flight"] for stage in found] == expected
    assert [stage["memory"] for stage in found] == [n * 2**20 for n in expected]


@pytest.mark.parametrize(
    ("gib", "stages", "copies", "recomputed"),
    [(8, 1, 2, False), (4.5, 1, 2, True), (3, 2, 1, False), (2.2, 2, 1, True)],
)
def test_the_rule_of_thumb(gib: float, stages: int, copies: int, recomputed: bool, tmp_path: Path) -> None:
    """Four layers of 4 GiB and 1 GiB per sample, an eighth of a GiB where it is recomputed, on 8 devices."""
    plain = {"time": 8, "memory": 4 * 2**30, "stash": 2**30}
    options = [
        {"name": name, "tensor": t, "time": time / t, "memory": 2**30 * 4 // t, "stash": stash // t}
        for t in (2, 4) for name, time, stash in (("split", 8, 2**30), ("recomputed", 10, 2**27))
    ]  # fmt: skip
    nodes = [{"id": i, **plain, "options": options} for i in range(4)]
    graph = {"format": "placedsl-graph", "nodes": nodes, "edges": [{"from": i, "to": i + 1} for i in range(3)]}
    (tmp_path / "g.json").write_text(json.dumps(graph), encoding="utf-8")
    text = SPEC.format(file="g.json", devices=8, gib=gib, batch=12)
    answer = placedsl.loads(text, tmp_path).solve(method="megatron")
    found = document(answer)["plan"]["stages"]
    assert [(stage["data"], stage["tensor"]) for stage in found] == [(copies, 4)] * stages
    taken = {name for stage in found for name in stage["options"].values()}
    assert taken == ({"recomputed"} if recomputed else {"split"})
