"""Options in the blocks of inline nodes: those of a graph file, by enumeration and by arrays, and their errors."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from support.inline_options import inline, sharing_tensors
from support.piper_workloads import drawn, native, optimum

import placedsl
from placedsl import InputError
from placedsl.api.model import Model
from placedsl.diagnostics import Source
from placedsl.graph.options import OperatorOptions
from placedsl.language.syntax.parser import parse
from placedsl.language.syntax.printer import statement

REST = """
device gpu[4]: accelerator { memory = 16 GiB }
interconnect { bandwidth = 1024 B/s }
parallelism { microbatches = 4, data = divisors(microbatches), exchange = batch }
minimize time_per_sample
subject to
    memory
    contiguous
"""
ONE = """graph {{
    node a {{ time = 4 ms, output = 8 MiB, {} }}
    node b {{ time = 4 ms }}
    node c {{ time = 4 ms }}
    a -> b -> c
    a -> c
}}
"""


def options_of(spec: placedsl.Spec) -> OperatorOptions:
    options = spec.problem.graph.options
    assert options is not None
    return options


def same(one: OperatorOptions, other: OperatorOptions) -> None:
    assert one.name == other.name
    assert one.time.keys() == other.time.keys()
    for column in ("node", "degree", "parameters", "stash", "memory", "sharded"):
        assert np.array_equal(getattr(one, column), getattr(other, column)), column
    for kind, times in one.time.items():
        assert np.array_equal(times, other.time[kind])
    for moved, wanted in ((one.gathered, other.gathered), (one.scattered, other.scattered)):
        rows = [sorted(zip(*(column.tolist() for column in each), strict=True)) for each in (moved, wanted)]
        assert rows[0] == rows[1]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("first", range(3000, 3200, 20))
def test_agrees_with_enumeration_of_the_same_options(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 20):
        asked = drawn(seed)
        exact, rng = optimum(asked), random.Random(seed)
        graph = native(asked.workload)
        (tmp_path / "w.json").write_text(json.dumps(graph), encoding="utf-8")
        rest = asked.spec("w.json").partition("\ndevice")[2]
        graphs = ('graph from "w.json"', inline(graph, rng))
        read, written = (placedsl.loads(f"{one}\ndevice{rest}", tmp_path) for one in graphs)
        same(options_of(written), options_of(read))
        answer = written.solve(workers=1)
        assert (answer.termination == "infeasible") == (exact is None), f"seed {seed}"
        if exact is not None:
            assert answer.termination == "optimal", f"seed {seed}"
            assert (answer.value, answer.bound) == pytest.approx((float(exact),) * 2, rel=1e-9), f"seed {seed}"


@pytest.mark.parametrize("seed", range(60))
def test_is_the_graph_of_the_file_where_readers_share_a_tensor(seed: int, tmp_path: Path) -> None:
    graph = sharing_tensors(seed)
    (tmp_path / "w.json").write_text(json.dumps(graph), encoding="utf-8")
    read = placedsl.loads('graph from "w.json"' + REST, tmp_path)
    written = placedsl.loads(inline(graph, random.Random(seed)) + REST)
    one, other = written.problem.graph, read.problem.graph
    same(options_of(written), options_of(read))
    assert one.time.keys() == other.time.keys()
    assert all(np.array_equal(times, other.time[kind]) for kind, times in one.time.items())
    for column in ("memory", "edge_source", "edge_target", "edge_tensor", "tensor_bytes"):
        assert np.array_equal(getattr(one, column), getattr(other, column)), column
    assert all(
        np.array_equal(column, other.attributes[name], equal_nan=column.dtype.kind == "f")
        for name, column in one.attributes.items()
    )


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(100, 140))
def test_program_and_search_take_a_tensor_once_whoever_reads_it(seed: int) -> None:
    graph = sharing_tensors(seed)
    for node in graph["nodes"]:
        for given in (node, *node.get("options", [])):  # the search wants them alike
            given.pop("sharded", None)
        for option in node.get("options", []):
            option["gather"] = option["scatter"] = 512 * (option.get("tensor", 1) - 1)
    text = inline(graph, random.Random(seed)) + REST.replace("16 GiB", "14 B")
    by_search = placedsl.loads(text).solve(method="dp", workers=1)
    program = placedsl.loads(text).solve(method="program", solver="cp-sat", workers=1)
    assert program.termination == by_search.termination
    assert by_search.value is None or program.value == pytest.approx(by_search.value, rel=1e-6)


def test_what_is_moved_is_bytes_or_so_often_the_tensor() -> None:
    graph = """
