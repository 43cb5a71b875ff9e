# Longer than 400 lines: one function a table.
"""The published tables of Tarnawski et al. 2021 (Piper): plans of data, tensor and pipeline parallelism.

    python benchmarks/plans.py table1            ResNet50, Appendix F, Table 1: exchange per round, as published
    python benchmarks/plans.py planners          BERT-32, as in Figure 1: what other planners' methods find
    python benchmarks/plans.py rules             BERT-32 under constraints of a user's own, on 64 and 512 devices
    python benchmarks/plans.py runs RUNS.csv     every run of a table of runs: values, feasibility; with --byte, each
                                                 optimum again with just the memory that it takes, and a byte less
    python benchmarks/plans.py authors RUNS.csv  the plans of the authors in such a table, in the form in which their
                                                 programs write them, read and evaluated
    python benchmarks/plans.py levels            BERT-32 over servers, and racks of servers, that share samples
    python benchmarks/plans.py turns             BERT-32 with stages that hold chunks of the model in turn
    python benchmarks/plans.py devices           many numbers of devices as one search, and each by itself
    python benchmarks/plans.py speed             seconds beside those of a trial, and sizes beyond the published ones

Inputs are in $PLACEDSL_WORKLOADS/piper, published values in the folder ``published`` beside it.  Every value is that of
the evaluator, every optimum proven.  Seconds are of one solve, reading the spec aside, with compiled kernels.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import multiprocessing
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import placedsl
from placedsl.algorithms.pipelines.parallel_plans import plans_of_problems
from placedsl.algorithms.pipelines.parallel_plans.kept_searches import searches_kept
from placedsl.diagnostics import Source
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.placement_files import read, read_values

sys.path.insert(0, str(Path(__file__).resolve().parent))
from piper_workloads import GIB, WORKLOADS, answer, on_levels, path, spec

DIVISORS, RECOMPUTED = "data = divisors(microbatches)", 'options = {"vanilla"}'
#: What baselines restrict, by their name in a table of runs.
VARIANTS = {
    "piper": "", "no-dp": "data", "no-tp": ", tensor = 1", "no-ar": f", {RECOMPUTED}", "equi": "",
    "equi-no-tp": ", tensor = 1", "equi-plain-no-tp": ", tensor = 1",
}  # fmt: skip
#: Workload, devices, GiB, samples of a batch, and the seconds of a trial (one core; nan: not tried).
SPEED = (
    ("bert32a100", 8, 8, 1920, 0.0016), ("bert32a100", 64, 8, 1920, 0.0036), ("bert32a100", 512, 8, 1920, 0.009),
    ("bert32a100", 2048, 8, 1920, 0.011), ("bert96", 1024, 80, 1920, float("nan")), ("bert96", 16384, 80, 1920, 0.46),
    ("resnet", 32, 2, 7680, 0.023), ("resnet", 128, 8, 7680, 0.029), ("bert256", 512, 80, 7680, 0.6),
    ("bert512", 512, 80, 7680, 3.6), ("bert1024", 512, 80, 7680, 17.6), ("bert256", 4096, 80, 7680, float("nan")),
    ("bert512", 4096, 80, 7680, float("nan")), ("bert1024", 4096, 80, 7680, float("nan")),
)  # fmt: skip


TAKES = 'takes({}, "activation recomp")'
#: Constraints and objectives over plans.
RULES: tuple[tuple[str, ...], ...] = (
    (), ("forall v in nodes: tensor(v) <= 2",), ("forall v in nodes: tensor(v) == 2",), ("stages_used <= 3",),
    ("stages_used == 6",), ("forall v in nodes, w in nodes: data(v) == data(w)",),
    ("forall v in nodes, w in nodes: tensor(v) == tensor(w)",),
    (f"forall v in nodes, w in nodes: {TAKES.format('v')} == {TAKES.format('w')}",),
    (f"count(v in nodes: {TAKES.format('v')}) <= 20",), ("forall d in devices: memory(d) <= 0.9 * d.memory",),
    ("forall v in nodes: in_flight(v) <= 3",), ("copies_used >= 60 or stages_used <= 4",),
    ("devices_used == count(devices) - 1",), ("devices_used == count(devices) - 3", "stages_used <= 3"),
    ('data(nodes["5"]) == data(nodes["34"])', "stages_used >= 5", 'not takes(nodes["20"], "activation recomp")'),
)  # fmt: skip


def value(found: placedsl.Answer) -> str:
    """The value; a dash where there is no plan."""
    return "-" if found.evaluation is None else f"{found.value:.6g}"


def table1(_: argparse.Namespace) -> int:
    """Published and best values, and the seconds of the search."""
    published = WORKLOADS.parent / "published" / "piper-resnet50.csv"
    lines = [line for line in published.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    print("| devices | GB | Piper, published | equi, published | equi | best plan | proven | published above | s |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |")
    for row in csv.DictReader(lines):
        devices, gib = int(row["devices"]), float(row["memory_gb"])
        asked = (WORKLOADS / "piper" / "resnet.json", devices, gib * GIB, devices, "round", f"data = 1..{devices}")
        even, best = answer(*asked, "equi"), answer(*asked)
        above = "-"
        if best.evaluation is not None and row["piper_tps"] != "OOM":
            above = f"{100 * max(0.0, float(row['piper_tps']) / best.value - 1):.2f}%"  # rounded to six digits
        print(
            f"| {row['devices']} | {row['memory_gb']} | {row['piper_tps']} | {row['equi_tps']} | {value(even)} "
            f"| {value(best)} | {'yes' if best.termination in ('optimal', 'infeasible') else 'no'} | {above} "
            f"| {best.seconds['solve']:.2f} |",
            flush=True,
        )
    return 0


def planners(_: argparse.Namespace) -> int:
    """Throughput of each method relative to the best plan, and its seconds."""
    file, methods = WORKLOADS / "piper" / "bert32a100.json", ("alpa", "galvatron", "equi", "pipedream-2bw", "megatron")
    print("| GB | devices | best plan (ms) | s | " + " | ".join(f"{method} | s" for method in methods) + " |")
    print("| ---: | ---: | ---: | ---: |" + " ---: | ---: |" * len(methods))
    for gib, devices in ((2, 64), (2, 512), (8, 8), (8, 64), (8, 512), (8, 2048), (80, 64), (80, 512), (80, 2048)):
        best, *others = (
            answer(file, devices, gib * GIB, 1920, "batch", DIVISORS, method) for method in (None, *methods)
        )
        shares = [
            f"{'-' if one.evaluation is None else format(best.value / one.value, '.3f')} | {one.seconds['solve']:.2f}"
            for one in others
        ]
        print(f"| {gib} | {devices} | {1000 * best.value:.6g} | {best.seconds['solve']:.2f} | {' | '.join(shares)} |")
    return 0


def rules(_: argparse.Namespace) -> int:
    """Values under rules, how much more they are than without, and the seconds of a second solve."""
    file = WORKLOADS / "piper" / "bert32a100.json"
    print("| rules | devices | time per sample (ms) | above the free optimum | termination | gap | s |")
    print("| --- | ---: | ---: | ---: | --- | ---: | ---: |")
    for devices in (64, 512):
        free = np.nan
        for asked in RULES:
            found = [
                answer(file, devices, 8 * GIB, 1920, "batch", DIVISORS, rules=asked, time_limit=20.0) for _ in range(2)
            ][-1]
            free = found.value if not asked else free
            print(
                f"| {'; '.join(f'`{rule}`' for rule in asked) or 'none'} | {devices} | {1000 * found.value:.6g} "
                f"| {100 * (found.value / free - 1):.1f}% | {found.termination} | {100 * found.gap:.2g}% "
                f"| {found.seconds['solve']:.2f} |",
                flush=True,
            )
    return 0


def runs(given: argparse.Namespace) -> int:
    """What is wrong of any run, a line each, and how many there were of each kind."""
    folder, known, count, wrong = Path(tempfile.mkdtemp()), dict[tuple[str, ...], placedsl.Answer](), Counter[str](), 0
    asked = ("input", "sync", "K", "memory_bytes", "bandwidth_bytes_per_s", "N", "variant")
    with given.file.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            key = tuple(row[name] for name in asked)
            _, sync, devices, memory, _, batch, variant = key
            even = variant.startswith("equi")
            if key not in known:
                copies = DIVISORS if sync == "batch" else f"data = 1..{min(int(devices), int(batch))}"
                more = "data = 1" if variant == "no-dp" else copies + VARIANTS[variant]

                def planned(
                    size: float, *, key: tuple[str, ...] = key, more: str = more, even: bool = even
                ) -> placedsl.Answer:
                    file, sync, devices, _, bandwidth, batch, _ = key
                    return answer(
                        path(file, folder), int(devices), size, int(batch), sync, more, "equi" if even else None,
                        float(bandwidth),
                    )  # fmt: skip

                known[key] = planned(float(memory))
                if given.byte and known[key].proven():
                    problems = to_the_byte(known[key], planned)
                    count["memory to the byte"] += 1
                    wrong += len(problems)
                    print(*(" ".join((*key, problem)) + "\n" for problem in problems), sep="", end="", flush=True)
            found = known[key]
            problems = compared(row, found, even)
            count["even splits" if even else "proven" if found.proven() else "infeasible"] += 1
            for problem in problems:
                wrong += 1
                print(*key, problem, flush=True)
    bytes_tried = count.pop("memory to the byte", 0)
    print(f"{sum(count.values())} runs, {len(known)} solves, {wrong} wrong:", dict(count))
    if bytes_tried:
        print(f"{bytes_tried} optima solved again with the memory that they take, and with a byte less")
    return int(wrong > 0)


def to_the_byte(best: placedsl.Answer, planned: Callable[[float], placedsl.Answer]) -> list[str]:
    """What is wrong of an optimum with just the memory that it takes, and with a byte less."""
    assert best.evaluation is not None
    taken = max(best.evaluation.memory)
    enough = float(np.ceil(taken))
    same, less = planned(enough), planned(enough - 1.0)
    out = []
    if not same.proven() or abs(same.value - best.value) > 1e-9 * best.value:
        out.append(f"{enough:.0f} bytes: {same.termination} {same.value}, not {best.value}")
    if less.evaluation is None:
        return out if less.termination == "infeasible" else [*out, f"{enough - 1:.0f} bytes: {less.termination}"]
    if less.value < best.value * (1 - 1e-9) or max(less.evaluation.memory) > enough - 1.0:
        out.append(f"{enough - 1:.0f} bytes: {less.value} with {max(less.evaluation.memory)}")
    return out


def compared(row: dict[str, str], found: placedsl.Answer, even: bool) -> list[str]:
    """What of a run differs from an answer."""
    feasible, exact = row["feasible"] == "1", row["exact_tps"]
    authors = row["program"].startswith("authors")
    if found.evaluation is None:
        ended = even or found.termination == "infeasible"
        return ([] if ended else [found.termination]) + (["feasible in the table"] if feasible else [])
    if not feasible:  # the first version of the authors' program calls feasible instances infeasible
        return [] if row["program"] == "authors 2021-11" and not even else ["infeasible in the table"]
    published = float(row["tps"])
    if even:
        return [] if abs(found.value - published) <= 1e-9 * published else [f"{found.value} {published}"]
    out = [] if found.proven() else ["not proven"]
    if found.value > published * (1 + 1e-9):
        out.append(f"above: {found.value} {published}")
    target = float(exact) if exact else published if not authors else found.value
    return out if abs(found.value - target) <= 1e-9 * target else [*out, f"{found.value}, proven {target}"]


def authors(given: argparse.Namespace) -> int:
    """What is wrong of any plan, a line each: violations, and values that differ by more than 1e-9.

    Of published files only: how the authors number the copies of layers in longer networks is not known.
    """
    folder, count, wrong = Path(tempfile.mkdtemp()), 0, 0
    with given.file.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            known = row["program"].startswith("authors") and row["input"] in ("bert32a100", "resnet")
            if not known or not row["structure"]:
                continue
            file, devices, memory = path(row["input"], folder), int(row["K"]), float(row["memory_bytes"])
            copies = DIVISORS if row["sync"] == "batch" else f"data = 1..{min(devices, int(row['N']))}"
            asked = (file, devices, memory, int(row["N"]), row["sync"], copies, float(row["bandwidth_bytes_per_s"]))
            problem = spec(*asked).problem
            plan = Source("plan.json", json.dumps({"stages": [stage(text) for text in row["structure"].split(" | ")]}))
            found = evaluate(problem, read(problem, plan), read_values(problem, plan))
            published = float(row["tps"])
            count += 1
            if found.violations or abs(found.objectives[0] - published) > 1e-9 * published:
                wrong += 1
                print(*asked, found.objectives[0], published, *(v.message for v in found.violations[:3]), flush=True)
    print(f"{count} plans, {wrong} wrong")
    return int(wrong > 0)


def stage(text: str) -> dict[str, object]:
    """A stage of a table of runs, as in ``d2 t1 n3 r1 [0-1+4] r=[4]``, as the authors' program writes it."""
    parts = re.fullmatch(r"d(\d+) t(\d+) n(\d+) r(\d+) \[([^]]*)\](?: r=\[([^]]*)\])?", text)
    assert parts is not None, text
    data, tensor, number, recomputed = (int(parts[k]) for k in range(1, 5))
    nodes = numbers(parts[5])
    taken = nodes if recomputed == number else numbers(parts[6] or "")
    assert (len(nodes), len(taken)) == (number, recomputed), text
    options = [[v, "activation recomp" if v in taken else "vanilla"] for v in nodes]
    return {"nodes": nodes, "dataParallelDegree": data, "tensorParallelDegree": tensor, "TMPCids": options}


