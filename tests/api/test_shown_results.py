"""Answers as tables and graphs, and what notebooks and terminals show of them."""

from __future__ import annotations

import importlib.util
import io
from xml.etree import ElementTree

import pytest
from rich.console import Console

from placedsl import Answer, Evaluation, loads
from placedsl.report.html.notebook import answer_html

TEXT = """
graph {
    node "a <b>" { time = {accelerator: 4 ms, host: 9 ms}, memory = 2 GiB, output = 8 MiB, layer = 1 }
    node b { time = {accelerator: 6 ms, host: 40 ms}, memory = 3 GiB, output = 8 MiB }
    node c { time = {accelerator: 5 ms, host: 35 ms}, memory = 3 GiB }
    "a <b>" -> b -> c
}
device "g&u$"[2]: accelerator { memory = 6 GiB }
device cpu: host
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
subject to
    memory
    contiguous
"""
SMALL = TEXT.replace("6 GiB", "1 MiB").replace("host: 9 ms", "host: 9 ms, cpu: 9 ms")
PLACED = {"a <b>": "cpu", "b": "g&u$[1]", "c": "g&u$[1]"}


@pytest.fixture(scope="module")
def answer() -> Answer:
    return loads(TEXT).solve()


def texts(page: str) -> str:
    """The words of a page, which must be well-formed."""
    return " ".join(" ".join(ElementTree.fromstring(page).itertext()).split())


def test_table(answer: Answer) -> None:
    rows = answer.table()
    assert [row["node"] for row in rows] == ["a <b>", "b", "c"]
    assert {row["node"]: row["device"] for row in rows} == answer.device_of()
    for v, row in enumerate(rows):
        assert row["time"] == answer.problem.time[v, answer.placement[v]]
    assert rows[1]["memory"] == 3 * 2**30
    none = loads(TEXT + "    none: forall d in devices, v in nodes: not (v on d)\n").solve().table()
    assert [(row["node"], row["device"], row["time"]) for row in none][1:] == [("b", None, None), ("c", None, None)]


def test_graph(answer: Answer) -> None:
    graph = answer.graph()
    assert list(graph.edges) == [("a <b>", "b"), ("b", "c")]
    assert graph.nodes["a <b>"]["layer"] == 1
    assert "layer" not in graph.nodes["b"]
    devices = answer.device_of()
    loads_of = dict.fromkeys(devices.values(), 0.0)
    for node, data in graph.nodes(data=True):
        assert data["device"] == devices[node]
        loads_of[data["device"]] += data["time"]
    for u, v, data in graph.edges(data=True):
        assert data["bytes"] == 8 * 2**20
        ends = [devices[u], devices[v]]
        paid = 0 if ends[0] == ends[1] else sum(d != "cpu" for d in ends)
        assert data["time"] == pytest.approx(paid * 8 * 2**20 / (16 * 2**30))
        for d in ends if ends[0] != ends[1] else ():
            loads_of[d] += 0 if d == "cpu" else data["time"] / paid
    # In a chain every tensor has one reader, so what edges cost adds up to the loads.
    for i, device in enumerate(answer.problem.machine.devices):
        assert answer.evaluation.loads[i] == pytest.approx(loads_of.get(device.name, 0.0))


def test_graph_without_a_placement() -> None:
    nothing = loads(TEXT + "    none: forall d in devices, v in nodes: not (v on d)\n").solve().graph()
    assert {data["device"] for _, data in nothing.nodes(data=True)} == {None}
    assert {data["time"] for _, _, data in nothing.edges(data=True)} == {None}


