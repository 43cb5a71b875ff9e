"""Options by rule: against enumeration of the same options written out node by node, and what is wrong with rules."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.option_rules import drawn
from support.piper_workloads import optimum

import placedsl
from placedsl import InputError
from placedsl.diagnostics import Source
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.placement_files import read, read_values
from placedsl.report.json.answer_document import document

BLOCKS = """
graph {
    node a1 { time = 4 ms, block = 1, heads = 12, stash = 1 GiB, memory = 2 GiB, parameters = 1 GiB }
    node a2 { time = 4 ms, block = 1, heads = 12, stash = 2 GiB, memory = 2 GiB, parameters = 1 GiB }
    node b { time = 8 ms, block = 2, heads = 9, stash = 1 GiB, memory = 4 GiB, parameters = 1 GiB, sharded = 1 GiB }
    a1 -> a2 -> b { output = 16 MiB }
}
"""
REST = """
device gpu[4]: accelerator { memory = 16 GiB }
interconnect { bandwidth = 16 GiB/s }
parallelism { microbatches = 16, data = divisors(microbatches), exchange = batch }
minimize time_per_sample
subject to
    memory
    contiguous
"""
MIB = 2**20


def spec(rules: str, graph: str = BLOCKS) -> placedsl.Spec:
    return placedsl.loads(graph + rules + REST)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("first", range(0, 300, 20))
def test_agrees_with_enumeration_of_the_options_written_out(first: int) -> None:
    for seed in range(first, first + 20):
        asked, text = drawn(seed)
        answer, exact = placedsl.loads(text).solve(workers=1), optimum(asked)
        assert (answer.termination == "infeasible") == (exact is None), f"seed {seed}"
        if exact is not None:
            assert answer.termination == "optimal", f"seed {seed}"
            assert (answer.value, answer.bound) == pytest.approx((float(exact),) * 2, rel=1e-9), f"seed {seed}"


def test_what_a_rule_leaves_out_is_the_nodes() -> None:
    rules = """
option split(v in nodes where heads > 10, t in {2, 3, 4, 5} where v.heads mod t == 0, d in devices) {
    tensor = t, time = v.time[d] / t, gather = 1, scatter = (t - 1) / t, stash = v.stash / t
}
option late(v in {b}) { time = 9 ms, gather = 3 MiB, memory = 0 GiB }
"""
    options = spec(rules).problem.execution.options
    assert options is not None
    found = list(zip(options.node.tolist(), options.name, options.degree.tolist(), strict=True))
    both = [(v, "split", t) for v in (0, 1) for t in (2, 3, 4)]
    assert found == sorted([(0, "", 1), (1, "", 1), (2, "", 1), (2, "late", 1), *both])
    at = {key: k for k, key in enumerate(found)}
    third = at[1, "split", 3]
    assert options.time[third].tolist() == pytest.approx([0.004 / 3] * 4)
    assert (options.stash[third], options.memory[third]) == (2 * 2**30 / 3, 2 * 2**30)
    assert (options.sharded[at[2, "late", 1]], options.memory[at[2, "late", 1]]) == (2**30, 0)
    moved = {(o, t): x for o, t, x in zip(*(column.tolist() for column in options.gathered), strict=True)}
    assert moved[third, 0] == 16 * MIB
    assert moved[at[2, "late", 1], 1] == 3 * MIB
    assert (at[0, "split", 2], 0) not in moved  # nothing enters the first node
    out = {(o, t): x for o, t, x in zip(*(column.tolist() for column in options.scattered), strict=True)}
    assert out[at[0, "split", 4], 0] == pytest.approx(12 * MIB)


def test_rules_over_fused_operators() -> None:
    """Bytes of members add up before a rule divides them; the plan is read again with its options."""
    rules = """
