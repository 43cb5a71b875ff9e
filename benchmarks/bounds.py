"""Proven lower bounds on splits that need not be contiguous, on the published inputs of Tarnawski et al. 2020.

    python benchmarks/bounds.py                          # every workload, 60 s each, on one core
    python benchmarks/bounds.py --only layer/ResNet50 --seconds 20
    python benchmarks/bounds.py --without-incumbent      # as if no placement were known

Prints a Markdown table, a row as soon as it is known, in the workload's unit.  "simple", "work" and "partition" are the
three bounds (docs/bounds.md), "best" the value of the best placement known, which the partition bound is told;
"gap" is between it and the best bound, "last s" when that was reached, "s" when the run ended.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from throughput import INPUTS, PUBLISHED, published

import placedsl
from placedsl.algorithms.partitions.bounds.streams import QUICK_BOUNDS, proven_bounds
from placedsl.export.workload_spec import spec_of_workload
from placedsl.graph.readers import read
from placedsl.problem.problem import Problem

#: Values of placements that `solve` found (docs/results.md), rounded up.
BEST = {
    "OperatorGraphs/bert_l-3_inference.json": 21.9085,
    "OperatorGraphs/bert_l-6_inference.json": 28.3323,
    "OperatorGraphs/bert_l-12_inference.json": 130.0382,
    "OperatorGraphs/resnet50_inference.json": 124.34885,
    "OperatorGraphs/bert_l-3_training.json": 54.2075,
    "OperatorGraphs/bert_l-6_training.json": 71.6424,
    "OperatorGraphs/bert_L-12_training.json": 373.4242,
    "OperatorGraphs/resnet50_training.json": 255.19442,
    "LayerGraphs/bert24_inference.json": 17.7148,
    "LayerGraphs/resnet50_inference.json": 33.2502,
    "LayerGraphs/inceptionv3_inference.json": 51.1834,
    "LayerGraphs/bert24_training.json": 39.7896,
    "LayerGraphs/resnet50_training.json": 76.3237,
    "LayerGraphs/inceptionv3_training.json": 116.9078,
}


def problem_of(file: str) -> Problem:
    """One workload without the rule that splits be contiguous."""
    workload = INPUTS / file
    text = spec_of_workload(read(workload, "dnn-partitioning"), workload, workload.parent, contiguous=False)
    return placedsl.loads(text, str(workload.parent)).problem


def row(name: str, file: str, seconds: float, known: bool) -> str:
    """One line of the table."""
    problem = problem_of(file)
    best = BEST[file]
    upper = best if known else np.inf
    began = time.monotonic()
    weak = {method: quick(problem) for method, quick in QUICK_BOUNDS.items()}
    bound = last = 0.0
    for proven in proven_bounds(problem, upper=lambda: upper, deadline=began + seconds):
        bound, last = proven.value, time.monotonic() - began
    taken = time.monotonic() - began
    return (
        f"| {name} | {weak['simple']:.3f} | {weak['work']:.3f} | {bound:.3f} | {best:.3f} | {1 - bound / best:.3%} "
        f"| {last:.1f} | {taken:.1f} |"
    )


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="GRANULARITY/NAME")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of each run")
    parser.add_argument("--without-incumbent", action="store_true", help="tell the bounds of no placement")
    arguments = parser.parse_args()
    if not INPUTS.is_dir() or not PUBLISHED.is_file():
        print(f"the published workloads are not there: '{INPUTS}' and '{PUBLISHED}' are needed", file=sys.stderr)
        return 1
    print("| workload | simple | work | partition | best | gap | last s | s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for line in published():
        name = f"{line['granularity']}/{line['workload']}"
        if line["file"] in BEST and (not arguments.only or name in arguments.only):
            text = row(f"{name} {line['task']}", line["file"], arguments.seconds, not arguments.without_incumbent)
            print(text, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
