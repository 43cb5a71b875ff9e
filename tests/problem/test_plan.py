"""Plans: what a stage is under each schedule, what stages exchange, over which links, and the way through JSON."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from support.paths import ROOT
from support.random_pipelines import random_placement, random_problem

import placedsl
from placedsl.diagnostics import InputError, Source
from placedsl.evaluation.evaluate import evaluate
from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.quantities import Quantities
from placedsl.graph.readers import load
from placedsl.problem.plan import Plan
from placedsl.problem.plan_document import plan_document, plan_from_document, read_plan
from placedsl.problem.problem import Problem

pytestmark = pytest.mark.rotates(2)

MIB = 2**20
CHAIN = """graph {
    node a { time = 2 ms, output = 4 MiB, layer = 1 }
    node b { time = 4 ms, output = 2 MiB, layer = 2 }
    node c { time = 2 ms, output = 1 MiB }
    node d { time = 1 ms }
    a -> b -> c -> d
    a -> c
}
device gpu[3]: accelerator
device cpu: host
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
"""
TRAINING = """graph {
    node f1 { time = 2 ms, output = 8 MiB }
    node f2 { time = 2 ms, output = 8 MiB }
    node b2 { time = 4 ms, output = 8 MiB, backward = true }
    node b1 { time = 4 ms, backward = true }
    f1 -> f2 -> b2 -> b1
    f1 -> b1
}
device gpu[2]: accelerator
interconnect { bandwidth = 16 GiB/s }
schedule pipedream
minimize time_per_sample
"""


def plan_of(text: str, placement: dict[str, str], times: dict[str, object] | None = None) -> Plan:
    spec = placedsl.loads(text)
    return Plan.of(spec.problem, spec.evaluate(placement, times=times))


def nodes(plan: Plan) -> list[list[int | str]]:
    return [[node.id for node in stage.nodes] for stage in plan.stages]


def flows(plan: Plan) -> list[tuple[str, int, int, float | None]]:
    return [(t.tensor, t.source, t.target, t.size) for t in plan.transfers]


def test_stages_stand_in_the_order_of_the_pipeline_not_of_the_devices() -> None:
    plan = plan_of(CHAIN, {"a": "gpu[3]", "b": "gpu[3]", "c": "gpu[1]", "d": "cpu"})
    assert plan.kind == "pipeline"
    assert [stage.devices for stage in plan.stages] == [("gpu[3]",), ("gpu[1]",), ("cpu",)]
    assert nodes(plan) == [["a", "b"], ["c"], ["d"]]
    assert flows(plan) == [("a", 1, 2, 4 * MIB), ("b", 1, 2, 2 * MIB), ("c", 2, 3, MIB)]
    assert [t.links for t in plan.transfers] == [("interconnect",)] * 3
    assert [node.attribute("layer") for node in plan.stages[0].nodes] == [1.0, 2.0]
    assert [d.number for d in plan.devices] == [1, 2, 3, 1]


def test_a_layer_number_of_zero_is_a_layer_number() -> None:
    plan = plan_of(CHAIN.replace("layer = 1", "layer = 0"), dict.fromkeys("abcd", "gpu[1]"))
    assert [node.attribute("layer") for node in plan.stages[0].nodes] == [0.0, 2.0, None, None]


def test_a_device_with_two_pieces_has_two_virtual_stages() -> None:
    plan = plan_of(CHAIN, {"a": "gpu[1]", "b": "gpu[2]", "c": "gpu[1]", "d": "gpu[1]"})
    assert plan.kind == "virtual_stages"
    assert [stage.devices for stage in plan.stages] == [("gpu[1]",), ("gpu[2]",), ("gpu[1]",)]
    assert nodes(plan) == [["a"], ["b"], ["c", "d"]]
    assert flows(plan) == [("a", 1, 2, 4 * MIB), ("a", 1, 3, 4 * MIB), ("b", 2, 3, 2 * MIB)]
    assert [t.links for t in plan.transfers] == [("interconnect",), (), ("interconnect",)]


def test_a_stage_of_training_holds_both_passes_in_the_order_of_the_forward_pass() -> None:
    plan = plan_of(TRAINING, {"f1": "gpu[2]", "b1": "gpu[2]", "f2": "gpu[1]", "b2": "gpu[1]"})
    assert plan.kind == "pipeline"
    assert [stage.devices for stage in plan.stages] == [("gpu[2]",), ("gpu[1]",)]
    assert nodes(plan) == [["f1", "b1"], ["f2", "b2"]]
    assert flows(plan) == [("f1", 1, 2, 8 * MIB), ("b2", 2, 1, 8 * MIB)]
    assert [[node.backward for node in stage.nodes] for stage in plan.stages] == [[False, True]] * 2


def test_devices_of_a_stage_are_the_copies_of_the_answer() -> None:
    text = """graph {
    node a { time = 8 ms, memory = 1 MiB, output = 1 KiB }
    node b { time = 2 ms, memory = 1 MiB }
    a -> b
}
device gpu[4]: accelerator
interconnect { bandwidth = 16 GiB/s }
parallelism { data = 1..3 }
minimize time_per_sample
subject to
    contiguous
    a_shared: copies[gpu[2]] == 3
    a_there: a on gpu[2]
    b_there: b on gpu[1]
