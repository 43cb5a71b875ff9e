"""Table 1 of Tarnawski et al. 2020, whole: every column on every workload whose input is there.

    python benchmarks/reproduction.py                                  # all three blocks
    python benchmarks/reproduction.py contiguous baselines             # what takes little time
    python benchmarks/reproduction.py noncontiguous --only layer/ResNet50 --seconds 60

Blocks: "contiguous" (dynamic programming, and the integer program alone: no start, nothing beside it),
"noncontiguous" (the planner's own path: program, searches and bounds beside each other), "baselines" (experts, local
search, PipeDream, Scotch, and greedy and one device, which have no published column).  Prints Markdown, a row as soon
as it is known: our values, the evaluator's, in the workload's unit, and behind them in brackets the published ones.
Workloads that the table has and the folder has not are named at the end.  Workloads: $PLACEDSL_WORKLOADS, else
../shared/workloads.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable

import baselines
import noncontiguous
from throughput import INPUTS, PUBLISHED, expert, published, run

from placedsl.graph.readers import load
from placedsl.planner.answer import Answer
from placedsl.planner.request import Request
from placedsl.problem import placement_files as placements

#: The programs end at this gap, as those of the paper did.
GAP = 0.01
METHODS = ("local-search", "pipedream", "scotch", "greedy", "single")


def beside(ours: str, theirs: str | None) -> str:
    """Our value and the published one."""
    return ours + baselines.said(theirs)


def ended(answer: Answer) -> str:
    """A value with its gap, or what became of the run."""
    if answer.placement is None:
        return answer.termination
    return f"{answer.value:.2f}"


def contiguous(row: dict[str, str], seconds: float) -> list[str]:
    """Dynamic programming and the integer program, on splits that are contiguous."""
    exact = run(row["file"], True, Request(workers=2))
    program = run(row["file"], True, Request(None, "program", seconds, GAP, workers=2, start=False))
    return [
        row["nodes"],
        beside(ended(exact), row["dp_tps"]),
        f"{exact.bound:.2f}",
        beside(f"{exact.seconds['total']:.2f}", row["dp_s"]),
        beside(ended(program), row["ip_contig_tps"]),
        f"{program.bound:.2f}",
        f"{program.gap:.2%}",
        program.solver,
        beside(f"{program.seconds['total']:.1f}", row["ip_contig_s"]),
    ]


def free(row: dict[str, str], seconds: float) -> list[str]:
    """Splits that need not be contiguous."""
    answer, found_after = noncontiguous.run(row["file"], Request(time_limit=seconds, workers=2, seed=0))
    return [
        beside(f"{answer.value:.4f}", row["ip_noncontig_tps"]),
        f"{answer.bound:.4f}",
        f"{answer.gap:.2%}",
        answer.termination,
        f"{found_after:.1f}",
        beside(f"{answer.seconds['total']:.1f}", row["ip_noncontig_s"]),
    ]


def others(row: dict[str, str], seconds: float) -> list[str]:
    """Experts and heuristics; all but greedy ignore memory, as in the paper."""
    cells = []
    split = expert(row)
    if split is None:
        cells.append("-")
    else:
        spec = baselines.spec_of(INPUTS / row["file"], contiguous=True)
        value = spec.evaluate(placements.read(spec.problem, load(split))).objectives[0]
        cells.append(beside(f"{value:.2f}", row["expert_tps"]))
    for method in METHODS:
        if method == "scotch" and not baselines.scotch_is_there():
            cells.append("-")
            continue
        chained = method in ("greedy", "pipedream")
        spec = baselines.spec_of(INPUTS / row["file"], contiguous=chained, memory=method == "greedy")
        answer = spec.solve(method=method, seed=0, time_limit=seconds)
        cells.append(beside(baselines.cell(answer), row.get(baselines.COLUMNS.get(method, ""))))
    return cells


Block = Callable[[dict[str, str], float], list[str]]
BLOCKS: dict[str, tuple[Block, tuple[str, ...]]] = {
    "contiguous": (contiguous, ("nodes", "dp", "bound", "s", "program", "bound", "gap", "solver", "s")),
    "noncontiguous": (free, ("value", "bound", "gap", "ended", "best after s", "s")),
    "baselines": (others, ("expert", *METHODS)),
}


def absent() -> list[str]:
    """The rows of the published table whose inputs are not there."""
    lines = [line for line in PUBLISHED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = csv.DictReader(lines)
    return [
        f"{r['granularity']}/{r['workload']} {r['task']}" for r in rows if not (INPUTS / r["file"]).is_file()
    ]  # fmt: skip


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blocks", nargs="*", metavar="BLOCK", help=f"of {', '.join(BLOCKS)}; all when none is named")
    parser.add_argument("--only", nargs="*", default=[], metavar="GRANULARITY/NAME")
    parser.add_argument("--seconds", type=float, default=120.0, help="limit of each run")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.blocks if name not in BLOCKS]
    if unknown:
        parser.error(f"there is no block '{unknown[0]}'; there are {', '.join(BLOCKS)}")
    if not INPUTS.is_dir() or not PUBLISHED.is_file():
        print(f"the published workloads are not there: '{INPUTS}' and '{PUBLISHED}' are needed", file=sys.stderr)
        return 1
    rows = published()
    for name in arguments.blocks or BLOCKS:
        work, head = BLOCKS[name]
        print(f"\n## {name}\n\n| workload | {' | '.join(head)} |\n| --- |{' ---: |' * len(head)}", flush=True)
        for row in rows:
            workload = f"{row['granularity']}/{row['workload']}"
            if arguments.only and workload not in arguments.only:
                continue
            print(f"| {workload} {row['task']} | {' | '.join(work(row, arguments.seconds))} |", flush=True)
    print(f"\nNot run, for their inputs are not there: {', '.join(absent()) or 'none'}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
