"""Table 4 of Tarnawski et al. 2020 on the published inputs: single-sample latency, memory-bound accelerators.

    python benchmarks/latency.py                         # every workload, 120 s each, by the planner's own path
    python benchmarks/latency.py --only layer/ResNet50 --seconds 20
    python benchmarks/latency.py --pieces 2              # two calls an accelerator

Prints a Markdown table, a row as soon as it is known, in the workload's unit.  "value" is the evaluator's latency,
"bound" the proven one, "best after s" when the value was found, from reading the file on.  "IP" is the published value
of the integer program, with its seconds; "trial" what a first trial of a search reached in 20 s.  Baselines: greedy
(``--method greedy``) and "max-load DP" (the split with the best throughput, evaluated for latency) by this project,
with the published values in brackets; Scotch and the expert as published ("+": out of memory).
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from noncontiguous import timed
from throughput import WORKLOADS

import placedsl
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.algorithms.subgraph_calls.instance import call_instance, latency_of, places_of
from placedsl.export.workload_spec import latency_spec_of_workload, spec_of_workload
from placedsl.graph.graph import Graph
from placedsl.graph.readers import read
from placedsl.planner.request import Request

INPUTS = WORKLOADS / "dnn-partitioning" / "latency-inputs"
PUBLISHED = WORKLOADS.parent / "published" / "latency.csv"
#: What a first trial of the search reached in 20 s.
TRIAL = {
    "operator/BERT-3": 408.474, "operator/BERT-6": 438.062, "operator/BERT-12": 729.565, "operator/ResNet50": 651.121,
    "layer/BERT-24": 100.219, "layer/ResNet50": 1156.881, "layer/InceptionV3": 1199.703,
}  # fmt: skip


def row(line: dict[str, str], pieces: int, request: Request) -> str:
    """One line of the table."""
    workload = INPUTS / line["file"]
    graph = read(workload, "dnn-partitioning")
    with tempfile.TemporaryDirectory() as scratch:
        text = latency_spec_of_workload(graph, workload, Path(scratch))
        spec = placedsl.loads(text.replace("schedule calls", f"schedule calls {{ pieces = {pieces} }}"), scratch)
    answer, found_after = timed(spec, request)
    greedy, max_load = spec.solve(method="greedy").value, max_load_split(graph, workload)
    name = f"{line['granularity']}/{line['workload']}"
    return (
        f"| {name} | {answer.value:.3f} | {answer.bound:.3f} | {answer.gap:.2%} | {answer.termination} "
        f"| {found_after:.1f} | {answer.seconds['total']:.1f} | {line['ip']} ({line['ip_s']} s) "
        f"| {answer.value / float(line['ip']):.3f} | {TRIAL.get(name, np.nan):.3f} "
        f"| {_shown(greedy)} ({line['greedy']}) | {_shown(max_load)} ({line['max_load_dp']}) | {line['scotch']} "
        f"| {line['expert']} |"
    )


def max_load_split(graph: Graph, workload: Path) -> float:
    """Latency of the contiguous split with the best throughput."""
    graph = dataclasses.replace(graph, deployment={**graph.deployment, "hosts": 1.0})
    with tempfile.TemporaryDirectory() as scratch:
        problem = placedsl.loads(spec_of_workload(graph, workload, Path(scratch), contiguous=True), scratch).problem
    instance = call_instance(problem)
    split = contiguous.solve(problem, deadline=time.monotonic() + 60.0).placement
    return np.inf if split is None else latency_of(instance, places_of(instance, split))


def _shown(value: float) -> str:
    """A baseline's latency; it may have none, where calls wait in a circle or time ran out."""
    return f"{value:.2f}" if np.isfinite(value) else "-"


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="GRANULARITY/NAME")
    parser.add_argument("--seconds", type=float, default=120.0, help="limit of each run")
    parser.add_argument("--pieces", type=int, default=1, help="calls an accelerator")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if not INPUTS.is_dir() or not PUBLISHED.is_file():
        print(f"the published workloads are not there: '{INPUTS}' and '{PUBLISHED}' are needed", file=sys.stderr)
        return 1
    print(
        "| workload | value | bound | gap | ended | best after s | s | IP | of IP | trial | greedy | max-load DP "
        "| Scotch | expert |"
    )
    print("| --- |" + " ---: |" * 3 + " --- |" + " ---: |" * 9)
    text = PUBLISHED.read_text(encoding="utf-8")
    for line in csv.DictReader(x for x in text.splitlines() if not x.startswith("#")):
        name = f"{line['granularity']}/{line['workload']}"
        if arguments.only and name not in arguments.only:
            continue
        if not (INPUTS / line["file"]).is_file():
            print(f"{name}: '{line['file']}' is not among the workloads", file=sys.stderr)
            continue
        request = Request(time_limit=arguments.seconds, workers=arguments.workers, seed=arguments.seed)
        print(row(line, arguments.pieces, request), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
