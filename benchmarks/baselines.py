"""The baselines of Tarnawski et al. 2020 on the published inputs: the columns of Table 1, and Table 3.

    python benchmarks/baselines.py table1                      # each baseline beside the published value
    python benchmarks/baselines.py table1 --only layer/BERT-24 --methods pipedream local-search
    python benchmarks/baselines.py table3 --seconds 60         # optima of the graphs contracted by layers

Prints Markdown, a row as soon as it is known.  Values are the evaluator's, in the workload's unit; in brackets the
published ones, where there are any.  A value with a dagger ignores memory, as the paper does, and would not fit:
"OOM" stands for more than three times the memory that there is, as in the paper's Table 4.  Workloads:
$PLACEDSL_WORKLOADS, else ../shared/workloads.
"""

from __future__ import annotations

import argparse
import csv
import functools
import json
import sys
import tempfile
from pathlib import Path

from throughput import INPUTS, PUBLISHED, WORKLOADS, expert, published

import placedsl
from placedsl.algorithms import registry
from placedsl.api.spec import Spec
from placedsl.export.workload_spec import spec_of_workload
from placedsl.graph.readers import load, read
from placedsl.planner.answer import Answer
from placedsl.problem import placement_files as placements

LAYERS = WORKLOADS.parent / "published" / "layer-contraction.csv"
#: Column of the published table by method.
COLUMNS = {"local-search": "local_search_tps", "pipedream": "pipedream_tps", "scotch": "scotch_tps"}
#: A placement that needs this many times the memory of a device is "out of memory".
MAJOR = 3.0


def spec_of(workload: Path, *, contiguous: bool, memory: bool = True, further: str = "") -> Spec:
    """The spec of a workload, as ``placedsl import`` writes it, with ``further`` constraints."""
    with tempfile.TemporaryDirectory() as scratch:
        text = spec_of_workload(read(workload, "dnn-partitioning"), workload, Path(scratch), contiguous=contiguous)
        kept = [line for line in text.splitlines() if memory or line.strip() != "memory"]
        return placedsl.loads("\n".join([*kept, further]) + "\n", scratch)


def used(answer: Answer) -> float:
    """The share of its memory that the fullest device needs."""
    assert answer.evaluation is not None
    room = answer.problem.device_memory
    return max(held / limit for held, limit in zip(answer.evaluation.memory, room, strict=True))


def cell(answer: Answer) -> str:
    """The value, marked where it does not fit."""
    if answer.placement is None:
        return "none"
    share = used(answer)
    if share > MAJOR:
        return "OOM"
    return f"{answer.value:.2f}" + ("†" if share > 1.0 + 1e-9 else "")


def table1(only: list[str], methods: list[str], seed: int) -> None:
    """One row a workload: the optimum of contiguous splits, then each baseline with the published value behind it."""
    methods = [m for m in methods if m != "scotch" or scotch_is_there()]
    print("| workload | dp | " + " | ".join(methods) + " | expert |")
    print("| --- | ---: | " + " | ".join("---:" for _ in methods) + " | ---: |")
    for row in published():
        name = f"{row['granularity']}/{row['workload']}"
        if only and name not in only:
            continue
        cells = []
        for method in methods:
            # Splits of these need not be contiguous; the paper ignores memory in all of them.
            chained = method in ("greedy", "pipedream")
            spec = spec_of(INPUTS / row["file"], contiguous=chained, memory=method == "greedy")
            cells.append(f"{cell(spec.solve(method=method, seed=seed))}{said(row.get(COLUMNS.get(method, ''), '-'))}")
        split = expert(row)
        if split is None:
            cells.append("-")
        else:
            spec = spec_of(INPUTS / row["file"], contiguous=True)
            value = spec.evaluate(placements.read(spec.problem, load(split))).objectives[0]
            cells.append(f"{value:.2f}{said(row['expert_tps'])}")
        print(f"| {name} {row['task']} | {row['dp_tps']} | " + " | ".join(cells) + " |", flush=True)


