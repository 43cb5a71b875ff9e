"""Files that nobody would write: graphs, profiles, placements and data with changes, beside a spec that reads them.

A change is one of structure (an entry left out, doubled, swapped, replaced by a value of another type or size), or of
the characters and bytes that the file is made of.
"""

from __future__ import annotations

import copy
import functools
import io
import json
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mutated_specs

ROOT = Path(__file__).resolve().parents[1]

#: The text of a spec, the files beside it, and what is done with them (None: they are checked).
Made = tuple[str, dict[str, bytes], Callable[[Any, Path], None] | None]

#: Values in the place of others.  Some are no JSON: Python writes and reads them.
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e308, -1e308, 1e-320, float("inf"), float("nan"), 2**31, 2**53 + 1,
    2**63, -(2**63), 10**30, 10**400, "", "a", "0", "1", "-1", "1 ms", "gpu", "cpu", "gpu[1]", "é", "\ud800", "\0",
    "a" * 300, '"', "\n", "*", "[", [], {}, [[]], [None], [0, 1], {"": 0}, {"a": {}}, [1e308] * 3,
)  # fmt: skip
_TAIL = """
device gpu[2]: accelerator { memory = 6 GiB, compute = 10 TFLOP/s, memory_bandwidth = 300 GB/s }
device cpu: host { compute = 500 GFLOP/s, memory_bandwidth = 40 GB/s }
interconnect { bandwidth = 16 GB/s }
minimize time_per_sample
subject to
    memory
    contiguous
"""
_PLAIN = 'graph from "FILE"\n' + _TAIL
_WITH_UNIT = 'graph from "FILE" { time_unit = 1 ms }\n' + _TAIL
_SPLIT_TRAINING = _PLAIN.replace("contiguous", "colocated by layer")


def places(root: Any) -> list[tuple[Any, Any]]:
    """Every entry of a JSON value: what holds it, and its key or position."""
    out: list[tuple[Any, Any]] = []
    stack = [root]
    while stack:
        one = stack.pop()
        keys: list[Any] = list(one) if isinstance(one, dict) else list(range(len(one)))
        for key in keys:
            out.append((one, key))
            if isinstance(one[key], dict | list):
                stack.append(one[key])
    return out


def changed(rng: random.Random, root: Any) -> Any:
    """A JSON value with a few changes of structure; it may be changed in place."""
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        every = places(root) if isinstance(root, dict | list) else []
        if not every:
            return rng.choice(ODD)
        holder, key = rng.choice(every)
        other, its = rng.choice(every)
        match rng.randrange(10):
            case 0:
                del holder[key]
            case 1 | 2 | 3:
                holder[key] = copy.deepcopy(rng.choice(ODD))
            case 4:
                holder[key] = copy.deepcopy(other[its])
            case 5:
                holder[key], other[its] = copy.deepcopy(other[its]), copy.deepcopy(holder[key])
            case 6 if isinstance(holder, list):
                holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
            case 6:
                holder[rng.choice([*holder, "x", "", "time", "id"])] = copy.deepcopy(holder[key])
            case 7 if isinstance(holder, dict):
                holder[rng.choice(["x", key + "s", key[:-1], key.upper()])] = holder.pop(key)
            case 7:
                holder.reverse()
            case 8 if isinstance(holder[key], int | float) and abs(holder[key]) <= 1e308:
                holder[key] = rng.choice([-holder[key], holder[key] * rng.choice([0, 2, 1e6, 1e300]), holder[key] + 1])
            case 8:
                holder[key] = str(holder[key])
            case _:
                for _ in range(rng.choice([1, 1, 3, 200])):
                    holder[key] = rng.choice([[holder[key]], {"a": holder[key]}])
    return root


def encoded(rng: random.Random, root: Any) -> bytes:
    """A JSON value as a file, sometimes with changes of its characters."""
    text = json.dumps(root, indent=rng.choice([None, None, 1]), ensure_ascii=rng.random() < 0.8)
    data = text.encode("utf-8", "surrogatepass")
    return scrambled(rng, data) if rng.random() < 0.25 else data