def test_repr(answer: Answer) -> None:
    assert repr(answer) == "<Answer optimal (dp): time_per_sample = 9 ms (proven optimal)>"
    assert repr(loads(TEXT)) == "<Spec text: 3 nodes, 3 devices, 2 constraints; minimize time_per_sample>"
    spec = loads(TEXT)
    assert repr(spec.evaluate(PLACED)) == "<Evaluation feasible: time_per_sample = 11.4883 ms>"
    violated = spec.evaluate(PLACED | {"b": "g&u$[2]", "c": "g&u$[1]", "a <b>": "g&u$[1]"})
    assert repr(violated).startswith("<Evaluation violates contiguous: time_per_sample =")
    none = loads(TEXT + "    none: forall d in devices, v in nodes: not (v on d)\n").solve()
    assert repr(none).startswith("<Answer infeasible (none): some node, or group of nodes")


def test_html_of_an_answer(answer: Answer) -> None:
    page = answer._repr_html_()
    shown = texts(page)
    assert "optimal (dp, " in shown
    assert "time_per_sample = 9 ms (proven optimal)" in shown
    assert "g&u$[1]" in shown
    bars = [e.get("style") for e in ElementTree.fromstring(page).iter("div") if "width" in (e.get("style") or "")]
    assert len(bars) == 3
    assert any("width:12.00em" in str(bar) for bar in bars)
    assert "<script" not in page


def test_stages_and_search_are_drawn_without_matplotlib(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    pictures = ElementTree.fromstring(answer._repr_html_()).findall("{http://www.w3.org/2000/svg}svg")
    assert [one.get("class") for one in pictures] == ["stages", "progress"]
    stages = [g for g in pictures[0].iter("{http://www.w3.org/2000/svg}g") if g.get("class") == "stage"]
    assert len(stages) == len(answer.plan.stages)


def test_html_of_an_evaluation() -> None:
    found = loads(TEXT).evaluate(PLACED)
    assert isinstance(found, Evaluation)
    assert "every constraint holds" in texts(found._repr_html_())
    violated = loads(SMALL).evaluate(PLACED)
    assert "violated memory: g&u$[1]" in texts(violated._repr_html_())
    unplaced = loads(TEXT).evaluate({"b": "cpu"})
    assert "violated" in texts(unplaced._repr_html_())


def test_html_of_devices_that_share_a_stage() -> None:
    text = TEXT.replace("6 GiB", "9 GiB").replace("minimize", "parallelism { data = 1..2 }\nminimize")
    found = loads(text).evaluate({"a <b>": "g&u$[1]", "b": "g&u$[1]", "c": "g&u$[1]"}, {"copies": {"g&u$[1]": 2}})
    shown = texts(found._repr_html_())
    assert shown.count("7.5 ms 8 GiB of 9 GiB 3") == 2


def test_html_of_a_spec() -> None:
    shown = texts(loads(TEXT)._repr_html_())
    assert "graph 3 nodes, 2 edges, 2 tensors" in shown
    assert "2 x g&u$ (accelerator, 6 GiB), 1 x cpu (host)" in shown
    assert "minimize time_per_sample subject to memory, contiguous" in shown


def test_html_of_what_is_not_proven() -> None:
    text = TEXT + '    odd: forall v in nodes where v.name != "<i>": not (v on cpu)\n'
    answer = loads(text).solve(method="dp")
    assert "time_per_sample is at least" in texts(answer_html(answer))
    assert "it does not know: odd" in texts(answer_html(answer)) or "cannot take odd" in texts(answer_html(answer))


def test_many_devices_are_cut_short() -> None:
    found = loads(TEXT.replace("[2]", "[100]")).evaluate(PLACED)
    assert "and 37 more" in texts(found._repr_html_())


def test_terminal(answer: Answer) -> None:
    """What ``rich`` prints is what the command prints."""
    paper = io.StringIO()
    console = Console(file=paper, width=120)
    for shown in (answer, answer.evaluation, loads(TEXT)):
        console.print(shown)
    out = paper.getvalue()
    assert "time_per_sample = 9 ms  (proven optimal)" in out
    assert "every constraint holds" in out
    assert "<Spec text: 3 nodes" in out
