"""Figures 1 to 3 of Tarnawski et al. 2021 (Piper), drawn anew, and their numbers as tables.

    python benchmarks/plan_figures.py throughput DIRECTORY [RUNS.csv]    Figure 1: baselines relative to the best plan
    python benchmarks/plan_figures.py devices DIRECTORY [RUNS.csv]       Figure 2: throughput by the number of devices
    python benchmarks/plan_figures.py seconds DIRECTORY [RUNS.csv]       Figure 3: seconds of the search

DIRECTORY gets ``piper-throughput.svg``, ``piper-devices.svg`` or ``piper-seconds.svg``.  RUNS.csv is a table of runs of
the authors' programs, for comparison.  Inputs are in $PLACEDSL_WORKLOADS/piper.  Every value is that of the evaluator;
seconds are of one solve with compiled kernels.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from piper_workloads import GIB, WORKLOADS, answer, path

#: Name, what ``parallelism`` is given, the method, the name in tables of runs, and a colour.
SERIES = (
    ("best plan", "data = divisors(microbatches)", None, "piper", "#2b7bba"),
    ("no data parallelism", "data = 1", None, "no-dp", "#db7093"),
    ("no tensor parallelism", "data = divisors(microbatches), tensor = 1", None, "no-tp", "#c9a800"),
    ("no recomputation", 'data = divisors(microbatches), options = {"vanilla"}', None, "no-ar", "#008000"),
    ("equi", "data = divisors(microbatches)", "equi", "equi", "#ff4500"),
    ("equi, no tensor parallelism", "data = divisors(microbatches), tensor = 1", "equi", "equi-no-tp", "#191970"),
)
#: The memory of a device in GiB, and the numbers of devices, of Figure 1.
MEMORY, DEVICES = (1, 2, 8, 80), (8, 32, 64, 128, 512, 1024, 2048)
#: Samples of a batch and numbers of devices of Figure 2.
BATCHES = (960, 512)
MANY = (8, 16, 22, 32, 64, 128, 256, 384, 512, 768, 960, 1024, 1280, 1536, 1792, 2048)
#: Layers, samples of a batch and numbers of devices of Figure 3.
LAYERS, SIZES = (32, 48, 64, 96), (480, 512, 1920, 2048)
SOME = (8, 16, 32, 64, 128, 256, 512, 1024, 1536, 2048)
#: What the files say of a device and its link, in Figures 2 and 3.
GB = 1e9

Runs = Mapping[tuple[object, ...], Mapping[str, str]]


def runs(file: Path | None) -> Runs:
    """The runs of the authors' program under an exchange per batch, by what was asked of it."""
    if file is None:
        return {}
    with file.open(encoding="utf-8") as lines:
        return {
            (row["input"], row["variant"], int(row["K"]), float(row["memory_bytes"]),
             float(row["bandwidth_bytes_per_s"]), int(row["N"])): row
            for row in csv.DictReader(lines)
            if row["program"].startswith("authors") and row["sync"] == "batch"
        }  # fmt: skip


def planned(
    name: str, series: tuple[str, str, str | None, str, str], devices: int, memory: float, bandwidth: float, batch: int,
    known: Runs,
) -> tuple[float, str]:  # fmt: skip
    """Seconds per sample (nan: no plan) and what the authors' program printed (empty: it was not run)."""
    _, more, method, variant, _ = series
    found = answer(path(name, Path(tempfile.gettempdir())), devices, memory, batch, "batch", more, method, bandwidth)
    if method is None and not found.proven() and found.termination != "infeasible":
        print(f"not proven: {name}, {variant}, {devices} devices, {found.termination}", file=sys.stderr)
    run = known.get((name, variant, devices, memory, bandwidth, batch))
    printed = "" if run is None else run["tps"] if run["feasible"] == "1" else "infeasible"
    return found.value if found.evaluation is not None else math.nan, printed


def figure(columns: int) -> tuple[Any, Any]:
    """An empty figure, and its axes side by side."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "placedsl"
    out = Figure(figsize=(4.2 * columns, 3.4), layout="constrained")
    return out, out.subplots(1, columns, squeeze=False)[0]


def save(drawn: Any, axes: Any, file: Path) -> None:
    """Write a figure with one legend."""
    drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    drawn.savefig(file, metadata={"Date": None})


def agreement(pairs: Sequence[tuple[float, str]]) -> None:
    """How the values compare with what the authors' program printed."""
    known = [(own, printed) for own, printed in pairs if printed]
    equal = sum(
        math.isnan(own) if printed == "infeasible" else abs(own - float(printed)) <= 1e-9 * own
        for own, printed in known
    )
    print(f"\n{len(pairs)} values; the authors' program was run for {len(known)} of them: {equal} equal to 1e-9")


