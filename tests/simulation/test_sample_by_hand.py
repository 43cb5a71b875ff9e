"""The run of one sample, small enough to be worked out by hand: rows, what waits for what, the critical path."""

from __future__ import annotations

import json

import pytest

import placedsl
from placedsl.api.timelines import SampleTimeline
from placedsl.diagnostics import InputError, UsageError
from placedsl.report.task_names import because, name_of

FLOW = """graph {
    node a { time = 2 ms, output = 4 MB }
    node b { time = 3 ms, output = 4 MB }
    node c { time = 2 ms, output = 2 MB }
    node d { time = 4 ms }
    a -> b -> d
    a -> c -> d
}
device gpu[3]: accelerator
link gpu[1] -> gpu[2] { bandwidth = 1 GB/s, latency = 1 ms }
link gpu[2] -> gpu[3] { bandwidth = 2 GB/s }
link gpu[3] -> gpu[1] { bandwidth = 2 GB/s }
minimize latency
"""
ROUND = {"a": "gpu[1]", "b": "gpu[2]", "c": "gpu[3]", "d": "gpu[3]"}
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
SPLIT = {"a": "gpu[1]", "b": "gpu[2]", "c": "cpu", "d": "gpu[1]"}
PIECES = {"nodes": {"a": {"piece": 1}, "d": {"piece": 2}}}


def run(text: str, placement: dict[str, str], times: dict[str, object] | None = None) -> SampleTimeline:
    found = placedsl.loads(text).timeline(placement, times=times)
    assert isinstance(found, SampleTimeline)
    return found


def path(timeline: SampleTimeline) -> list[str]:
    return [name_of(timeline, timeline.tasks[k]) for k in timeline.critical]


def row(timeline: SampleTimeline, name: str) -> int:
    return [row.name for row in timeline.rows].index(name)


def test_the_critical_path_leads_from_the_beginning_to_the_end() -> None:
    """Over gpu[2] the tensor of a takes 1 ms and then 4 ms; so does that to gpu[2] itself."""
    timeline = run(FLOW, ROUND)
    assert timeline.latency == pytest.approx(16e-3)
    assert path(timeline) == ["a", "tensor of a", "b", "tensor of b", "d"]
    assert [timeline.wait(k).reason for k in timeline.critical] == ["nothing", "input", "input", "input", "input"]


def test_without_rules_a_row_is_a_device_or_a_link_of_a_route() -> None:
    timeline = run(FLOW, ROUND)
    assert [(row.kind, row.name, len(row.tasks)) for row in timeline.rows] == [
        ("device", "gpu[1]", 1),
        ("device", "gpu[2]", 1),
        ("device", "gpu[3]", 2),
        ("link", "gpu[1] -> gpu[2]", 2),
        ("link", "gpu[2] -> gpu[3]", 2),
    ]
    assert not any(row.exclusive for row in timeline.rows)
    assert len(timeline.lanes(row(timeline, "gpu[1] -> gpu[2]"))) == 2  # both transfers at once


def test_a_port_or_a_link_that_is_taken_is_waited_for() -> None:
    timeline = run(FLOW + "subject to\n    congestion by port\n", ROUND)
    names = ["out of gpu[1]", "out of gpu[2]", "into gpu[2]", "into gpu[3]"]
    assert [(row.name, row.exclusive) for row in timeline.rows[3:]] == [(name, True) for name in names]
    waits = [timeline.wait(k) for k in timeline.critical]
    assert [wait.reason for wait in waits] == ["nothing", "input", "row", "input", "input"]
    assert because(timeline, waits[2]) == "port out of gpu[1]: tensor of a (gpu[1] -> gpu[2])"
    assert len(timeline.lanes(row(timeline, "out of gpu[1]"))) == 1


def test_a_device_that_is_taken_is_waited_for() -> None:
    timeline = run(FLOW + "subject to\n    sequential\n", dict.fromkeys("abcd", "gpu[1]"))
    assert path(timeline) == ["a", "b", "c", "d"]
    assert because(timeline, timeline.wait(timeline.critical[2])) == "gpu[1]: b"
    assert timeline.busy(0) == pytest.approx(11e-3)
    assert timeline.gaps(0) == []


def test_what_a_device_waits_for_while_nothing_runs_on_it() -> None:
    timeline = run(FLOW, ROUND)
    (first, then), third = timeline.gaps(row(timeline, "gpu[2]")), timeline.gaps(row(timeline, "gpu[3]"))
    assert first[:2] == pytest.approx((0.0, 7e-3))
    assert because(timeline, first[2]) == "tensor of a (gpu[1] -> gpu[2])"
    assert then[:2] == pytest.approx((10e-3, 16e-3))
    assert then[2] is None  # nothing more to do
    assert [gap[:2] for gap in third] == [pytest.approx((0.0, 7e-3)), pytest.approx((9e-3, 12e-3))]
    assert timeline.busy(row(timeline, "gpu[3]")) == pytest.approx(6e-3)


