"""Files that nobody would write: graphs, profiles, placements and data with changes, beside a spec that reads them.

A change is one of structure (an entry left out, doubled, swapped, replaced by a value of another type or size), or of
the characters and bytes that the file is made of.
"""

from __future__ import annotations

import functools
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mutated_specs
from mutated_programs import torch_program
from mutation import PLAIN, TAIL, Made, changed, encoded, scrambled

ROOT = Path(__file__).resolve().parents[1]


_WITH_UNIT = 'graph from "FILE" { time_unit = 1 ms }\n' + TAIL
_SPLIT_TRAINING = PLAIN.replace("contiguous", "colocated by layer")


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
    spec = (rng.choice([PLAIN, PLAIN, _SPLIT_TRAINING]), rng.choice([PLAIN, _WITH_UNIT]), _MOIRAI)[kind]
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
        return rng.choice([PLAIN, _SPLIT_TRAINING]).replace("FILE", "graph.txt"), {"graph.txt": data}, None
    return rng.choice([mutated_specs.mutated, mutated_specs.altered, _lines])(rng, [_INLINE]) + TAIL, {}, None


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
    spec = PLAIN.replace('"FILE"', '"graph.json" { profile = "FILE" }')
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


_GRAPH = _WITH_DATA[: _WITH_DATA.index("param")]
_ANSWERED = (
    _GRAPH + TAIL,
    _GRAPH + TAIL.replace("time_per_sample", "latency\nschedule calls"),
    _GRAPH + TAIL.replace("time_per_sample", "latency\nschedule dataflow").replace("    contiguous\n", ""),
    _GRAPH + "parallelism { data = 1..2 }\n" + TAIL,
    _GRAPH + TAIL.replace("subject", "var x[v in nodes]: real in 0..9\nsubject") + "    least: x[a] >= 3\n",
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
    return PLAIN.replace('"FILE"', '"graph.onnx"' + sizes), {"graph.onnx": data}, None


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
