"""Splits that need not be contiguous (Tarnawski et al. 2020, Table 1, "IP non-contiguous") by the planner's own path.

    python benchmarks/noncontiguous.py                                     # every workload, 120 s on 2 cores
    python benchmarks/noncontiguous.py --only layer/ResNet50 --seconds 60

Prints a Markdown table, a row as soon as it is known.  "value" is the evaluator's, "bound" the proven one, both in the
workload's unit; "trial" is the best of an earlier trial, where there was one; "best after s" is when the value was
found, from reading the file on.  Workloads: $PLACEDSL_WORKLOADS, else ../shared/workloads.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from throughput import INPUTS, PUBLISHED, published

import placedsl
from placedsl.export.workload_spec import spec_of_workload
from placedsl.graph.readers import read
from placedsl.planner.answer import Answer
from placedsl.planner.request import Request
from placedsl.planner.solve import solve

#: What a trial reached on one core, mostly in less than four minutes.
TRIAL = {
    "layer/ResNet50 inference": 33.254, "layer/ResNet50 training": 76.520, "layer/InceptionV3 inference": 51.312,
    "layer/InceptionV3 training": 117.092, "operator/BERT-12 training": 373.424,
}  # fmt: skip


def run(file: str, request: Request) -> tuple[Answer, float]:
    """Solve one workload; also the seconds until its value was found."""
    workload = INPUTS / file
    with tempfile.TemporaryDirectory() as scratch:
        text = spec_of_workload(read(workload, "dnn-partitioning"), workload, Path(scratch), contiguous=False)
        spec = placedsl.loads(text, scratch)
    return timed(spec, request)


def timed(spec: placedsl.Spec, request: Request) -> tuple[Answer, float]:
    """Solve a spec by the planner's own path; also the seconds until its value was found."""
    best, found_after = float("inf"), 0.0

    def hear(value: float, bound: float, seconds: float) -> None:  # noqa: ARG001
        nonlocal best, found_after
        if value < best:
            best, found_after = value, seconds

    answer = solve(spec.problem, spec.elaborated.checked_formulations, request, hear, spec.read_seconds)
    return answer, spec.read_seconds + found_after


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="GRANULARITY/NAME")
    parser.add_argument("--seconds", type=float, default=120.0, help="limit of each run")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if not INPUTS.is_dir() or not PUBLISHED.is_file():
        print(f"the published workloads are not there: '{INPUTS}' and '{PUBLISHED}' are needed", file=sys.stderr)
        return 1
    print("| workload | published | trial | value | bound | gap | ended | best after s | s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |")
    for row in published():
        name = f"{row['granularity']}/{row['workload']}"
        if arguments.only and name not in arguments.only:
            continue
        request = Request(time_limit=arguments.seconds, workers=arguments.workers, seed=arguments.seed)
        answer, found_after = run(row["file"], request)
        name += f" {row['task']}"
        trial = f"{TRIAL[name]:.3f}" if name in TRIAL else ""
        print(
            f"| {name} | {row['ip_noncontig_tps']} | {trial} | {answer.value:.4f} | {answer.bound:.4f} "
            f"| {answer.gap:.2%} | {answer.termination} | {found_after:.1f} | {answer.seconds['total']:.1f} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