fuse by block
option split(v in nodes, d in devices) { tensor = 4, time = v.time[d] / 4, stash = v.stash / 4, memory = v.memory / 4 }
"""
    given = spec(rules)
    answer = given.solve()
    assert answer.value == pytest.approx(0.004)
    assert answer.evaluation is not None
    assert answer.evaluation.memory[0] == (3 + 1 + 4 + 4) / 4 * 2**30 + 2**30
    problem, plan = given.problem, Source("answer.json", json.dumps(document(answer)))
    again = evaluate(problem, read(problem, plan), read_values(problem, plan))
    assert (again.objectives, again.memory, again.violations) == (
        answer.evaluation.objectives, answer.evaluation.memory, (),
    )  # fmt: skip


def test_rules_read_the_time_of_a_node_as_it_stands(tmp_path: Path) -> None:
    """Not that of the quickest option which a file gives it."""
    options = [{"name": "split", "tensor": 2, "time": 5}]
    nodes = [{"id": "a", "time": 8, "options": options}, {"id": "b", "options": options}]
    graph = {"format": "placedsl-graph", "time_unit": "ms", "nodes": nodes, "edges": []}
    (tmp_path / "g.json").write_text(json.dumps(graph), encoding="utf-8")
    rule = "option slow(v in nodes, d in devices) { time = 2 * v.time[d] }"
    found = placedsl.loads(f'graph from "g.json"\n{rule}{REST}', tmp_path).problem.execution.options
    assert found is not None
    assert [float(t) for name, t in zip(found.name, found.time[:, 0], strict=True) if name == "slow"] == [0.016, 0.01]


def test_options_of_a_file_and_of_rules_are_one(tmp_path: Path) -> None:
    node = {"id": "a", "time": 8, "stash": 64, "options": [{"name": "lean", "time": 9, "stash": 0}]}
    graph = {"format": "placedsl-graph", "time_unit": "ms", "nodes": [node], "edges": []}
    (tmp_path / "g.json").write_text(json.dumps(graph), encoding="utf-8")
    rule = "option split(v in nodes, d in devices) { tensor = 2, time = 3 ms, stash = v.stash / 2 }"
    options = placedsl.loads(f'graph from "g.json"\n{rule}{REST}', tmp_path).problem.execution.options
    assert options is not None
    assert list(zip(options.name, options.degree.tolist(), options.stash.tolist(), strict=True)) == [
        ("", 1, 64.0), ("lean", 1, 0.0), ("split", 2, 32.0),
    ]  # fmt: skip
    again = rule.replace("split", "lean").replace("tensor = 2, ", "")
    with pytest.raises(InputError, match="node 'a' has two options 'lean' for 1 device"):
        placedsl.loads(f'graph from "g.json"\n{again}{REST}', tmp_path)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("option o(v in nodes) { tensr = 2 }", "an option has no 'tensr'"),
        ("option o(v in nodes) { memory = 3 ms }", "'memory' is data, this is a number (time)"),
        ("option o(t in {2, 4}) { tensor = t }", "an option is of one node"),
        ("option o(v in nodes, d in devices, e in gpu) { time = 1 ms }", "an option takes its time on one device"),
        ("option o(u in tensors, v in nodes) { time = 1 ms }", "options range over nodes, whole numbers and devices"),
        ("option o(v in nodes) { tensor = 2 }", "option 'o' does not say how long it takes on several devices"),
        ("option o(v in nodes, t in 2..3) { tensor = t, time = 5 ms - t * 2 ms }",
         "'time' is negative for node 'a1', t = 3"),
        ("option o(v in nodes, t in 1..2) { tensor = t / 2, time = 1 ms }",
         "'tensor' is no number of devices for node 'a1', t = 1"),
        ("option o(v in nodes, t in 1..2) { time = 1 ms }", "node 'a1' has two options 'o' for 1 device, and 2 more"),
        ("option o(v in nodes, i in 1..2, d in gpu where d != gpu[2]) { time = 1 ms }",
         "has two options 'o' for 1 device"),
        ("option o(v in nodes) { gather = -1 }", "'gather' is negative for node 'a1' (-1), and 2 more"),
        ("option o(v in nodes) { tensor = 1e30, time = 1 ms }", "'tensor' is no number of devices for node 'a1'"),
        ("option o(v in nodes, d in gpu) { time = 1 ms, memory = d.number * 1 GiB }",
         "only the time of an option depends on the device"),
        ("option o(v in nodes) { time = load(gpu[1]) }", "an option cannot depend on the placement"),
        ("option o(v in nodes where v on gpu[1]) { time = 1 ms }", "a 'where' cannot depend on the placement"),
        ("option o(v in nodes) { time = 1 ms, time = 2 ms }", "'time' is given twice"),
        ("option o(v in nodes where v.heads mod 0 == 0) { time = 1 ms }", "division by zero"),
        ("option o(v in nodes where v.memory mod 3 == 0) { time = 1 ms }",
         "a number (data) cannot be divided into parts of"),
        ("option o(v in nodes) { time = v.time }", "'time' depends on the device"),
        ("option o(v in nodes, t in {3}) { tensor = t, time = 1 ms / (v.heads mod t) }", "division by zero"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_rule_has_its_place(rule: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        spec(rule)
    (found,) = raised.value.diagnostics
    assert message in found.message
    assert found.span is not None
    assert found.span.line == BLOCKS.count("\n") + 1


@pytest.mark.parametrize(
    ("devices", "time", "expected"),
    [
        ("d in devices", "1 ms * d.number", [1, 2, 3, 4]),
        ("d in {gpu[2], gpu[3]}", "1 ms", [None, 1, 1, None]),
        ("d in gpu where d != gpu[1]", "1 ms", [None, 1, 1, 1]),
        ('d in gpu where d.kind == "accelerator"', "v.time[d] / 2", [2, 2, 2, 2]),
        ("d in devices", 'if d.name == "gpu[4]" then 1 ms else v.time[gpu[2]]', [4, 4, 4, 1]),
    ],
)
def test_a_rule_may_tell_devices_apart(devices: str, time: str, expected: list[float | None]) -> None:
    given = f"option o(v in {{a1}}, {devices}) {{ time = {time} }}"
    options = spec(given).problem.execution.options
    assert options is not None
    row = options.name.index("o")
    assert [None if np.isinf(t) else round(t * 1000, 9) for t in options.time[row]] == expected


def test_notes_on_rules_that_do_nothing() -> None:
    rules = """