def scrambled(rng: random.Random, data: bytes) -> bytes:
    """Bytes with pieces cut out, doubled, replaced, or cut off."""
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(data) + 1)
        size = rng.choice([1, 1, 2, 5, 20, 100])
        match rng.randrange(7):
            case 0:
                data = data[:at] + data[at + size :]
            case 1:
                data = data[:at] + data[at : at + size] * rng.choice([2, 2, 3, 50]) + data[at + size :]
            case 2:
                data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
            case 3:
                data = data[:at]
            case 4:
                odd = (
                    b"\0",
                    b"\xef\xbb\xbf",
                    b"\xff",
                    b"1e999",
                    b"NaN",
                    b"-",
                    b"null",
                    b"[[[[",
                    b'"',
                    b"\\ud800",
                    b"\r",
                )
                data = data[:at] + rng.choice(odd) + data[at:]
            case 5:
                other = rng.randrange(len(data) + 1)
                data = data[:at] + data[other : other + size] + data[at + size :]
            case _:
                data = data[:at] + rng.choice([b"9" * 5000, b"[" * 5000, b'{"a":' * 3000, b" " * 3000]) + data[at:]
    return data


def native(rng: random.Random) -> Any:
    """A graph in the project's own JSON."""
    count = rng.randint(1, 6)
    nodes = []
    for i in range(count):
        node: dict[str, Any] = {"id": rng.choice([i, f"n{i}"])}
        if rng.random() < 0.8:
            node["time"] = rng.choice(
                [3, 0.5, {"accelerator": 4, "host": 9}, {"gpu": 1}, {"accelerator": 2, "cpu[1]": 3}]
            )
        else:
            node |= {"flops": 1e9, "bytes": 4096}
        node["memory"] = rng.choice([0, 2**20, 2**30])
        node |= rng.choice([{}, {"output": 8388608}, {"transfer": 2}, {"output": 0}])
        if rng.random() < 0.3:
            node |= {"name": f"layer {i}", "backward": rng.random() < 0.3}
            node["attributes"] = rng.choice([{"layer": i, "type": "Conv"}, {"parameters": 4096}, {"group": "top"}])
        nodes.append(node)
    edges = [
        {"from": nodes[u]["id"], "to": nodes[v]["id"], **rng.choice([{}, {}, {"output": 5}, {"transfer": 1}])}
        for u in range(count)
        for v in range(u + 1, count)
        if rng.random() < 0.5
    ]
    root = {"format": "placedsl-graph", "version": 1, "nodes": nodes, "edges": edges}
    return root | rng.choice([{}, {"time_unit": "ms"}, {"time_unit": "s"}])


def workload(rng: random.Random) -> Any:
    """A graph of dnn-partitioning."""
    count = rng.randint(1, 5)
    nodes = [
        {
            "id": i,
            "supportedOnFpga": 1,
            "cpuLatency": 2.0 + i,
            "fpgaLatency": 1.0,
            "isBackwardNode": int(i > 2),
            "size": 1.0,
            "colorClass": i % 3,
            "name": f"op{i}",
            "layerId": i,
        }
        for i in range(count)
    ]
    edges = [
        {"sourceId": u, "destId": v, "cost": rng.choice([0, 1.5])}
        for u in range(count)
        for v in range(u + 1, count)
        if rng.random() < 0.6
    ]
    return {"maxSizePerFPGA": 100.0, "maxFPGAs": 2, "maxCPUs": 1, "nodes": nodes, "edges": edges}


def profile_of_devices(rng: random.Random) -> Any:
    """A graph of Moirai."""
    count, devices = rng.randint(1, 5), rng.choice([1, 2, 3])
    nodes = [{"id": rng.choice([i, f"n{i}"]), "time": [8, 7, 2][:devices], "memory": 5} for i in range(count)]
    edges = [
        {
            "source": nodes[u]["id"],
            "target": nodes[v]["id"],
            "transfer": [[0 if a == b else 3 for a in range(devices)] for b in range(devices)],
        }
        for u in range(count)
        for v in range(u + 1, count)
        if rng.random() < 0.6
    ]
    return {"devices": [{"id": i, "memory": 14} for i in range(devices)], "nodes": nodes, "edges": edges}


_MOIRAI = """graph from "FILE" { time_unit = 1 ms }
DEVICES
schedule dataflow
minimize latency
subject to
    memory
"""