def numbers(text: str) -> list[int]:
    """``0-2+5`` as numbers."""
    ends = [part.split("-") for part in re.split(r"[ ,+]", text) if part]
    return [v for first, *last in ends for v in range(int(first), int(last[0] if last else first) + 1)]


def speed(_: argparse.Namespace) -> int:
    """Seconds of the quickest of five solves (kernels loaded), each row in its own process.

    Those of the search are from arrays to a plan in arrays, as the trial's; a solve also looks at the constraints, and
    evaluates the plan.
    """
    folder = Path(tempfile.mkdtemp())
    print(
        "| workload | devices | operators | time per sample (ms) | proven | search (s) | solve (s) | trial (s) "
        "| search / trial | peak (MB) |"
    )
    print("| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    alone = multiprocessing.get_context("spawn")
    for name, devices, gib, batch, trial in SPEED:
        with alone.Pool(1) as pool:
            found = pool.apply(solved_alone, (name, folder, devices, gib, batch))
        ratio = f"{found.search / trial:.1f}" if trial > 0.0 else "-"
        print(
            f"| {name} | {devices} | {found.operators} | {1000 * found.value:.6g} | {'yes' if found.proven else 'no'} "
            f"| {found.search:.4f} | {found.solve:.4f} | {trial:g} | {ratio} | {found.peak:.0f} |",
            flush=True,
        )
    return 0


class Timed(NamedTuple):
    """The value of a plan, the seconds that it took, and the most memory of the process (MB)."""

    operators: int
    value: float
    proven: bool
    search: float
    solve: float
    peak: float


def solved_alone(name: str, folder: Path, devices: int, gib: int, batch: int) -> Timed:
    """The quickest of five solves, of two where one takes seconds."""
    search = plans_of_problems.best_plan
    spent: list[float] = []

    def timed(*asked: Any, **further: Any) -> Any:
        began = time.perf_counter()
        found = search(*asked, **further)
        spent.append(time.perf_counter() - began)
        return found

    plans_of_problems.best_plan = timed
    asked = spec(path(name, folder), devices, gib * GIB, batch, "batch", DIVISORS)
    out: list[Timed] = []
    while len(out) < 5 and not (len(out) > 1 and out[-1].solve > 2.0):
        spent.clear()
        found = asked.solve(workers=1)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        nodes = found.problem.graph.nodes
        out.append(Timed(nodes, found.value, found.proven(), sum(spent), found.seconds["solve"], peak))
    return min(out, key=lambda one: one.search)._replace(peak=out[-1].peak)


#: Devices of a server, servers of a rack or of the machine, racks; and GiB per second within and around each.
LEVELS: tuple[tuple[tuple[int, ...], tuple[float, ...]], ...] = (
    ((64,), (25,)), ((64, 1), (25, 25)), ((8, 8), (25, 25)), ((8, 8), (300, 25)), ((8, 64), (300, 25)),
    ((8, 512), (300, 25)), ((8, 8, 8), (300, 50, 12)), ((8, 64, 8), (300, 50, 12)),
)  # fmt: skip


def levels(_: argparse.Namespace) -> int:
    """Values and seconds; the first rows are one flat machine, without servers and with one."""
    file, failed = path("bert32a100", Path(tempfile.mkdtemp())), 0
    print("| devices | machine | GiB/s | time per sample (ms) | proven | stages | s |")
    print("| ---: | --- | --- | ---: | --- | ---: | ---: |")
    for size, bandwidths in LEVELS:
        found = on_levels(file, size, bandwidths, 8 * GIB, 1920)
        failed += not found.proven()
        print(
            f"| {int(np.prod(size))} | {' x '.join(map(str, size))} | {', '.join(map(str, bandwidths))} "
            f"| {1000 * found.value:.6g} | {'yes' if found.proven() else 'no'} | {len(found.plan.stages)} "
            f"| {found.seconds['solve']:.2f} |",
            flush=True,
        )
    print(f"peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return int(failed > 0)


def turns(_: argparse.Namespace) -> int:
    """Values, gaps and seconds with so many chunks a stage, within a minute each; one chunk is 1F1B as it is."""
    file = path("bert32a100", Path(tempfile.mkdtemp()))
    print("| devices | chunks | time per sample (ms) | gap | stages | copies | most in flight | s |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for devices, chunks in itertools.product((8, 64, 512), (1, 2, 3, 4)):
        more = f"{DIVISORS}, chunks = {chunks}"
        found = answer(file, devices, 8 * GIB, 1920, "batch", more, time_limit=60.0)
        held = {stage.devices[0]: 0 for stage in found.plan.stages}
        for stage in found.plan.stages:
            held[stage.devices[0]] += stage.in_flight or 0
        print(
            f"| {devices} | {chunks} | {1000 * found.value:.6g} | {found.gap:.0%} | {len(held)} "
            f"| {found.plan.stages[0].parallelism['data']} | {max(held.values())} | {found.seconds['solve']:.2f} |",
            flush=True,
        )
    return 0


#: Workload, numbers of devices, GiB, samples of a batch.
DEVICES = (
    ("bert32a100", [2**k for k in range(11, 2, -1)], 8, 1920), ("bert32a100", list(range(128, 0, -1)), 8, 1920),
    ("resnet", [128, 64, 32, 16, 8], 4, 7680), ("bert256", [512, 448, 384, 320, 256, 192, 128, 64], 80, 7680),
    ("bert512", [512, 256, 128], 80, 7680),
)  # fmt: skip


def devices(_: argparse.Namespace) -> int:
    """Seconds of all solves together, with searches kept from one to the next and without; the values are the same."""
    folder, failed = Path(tempfile.mkdtemp()), 0
    print("| workload | numbers of devices | one search (s) | each by itself (s) | ratio | the same values |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    for name, sizes, gib, batch in DEVICES:
        file = path(name, folder)
        specs = [spec(file, size, gib * GIB, batch, "batch", DIVISORS) for size in sizes]
        specs[0].solve(workers=1)  # kernels are loaded
        with searches_kept():
            together = [asked.solve(workers=1) for asked in specs]
        alone = [asked.solve(workers=1) for asked in specs]
        spent = [sum(found.seconds["solve"] for found in of) for of in (together, alone)]
        same = all(
            one.termination == other.termination and (one.placement is None or math.isclose(one.value, other.value))
            for one, other in zip(together, alone, strict=True)
        )
        failed += not same
        numbers = ", ".join(map(str, sizes)) if len(sizes) < 12 else f"{sizes[0]} … {sizes[-1]}"
        print(
            f"| {name} | {numbers} | {spent[0]:.2f} | {spent[1]:.2f} | {spent[1] / spent[0]:.1f} "
            f"| {'yes' if same else 'no'} |",
            flush=True,
        )
    return int(failed > 0)


def main(arguments: Sequence[str]) -> int:
    """One of the tables."""
    parser = argparse.ArgumentParser(description="Published plans of Piper.")
    tables = parser.add_subparsers(required=True)
    for name, table in (
        ("table1", table1),
        ("planners", planners),
        ("rules", rules),
        ("runs", runs),
        ("authors", authors),
        ("levels", levels),
        ("turns", turns),
        ("devices", devices),
        ("speed", speed),
    ):
        one = tables.add_parser(name)
        one.set_defaults(table=table)
        if table in (runs, authors):
            one.add_argument("file", type=Path)
        if table is runs:
            one.add_argument(
                "--byte", action="store_true", help="each optimum again with the bytes it takes, and one less"
            )
    given = parser.parse_args(arguments)
    return int(given.table(given))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