option idle(v in nodes where heads > 99) { time = 1 ms }
option worse(v in nodes) { time = 9 ms }
"""
    notes = " ".join(spec(rules).problem.notes)
    assert "option 'idle' ranges over no node" in notes
    assert "option 'worse' is never better than another option of its nodes" in notes


def test_a_name_of_a_soft_keyword() -> None:
    text = (
        BLOCKS
        + "param option = 2\ndefine mine = option mod 2"
        + REST.replace("contiguous", "contiguous\n    r: mine <= 1")
    )
    assert placedsl.loads(text).solve().termination == "optimal"


@pytest.mark.parametrize("weights", ["heads", "0", "block"])
def test_weights_of_options_are_theirs(weights: str) -> None:
    rule = "option lean(v in nodes) { time = 9 ms, stash = 0 GiB }"
    with pytest.raises(InputError, match="exchange the 'parameters' of these"):
        placedsl.loads(BLOCKS + rule + REST.replace("exchange = batch", f"exchange = batch, weights = {weights}"))


def test_rules_without_parallelism_say_so_at_the_rule() -> None:
    with pytest.raises(InputError, match="nothing says how stages may use devices") as raised:
        placedsl.loads(
            BLOCKS + "option lean(v in nodes) { stash = 0 B }" + REST.replace("parallelism", "# parallelism")
        )
    assert any(d.span is not None and (d.span.line, d.span.column) == (8, 8) for d in raised.value.diagnostics)


def test_numbers_that_overflow_are_reported_once(recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(InputError, match=r"infinite|no value"):
        spec("option o(v in nodes) { memory = v.memory * 1e300 * 1e300 }")
    assert not recwarn.list