def json_graph(rng: random.Random) -> Made:
    """One of the formats in JSON."""
    kind = rng.randrange(3)
    root = (native, workload, profile_of_devices)[kind](rng)
    spec = (rng.choice([_PLAIN, _PLAIN, _SPLIT_TRAINING]), rng.choice([_PLAIN, _WITH_UNIT]), _MOIRAI)[kind]
    if kind == 2:
        devices = range(len(root["devices"]) + rng.choice([0] * 9 + [1]))
        spec = spec.replace("DEVICES", "\n".join(f"device device{i}: accelerator {{ memory = 14 B }}" for i in devices))
    if rng.random() < 0.1:
        name = rng.choice(["native", "moirai", "dnn-partitioning", "pipedream", "onnx", "torch-export"])
        spec = spec.replace('"FILE"', f'"FILE" {{ format = "{name}" }}').replace("} {", ",")
    return spec.replace("FILE", "graph.json"), {"graph.json": encoded(rng, changed(rng, root))}, None


@functools.cache
def _pipedream() -> str:
    lines = [
        f"node{i} -- Linear({i}, 4) -- forward_compute_time={i}.5, backward_compute_time={i % 3}.25, "
        f"activation_size={size}, parameter_size={16 * i}.000"
        for i, size in ((1, "8.0"), (2, "[8.0; 4.0]"), (3, "0.0"), (4, "2e6"))
    ]
    lines += [f"\tnode{u} -- node{v}" for u, v in ((1, 2), (1, 3), (2, 4), (3, 4))]
    return "\n".join(lines) + "\n"


_INLINE = """graph {
    node a { time = {accelerator: 4 ms, host: 9 ms}, memory = 2 GiB, output = 8 MiB, layer = 1 }
    node "b c" { time = 6 ms, memory = 3 GiB, transfer = 2 ms, group = "top", backward = true }
    node d { flops = 4 GFLOP, bytes = 5 MiB, type = "Conv" }
    a -> "b c" -> d
    a -> d { output = 3 MiB }
}
"""


def text_graph(rng: random.Random) -> Made:
    """A profile of PipeDream, or a graph that stands in the spec."""
    if rng.random() < 0.5:
        text = _pipedream()
        for _ in range(rng.randint(1, 3)):
            step = rng.choice([mutated_specs.mutated, mutated_specs.altered, _lines])
            text = step(rng, [text])
        data = text.encode("utf-8", "surrogatepass")
        data = scrambled(rng, data) if rng.random() < 0.2 else data
        return rng.choice([_PLAIN, _SPLIT_TRAINING]).replace("FILE", "graph.txt"), {"graph.txt": data}, None
    return rng.choice([mutated_specs.mutated, mutated_specs.altered, _lines])(rng, [_INLINE]) + _TAIL, {}, None


def _lines(rng: random.Random, texts: list[str]) -> str:
    """A text with lines left out, doubled or swapped."""
    lines = rng.choice(texts).splitlines()
    for _ in range(rng.randint(1, 3)):
        at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(3):
            case 0 if len(lines) > 1:
                del lines[at]
            case 1:
                lines.insert(other, lines[at])
            case _:
                lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines) + "\n"


_PROFILED = """graph {
    node a { time = {accelerator: 4 ms, host: 9 ms}, type = "Conv" }
    node b { time = 6 ms, type = "Relu" }
    node "c d" { flops = 4 GFLOP, bytes = 5 MiB, type = "Conv" }
    a -> b -> "c d"
}
"""


def profile(rng: random.Random) -> Made:
    """Measured times, as JSON or CSV."""
    own = native(rng) | {"time_unit": "ms"}
    for i, node in enumerate(own["nodes"]):
        node["attributes"] = {"type": ("Conv", "Relu")[i % 2]}
    names = [str(node["id"]) for node in own["nodes"]]
    spec = _PLAIN.replace('"FILE"', '"graph.json" { profile = "FILE" }')
    files = {"graph.json": json.dumps(own).encode()}
    if rng.random() < 0.5:
        times = [
            {
                **rng.choice([{"node": rng.choice(names)}, {"node": "*"}, {"type": "Conv"}, {"type": "?*"}]),
                "time": rng.choice([{"gpu": 0.4}, {"gpu[1]": 1, "cpu": 2}, {"accelerator": 0}]),
            }
            for _ in range(rng.randint(1, 4))
        ]
        root = {"format": "placedsl-profile", "version": 1, "time_unit": "ms", "times": times}
        return spec.replace("FILE", "times.json"), files | {"times.json": encoded(rng, changed(rng, root))}, None
    rows = [
        rng.choice([f"{rng.choice(names)},,", ",Conv,", ",?*,", "*,,"])
        + rng.choice(["gpu,0.4 ms", "cpu,1 s", "gpu[2],3e-5 s"])
        for _ in range(rng.randint(1, 4))
    ]
    text = "\n".join(["node,type,device,time", *rows]) + "\n"
    text = rng.choice([mutated_specs.mutated, mutated_specs.altered, _lines])(rng, [text])
    data = text.encode("utf-8", "surrogatepass")
    return (
        spec.replace("FILE", "times.csv"),
        files | {"times.csv": scrambled(rng, data) if rng.random() < 0.2 else data},
        None,
    )


