"""``fuse``: the solver sees fused operators, answers are on those that were written."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import networkx as nx
import pytest

from placedsl import InputError, loads
from placedsl.api.spec import Spec
from placedsl.diagnostics import Source
from placedsl.graph.graph import Graph
from placedsl.language.syntax.formatter import formatted
from placedsl.problem.placement_files import read
from placedsl.report.json.answer_document import document

NODES = {"a": "conv", "b": "bn", "c": "relu", "d": "conv", "e": "bn"}


def spec(fuse: str = "", rules: str = "", *, more: str = "", chain: str = "a -> b -> c -> d -> e") -> Spec:
    nodes = "".join(f'    node {v} {{ time = {i + 1} ms, type = "{kind}", output = 1 MiB{more} }}\n'
                    for i, (v, kind) in enumerate(NODES.items()))  # fmt: skip
    return loads(
        f"graph {{\n{nodes}    {chain}\n}}\n{fuse}\ndevice gpu[2]: accelerator\ndevice cpu: host\n"
        f"interconnect {{ bandwidth = 1 GiB/s }}\nminimize time_per_sample\nsubject to\n{rules}\n"
    )


def errors(*given: str, **more: str) -> list[tuple[str, str]]:
    """Messages and hints."""
    with pytest.raises(InputError) as caught:
        spec(*given, **more)
    return [(d.message, d.hint) for d in caught.value.diagnostics]


def test_the_solver_sees_fused_operators_and_the_answer_does_not() -> None:
    loaded = spec("fuse conv + bn")
    assert loaded.problem.graph.ids == ("a+b", "c", "d+e")
    answer = loaded.solve()
    placed = answer.device_of()
    assert list(placed) == list("abcde")
    assert placed["a"] == placed["b"]
    assert placed["d"] == placed["e"]
    held = [node for device in document(answer)["devices"] for node in device["nodes"]]
    assert sorted(held) == list("abcde")
    assert document(answer)["fused"] == {"a+b": ["a", "b"], "d+e": ["d", "e"]}
    assert [row["node"] for row in answer.table()] == list("abcde")
    assert [row["time"] for row in answer.table()] == pytest.approx([0.001, 0.002, 0.003, 0.004, 0.005])
    drawn = answer.graph()
    assert set(drawn) == set("abcde")
    assert drawn.edges["a", "b"]["time"] == 0.0
    assert loaded.evaluate(placed).objectives == answer.evaluation.objectives


def test_latency_is_that_of_fused_operators() -> None:
    """b waits for nothing but a, yet runs with it: the whole starts when both inputs have arrived."""
    operators = (("begin", 1, "x"), ("a", 2, "conv"), ("slow", 9, "y"), ("b", 1, "add"))
    nodes = "".join(f'node {v} {{ time = {t} ms, type = "{k}", output = 1 KiB }}\n' for v, t, k in operators)
    loaded = loads(
        f"graph {{\n{nodes}begin -> a -> b\nbegin -> slow -> b\n}}\nfuse conv + add\ndevice gpu[2]: accelerator\n"
        "interconnect { bandwidth = 1 TiB/s }\nminimize latency\nsubject to\n    sequential\n"
    )
    apart = loaded.evaluate({"begin": "gpu[1]", "slow": "gpu[2]", "a": "gpu[1]", "b": "gpu[1]"})
    assert apart.objectives[0] == pytest.approx(0.001 + 0.009 + 0.003, abs=1e-6)


def test_without_rules_that_fit_nothing_changes() -> None:
    assert spec("fuse relu + bn").problem.graph.ids == tuple("abcde")


def test_explain_tells_how_many_were_fused_by_which_rule() -> None:
    facts = dict(spec("fuse conv + bn\nfuse conv + bn + relu").explanation().facts)
    assert facts["fusion"] == "5 nodes to 2; conv + bn: 1, conv + bn + relu: 1"


def test_the_elaborated_spec_fuses_the_same() -> None:
    loaded = spec('fuse conv + "bn"\nfuse by layer', more=", layer = 1")
    again = loads(loaded.explain())
    assert again.problem.graph.ids == loaded.problem.graph.ids == ("layer=1",)


def test_layout() -> None:
    assert formatted("fuse   conv+bn  +\n   relu\nfuse  by   layer\n") == "fuse conv + bn +\n    relu\nfuse by layer\n"


@pytest.mark.parametrize("word", ["a", "b", "a+b"])
def test_members_stand_for_their_operator_in_constraints(word: str) -> None:
    loaded = spec("fuse conv + bn", f'    pinned: nodes["{word}"] on gpu[2]')
    placed = loaded.solve().device_of()
    assert placed["a"] == placed["b"] == "gpu[2]"


def test_placements_name_members_or_fused_operators() -> None:
    loaded = spec("fuse conv + bn")
    whole = read(loaded.problem, Source("p.json", '{"a+b": "cpu", "c": "gpu[1]", "d+e": "gpu[2]"}'))
    parts = '{"a": "cpu", "b": "cpu", "c": "gpu[1]", "d": "gpu[2]", "e": "gpu[2]"}'
    assert whole == read(loaded.problem, Source("p.json", parts)) == [2, 0, 1]


def test_members_on_different_devices_are_an_error_at_their_place() -> None:
    text = '{\n  "a": "cpu",\n  "b": "gpu[1]",\n  "c": "cpu"\n}'
    with pytest.raises(InputError) as caught:
        read(spec("fuse conv + bn").problem, Source("p.json", text))
    (found,) = caught.value.diagnostics
    assert found.message == "'b' is fused with what is on cpu"
    assert found.span is not None
    assert (found.span.line, found.span.column) == (3, 3)


def test_groups_of_members_are_joined() -> None:
    """a is of one colour, b of another: c and d go with them."""
    colours = {"a": 1, "b": 2, "c": 1, "d": 2, "e": 3}
    nodes = "".join(f'node {v} {{ time = 1 ms, output = 1 MiB, type = "{NODES[v]}{v}", colour = {colours[v]} }}\n'
                    for v in NODES)  # fmt: skip
    loaded = loads(
        f"graph {{\n{nodes}a -> b -> c -> d -> e\n}}\nfuse conva + bnb\ndevice gpu[3]: accelerator\ndevice cpu: host\n"
        "interconnect { bandwidth = 1 GiB/s }\nminimize time_per_sample\nsubject to\n    colocated by colour\n"
    )
    assert loaded.problem.groups["colour"].tolist() == [0, 0, 0, 1]


def test_values_of_members_from_a_file(tmp_path: Path) -> None:
    text = (
        'graph {\n    node a { time = 1 ms, type = "conv", output = 1 MiB }\n    node b { time = 1 ms, type = "bn" }\n'
        "    a -> b\n}\nfuse conv + bn\nparam weight[v in nodes]\ndevice cpu: host\nminimize time_per_sample\n"
        "subject to\n    light: sum(v in nodes: weight[v]) <= 5\n"
    )
    data = tmp_path / "data.json"
    data.write_text(json.dumps({"weight": {"a": 4, "b": 4}}))
    assert loads(text, data=data).solve().termination == "optimal"
    data.write_text(json.dumps({"weight": {"a": 4, "b": 5}}))
    with pytest.raises(InputError, match="'weight' has two values for one operator"):
        loads(text, data=data)


def test_values_are_those_of_the_same_placement_unfused() -> None:
    """Under pipedream, a fused operator is nothing but members that share a device."""
    draw = random.Random(5)
    fused, plain = spec("fuse conv + bn"), spec()
    for _ in range(20):
        places = {v: draw.choice(["gpu[1]", "gpu[2]", "cpu"]) for v in NODES}
        places |= {"b": places["a"], "e": places["d"]}
        assert fused.evaluate(places).objectives == pytest.approx(plain.evaluate(places).objectives)


def test_layers_are_fused_where_no_circle_comes_about() -> None:
    nodes = "".join(f"node {v} {{ time = 1 ms, layer = {n}, output = 1 MiB }}\n" for v, n in zip("abcd", "1122"))
    text = (
        f"graph {{\n{nodes}a -> b\na -> c\nb -> d\nc -> d\n}}\nfuse by layer\ndevice cpu: host\n"
        "minimize time_per_sample\n"
    )
    problem = loads(text).problem
    assert problem.graph.ids == ("layer=1", "layer=2")
    assert problem.time[:, 0] == pytest.approx([0.002, 0.002])
    assert problem.graph.tensors == 2  # of a and of b


def random_layers(seed: int) -> Graph:
    """Nodes of few layers and edges between any of them, forwards."""
    draw = random.Random(seed)
    names = [f"n{i}" for i in range(draw.randint(2, 12))]
    nodes = "".join(
        f"node {v} {{ time = 1 ms, output = 1 MiB{draw.choice(['', ', layer = 1', ', layer = 2', ', layer = 3'])} }}\n"
        for v in names
    )
    edges = [f"{u} -> {v}\n" for i, u in enumerate(names) for v in names[i + 1 :] if draw.random() < 0.3]
    text = f"graph {{\n{nodes}node z {{ time = 1 ms, layer = 9 }}\n{''.join(edges)}}}\nfuse by layer\n"
    return loads(text + "device cpu: host\nminimize time_per_sample\n").problem.graph


@pytest.mark.parametrize("seed", range(40))
def test_layers_in_a_circle_are_fused_in_parts(seed: int) -> None:
    """What is made has no cycle; a layer on no cycle is one operator, and nodes of two layers never are."""
    graph = random_layers(seed)
    whole = graph.written
    assert graph.fusion is not None
    fused = nx.DiGraph(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))
    assert nx.is_directed_acyclic_graph(fused)
    layer = [-1.0 - i if math.isnan(value) else value for i, value in enumerate(whole.attributes["layer"].tolist())]
    for members in graph.fused().values():
        assert len({layer[whole.ids.index(v)] for v in members}) == 1
    layers = nx.DiGraph(
        (layer[u], layer[v]) for u, v in zip(whole.edge_source, whole.edge_target, strict=True) if layer[u] != layer[v]
    )
    layers.add_nodes_from(layer)
    for group in nx.strongly_connected_components(layers):
        if len(group) == 1:
            (alone,) = group
            assert len({graph.fusion.node_of[i] for i, value in enumerate(layer) if value == alone}) == 1


def test_the_circle_is_named_in_a_note() -> None:
    nodes = "".join(f"node {v} {{ time = 1 ms, layer = {n} }}\n" for v, n in zip("abcde", "11211"))
    text = f"graph {{\n{nodes}a -> b -> c -> d -> e\n}}\nfuse by layer\ndevice cpu: host\nminimize time_per_sample\n"
    problem = loads(text).problem
    assert problem.graph.ids == ("layer=1 part 1", "c", "layer=1 part 2")
    assert problem.notes == (
        "'fuse by layer' fuses some values in parts: as a whole they would wait for one another in a circle, "
        "such as 'layer=1' -> 'c' -> 'layer=1'",
    )


def test_forward_and_backward_parts_of_a_layer_stay_two() -> None:
    nodes = "".join(
        f"node {v} {{ time = 1 ms, layer = 1, output = 1 MiB, backward = {b} }}\n"
        for v, b in zip("abcd", ["false", "false", "true", "true"], strict=True)
    )
    problem = loads(
        f"graph {{\n{nodes}a -> b -> c -> d\n}}\nfuse by layer\ndevice cpu: host\nminimize time_per_sample\n"
    ).problem
    assert problem.graph.ids == ("layer=1", "layer=1 backward")


def test_what_is_wrong_is_said() -> None:
    assert errors("fuse by layr", more=", layer = 1") == [("nodes have no attribute 'layr'", "did you mean 'layer'?")]
    assert errors("fuse conv + bn\nfuse Conv + BN") == [("'fuse Conv + BN' is there twice", "first in line 9")]
    assert errors("fuse by type\nfuse by type", chain="a -> b -> c") == [
        ("'fuse by type' is there twice", "first in line 9")
    ]
    message = "members of 'a+b' differ in 'heat'"
    hint = "what is fused needs one value; flops, bytes and parameters add up"
    text = spec("fuse conv + bn").problem.objectives[0].span.source.text
    hot = text.replace('"conv"', '"conv", heat = 1').replace('"bn"', '"bn", heat = 2')
    with pytest.raises(InputError) as caught:
        loads(hot.replace("minimize time_per_sample", "minimize max(v in nodes: v.heat)"))
    assert [(d.message, d.hint) for d in caught.value.diagnostics] == [(message, hint)]
    with pytest.raises(InputError, match="there is a node 'a\\+b' already"):
        loads(text.replace("node c ", 'node "a+b" ').replace("-> c ->", '-> "a+b" ->'))


def test_a_graph_without_types() -> None:
    with pytest.raises(InputError) as caught:
        loads("graph {\n    node a { time = 1 ms }\n}\nfuse conv + bn\ndevice cpu: host\nminimize time_per_sample\n")
    (found,) = caught.value.diagnostics
    assert found.message == "operators of this graph have no types: its nodes have no attribute 'type'"


def test_a_type_that_no_node_has_is_a_note() -> None:
    assert spec("fuse conv + bnn").problem.notes == (
        "no node has the type 'bnn' that is to be fused (did you mean 'bn'?)",
    )


ESTIMATED = """
graph {
    node a { type = "conv", layer = 1, flops = 8 TFLOP, bytes = 2 GB, output = 1 GB }
    node b { type = "bn", layer = 1, flops = 1 TFLOP, bytes = 2 GB, output = 1 GB }
    node c { type = "relu", layer = 1, flops = 1 GFLOP, bytes = 2 GB, output = 1 GB }
    a -> b -> c
}
device gpu[2]: accelerator { compute = 10 TFLOP/s, memory_bandwidth = 1 TB/s, launch_overhead = 1 ms }
interconnect { bandwidth = 16 GB/s }
minimize latency
"""


def test_estimated_times_of_fused_operators() -> None:
    """One kernel: one launch, all operations, and the gigabytes between its members are neither written nor read."""
    plain = loads(ESTIMATED).problem.time[:, 0]
    assert plain == pytest.approx([0.801, 0.101, 0.003])
    fused = loads(ESTIMATED + "fuse conv + bn + relu\n").problem.time[:, 0]
    assert fused == pytest.approx([0.9001 + 0.001])
    light = ESTIMATED.replace("8 TFLOP,", "1 GFLOP,").replace("1 TFLOP,", "1 GFLOP,")
    moved = loads(light + "fuse conv + bn + relu\n").problem
    assert moved.time[:, 0] == pytest.approx([0.002 + 0.001])


def test_estimated_times_of_layers() -> None:
    """A layer runs its operators one after the other."""
    assert loads(ESTIMATED + "fuse by layer\n").problem.time[:, 0] == pytest.approx([0.905])
    both = loads(ESTIMATED + "fuse conv + bn\nfuse by layer\n")
    assert both.problem.time[:, 0] == pytest.approx([0.9 + 0.001 + 0.003])
    answer = both.solve(method="program", time_limit=30)
    assert [row["time"] for row in answer.table()] == pytest.approx([0.801, 0.101, 0.003])
