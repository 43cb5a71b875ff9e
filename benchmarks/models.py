"""Models from their files to placements: the ONNX topologies that the package onnx carries, and an exported encoder.

    python benchmarks/models.py                        # each for throughput and for latency, 20 s at most
    python benchmarks/models.py --only resnet50
    python benchmarks/models.py large                  # ONNX files of 5,000 to 45,000 operators, read

Each line is one ``placedsl solve`` in a process of its own, of a spec that names the file and four devices of two kinds
with their rates: "read s" is the part that reading the model takes, "s" all of it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MACHINE = """
device fast[2]: accelerator {
    compute = 15.7 TFLOP/s, memory_bandwidth = 900 GB/s, launch_overhead = 5 us, memory = 16 GB
}
device slow[2]: accelerator {
    compute = 8.1 TFLOP/s, memory_bandwidth = 320 GB/s, launch_overhead = 5 us, memory = 16 GB
}
interconnect { bandwidth = 16 GB/s, latency = 5 us }
"""
GOALS = {
    "throughput": "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n",
    "latency": "schedule dataflow\nminimize latency\nsubject to\n    memory\n    sequential\n    congestion by port\n",
}


def models() -> list[Path]:
    """The files, smallest first."""
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return [ROOT / "docs" / "encoder.pt2", *sorted(folder.glob("*.onnx"), key=lambda path: path.stat().st_size)]


def solved(spec: Path, limit: str) -> tuple[dict[str, Any], float, float]:
    """The answer, wall seconds and MiB of one run."""
    out = spec.with_suffix(".answer")
    options = ["--quiet", "--time-limit", limit, "--json", str(out)]
    command = [sys.executable, "-m", "placedsl", "solve", str(spec), *options]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 4):
        raise SystemExit(f"{spec.read_text(encoding='utf-8')}\nended with {process.returncode}")
    return json.loads(out.read_text(encoding="utf-8")), time.monotonic() - began, usage.ru_maxrss / 1024.0


def table(only: list[str], limit: str) -> None:
    """Every model, both goals."""
    print("| model | goal | nodes | value, ms | bound, ms | gap | ended | read s | s | MiB |")
    print("| --- | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as scratch:
        for path in models():
            name = path.stem.removeprefix("light_")
            if only and name not in only:
                continue
            for goal, text in GOALS.items():
                spec = Path(scratch) / "model.place"
                spec.write_text(f"graph from {json.dumps(str(path))}\n{MACHINE}\n{text}", encoding="utf-8")
                answer, seconds, memory = solved(spec, limit)
                found = answer["objective"]
                print(
                    f"| {name} | {goal} | {len(answer['placement'])} | {1e3 * found['value']:.5g} "
                    f"| {1e3 * found['bound']:.5g} | {found['gap']:.2%} | {answer['status']['termination']} "
                    f"| {answer['seconds']['read']:.2f} | {seconds:.2f} | {memory:.0f} |",
                    flush=True,
                )


def large() -> None:
    """Transformers of many operators as ONNX files without weights' data, read and checked."""
    print("| operators | file, MiB | check s | MiB |")
    print("| ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as scratch:
        for layers in (60, 120, 300, 600):
            path = Path(scratch) / f"decoder{layers}.onnx"
            operators = write_decoder(path, layers)
            spec = path.with_suffix(".place")
            spec.write_text(f"graph from {json.dumps(str(path))}\n{MACHINE}\n{GOALS['latency']}", encoding="utf-8")
            command = [sys.executable, "-m", "placedsl", "check", str(spec)]
            began = time.monotonic()
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit(f"check ended with {process.returncode}")
            size = path.stat().st_size / 2**20
            print(
                f"| {operators} | {size:.1f} | {time.monotonic() - began:.1f} | {usage.ru_maxrss / 1024.0:.0f} |",
                flush=True,
            )


def write_decoder(path: Path, layers: int, heads: int = 8, tokens: int = 256, channels: int = 512) -> int:
    """An ONNX file of a decoder whose heads are operators of their own; the number of operators.

    Weights are kept outside of the file, and are not there.
    """
    import onnx
    from onnx import TensorProto, helper

    nodes: list[Any] = []
    weights: dict[str, Any] = {}
    own = channels // heads

    def weight(rows: int, columns: int) -> str:
        name = f"w{len(weights)}"
        tensor = onnx.TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[rows, columns])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="weights.bin")
        weights[name] = tensor
        return name

    def add(kind: str, *inputs: str, **attributes: Any) -> str:
        out = f"t{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [out], name=f"{kind}_{len(nodes)}", **attributes))
        return out

    stream = "tokens"
    for _ in range(layers):
        outputs = []
        for _ in range(heads):
            query, key, value = (add("MatMul", stream, weight(channels, own)) for _ in range(3))
            scores = add("MatMul", query, add("Transpose", key, perm=[1, 0]))
            outputs.append(add("MatMul", add("Softmax", add("Relu", scores), axis=-1), value))
        joined = add("MatMul", add("Concat", *outputs, axis=1), weight(channels, channels))
        middle = add("Add", joined, stream)
        inner = add("Relu", add("MatMul", middle, weight(channels, 4 * channels)))
        stream = add("Add", add("MatMul", inner, weight(4 * channels, channels)), middle)
    graph = helper.make_graph(
        nodes, "decoder", [helper.make_tensor_value_info("tokens", TensorProto.FLOAT, [tokens, channels])],
        [helper.make_tensor_value_info(stream, TensorProto.FLOAT, [tokens, channels])], list(weights.values()),
    )  # fmt: skip
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    return len(nodes)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("table", "large"), default="table")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--limit", default="20s", help="of each run")
    arguments = parser.parse_args()
    if arguments.what == "large":
        large()
    else:
        table(arguments.only, arguments.limit)
    return 0


if __name__ == "__main__":
    sys.exit(main())