_WITH_DATA = """graph {
    node a { time = {accelerator: 4 ms, host: 9 ms}, memory = 2 GiB, output = 8 MiB }
    node b { time = 6 ms, memory = 3 GiB }
    a -> b
}
param gpus: int
param room: data
param slowest: time = 4 ms
param energy[v in nodes, d in devices]: number
param share[v in nodes]: number = 1
device gpu[gpus]: accelerator { memory = room }
device cpu: host
interconnect { bandwidth = 16 GB/s }
minimize time_per_sample
subject to
    memory
    limit: sum(v in nodes, d in devices: energy[v, d] * share[v] * (v on d)) <= 30
"""


def values(rng: random.Random) -> Made:
    """Values of parameters, as JSON or TOML."""
    root = {
        "gpus": 2,
        "room": "16 GiB",
        "slowest": "12 ms",
        "share": rng.choice([{"*": 1.0, "a": 0.5}, {"a": 1, "b": 2}]),
        "energy": {"a": {"gpu": 0.05, "cpu": 0.01}, "b": {"gpu[1]": 2.4, "gpu[2]": 2, "cpu": 9.0}},
    }
    if rng.random() < 0.5:
        return _WITH_DATA, {"data.json": encoded(rng, changed(rng, root))}, None
    text = 'gpus = 2\nroom = "16 GiB"\n[share]\n"*" = 1\n'
    text += '[energy]\n"*" = {"gpu" = 0.5, "cpu" = 1}\n[energy.b]\ngpu = 1_000\n'
    text = rng.choice([mutated_specs.mutated, mutated_specs.altered, _lines])(rng, [text])
    data = text.encode("utf-8", "surrogatepass")
    return _WITH_DATA, {"data.toml": scrambled(rng, data) if rng.random() < 0.3 else data}, None


def plan(rng: random.Random) -> Made:
    """The plan of a sweep, TOML or CSV."""
    if rng.random() < 0.5:
        text = '[[run]]\nspec = ["a.place", "b.place"]\nmethod = "dp"\nset = { gpus = "1..4,8", room = ["8 GiB"] }\n'
        text += '[[run]]\nspec = "a.place"\nseed = "0..4"\ntime_limit = "60s"\nworkers = 2\ngap = "1%"\n'
        name = "plan.toml"
    else:
        text = "spec,method,gpus,seed,gap\na.place,dp,2,0,1%\nb.place,program,1,3,\n"
        name = "plan.csv"
    text = rng.choice([mutated_specs.mutated, mutated_specs.altered, _lines])(rng, [text])
    data = text.encode("utf-8", "surrogatepass")
    return _BARE, {name: scrambled(rng, data) if rng.random() < 0.3 else data}, planned


_BARE = "graph { node a { time = 1 ms } }\ndevice gpu: accelerator\nminimize time_per_sample\n"


def planned(_: Any, folder: Path) -> None:
    """As ``placedsl sweep --plan`` reads a plan."""
    from placedsl.sweeps.engine import planned as runs_of

    file = next(path for path in (folder / "plan.toml", folder / "plan.csv") if path.exists())
    try:
        runs_of({}, file, 1000)
    finally:
        file.unlink()


_MEMBERS = ("graph_module", "schema_version", "opset_version", "range_constraints")