"""
    answer = placedsl.loads(text).solve()
    assert answer.evaluation is not None
    plan = Plan.of(answer.problem, answer.evaluation)
    assert [(stage.devices, stage.parallelism) for stage in plan.stages] == [
        (("gpu[2]", "gpu[3]", "gpu[4]"), {"data": 3}),
        (("gpu[1]",), {"data": 1}),
    ]


def test_the_links_between_clusters_are_those_left_and_entered() -> None:
    text = """graph {
    node a { time = 1 ms, output = 4 MiB }
    node b { time = 1 ms, output = 4 MiB }
    node c { time = 1 ms }
    a -> b -> c
}
cluster pod[2] {
    device gpu[2]: accelerator
    interconnect { bandwidth = 160 GiB/s }
}
device edge: accelerator
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
"""
    plan = plan_of(text, {"a": "pod[1].gpu[1]", "b": "pod[1].gpu[2]", "c": "pod[2].gpu[1]"})
    within, across = (t.links for t in plan.transfers)
    assert within == ("interconnect of pod[1]",)
    assert across == ("interconnect of pod[1]", "interconnect", "interconnect of pod[2]")
    assert [d.cluster for d in plan.devices] == ["pod[1]", "pod[1]", "pod[2]", "pod[2]", ""]


def test_declared_links_have_their_names() -> None:
    text = CHAIN.replace("interconnect {", "link gpu <-> cpu {")
    plan = plan_of(text, {"a": "gpu[1]", "b": "gpu[2]", "c": "cpu", "d": "cpu"})
    assert {t.links for t in plan.transfers} == {("gpu <-> cpu",)}


CALLS = """graph {
    node a { time = 2 ms, output = 4 MB }
    node b { time = 3 ms, output = 4 MB }
    node c { time = 6 ms, output = 2 MB }
    node d { time = 4 ms }
    a -> b -> d
    a -> c -> d
}
device gpu[2]: accelerator
device cpu: host
interconnect { bandwidth = 4 GB/s }
schedule calls { pieces = 2 }
minimize latency
"""


def test_under_calls_a_stage_is_a_call() -> None:
    pieces = {"nodes": {"a": {"piece": 1}, "d": {"piece": 2}}}
    plan = plan_of(CALLS, {"a": "gpu[1]", "b": "gpu[2]", "c": "cpu", "d": "gpu[1]"}, pieces)
    assert plan.kind == "calls"
    assert sorted((stage.devices, stage.slot, [n.id for n in stage.nodes]) for stage in plan.stages if stage.slot) == [
        (("gpu[1]",), 1, ["a"]), (("gpu[1]",), 2, ["d"]), (("gpu[2]",), 1, ["b"]),
    ]  # fmt: skip
    first, last = plan.stages[0], plan.stages[-1]
    assert (first.start, first.finish) == pytest.approx((0.0, 3e-3)), "2 ms of computation and 1 ms out"
    assert last.start is not None
    assert last.finish == pytest.approx(last.start + 1e-3 + 0.5e-3 + 4e-3)


def test_under_dataflow_a_stage_is_a_device_and_its_nodes_stand_by_their_starts() -> None:
    text = """graph {
    node a { time = 2 ms, output = 4 MB }
    node b { time = 3 ms, output = 4 MB }
    node c { time = 2 ms, output = 2 MB }
    a -> b -> c
}
device gpu[3]: accelerator
link gpu[1] -> gpu[2] { bandwidth = 1 GB/s, latency = 1 ms }
link gpu[2] -> gpu[3] { bandwidth = 2 GB/s }
link gpu[3] -> gpu[1] { bandwidth = 2 GB/s }
minimize latency
subject to
    sequential