graph {
    param_free -> "b 1" -> c { output = 4 KiB }
    param_free -> c
    node param_free { time = 1 ms, output = 1 KiB, option two { tensor = 2, time = 1 ms, scatter = 3 / 2 } }
    node "b 1" { option "" { tensor = 2, time = {gpu: 1 ms}, gather = {param_free: 1}, scatter = {c: 7 B} } }
    node c { time = {gpu[1]: 2 ms}, option two { tensor = 2, gather = {"b 1": 0.25, param_free: 9 B} } }
}
"""
    options = options_of(placedsl.loads(graph + REST))
    rows = list(zip(options.node.tolist(), options.name, options.degree.tolist(), strict=True))
    assert rows == [(0, "", 1), (0, "two", 2), (1, "", 2), (2, "", 1), (2, "two", 2)]
    assert options.time["gpu[1]"].tolist() == [np.inf, np.inf, np.inf, 0.002, 0.002]
    into, out = ({(o, t): x for o, t, x in zip(*(c.tolist() for c in moved), strict=True)}
                 for moved in (options.gathered, options.scattered))  # fmt: skip
    assert sorted(into.values()) == [9, 1024, 4096]
    assert sorted(out.values()) == [7, 1536, 6144]


@pytest.mark.parametrize(
    ("given", "message", "under"),
    [
        ("option split { tensr = 2 }", "an option has no 'tensr'", "tensr"),
        ("option split { tensor = 2, time = 8 MiB }", "'time' is time, this is data", "8 MiB"),
        ("option split { tensor = 2, memory = 8 ms }", "'memory' is data, this is time", "8 ms"),
        ("option split { tensor = 2, gather = 8 ms }", "'gather' is data, this is time", "8 ms"),
        ("option split { tensor = 2, stash = -8 MiB }", "'stash' cannot be negative", "-8 MiB"),
        ("option split { tensor = 2.5 }", "'tensor' is a number of devices, this is 2.5", "2.5"),
        ("option split { tensor = 0 }", "'tensor' is a number of devices, this is 0", "0 }"),
        ("option split { tensor = 2, tensor = 4 }", "'tensor' is given twice", "tensor = 4"),
        ("option split { tensor = 2 }\n option split { tensor = 2, stash = 1 B }",
         "node 'a' has two options 'split' for 2 devices", "split { tensor = 2, s"),
        ("option split { time = 3 ms }\n option split { time = 4 ms }",
         "node 'a' has two options 'split' for 1 device", "split { time = 4"),
        ('option "" { stash = 1 B }', "an option has a name", '""'),
        ("option split { tensor = 2, scatter = {b: 1 B, d: 2 B} }", "no edge leads to 'd' here", "d:"),
        ("option split { tensor = 2, scatter = {b: 1 B, c: 2 B} }",
         "'c' reads the same tensor as another node here", "c: 2"),
        ("option split { tensor = 2, gather = {b: 1 B} }", "no edge leads from 'b' here", "b:"),
        ("option split { tensor = 2, scatter = {b} }", "a node and the bytes that are moved are expected", "b}"),
        ("option split { tensor = 2, time = {gpv: 1 ms} }", "there is no device or kind 'gpv'", "gpv"),
        ("option split { memory = load(gpu[1]) }", "", "load"),
    ],
)  # fmt: skip
def test_what_is_wrong_has_its_place(given: str, message: str, under: str) -> None:
    text = ONE.format(given)
    with pytest.raises(InputError) as raised:
        placedsl.loads(text + REST)
    (found,) = raised.value.diagnostics
    assert message in found.message
    assert found.span is not None
    line = text.split("\n")[found.span.line - 1]
    assert line[found.span.column - 1 :].startswith(under)


def test_names_that_are_nearly_known_are_told() -> None:
    with pytest.raises(InputError) as raised:
        placedsl.loads(ONE.format("option o { gathr = 1, stsh = 1 B }, option p { scatter = {d: 1 B} }") + REST)
    assert [d.hint for d in raised.value.diagnostics][:2] == ["did you mean 'gather'?", "did you mean 'stash'?"]


def test_every_node_of_such_a_graph_has_a_time_or_an_option() -> None:
    text = "graph {\n node a { flops = 3 GFLOP }\n node b { option o { stash = 1 B } }\n"
    text += " node c { option o { time = 1 ms } }\n a -> b -> c\n}\n"
    with pytest.raises(InputError) as raised:
        placedsl.loads(text + REST)
    assert [d.message for d in raised.value.diagnostics] == [
        "node 'a' has neither a 'time' nor an option", "this option has no 'time', nor has the node",
    ]  # fmt: skip
    assert [d.span.line for d in raised.value.diagnostics if d.span is not None] == [2, 3]


def test_a_multiple_of_a_tensor_without_a_size() -> None:
    text = ONE.format("option split { tensor = 2, scatter = 1 }").replace("output = 8 MiB", "transfer = 1 ms")
    with pytest.raises(InputError, match="the size of the tensor is not known"):
        placedsl.loads(text + REST)


def test_errors_elsewhere_are_told_beside_those_of_options() -> None:
    """The degrees of a graph that is wrong are known to what follows."""
    text = ONE.format("option split { tensor = 2, time = 8 MiB }")
    rest = REST.replace("microbatches = 4", "tensor = {1, 2}, microbatches = 4").replace("    memory\n", "    memry\n")
    with pytest.raises(InputError) as raised:
        placedsl.loads(text + rest)
    assert [d.message for d in raised.value.diagnostics] == [
        "'time' is time, this is data", "there is no constraint 'memry'",
    ]  # fmt: skip


def test_printed_and_formatted_it_is_the_same() -> None:
    text = ONE.format('option "third way" { tensor = 2, time = 3 ms, scatter = {b: 2 MiB, c: 2 MiB} }, option p')
    given = placedsl.loads(text + REST)
    printed = "\n".join(statement(s) for s in parse(Source("one", text + REST)).statements)
    laid_out = placedsl.format(text + REST)
    assert placedsl.format(laid_out) == laid_out
    for again in (printed, laid_out):
        same(options_of(placedsl.loads(again)), options_of(given))
    lines = placedsl.format("graph {\nnode a { time = 1 s,\noption p {\ntensor = 2,\ntime = 1 s }\nmemory = 1 B }\n}\n")
    assert lines.split("\n") == [
        "graph {", "    node a { time = 1 s,", "        option p {", "            tensor = 2,",
        "            time = 1 s }", "        memory = 1 B }", "}", "",
    ]  # fmt: skip


def test_option_stays_a_name_elsewhere() -> None:
    text = ONE.format("option = 3, option option { stash = 1 B }")
    spec = placedsl.loads(text + REST)
    assert options_of(spec).name == ("", "option", "", "")
    assert spec.problem.graph.attributes["option"][0] == 3


def test_built_in_python() -> None:
    model = Model("plan")
    model.node("a b", time="4 ms", output=2**20, stash=2**30, options={
        "recomputed": {"time": 0.005, "stash": 0},
        "split": [{"tensor": t, "time": {"gpu": 0.004 / t}, "scatter": {"c-d": 2**20}} for t in (2, 4)],
    })  # fmt: skip
    model.node("c-d", options={"only": {"time": "1 ms", "gather": 1}})
    model.edge("a b", "c-d")
    text = model.text()
    assert 'option split { tensor = 4, time = {gpu: 1 ms}, scatter = {"c-d": 1048576} } }' in text
    options = options_of(placedsl.loads(text.replace(": 1048576}", ": 1 MiB}") + REST))
    assert list(zip(options.name, options.degree.tolist(), options.stash.tolist(), strict=True)) == [
        ("", 1, 2**30), ("recomputed", 1, 0), ("split", 2, 2**30), ("split", 4, 2**30), ("only", 1, 0),
    ]  # fmt: skip
    with pytest.raises(placedsl.UsageError, match="options=3"):
        model.node("e", options=3)  # type: ignore[arg-type]