@functools.cache
def _programs() -> tuple[str, ...]:
    """The exported program of the documents in parts: its first operators, and all of it."""
    with zipfile.ZipFile(ROOT / "docs" / "encoder.pt2") as archive:
        name = next(n for n in archive.namelist() if n.endswith("model.json"))
        whole = json.loads(archive.read(name))
    out = []
    for count in (4, 9, 16, 10**6):
        root = copy.deepcopy(whole)
        graph = root["graph_module"]["graph"]
        graph["nodes"] = graph["nodes"][:count]
        for node in graph["nodes"]:
            node["metadata"] = {k: v for k, v in node["metadata"].items() if k == "nn_module_stack"}
        if count < 10**6:
            used = set(_names(graph["nodes"]))
            graph["tensor_values"] = {k: v for k, v in graph["tensor_values"].items() if k in used}
            signature = root["graph_module"]["signature"]
            signature["input_specs"] = [s for s in signature["input_specs"] if used & set(_names(s))]
            root = {key: root[key] for key in _MEMBERS if key in root}
        out.append(json.dumps(root))
    return tuple(out)


def _names(root: Any) -> Iterator[str]:
    """Every name that stands in a JSON value."""
    for holder, key in places(root):
        if key == "name" and isinstance(holder[key], str):
            yield holder[key]


def _region(rng: random.Random, root: Any) -> None:
    """Put some operators into a region, as ``torch.no_grad()`` makes one."""
    graph = root["graph_module"]["graph"]
    at = rng.randrange(len(graph["nodes"]))
    inside = graph["nodes"][at : at + 2]
    outputs = [output for node in inside for output in node["outputs"]]
    region = {"inputs": [], "outputs": outputs, "nodes": inside, "tensor_values": {}}
    graph["nodes"][at : at + 2] = [
        {
            "target": "torch.ops.higher_order."
            + rng.choice(["wrap_with_set_grad_enabled", "wrap_with_autocast", "cond"]),
            "inputs": [
                {"name": "", "arg": {"as_bool": True}},
                {"name": "", "arg": {"as_graph": {"name": "r", "graph": region}}},
            ],
            "outputs": outputs,
            "metadata": {},
        }
    ]


def torch_program(rng: random.Random) -> Made:
    """An exported program of PyTorch: JSON in an archive."""
    programs = _programs()
    root = json.loads(programs[rng.choices(range(len(programs)), [8, 5, 5, 1])[0]])
    if rng.random() < 0.15:
        _region(rng, root)
    whole = rng.random() < 0.25
    if not whole:
        parts = [root, root["graph_module"]["graph"]["nodes"], root["graph_module"]["graph"]["tensor_values"]]
        part = rng.choice([*parts, root["graph_module"]["signature"]])
        if rng.random() < 0.25:
            _sizes(rng, root)
        elif changed(rng, part) is not part:
            root = part
    text = encoded(rng, root)
    members = {"encoder/models/model.json": text, "encoder/archive_format": b"pt2", "encoder/byteorder": b"little"}
    if whole:
        members = dict(rng.sample(list(members.items()), rng.randint(0, 3)))
        for name in rng.sample(["models/a.json", "b/models/x.json", "serialized_exported_program.json", "../x"], 1):
            if rng.random() < 0.4:
                members[name] = rng.choice([b"", b"{}", b"[]", text])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    data = out.getvalue()
    data = scrambled(rng, data) if whole and rng.random() < 0.7 else data
    dimension = rng.choice([""] * 12 + [' { "x[0]" = 3 }', " { s0 = 4 }", " { batch = 2 }"])
    return _PLAIN.replace('"FILE"', '"graph.pt2"' + dimension), {"graph.pt2": data}, None


def _sizes(rng: random.Random, root: Any) -> None:
    """Other sizes of tensors, symbolic ones among them."""
    tensors = list(root["graph_module"]["graph"]["tensor_values"].values())
    for meta in rng.sample(tensors, min(len(tensors), rng.randint(1, 4))):
        sizes = [
            {"as_int": rng.choice([0, 1, 7, -1, 2**31, 2**62, 10**30])},
            {
                "as_expr": {
                    "expr_str": rng.choice(
                        [
                            "s0",
                            "2*s0",
                            "s0**8",
                            "Pow(s0, 8)",
                            "s0//0",
                            "Mod(s0, 3)",
                            "(" * 200,
                            "9**9**9",
                            "Max()",
                            "1e5",
                            "-s0",
                            "~s0",
                            "f(s0)",
                            "Symbol('s1')",
                            "s0 + s1",
                            "",
                        ]
                    ),
                    "hint": rng.choice([None, {"as_int": rng.choice([0, 3, -2, 10**400, "x"])}, {}]),
                }
            },
        ]
        meta["sizes"] = [copy.deepcopy(rng.choice(sizes)) for _ in range(rng.randint(0, 4))]


