"""The published tables of Tarnawski et al. 2021 (Piper): plans of data, tensor and pipeline parallelism.

    python benchmarks/plans.py table1            ResNet50, Appendix F, Table 1: exchange per round, as published
    python benchmarks/plans.py bert              BERT-32, Figure 1: baselines relative to the best plan

Inputs are in $PLACEDSL_WORKLOADS/piper, published values in the folder ``published`` beside it.  Every value is that of
the evaluator, every optimum proven.  Seconds are of one solve, reading the spec aside, with compiled kernels.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import placedsl

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = Path(os.environ.get("PLACEDSL_WORKLOADS", ROOT.parent / "shared" / "workloads"))
SPEC = """
graph from "{file}" {{ time_unit = 1 s }}
device gpu[{devices}]: accelerator {{ memory = {gib} GiB }}
interconnect {{ bandwidth = 25 GiB/s }}
parallelism {{ microbatches = {batch}, exchange = {exchange}, weights_traffic = 4, {more} }}
minimize time_per_sample
subject to
    memory
    contiguous
"""
#: Memory of a device in GiB and numbers of devices of Figure 1.
FIGURE = ((2, 64), (2, 512), (2, 2048), (8, 8), (8, 64), (8, 512), (8, 2048), (80, 8), (80, 64), (80, 512), (80, 2048))
DIVISORS, RECOMPUTED = "data = divisors(microbatches)", 'options = {"vanilla"}'


def answer(
    file: str, devices: int, gib: float, batch: int, exchange: str, more: str, method: str | None = None
) -> placedsl.Answer:
    """One solve."""
    path = WORKLOADS / "piper" / file
    text = SPEC.format(file=path, devices=devices, gib=gib, batch=batch, exchange=exchange, more=more)
    return placedsl.loads(text).solve(method=method, workers=1)


def value(found: placedsl.Answer) -> str:
    """The value; a dash where there is no plan."""
    return "-" if found.evaluation is None else f"{found.value:.6g}"


def table1() -> None:
    """Published and best values, and the seconds of the search."""
    published = WORKLOADS.parent / "published" / "piper-resnet50.csv"
    lines = [line for line in published.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    print("| devices | GB | Piper, published | equi, published | equi | best plan | proven | published above | s |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |")
    for row in csv.DictReader(lines):
        asked = ("resnet.json", int(row["devices"]), float(row["memory_gb"]), int(row["devices"]), "round")
        copies = f"data = 1..{row['devices']}"
        even, best = answer(*asked, copies, "equi"), answer(*asked, copies)
        above = "-"
        if best.evaluation is not None and row["piper_tps"] != "OOM":
            above = f"{100 * max(0.0, float(row['piper_tps']) / best.value - 1):.2f}%"  # rounded to six digits
        print(
            f"| {row['devices']} | {row['memory_gb']} | {row['piper_tps']} | {row['equi_tps']} | {value(even)} "
            f"| {value(best)} | {'yes' if best.termination in ('optimal', 'infeasible') else 'no'} | {above} "
            f"| {best.seconds['solve']:.2f} |",
            flush=True,
        )


def bert() -> None:
    """Throughput of baselines relative to the best plan; a dash where there is none that fits."""
    print("| GB | devices | best plan (ms) | proven | no DP | no TP | no recomputation | equi | s |")
    print("| ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for gib, devices in FIGURE:
        asked = ("bert32a100.json", devices, gib, 1920, "batch")
        best = answer(*asked, DIVISORS)
        others = [
            answer(*asked, "data = 1"),
            answer(*asked, f"{DIVISORS}, tensor = 1"),
            answer(*asked, f"{DIVISORS}, {RECOMPUTED}"),
            answer(*asked, DIVISORS, "equi"),
        ]
        shares = [f"{best.value / one.value:.3f}" if one.evaluation is not None else "-" for one in others]
        proven = "yes" if best.termination == "optimal" else "no"
        print(
            f"| {gib} | {devices} | {1000 * best.value:.6g} | {proven} | {' | '.join(shares)} "
            f"| {best.seconds['solve']:.2f} |",
            flush=True,
        )


def main(arguments: Sequence[str]) -> int:
    """One of the tables."""
    parser = argparse.ArgumentParser(description="Published plans of Piper.")
    parser.add_argument("table", choices=("table1", "bert"))
    {"table1": table1, "bert": bert}[parser.parse_args(arguments).table]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
