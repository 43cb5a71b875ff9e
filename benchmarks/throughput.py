"""Table 1 of Tarnawski et al. 2020 on the published inputs: dynamic programming and integer programs.

    python benchmarks/throughput.py dp                                   # every workload, the path chosen by itself
    python benchmarks/throughput.py experts                              # the authors' placements by hand, evaluated
    python benchmarks/throughput.py program --solvers highs cp-sat       # programs, each with and without a start
    python benchmarks/throughput.py program --solvers pyomo mip cvxpy --only layer/BERT-24

Prints a Markdown table, a row as soon as it is known.  "value" is the evaluator's, "bound" the proven one, both in
the workload's unit; "of published" is value over the published value (below 1: better).  Without a start, a solver
sees the program alone; with one, it begins at the placement that the planner finds by itself (local search, or
dynamic programming where that fits).  Workloads: $PLACEDSL_WORKLOADS, else ../shared/workloads.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
from pathlib import Path

import placedsl
from placedsl.export.workload_spec import spec_of_workload
from placedsl.graph.readers import load, read
from placedsl.planner.answer import Answer
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from placedsl.problem import placement_files as placements

WORKLOADS = Path(os.environ.get("PLACEDSL_WORKLOADS", Path(__file__).resolve().parents[2] / "shared" / "workloads"))
INPUTS = WORKLOADS / "dnn-partitioning" / "throughput-inputs"
PUBLISHED = WORKLOADS.parent / "published" / "throughput.csv"
#: Those that the integer programs are run on.
SMALL = ("layer/BERT-24", "layer/ResNet50", "operator/BERT-3")


def published() -> list[dict[str, str]]:
    """The rows of the published table whose inputs are there."""
    lines = [line for line in PUBLISHED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    missing = [row["file"] for row in rows if not (INPUTS / row["file"]).is_file()]
    if missing:
        print(f"not among the workloads, and left out: {', '.join(missing)}", file=sys.stderr)
    return [row for row in rows if row["file"] not in missing]


def run(file: str, contiguous: bool, request: Request) -> Answer:
    """Import one workload as the command does, and solve it."""
    workload = INPUTS / file
    with tempfile.TemporaryDirectory() as scratch:
        text = spec_of_workload(read(workload, "dnn-partitioning"), workload, Path(scratch), contiguous=contiguous)
        spec = placedsl.loads(text, scratch)
    return solve(spec.problem, spec.elaborated.checked_formulations, request, read_seconds=spec.read_seconds)


def dynamic_programming(only: list[str]) -> None:
    """The DP column."""
    print("| workload | nodes | published | value | bound | verified | method | published s | s |")
    print("| --- | ---: | ---: | ---: | ---: | --- | --- | ---: | ---: |")
    for row in published():
        name = f"{row['granularity']}/{row['workload']}"
        if only and name not in only:
            continue
        answer = run(row["file"], True, Request())
        verified = answer.evaluation is not None and not answer.evaluation.violations
        print(
            f"| {name} {row['task']} | {row['nodes']} | {row['dp_tps']} | {answer.value:.2f} | {answer.bound:.2f} "
            f"| {'yes' if verified else 'no'} | {answer.method} | {row['dp_s']} | {answer.seconds['total']:.2f} |",
            flush=True,
        )


def expert(row: dict[str, str]) -> Path | None:
    """The split by hand; for a training graph without one that of its forward part, which the rest follows."""
    stem = Path(row["file"]).stem
    files = [
        INPUTS.parent / "human-experts" / f"{s}_expert.json" for s in (stem, stem.replace("training", "inference"))
    ]
    return next((f for f in files if f.is_file()), None) if row["granularity"] == "layer" else None


def experts() -> None:
    """The expert column: what the authors' placements by hand cost, as the evaluator has it."""
    print("| workload | published | value | violated |")
    print("| --- | ---: | ---: | ---: |")
    for row in published():
        placement = expert(row)
        if placement is None:
            continue
        workload = INPUTS / row["file"]
        with tempfile.TemporaryDirectory() as scratch:
            text = spec_of_workload(read(workload, "dnn-partitioning"), workload, Path(scratch), contiguous=True)
            spec = placedsl.loads(text, scratch)
        found = spec.evaluate(placements.read(spec.problem, load(placement)))
        name = f"{row['granularity']}/{row['workload']} {row['task']}"
        print(f"| {name} | {row['expert_tps']} | {found.objectives[0]:.2f} | {len(found.violations)} |")


def programs(only: list[str], solvers: list[str], seconds: float, starts: list[bool]) -> None:
    """The IP columns."""
    print("| workload | contiguous | published | solver | start | value | of published | bound | gap | ended | s |")
    print("| --- | --- | ---: | --- | --- | ---: | ---: | ---: | ---: | --- | ---: |")
    for row in published():
        name = f"{row['granularity']}/{row['workload']}"
        if name not in (only or SMALL):
            continue
        for contiguous in (True, False):
            goal = float(row["ip_contig_tps" if contiguous else "ip_noncontig_tps"])
            for solver in solvers:
                for start in starts:
                    request = Request(solver, "program", seconds, 0.01, workers=2, start=start)
                    answer = run(row["file"], contiguous, request)
                    print(
                        f"| {name} {row['task']} | {'yes' if contiguous else 'no'} | {goal:.2f} | {solver} "
                        f"| {'yes' if start else 'no'} | {answer.value:.2f} | {answer.value / goal:.4f} "
                        f"| {answer.bound:.2f} | {answer.gap:.2%} | {answer.termination} "
                        f"| {answer.seconds['total']:.1f} |",
                        flush=True,
                    )


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["dp", "experts", "program"])
    parser.add_argument("--only", nargs="*", default=[], metavar="GRANULARITY/NAME")
    parser.add_argument("--solvers", nargs="*", default=["highs", "cp-sat"])
    parser.add_argument("--seconds", type=float, default=300.0, help="limit of each run")
    parser.add_argument("--start", choices=["both", "yes", "no"], default="both")
    arguments = parser.parse_args()
    if not INPUTS.is_dir() or not PUBLISHED.is_file():
        print(f"the published workloads are not there: '{INPUTS}' and '{PUBLISHED}' are needed", file=sys.stderr)
        return 1
    if arguments.what == "dp":
        dynamic_programming(arguments.only)
    elif arguments.what == "experts":
        experts()
    else:
        starts = {"both": [False, True], "yes": [True], "no": [False]}[arguments.start]
        programs(arguments.only, arguments.solvers, arguments.seconds, starts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