def said(value: str | None) -> str:
    """The published value in brackets, if there is one."""
    return f" ({value})" if value not in (None, "", "-") else ""


@functools.cache
def scotch_is_there() -> bool:
    """Whether Scotch is there; said once when it is not."""
    from placedsl.algorithms.baselines.scotch import program

    if program() is None:
        print("scotch is left out: its program is not installed (apt install scotch)", file=sys.stderr)
    return program() is not None


def table3(seconds: float) -> None:
    """One row a workload whose operators know their layers: optima with and without contraction by layers."""
    print("| workload | split | published | contracted, published | operators | contracted | bound | loss | s |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    lines = [line for line in LAYERS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    files = {(r["task"], r["workload"]): r for r in published() if r["granularity"] == "operator"}
    for row in csv.DictReader(lines):
        name, throughput = f"{row['workload']} {row['task']}", files[row["task"], row["workload"]]
        workload = INPUTS / throughput["file"]
        if "layerId" not in read(workload, "dnn-partitioning").attributes:
            print(
                f"| {name} | contiguous | {row['operator_tps']} | {row['layer_tps']} | no layers in its file | | | | |"
            )
            continue
        for contiguous in (True, False):
            whole = float(throughput["ip_noncontig_tps"])
            if contiguous:
                whole = spec_of(workload, contiguous=True).solve().value
            with tempfile.TemporaryDirectory() as scratch:
                copy = Path(scratch) / workload.name
                copy.write_text(json.dumps(with_ordered_layers(json.loads(workload.read_text("utf-8")))), "utf-8")
                layered = spec_of(copy, contiguous=contiguous, further="    colocated by layerId")
            answer = layered.solve(time_limit=seconds)
            known = (row["operator_tps"], row["layer_tps"]) if contiguous else ("-", "-")
            print(
                f"| {name} | {'' if contiguous else 'not '}contiguous | {known[0]} | {known[1]} "
                f"| {whole:.2f}{'' if contiguous else ' (published)'} | {answer.value:.2f} | {answer.bound:.2f} "
                f"| {answer.value / whole - 1:.1%} | {answer.seconds['total']:.1f} |",
                flush=True,
            )


def with_ordered_layers(workload: dict[str, list[dict[str, object]]]) -> dict[str, list[dict[str, object]]]:
    """The workload with the layer taken from what breaks the order of layers: colour classes with an edge backwards.

    BERT's word embedding shares its weights with the last layer and is annotated with that; contracted with it,
    the first and the last layer, and with them all others, would have to share a device.
    """
    nodes = {node["id"]: node for node in workload["nodes"]}

    def layer(end: object) -> int | None:
        node = nodes[end]
        found = node.get("layerId")
        return None if node["isBackwardNode"] or not isinstance(found, int) else found

    ends = [(e["sourceId"], layer(e["sourceId"]), layer(e["destId"])) for e in workload["edges"]]
    wrong = {nodes[u].get("colorClass") for u, a, b in ends if a is not None and b is not None and a > b} - {None}
    for node in workload["nodes"]:
        if node.get("colorClass") in wrong:
            node.pop("layerId", None)
    return workload


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["table1", "table3"])
    parser.add_argument("--only", nargs="*", default=[], metavar="GRANULARITY/NAME")
    parser.add_argument("--methods", nargs="*", default=list(registry.own()), metavar="NAME")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=120.0, help="limit of each run of Table 3")
    arguments = parser.parse_args()
    if not INPUTS.is_dir() or not PUBLISHED.is_file():
        print(f"the published workloads are not there: '{INPUTS}' and '{PUBLISHED}' are needed", file=sys.stderr)
        return 1
    if arguments.what == "table1":
        table1(arguments.only, arguments.methods, arguments.seed)
    else:
        table3(arguments.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