"""
    plan = plan_of(text, {"a": "gpu[1]", "b": "gpu[3]", "c": "gpu[1]"})
    assert plan.kind == "devices"
    assert nodes(plan) == [["a", "c"], ["b"]]
    assert flows(plan) == [("a", 1, 2, 4e6), ("b", 2, 1, 4e6)], "two stages may send to each other"
    assert plan.transfers[0].links == ("gpu[1] -> gpu[2]", "gpu[2] -> gpu[3]")
    starts = [node.start for stage in plan.stages for node in stage.nodes]
    assert starts == pytest.approx([0.0, 12e-3, 7e-3])


def test_members_of_fused_operators_are_nodes_of_their_own() -> None:
    text = CHAIN.replace("}\ndevice gpu[3]", "}\nfuse by kernel\ndevice gpu[3]").replace("layer = 1", "kernel = 7")
    text = text.replace("layer = 2", "kernel = 7")
    plan = plan_of(text, {"a": "gpu[1]", "c": "gpu[2]", "d": "gpu[2]"})
    assert nodes(plan) == [["a", "b"], ["c", "d"]]
    assert [node.operator for stage in plan.stages for node in stage.nodes][2:] == [None, None]
    first, second = (node.operator for node in plan.stages[0].nodes)
    assert first == second is not None


def check(problem: Problem, placement: list[int], plan: Plan) -> None:
    """What holds of every plan of a complete placement, from the graph and the evaluator's traffic alone."""
    graph, names = problem.graph, [d.name for d in problem.machine.devices]
    stage_of = {node.id: stage for stage in plan.stages for node in stage.nodes}
    assert Counter(node.id for stage in plan.stages for node in stage.nodes) == Counter(graph.ids)
    assert all(stage_of[graph.ids[v]].devices[0] == names[d] for v, d in enumerate(placement))
    assert [stage.number for stage in plan.stages] == list(range(1, len(plan.stages) + 1))
    place = {node.id: k for stage in plan.stages for k, node in enumerate(stage.nodes)}
    for u, v in zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True):
        one, other = stage_of[graph.ids[u]], stage_of[graph.ids[v]]
        if one is other:
            assert place[graph.ids[u]] < place[graph.ids[v]]
        if plan.kind in ("pipeline", "virtual_stages") and graph.backward[u] == graph.backward[v]:
            turned = bool(graph.backward[u]) and problem.orientation == "against"
            assert (other.number <= one.number) if turned else (one.number <= other.number)
    sent = {stage.number: sum(t.size or 0.0 for t in plan.sends(stage.number)) for stage in plan.stages}
    received = {stage.number: sum(t.size or 0.0 for t in plan.receives(stage.number)) for stage in plan.stages}
    assert sum(sent.values()) == pytest.approx(sum(received.values()))
    if plan.kind == "pipeline":
        traffic = Quantities(ProblemData(problem), placement).traffic
        for a, one in enumerate(names):
            for b, other in enumerate(names):
                own = [t for t in plan.transfers if plan.stages[t.source - 1].devices[0] == one
                       and plan.stages[t.target - 1].devices[0] == other]  # fmt: skip
                assert sum(t.size or 0.0 for t in own) == pytest.approx(traffic.get((a, b), 0.0))


