"""Malformed graph files: each gives these messages at these places, and nothing but InputError."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from placedsl import InputError
from placedsl.graph.readers import TEXTS, read

NODE = {"id": "a", "time": 1}


def native(nodes: object = None, edges: object = None, **more: object) -> str:
    root = {"format": "placedsl-graph", "nodes": [NODE] if nodes is None else nodes, "edges": edges or [], **more}
    return json.dumps(root)


def workload(nodes: object = None, edges: object = None, **more: object) -> str:
    root = {
        "maxSizePerFPGA": 100.0, "maxFPGAs": 2, "maxCPUs": 1,
        "nodes": [operator(0), operator(1)] if nodes is None else nodes,
        "edges": [{"sourceId": 0, "destId": 1, "cost": 1.0}] if edges is None else edges,
    }  # fmt: skip
    return json.dumps(root | more)


def option(**more: object) -> dict[str, object]:
    amounts = {"timePerSample": 1, "parameterSize": 0, "memoryUsageA": 0, "memoryUsageB": 0}
    return {"id": "plain", **amounts, "syncTimeFw": {}, "syncTimeBw": {}, **more}


def plans(options: object = None, edges: object = None, **more: object) -> str:
    """A workload of Piper with two layers; ``options`` are those of the first."""
    given = {"1": [option()]} if options is None else options
    nodes = [{"id": 0, "name": "a", "TMPCs": given}, {"id": 1, "name": "b", "TMPCs": {"1": [option()]}}]
    between = [{"sourceId": 0, "destId": 1, "communicationCost": 8}] if edges is None else edges
    return json.dumps({"nodes": nodes, "edges": between, **more})


def with_options(*options: object, **more: object) -> str:
    """A native file whose node has options."""
    return native([{**NODE, "options": list(options), **more}, {"id": "b", "time": 1}], [{"from": "a", "to": "b"}])


def operator(own: object, **more: object) -> dict[str, object]:
    node: dict[str, object] = {
        "id": own, "supportedOnFpga": 1, "cpuLatency": 2.0, "fpgaLatency": 1.0, "isBackwardNode": 0, "size": 1.0,
    }  # fmt: skip
    return {k: v for k, v in (node | more).items() if v is not ...}


def profile(nodes: object = None, edges: object = None, **more: object) -> str:
    root = {
        "devices": [{"id": 0, "memory": 8}, {"id": 1, "memory": 4}],
        "nodes": [{"id": i, "time": [1, 2], "memory": 3} for i in (0, 1)] if nodes is None else nodes,
        "edges": [{"source": 0, "target": 1, "transfer": [[0, 1], [2, 0]]}] if edges is None else edges,
    }  # fmt: skip
    return json.dumps(root | more)


def sent(transfer: object) -> str:
    return profile(edges=[{"source": 0, "target": 1, "transfer": transfer}])


LAYER = "node{} -- Linear({}) -- forward_compute_time={}, "
LAYER += "backward_compute_time=2.0, activation_size=8.0, parameter_size=4.0"
LOOP = [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]
TWO = [NODE, NODE | {"id": "b"}]

# Format, text, then a part of each message, in order.
CASES: list[tuple[str, str, list[str]]] = [
    ("native", "", ["the file ends in the middle of its JSON"]),
    ("native", "{", ["JSON"]),
    ("native", native()[:-4], ["JSON"]),
    ("native", "[" * 100_000, ["JSON"]),
    ("native", "[]", ["object"]),
    ("native", native(version=7), ["version 7 is not known"]),
    ("native", native(time_unit="GiB"), ["'time_unit' is a unit of time"]),
    ("native", native(time_unit=3), ["'time_unit' is a unit of time"]),
    ("native", native(nodes={}), ["nodes"]),
    ("native", native(nodes=[]), ["node"]),
    ("native", native(nodes=[3]), ["object"]),
    ("native", native(nodse=[]), ["nodse"]),
    ("native", native([NODE | {"tiem": 3}]), ["tiem"]),
    ("native", native([{"id": "a"}]), ["has no 'time'"]),
    ("native", native([{"id": "a", "time": {}}]), ["has no 'time'"]),
    ("native", native([{"time": 1}]), ["id"]),
    ("native", native([NODE | {"id": None}]), ["id"]),
    ("native", native([NODE | {"time": -1}]), ["negative"]),
    ("native", native([NODE | {"time": "fast"}]), ["number"]),
    ("native", native([NODE | {"time": {"accelerator": "fast"}}]), ["number"]),
    ("native", native([NODE | {"time": True}]), ["number"]),
    ("native", native([NODE]).replace('"time": 1', '"time": NaN'), ["'time' is not a number"]),
    ("native", native([NODE]).replace('"time": 1', '"time": Infinity'), ["infinite"]),
    ("native", native([NODE]).replace('"time": 1', '"time": 1e999'), ["infinite"]),
    ("native", native([NODE | {"memory": -5}]), ["negative"]),
    ("native", native([NODE | {"output": -5}], [], time_unit="ms") + "", ["negative"]),
    ("native", native([NODE | {"backward": "yes"}]), ["backward"]),
    ("native", native([NODE | {"attributes": 3}]), ["'attributes' is an object"]),
    ("native", native([NODE | {"attributes": {"x": [1]}}]), ["an attribute is a number or a text"]),
    ("native", native([NODE, NODE]), ["'a' is there twice"]),
    ("native", native(TWO, [{"from": "a", "to": "c"}]), ["'c'"]),
    ("native", native(TWO, [{"from": "c", "to": "d"}]), ["'c'", "'d'"]),
    ("native", native(TWO, [{"from": "a"}]), ["to"]),
    ("native", native(TWO, [{"from": "a", "to": "a"}]), ["itself"]),
    ("native", native(TWO, [{"from": "a", "to": "b"}] * 2), ["is there twice"]),
    ("native", native(TWO, LOOP), ["cycle"]),
    ("native", native([NODE | {"time": -1}, {"id": "b", "memory": -1, "time": 1}]), ["negative", "negative"]),
    ("native", native([{"id": "a"}, {"id": "b", "time": "x"}], [{"from": "a"}]), ["has no 'time'", "number", "'to'"]),
    ("native", native([NODE]).replace('"time": 1', '"time": 1' + "0" * 400), ["too large"]),
    ("native", native([NODE | {"time": -1}] * 300), ["negative"] * 100),
    ("native", native([NODE]).replace('"time"', '"times"'), ["'times' means nothing here"]),
    ("native", native([NODE]).replace('"id"', '"idd"'), ["'idd' means nothing here"]),
    ("native", native([NODE]).replace('"nodes"', '"node"'), ["'node' means nothing here"]),
    ("dnn-partitioning", workload(nodes=[operator(0), operator(0)], edges=[]), ["'0' is there twice"]),
    ("dnn-partitioning", workload(edges=[{"sourceId": 0, "destId": 7, "cost": 1}]), ["'7'"]),
    ("dnn-partitioning", workload(edges=[{"sourceId": 0, "destId": 1, "cost": -1}]), ["negative"]),
    ("dnn-partitioning", workload(edges=[{"sourceId": 0, "destId": 1}]), ["cost"]),
    ("dnn-partitioning", workload(edges=[{"sourceId": 1, "destId": 0, "cost": 1},
                                         {"sourceId": 0, "destId": 1, "cost": 1}]), ["cycle"]),
    ("dnn-partitioning", workload(nodes=[operator(0, cpuLatency=-1), operator(1)]), ["negative"]),
    ("dnn-partitioning", workload(nodes=[operator(0, cpuLatency=...), operator(1)]), ["cpuLatency"]),
    ("dnn-partitioning", workload(nodes=[operator(0, fpgaLatency="x"), operator(1)]), ["number"]),
    ("dnn-partitioning", workload(nodes=[operator(0, size=-3), operator(1)]), ["negative"]),
    ("dnn-partitioning", workload(nodes=[operator("x"), operator(1)], edges=[]), []),
    ("dnn-partitioning", workload(maxFPGAs=-2), ["maxFPGAs"]),
    ("dnn-partitioning", workload(maxFPGAs=1.5), ["maxFPGAs"]),
    ("dnn-partitioning", workload(maxSizePerFPGA="big"), ["maxSizePerFPGA"]),
    ("dnn-partitioning", workload()[:-10], ["JSON"]),
    ("moirai", profile()[:-10], ["JSON"]),
    ("moirai", profile(devices=[]), ["there are no devices"]),
    ("moirai", profile(devices=[{"id": 0, "memory": 1}] * 2), ["device '0' is there twice"]),
    ("moirai", profile(devices=[{"id": 0, "memory": -1}]), ["negative"]),
    ("moirai", profile(devices=3), ["'devices' is a number: a list is expected"]),
    ("moirai", profile([{"id": 0, "time": [1], "memory": 0}], []), ["'time' has 1 values for 2 devices"]),
    ("moirai", profile([{"id": 0, "memory": 0}], []), ["'time' is missing: a list is expected"]),
    ("moirai", profile([{"id": 0, "time": 4, "memory": 0}], []), ["'time' holds a number: a list is expected"]),
    ("moirai", profile([{"id": 0, "time": [1, "x"], "memory": 0}], []), ["'time' is a number, this is a text"]),
    ("moirai", profile([{"id": 0, "time": [1, True], "memory": 0}], []), ["'time' is a number, this is true or false"]),
    ("moirai", profile([{"id": 0, "time": [-1, 1]}], []), ["this has no 'memory'", "negative"]),
    ("moirai", profile([{"id": 0, "time": [1, 1], "memory": 0, "size": 3}], []), ["'size' means nothing here"]),
    ("moirai", sent([[0, 1]]), ["'transfer' has 1 values for 2 devices"]),
    ("moirai", sent([[0, 1], [2]]), ["'transfer' has 1 values for 2 devices"]),
    ("moirai", sent([[0, 1], 2]), ["'transfer' holds a number: a list is expected"]),
    ("moirai", sent([[0, None], [2, 0]]), ["'transfer' is a number, this is null"]),
    ("moirai", sent([[0, -1], [2, 0]]), ["negative"]),
    ("moirai", sent([[0, 1], [2, 0]]).replace("[2, 0]", "[Infinity, 0]"), ["infinite"]),
    ("moirai", profile(edges=[{"source": 0, "target": 7, "transfer": [[0, 1], [2, 0]]}]), ["'7'"]),
    ("moirai", profile(edges=[{"source": u, "target": 1 - u, "transfer": [[0, 1], [2, 0]]} for u in (0, 1)]),
     ["cycle"]),
    ("piper", plans()[:-10], ["JSON"]),
    ("piper", plans(options=3), ["'TMPCs' is a number"]),
    ("piper", plans(options={"1": 3}), ["a list of options is expected, this is a number"]),
    ("piper", plans(options={"one": [option()]}), ["'one' is no degree of tensor parallelism"]),
    ("piper", plans(options={"0": [option()]}), ["'0' is no degree of tensor parallelism"]),
    ("piper", plans(options={}), ["node '0' has no option at all"]),
    ("piper", plans(options={"1": ["x"]}), ["an option is an object, this is a text"]),
    ("piper", plans(options={"1": [option(timePerSample=-1)]}), ["negative"]),
    ("piper", plans(options={"1": [option(memoryUsageA="x")]}), ["'memoryUsageA' is a number, this is a text"]),
    ("piper", plans(options={"1": [option(speed=1)]}), ["'speed' means nothing here"]),
    ("piper", plans(options={"1": [option(syncTimeFw=4)]}), ["'syncTimeFw' is an object of bytes by node"]),
    ("piper", plans(options={"1": [option(syncTimeFw={"1": 4})]}), ["there is no edge between '0' and '1' here"]),
    ("piper", plans(options={"1": [option(syncTimeBw={"1": -4})]}), ["negative"]),
    ("piper", plans(edges=[{"sourceId": 0, "destId": 7, "communicationCost": 1}]), ["'7'"]),
    ("piper", plans(edges=[{"sourceId": 0, "destId": 1}]), ["this has no 'communicationCost'"]),
    ("piper", plans(speed=3), ["'speed' means nothing here"]),
    ("native", with_options("x"), ["an option is an object, this is a text"]),
    ("native", with_options({"name": "x", "tensor": 0}), ["'tensor' is a number of devices, 1 or more"]),
    ("native", with_options({"name": "x", "tensor": 1.5}), ["'tensor' is a number of devices, 1 or more"]),
    ("native", with_options({}), ["an option has a name"]),
    ("native", with_options({"name": "x"}, {"name": "x"}), ["there is an option 'x' for 1 devices already"]),
    ("native", with_options({"name": "x", "times": 3}), ["'times' means nothing here"]),
    ("native", with_options({"name": "x", "stash": -1}), ["negative"]),
    ("native", with_options({"name": "x", "gather": {"b": 1}}), ["no edge leads to or from 'b' on this side"]),
    ("native", with_options({"name": "x", "scatter": "b"}), ["'scatter' is a number, this is a text"]),
    ("native", native([{"id": "a", "options": 3}]), ["'options' is a list, this is a number"]),
    ("native", native([{"id": "a", "options": [{"name": "x"}]}]), ["this option has no 'time', nor has the node"]),
    ("native", native([{"id": "a", "options": []}]), ["node 'a' has neither a 'time' nor an option"]),
    ("native", native([{"id": "a", "flops": 3}, {"id": "b", "options": [{"name": "x", "time": 1}]}]),
     ["node 'a' has neither a 'time' nor an option"]),
    ("native", native([{"id": "a", "flops": 3, "stash": 1}]), []),
    ("native", native([{"id": "a", "time": 3, "attributes": {"stash": 1}}]), ["'stash' stands beside 'time'"]),
    ("pipedream", "what is this", ["neither a layer nor an edge"]),
    ("pipedream", LAYER.format(1, "x", "fast"), ["'forward_compute_time' is missing or not a number"]),
    ("pipedream", LAYER.format(1, "x", "-1.0"), ["negative"]),
    ("pipedream", LAYER.format(1, "x", "nan"), ["missing or not a number"]),
    ("pipedream", LAYER.format(1, "x", "1.0") + "\n\tnode1 -- node2", ["'node2'"]),
    ("pipedream", "\n".join([LAYER.format(1, "x", "1.0")] * 2), ["'node1' is there twice"] * 2),
    ("pipedream", LAYER.format(1, "x", "1.0") + "\n" + LAYER.format(2, "y", "1.0")
     + "\n\tnode1 -- node2\n\tnode2 -- node1", ["cycle"]),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CASES)))
def test_malformed(case: int, tmp_path: Path) -> None:
    format_name, text, parts = CASES[case]
    path = tmp_path / "graph.file"
    path.write_text(text, encoding="utf-8")
    if not parts:  # not malformed after all: ids may be texts
        assert read(path, format_name).nodes
        return
    with pytest.raises(InputError) as caught:
        read(path, format_name)
    found = caught.value.diagnostics
    assert [next((p for p in parts if p in d.message), d.message) for d in found] == parts
    for diagnostic in found:
        assert diagnostic.span is not None
        assert diagnostic.render().startswith(f"{path}:{diagnostic.span.line}:{diagnostic.span.column}: error: ")


def test_there_are_many() -> None:
    assert sum(bool(parts) for *_, parts in CASES) >= 50
    assert {name for name, *_ in CASES} == set(TEXTS)


def test_place_within_json(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text(
        json.dumps(json.loads(native([NODE, NODE | {"id": "b", "memory": -5}])), indent=1), encoding="utf-8"
    )
    with pytest.raises(InputError) as caught:
        read(path)
    line = path.read_text(encoding="utf-8").splitlines()[caught.value.diagnostics[0].span.line - 1]
    assert line.strip() == '"memory": -5'
    assert line[caught.value.diagnostics[0].span.column - 1 :] == "-5"


@pytest.mark.parametrize("kind", ["missing", "folder", "binary", "no graph", "other json", "too large"])
def test_what_cannot_be_read(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.json"
    expected = {
        "missing": "no such file", "folder": "directory", "binary": "UTF-8", "no graph": "no graph file that is known",
        "other json": "no graph format that is known", "too large": "are not read",
    }[kind]  # fmt: skip
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes({"binary": b"\xff\xfe\x00", "other json": b'{"a": 1}'}.get(kind, b"hello"))
    if kind == "too large":
        monkeypatch.setenv("PLACEDSL_LIMITS", "graph-bytes=3")
    with pytest.raises(InputError, match=expected):
        read(path)
