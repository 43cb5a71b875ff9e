"""The programs of many specs: their sizes and optima, recorded, and compared with what was recorded.

    python benchmarks/programs.py record FILE
    python benchmarks/programs.py compare FILE

The specs are those of ``examples/`` and of the language's pages, random ones (``tests/support``), and small ones for
every schedule, with and without shared stages and clusters, under several objectives.  Recorded is the program that
HiGHS would be given, lowered: columns, how many of them are integer, rows, non-zeros; and where it is small the values
of the objectives.  Comparing fails where a program has more columns or rows, or another optimum, and tells of each
program that is smaller, or that has other non-zeros.
"""

from __future__ import annotations

import json
import math
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import placedsl
from placedsl.grounding.build import build
from placedsl.lowering.lower import lower
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from placedsl.problem.formulation import choose
from placedsl.solvers.registry import get

ROOT = Path(__file__).resolve().parents[1]
#: Programs with more columns are not solved.
MOST_SOLVED = 250
RANDOM, SEEDS = 60, 3
SAME = 1e-6
SCHEDULES = ("pipedream", "overlapped", "duplex", "gpipe", "calls", "dataflow")
GOALS = {
    "time_per_sample": "", "devices_used then time_per_sample": "", "peak_memory then time_per_sample": "",
    "communication then time_per_sample": "", "-communication": "    bounded: forall d in devices: load(d) <= 30 ms\n",
    "sum(d in devices: load(d)) + time_per_sample": "    busy: forall d in gpu: load(d) >= 1 ms\n",
    "time_per_sample then devices_used": "    few: traffic(gpu[1], gpu[2]) <= 4 MiB\n    many: devices_used >= 2\n",
}  # fmt: skip


def small(seed: int, schedule: str, sharing: bool, clusters: bool, goal: str) -> str:
    """A spec of at most nine nodes, forward and backward, on two or three GPUs and a CPU."""
    rng = random.Random(seed)
    nodes, training = rng.randint(3, 4), rng.random() < 0.7 or schedule == "gpipe"
    lines = ["graph {"]
    for name in [f"n{v}" for v in range(nodes)] + [f"b{v}" for v in range(nodes) if training]:
        times = f"accelerator: {rng.randint(1, 6)} ms" + (
            f", host: {rng.randint(5, 20)} ms" if rng.random() < 0.7 else ""
        )
        sizes = f"memory = {rng.randint(1, 3)} GiB, output = {rng.choice([1, 4, 8])} MiB"
        back = ", backward = true" if name[0] == "b" else ""
        lines.append(f"  node {name} {{ time = {{{times}}}, {sizes}, parameters = {rng.randint(1, 9)} MiB{back} }}")
    edges = [(u, v) for u in range(nodes) for v in range(u + 1, nodes) if v == u + 1 or rng.random() < 0.3]
    lines += [f"  n{u} -> n{v}" for u, v in edges] + [f"  b{v} -> b{u}" for u, v in edges if training]
    lines += [f"  n{nodes - 1} -> b{nodes - 1}"] * training + ["}"]
    gpus = rng.randint(2, 3)
    if clusters:
        lines.append("cluster server[2] {\n  device gpu[2]: accelerator { memory = 9 GiB }\n  device cpu: host\n"
                     "  interconnect { bandwidth = 4 GiB/s }\n}\ninterconnect { bandwidth = 1 GiB/s }")  # fmt: skip
    else:
        lines.append(f"device gpu[{gpus}]: accelerator {{ memory = {rng.choice([8, 20])} GiB }}\ndevice cpu: host")
        lines.append("interconnect { bandwidth = 2 GiB/s }")
    lines.append(f"schedule {schedule}")
    lines += ["parallelism { data = 1..2 }"] * sharing
    lines.append(f"minimize {goal}\nsubject to\n    memory\n" + GOALS[goal])
    text = "\n".join(lines)
    return text.replace("time_per_sample", "latency") if schedule in ("calls", "dataflow") else text


def texts() -> Iterator[tuple[str, str, Path]]:
    """Name, text and folder of each spec."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.free_specs import free_spec
    from support.random_specs import random_algebra, random_formulas, random_spec

    for path in sorted((ROOT / "examples").glob("*.place")):
        yield path.name, path.read_text(encoding="utf-8"), path.parent
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for number, text in enumerate(
            re.findall(r"^```place\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        ):
            yield f"{page.stem} {number}", text, page.parent
    for seed in range(RANDOM):
        for kind in (random_spec, random_formulas, random_algebra, free_spec):
            yield f"{kind.__name__} {seed}", kind(seed), ROOT
    for schedule in SCHEDULES:
        for sharing in (False, True):
            for clusters in (False, True):
                for goal in GOALS:
                    for seed in range(SEEDS):
                        name = f"{schedule}{' shared' * sharing}{' clusters' * clusters} {goal} {seed}"
                        yield name, small(seed, schedule, sharing, clusters, goal), ROOT


def measured(text: str, folder: Path, solved: bool) -> list[object] | None:
    """Columns, integers, rows, non-zeros, and the objectives' values; None for what is refused."""
    try:
        spec = placedsl.loads(text, folder)
        known = list(spec.elaborated.checked_formulations())
        program = lower(
            build(spec.problem, choose(spec.problem, known)).program,
            native=get("highs").features.native,
            integral=False,
        ).program
        values = None
        if solved and program.columns <= MOST_SOLVED:
            request = Request("highs", "program", workers=1, time_limit=20)
            answer = solve(spec.problem, lambda: known, request, isolated=False)
            ended = answer.termination == "optimal" and answer.evaluation is not None
            values = list(answer.evaluation.objectives) if ended and answer.evaluation else answer.termination
    except (placedsl.InputError, placedsl.UsageError):
        return None
    return [program.columns, int(program.integer.sum()), program.rows, len(program.coefficient), values]


def differs(name: str, old: list[object] | None, new: list[object] | None) -> tuple[bool, str]:
    """Whether it is worse, and what is to be told."""
    if old == new:
        return False, ""
    if old is None or new is None:
        return new is None, f"{name}: {old} -> {new}"
    worse = any(before < after for before, after in zip(old[:3:2], new[:3:2], strict=True))  # type: ignore[operator]
    a, b = old[4], new[4]
    if b is None:  # not solved this time
        away = False
    elif isinstance(a, list) and isinstance(b, list):
        away = any(not math.isclose(x, y, rel_tol=SAME, abs_tol=1e-12) for x, y in zip(a, b, strict=True))
    else:
        away = a != b
    told = worse or away or old[:4] != new[:4]
    return worse or away, f"{name}: {old} -> {new}" if told else ""


def main(command: str, file: str, *options: str) -> int:
    """Record, or compare; the exit code."""
    found = {name: measured(text, folder, "--sizes" not in options) for name, text, folder in texts()}
    if command == "record":
        Path(file).write_text(json.dumps(found, indent=0), encoding="utf-8")
        return 0
    known = json.loads(Path(file).read_text(encoding="utf-8"))
    told = {name: differs(name, known[name], found[name]) for name in known if name in found}
    print(*(("WORSE " if bad else "") + line for bad, line in told.values() if line), sep="\n")
    print(f"{len(told)} programs; {sum(bad for bad, _ in told.values())} worse")
    return int(any(bad for bad, _ in told.values()))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