#: Specs whose answers are changed, with an inline graph.
_GRAPH = _WITH_DATA[: _WITH_DATA.index("param")]
_ANSWERED = (
    _GRAPH + _TAIL,
    _GRAPH + _TAIL.replace("time_per_sample", "latency\nschedule calls"),
    _GRAPH + _TAIL.replace("time_per_sample", "latency\nschedule dataflow").replace("    contiguous\n", ""),
    _GRAPH + "parallelism { data = 1..2 }\n" + _TAIL,
    _GRAPH + _TAIL.replace("subject", "var x[v in nodes]: real in 0..9\nsubject") + "    least: x[a] >= 3\n",
)


@functools.cache
def _answers() -> tuple[str, ...]:
    """What ``solve --json`` writes for each of them."""
    out = []
    for text in _ANSWERED:
        command = [sys.executable, "-c", _SOLVE]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, encoding="utf-8")
        out.append(done.stdout)
    return tuple(out)


_SOLVE = """
import json
import sys
import placedsl
from placedsl.report.json.answer_document import document
answer = placedsl.loads(sys.stdin.read()).solve(time_limit=20, workers=1)
print(json.dumps(document(answer)))
"""


def placement(rng: random.Random) -> Made:
    """An answer or a placement, for evaluate, timeline or export."""
    number = rng.randrange(len(_ANSWERED))
    root = json.loads(_answers()[number])
    run = rng.choice([evaluated, evaluated, shown_in_time, exported])
    if run is not exported and rng.random() < 0.3:
        root = root["placement"]
    elif run is not exported and rng.random() < 0.1:
        root = {"fpgas": [{"nodes": ["a"]}, {"nodes": ["b"]}], "cpus": []}
    elif rng.random() < 0.7:
        own = ("placement", "variables", "schedule") if run is not exported else ("plan",)
        part = rng.choice([name for name in own if isinstance(root.get(name), dict)])
        root[part] = changed(rng, root[part])
        return _ANSWERED[number], {"answer.json": encoded(rng, root)}, run
    return _ANSWERED[number], {"answer.json": encoded(rng, changed(rng, root))}, run


def evaluated(spec: Any, folder: Path) -> None:
    """As ``placedsl evaluate``."""
    from placedsl.evaluation.evaluate import evaluate
    from placedsl.graph.readers import load
    from placedsl.problem import placement_files
    from placedsl.report.json.answer_document import evaluation_document

    source = load(folder / "answer.json")
    found = placement_files.read(spec.problem, source)
    evaluation = evaluate(spec.problem, found, placement_files.read_values(spec.problem, source))
    json.dumps(evaluation_document(spec.problem, evaluation), allow_nan=False)


def shown_in_time(spec: Any, folder: Path) -> None:
    """As ``placedsl timeline``."""
    from placedsl.cli import timing

    make = timing._of_one if spec.problem.execution.one_sample else timing._of_many
    run = make(spec, folder / "answer.json", None, None, None)
    json.dumps(run.document(), allow_nan=False)
    run.trace()


def exported(_: Any, folder: Path) -> None:
    """As ``placedsl export``."""
    from placedsl.export.registry import files
    from placedsl.graph.readers import load
    from placedsl.problem.plan_document import read_plan

    source = load(folder / "answer.json")
    files(read_plan(source), "vllm", source)


def onnx_model(rng: random.Random) -> Made:
    """A model of ONNX; the package is imported when one is asked for."""
    import mutated_onnx

    data, sizes = mutated_onnx.model(rng)
    return _PLAIN.replace('"FILE"', '"graph.onnx"' + sizes), {"graph.onnx": data}, None


MAKERS: dict[str, Callable[[random.Random], Made]] = {
    "json": json_graph,
    "text": text_graph,
    "onnx": onnx_model,
    "pt2": torch_program,
    "profile": profile,
    "placement": placement,
    "data": values,
    "plan": plan,
}
