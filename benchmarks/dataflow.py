"""One sample's latency under schedule dataflow, without overlap on devices, with congestion; by the planner's own path.

    python benchmarks/dataflow.py moirai                     # the published profiles (Zhang et al. 2023): 120 s each
    python benchmarks/dataflow.py moirai --only GoogLeNet --congestion link --seconds 20
    python benchmarks/dataflow.py scale                      # generated transformers (generated.py), fused and not
    python benchmarks/dataflow.py scale --only gpt-3-330M --seconds 60
    python benchmarks/dataflow.py scale --seed 79 --memory 0.08 --only gpt-3-1.3B      # another draw, little memory
    python benchmarks/dataflow.py solvers                    # example-1 by the program, on every solver

``moirai`` prints value, bound and when the value was found, and what each list schedule gives (``--method`` of that
name), with its seconds.  ``scale`` runs each graph of Moirai's Table IV in processes of its own: ETF, m-SCT and the
search for ``--seconds``; beside them the published times to generate a placement.  Values in seconds, as the evaluator
has them.  Profiles: $PLACEDSL_WORKLOADS, else ../shared/workloads.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from generated import write
from noncontiguous import timed
from throughput import WORKLOADS

import placedsl
from placedsl.export.workload_spec import spec_of_profile
from placedsl.graph.readers import read
from placedsl.planner.request import Request

PROFILES = WORKLOADS / "moirai"
GENERATION_TIME = WORKLOADS.parent / "published" / "moirai-generation-time.csv"
BASELINES = ("m-topo", "etf", "m-etf", "m-sct", "heft", "getf")


def profile(name: str, congestion: str) -> placedsl.Spec:
    """The spec that ``placedsl import moirai`` writes, with one reading of congestion."""
    path = PROFILES / f"{name}.json"
    with tempfile.TemporaryDirectory() as scratch:
        text = spec_of_profile(read(path, "moirai"), path, Path(scratch))
        return placedsl.loads(text.replace("    congestion", f"    congestion by {congestion}"), scratch)


def moirai(arguments: argparse.Namespace) -> None:
    """Every profile under every reading."""
    print("| profile | congestion | value | bound | gap | ended | best after s | s | " + " | ".join(BASELINES) + " |")
    print("| --- | --- | ---: | ---: | ---: | --- |" + " ---: |" * (2 + len(BASELINES)))
    for name in arguments.only or ("example-1", "GoogLeNet", "inceptionv4", "transformer"):
        for congestion in arguments.congestion:
            request = Request(time_limit=arguments.seconds, workers=arguments.workers, seed=arguments.seed)
            answer, found_after = timed(profile(name, congestion), request)
            listed = [profile(name, congestion).solve(method=method) for method in BASELINES]
            print(
                f"| {name} | {congestion} | {answer.value:.6g} | {answer.bound:.6g} | {answer.gap:.2%} "
                f"| {answer.termination} | {found_after:.1f} | {answer.seconds['total']:.1f} | "
                + " | ".join(f"{x.value:.6g} ({x.seconds['total']:.1f} s)" for x in listed)
                + " |",
                flush=True,
            )


def solvers(arguments: argparse.Namespace) -> None:
    """The smallest profile as a program, without start or anything beside it, on every solver."""
    print("| solver | congestion | value | bound | ended | s |")
    print("| --- | --- | ---: | ---: | --- | ---: |")
    for solver in ("cp-sat", "highs", "pyomo", "mip", "cvxpy"):
        for congestion in arguments.congestion:
            request = Request(
                solver=solver, method="program", time_limit=arguments.seconds, workers=arguments.workers, start=False
            )
            answer, _ = timed(profile("example-1", congestion), request)
            print(
                f"| {solver} | {congestion} | {answer.value:g} | {answer.bound:g} | {answer.termination} "
                f"| {answer.seconds['total']:.1f} |",
                flush=True,
            )


def scale(arguments: argparse.Namespace) -> None:
    """Every generated graph, each run in a process of its own, from the file on."""
    print(
        "| graph | fused | operators | placed | first s | search | bound | s | MiB | etf | s | m-sct | s | of m-sct "
        "| published, min: m-sct, getf, moirai |"
    )
    print("| --- | --- |" + " ---: |" * 13)
    with tempfile.TemporaryDirectory() as scratch:
        for line in _generation_times():
            model, size = line["model"], line["size"]
            if arguments.only and f"{model}-{size}" not in arguments.only:
                continue
            for fused in (True, False) if arguments.plain else (True,):
                draw, memory = arguments.seed, arguments.memory
                path = write(Path(scratch), model, size, "inter-server", draw, fused=fused, memory=memory)
                limit = ["--time-limit", f"{arguments.seconds:g}s", "--workers", str(arguments.workers)]
                search = _solved(path, limit)
                etf = _solved(path, ["--method", "etf"])
                sct = _solved(path, ["--method", "m-sct", "--time-limit", "1200s"])
                print(
                    f"| {model} {size} | {'yes' if fused else 'no'} | {line['operators']} | {search.placed} "
                    f"| {search.first:.1f} | {search.value:.5g} | {search.bound:.5g} | {search.seconds:.1f} "
                    f"| {search.memory:.0f} | {etf.value:.5g} | {etf.seconds:.1f} | {sct.value:.5g} "
                    f"| {sct.seconds:.1f} | {search.value / sct.value:.3f} "
                    f"| {float(line['msct_s']) / 60.0:.2f}, {line['getf_min']}, {line['moirai_min']} |",
                    flush=True,
                )


@dataclass(frozen=True)
class Run:
    """What one command gave: latency (inf: nothing was found) and bound in s, operators placed; ``first``: seconds
    until the first schedule; wall seconds, the most MiB of one of its processes."""

    value: float
    bound: float
    placed: int
    first: float
    seconds: float
    memory: float


def _solved(spec: Path, options: list[str]) -> Run:
    """``placedsl solve`` in a process of its own."""
    answer = spec.with_suffix(".json.answer")
    command = [sys.executable, "-m", "placedsl", "solve", str(spec), "--json", str(answer), *options]
    began = time.monotonic()
    first = np.nan
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = []
    for text in process.stderr:
        said.append(text)
        if np.isnan(first) and text.startswith("best ") and not text.startswith("best -"):
            first = time.monotonic() - began
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - began
    if process.returncode not in (0, 4, 5):
        raise SystemExit("".join(said))
    found = json.loads(answer.read_text(encoding="utf-8"))
    goal = found["objective"]
    placed = len(found["placement"] or {}) - sum(len(members) - 1 for members in found["fused"].values())
    bound = -np.inf if goal["bound"] is None else goal["bound"]
    value = np.inf if goal["value"] is None else goal["value"]
    return Run(value, bound, placed, first, seconds, usage.ru_maxrss / 1024.0)


def _generation_times() -> list[dict[str, str]]:
    """The published table."""
    text = GENERATION_TIME.read_text(encoding="utf-8")
    return list(csv.DictReader(x for x in text.splitlines() if not x.startswith("#")))


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("moirai", "scale", "solvers"))
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--congestion", nargs="*", choices=("port", "link"), default=["port", "link"])
    parser.add_argument("--seconds", type=float, help="limit of each run (120; scale: 60)")
    parser.add_argument("--plain", action="store_true", help="scale: every graph without fusion as well")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="of the search; scale: of the graphs")
    parser.add_argument(
        "--memory", type=float, default=1.0, help="scale: the share of the devices' memory that there is"
    )
    arguments = parser.parse_args()
    arguments.seconds = arguments.seconds or (60.0 if arguments.what == "scale" else 120.0)
    needed = GENERATION_TIME if arguments.what == "scale" else PROFILES
    if not needed.exists():
        print(f"the published workloads are not there: '{needed}' is needed", file=sys.stderr)
        return 1
    {"moirai": moirai, "scale": scale, "solvers": solvers}[arguments.what](arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