def test_a_start_that_was_given_is_a_pause() -> None:
    text = "graph {\n    node a { time = 2 ms }\n    node b { time = 2 ms }\n    a -> b\n}\ndevice gpu: accelerator\n"
    text += "minimize latency\nsubject to\n    late: start(b) >= 5 ms\n"
    given = {"nodes": {"a": {"start": 0.0}, "b": {"start": 5e-3}}}
    timeline = run(text, {"a": "gpu", "b": "gpu"}, given)
    assert path(timeline) == ["a", "b"]
    assert because(timeline, timeline.wait(timeline.critical[1])) == "its given start, after a"
    assert "4 ms of computation, 0 s of transfers, 3 ms of pauses" in repr(timeline)


def test_calls_are_one_bar_each_with_their_transfers() -> None:
    timeline = run(CALLS, SPLIT, PIECES)
    calls = [task for task in timeline.tasks if task.kind == "call"]
    assert [(call.device, call.first, call.nodes) for call in calls] == [(0, 1, (0,)), (1, 1, (1,)), (0, 2, (3,))]
    assert [(call.receive, call.send) for call in calls] == [
        pytest.approx((0, 1e-3)), pytest.approx((1e-3, 1e-3)), pytest.approx((1.5e-3, 0)),
    ]  # fmt: skip
    assert path(timeline) == ["call 1", "c", "call 2"]
    assert "12 ms of computation, 2.5 ms of transfers" in repr(timeline)


def test_a_call_that_waits_for_the_one_before_it() -> None:
    text = CALLS.replace("a -> b -> d\n    a -> c -> d", "a -> d\n    b -> c")
    timeline = run(
        text,
        dict.fromkeys("abcd", "gpu[1]"),
        {"nodes": {v: {"piece": p} for v, p in zip("abcd", (1, 2, 2, 1), strict=True)}},
    )
    assert path(timeline) == ["call 1", "call 2"]
    assert because(timeline, timeline.wait(timeline.critical[1])) == "gpu[1]: call 1 (gpu[1])"


def test_a_placement_without_a_run_is_told() -> None:
    with pytest.raises(InputError, match="these wait for one another"):
        run(CALLS, SPLIT)


@pytest.mark.parametrize(("name", "value"), [("samples", 3), ("schedule", "gpipe"), ("microbatches", 2)])
def test_what_is_for_many_samples_is_refused(name: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"'{name}' is for many samples; schedule dataflow is how one sample runs"):
        placedsl.loads(FLOW).timeline(ROUND, **{name: value})


@pytest.mark.parametrize("rules", ["", "subject to\n    sequential\n    congestion by port\n"])
def test_the_trace_has_no_overlaps_and_an_arrow_a_tensor(rules: str) -> None:
    timeline = run(FLOW + rules, ROUND)
    events = json.loads(timeline.trace())["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    for one in slices:
        for other in slices:
            if one is not other and (one["pid"], one["tid"]) == (other["pid"], other["tid"]):
                assert one["ts"] + one["dur"] <= other["ts"] or other["ts"] + other["dur"] <= one["ts"]
    begins, ends = ({e["id"]: e for e in events if e["ph"] == kind} for kind in "sf")
    assert begins.keys() == ends.keys()
    assert len(begins) == 2 * 3  # each of three transfers from its node and to its reader
    assert all(begins[i]["ts"] <= ends[i]["ts"] for i in begins)
    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {"text", "ports" if rules else "links"}
    marked = [e["name"] for e in slices if e["args"]["critical"] and e["pid"] == 1]
    assert set(marked) == ({"a", "c", "d"} if rules else {"a", "b", "d"})


def test_the_steps_of_a_call_lie_within_it() -> None:
    events = json.loads(run(CALLS, SPLIT, PIECES).trace())["traceEvents"]
    second = [(e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X" and e["tid"] == 2]
    assert second == [
        ("call 1", 3000.0, 5000.0), ("receive", 3000.0, 1000.0), ("compute", 4000.0, 3000.0), ("send", 7000.0, 1000.0),
    ]  # fmt: skip


def test_the_document_says_everything_once() -> None:
    document = run(FLOW + "subject to\n    sequential\n    congestion by port\n", ROUND).document()
    assert document["rules"] == ["sequential", "congestion by port"]
    assert document["latency"] == pytest.approx(18e-3)
    tasks = document["tasks"]
    assert [t["node"] for t in tasks if t["kind"] == "node"] == ["a", "b", "c", "d"]
    assert tasks[4] == {
        "kind": "transfer", "tensor": 0, "of": "a", "to": "gpu[2]",
        "start": pytest.approx(2e-3), "finish": pytest.approx(7e-3),
    }  # fmt: skip
    assert [tasks[step["task"]].get("node", "") for step in document["critical_path"]] == ["a", "", "", "c", "d"]
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_a_graph_without_edges_and_one_without_time() -> None:
    text = "graph {\n    node a { time = 0 ms }\n}\ndevice gpu: accelerator\nminimize latency\n"
    timeline = run(text, {"a": "gpu"})
    assert timeline.latency == 0.0
    assert path(timeline) == ["a"]
    assert "one sample takes 0 s" in repr(timeline)