def throughput(folder: Path, known: Runs) -> None:
    """Figure 1: bars for each number of devices, a chart for each memory."""
    drawn, axes = figure(len(MEMORY))
    pairs = list[tuple[float, str]]()
    print("| GB | devices | best plan (ms) | " + " | ".join(name for name, *_ in SERIES[1:]) + " |")
    print("| ---: | ---: | ---: |" + " ---: |" * (len(SERIES) - 1))
    for chart, gib in zip(axes, MEMORY, strict=True):
        shares = dict[str, list[float]]()
        for devices in DEVICES:
            own = [planned("bert32a100", one, devices, gib * GIB, 25.0 * GIB, 1920, known) for one in SERIES]
            pairs += own
            for (name, *_), (value, _) in zip(SERIES, own, strict=True):
                shares.setdefault(name, []).append(0.0 if math.isnan(value) else own[0][0] / value)
            best = "-" if math.isnan(own[0][0]) else f"{1000 * own[0][0]:.6g}"
            told = ["-" if math.isnan(value) else f"{own[0][0] / value:.3f}" for value, _ in own[1:]]
            print(f"| {gib} | {devices} | {best} | {' | '.join(told)} |", flush=True)
        for k, (name, _, _, _, colour) in enumerate(SERIES):
            places = [at + 0.14 * (k - 2.5) for at in range(len(DEVICES))]
            chart.bar(places, shares[name], 0.14, color=colour, label=name)
        chart.set_xticks(range(len(DEVICES)), DEVICES)
        chart.set_xlabel(f"devices of {gib} GiB")
    axes[0].set_ylabel("throughput / best plan")
    save(drawn, axes, folder / "piper-throughput.svg")
    agreement(pairs)


def devices(folder: Path, known: Runs) -> None:
    """Figure 2: a line for each way to plan, a chart for each size of a batch."""
    drawn, axes = figure(len(BATCHES))
    pairs = list[tuple[float, str]]()
    print("| microbatches | devices | " + " | ".join(name for name, *_ in SERIES) + " |")
    print("| ---: | ---: |" + " ---: |" * len(SERIES))
    for chart, batch in zip(axes, BATCHES, strict=True):
        lines = dict[str, list[float]]()
        for number in MANY:
            own = [planned("bert32a100", one, number, 8.0 * GIB, 25 * GB, batch, known) for one in SERIES]
            pairs += own
            for (name, *_), (value, _) in zip(SERIES, own, strict=True):
                lines.setdefault(name, []).append(1.0 / value)
            told = ["-" if math.isnan(value) else f"{1.0 / value:.5g}" for value, _ in own]
            print(f"| {batch} | {number} | {' | '.join(told)} |", flush=True)
        for name, _, _, _, colour in SERIES:
            chart.loglog(MANY, lines[name], ".-", color=colour, label=name, linewidth=1)
        chart.set_xlabel(f"devices of 8 GiB, {batch} microbatches")
        chart.grid(visible=True, which="major", linewidth=0.3)
    axes[0].set_ylabel("samples per second")
    save(drawn, axes, folder / "piper-devices.svg")
    agreement(pairs)


def seconds(folder: Path, known: Runs) -> None:
    """Figure 3: a line for each number of layers, a chart for each batch; crosses are the authors' program."""
    drawn, axes = figure(len(SIZES))
    total, ratios = 0.0, list[float]()
    print("| layers | microbatches | " + " | ".join(map(str, SOME)) + " |")
    print("| ---: | ---: |" + " ---: |" * len(SOME))
    answer(path("bert32a100", Path()), 8, 80 * GB, 480, "batch", SERIES[0][1], None, 25 * GB)  # loads the kernels
    for chart, batch in zip(axes, SIZES, strict=True):
        for layers in LAYERS:
            name = f"bert{layers}" if layers > 32 else "bert32a100"
            own, others = list[float](), dict[int, float]()
            for number in SOME:
                file = path(name, Path(tempfile.gettempdir()))
                found = answer(file, number, 80 * GB, batch, "batch", SERIES[0][1], None, 25 * GB)
                if not found.proven():
                    print(f"not proven: {name}, {batch}, {number}: {found.termination}", file=sys.stderr)
                own.append(found.seconds["solve"])
                run = known.get((name, "piper", number, 80 * GB, 25 * GB, batch))
                if run is not None:
                    others[number] = float(run["cpu_seconds"])
                    ratios.append(others[number] / own[-1])
            total += sum(own)
            print(f"| {layers} | {batch} | {' | '.join(f'{taken:.3f}' for taken in own)} |", flush=True)
            (line,) = chart.loglog(SOME, own, ".-", label=f"{layers} layers", linewidth=1)
            if others:
                chart.loglog(list(others), list(others.values()), "x", color=line.get_color())
        chart.set_xlabel(f"devices, {batch} microbatches")
        chart.grid(visible=True, which="major", linewidth=0.3)
    axes[0].set_ylabel("seconds of the search")
    save(drawn, axes, folder / "piper-seconds.svg")
    print(f"\n{len(LAYERS) * len(SIZES) * len(SOME)} solves in {total:.1f} s", end="")
    if ratios:
        print(f"; the authors' program took {min(ratios):.0f} to {max(ratios):.0f} times as long in {len(ratios)} runs")


FIGURES: Mapping[str, Callable[[Path, Runs], None]] = {
    "throughput": throughput, "devices": devices, "seconds": seconds,
}  # fmt: skip


def main() -> None:
    """One of the figures."""
    if not (WORKLOADS / "piper").is_dir():
        sys.exit(f"there is no folder {WORKLOADS / 'piper'}: PLACEDSL_WORKLOADS says where the workloads are")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figure", choices=list(FIGURES))
    parser.add_argument("directory", type=Path)
    parser.add_argument("runs", type=Path, nargs="?")
    given = parser.parse_args()
    FIGURES[given.figure](given.directory, runs(given.runs))


if __name__ == "__main__":
    main()