@pytest.mark.parametrize("clusters", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("line", [False, True])
def test_random_placements(line: bool, training: bool, clusters: bool) -> None:
    kinds = Counter[str]()
    for seed in range(40):
        problem = random_problem(seed, training=training, clusters=clusters)
        placement = random_placement(problem, seed, line=line)
        plan = Plan.of(problem, evaluate(problem, placement))
        check(problem, placement, plan)
        kinds[plan.kind] += 1
        assert plan_from_document(json.loads(json.dumps(plan_document(plan)))) == plan
    assert kinds["pipeline"] == 40 if line else min(kinds.values()) >= 10


def test_a_contiguous_placement_is_a_pipeline_and_no_other_is() -> None:
    """Of random placements, those that the evaluator calls contiguous are those whose devices hold one stage each."""
    kinds = Counter[bool]()
    for seed in range(120):
        problem = random_problem(seed, training=seed % 2 == 1, rules="contiguous", nodes=8)
        rng = random.Random(seed)
        places = random_placement(problem, seed, line=seed % 3 == 0)
        if seed % 3 == 1:
            places[rng.randrange(len(places))] = rng.randrange(len(problem.machine.devices))
        evaluation = evaluate(problem, places)
        contiguous = not any(v.rule == "contiguous" for v in evaluation.violations)
        assert (Plan.of(problem, evaluation).kind == "pipeline") == contiguous
        kinds[contiguous] += 1
    assert min(kinds.values()) >= 20


def test_nodes_on_no_device_are_in_no_stage() -> None:
    problem = placedsl.loads(CHAIN).problem
    plan = Plan.of(problem, evaluate(problem, [0, -1, 0, -1]))
    assert nodes(plan) == [["a"], ["c"]], "b runs between them, wherever it will"


@pytest.mark.parametrize(
    "name", ["quickstart", "two-servers", "training-pipedream", "latency-calls", "critical-path", "fleet", "two-kinds"]
)
def test_plans_of_the_examples(name: str) -> None:
    examples = ROOT / "examples"
    data = examples / "data" / "fleet-small.json" if name == "fleet" else None
    spec = placedsl.load(examples / f"{name}.place", data=data)
    answer = spec.solve(time_limit=20)
    assert answer.evaluation is not None
    assert answer.placement is not None
    plan = Plan.of(answer.problem, answer.evaluation)
    if answer.problem.graph.fusion is None:
        check(answer.problem, list(answer.placement), plan)
    assert plan_from_document(json.loads(json.dumps(plan_document(plan)))) == plan


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda plan: plan.pop("stages"), "'stages' is missing"),
        (lambda plan: plan["stages"][0].pop("devices"), "'stages[0].devices' is missing"),
        (lambda plan: plan["stages"][0].update(devices=["gpu[9]"]), "there is no 'gpu[9]'"),
        (lambda plan: plan["stages"][0].update(devices=[]), "'stages[0].devices' is empty"),
        (lambda plan: plan["stages"][0].update(devices=[{}]), "'stages[0].devices[0]' is an object: a text"),
        (lambda plan: plan["stages"][0]["nodes"][0].update(id=[]), "'stages[0].nodes[0].id' is a list"),
        (lambda plan: plan["stages"][0]["nodes"][0].update(memory=10**400), "is no finite number"),
        (lambda plan: plan["stages"][0].update(data=0), "is a whole number, 1 or more"),
        (lambda plan: plan["execution"].update(order=3), "'execution.order' is one of 1f1b, gpipe"),
        (lambda plan: plan["devices"].insert(0, None), "'devices[0]' is null: an object"),
        (lambda plan: plan.update(stages=4), "'stages' is a number: a list"),
        (lambda plan: plan.update(spec=True), "'spec' is true or false: a text"),
    ],
)
def test_what_is_no_plan_is_told(change: object, told: str) -> None:
    document = plan_document(plan_of(CHAIN, dict.fromkeys("abcd", "gpu[1]")))
    change(document)  # type: ignore[operator]
    with pytest.raises(InputError, match="'plan' cannot be read") as found:
        plan_from_document(document)
    assert told in str(found.value)


def test_what_is_no_plan_is_told_at_its_place() -> None:
    document = plan_document(plan_of(CHAIN, dict.fromkeys("abcd", "gpu[1]")))
    document["stages"][0]["devices"] = 7
    source = Source("answer.json", json.dumps({"status": "optimal", "plan": document}, indent=1))
    with pytest.raises(InputError) as found:
        read_plan(source)
    (only,) = found.value.diagnostics
    assert only.span is not None
    assert source.line(only.span.line).strip() == '"devices": 7,'


def test_the_json_of_an_answer_holds_the_plan(tmp_path: Path) -> None:
    from placedsl.cli.main import main

    (tmp_path / "chain.place").write_text(CHAIN, encoding="utf-8")
    assert main(["solve", str(tmp_path / "chain.place"), "--quiet", "--json", str(tmp_path / "a.json")]) == 0
    answer = json.loads(load(tmp_path / "a.json").text)
    plan = plan_from_document(answer["plan"])
    placed = {str(node.id): stage.devices[0] for stage in plan.stages for node in stage.nodes}
    assert placed == answer["placement"]
