"""A tensor that is cut is cut by two devices at the least: what these rows do for a solver.

    python benchmarks/cut_twice.py                          HiGHS alone, one thread, 60 s a program
    python benchmarks/cut_twice.py --seconds 20 --solver cp-sat --seed 9

The program ``max_load`` as it is and with the part ``cut_twice`` (``extend max_load { use cut_twice }``), without any
start or search beside: generated graphs of four families (``computation_graphs.py``), 110 operators on two devices and
50 on four, and three published inputs where ``$PLACEDSL_WORKLOADS`` or ../shared/workloads has them.  Prints a row as
soon as it is known: the bound, the nodes (or branches) and the seconds of both.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import placedsl
from placedsl.budget import Budget
from placedsl.export.workload_spec import spec_of_workload
from placedsl.graph.readers import read
from placedsl.grounding.build import build
from placedsl.lowering.lower import lower
from placedsl.problem.formulation import choose
from placedsl.solvers.interface import Outcome
from placedsl.solvers.isolated import run_isolated
from placedsl.solvers.registry import get

sys.path.insert(0, str(Path(__file__).resolve().parent))
from computation_graphs import FAMILIES, graph
from mtpp import SPEC
from throughput import INPUTS

EXTENSION = "extend max_load {\n    use cut_twice\n}\nminimize"
PUBLISHED = (
    "LayerGraphs/bert24_inference.json", "LayerGraphs/resnet50_inference.json", "OperatorGraphs/bert_l-3_inference.json"
)  # fmt: skip


def texts(seed: int, folder: Path) -> Iterator[tuple[str, str]]:
    """Names and specs."""
    for operators, devices in ((110, 2), (50, 4)):
        for family in FAMILIES:
            file = folder / f"{family}-{operators}.json"
            file.write_text(json.dumps(graph(family, operators, seed)), encoding="utf-8")
            yield f"{family}, {operators} operators, {devices} devices", SPEC.format(file=file, devices=devices)
    for name in PUBLISHED if INPUTS.is_dir() else ():
        workload = INPUTS / name
        yield (
            name.removesuffix(".json"),
            spec_of_workload(read(workload, "dnn-partitioning"), workload, folder, contiguous=True),
        )


def solved(text: str, folder: Path, solver: str, seconds: float) -> Outcome:
    """One program in one solver."""
    spec, features = placedsl.loads(text, folder), get(solver).features
    grounded = build(spec.problem, choose(spec.problem, spec.elaborated.checked_formulations()))
    lowered = lower(grounded.program, native=features.native, integral=features.integers_only)
    return run_isolated(solver, lowered.program, Budget(seconds, 1e-6, 1, 0), lambda *_: False)


def told(outcome: Outcome) -> str:
    """Bound, nodes and seconds, as cells."""
    nodes = next((outcome.details[name] for name in ("nodes", "branches") if name in outcome.details), 0.0)
    return f"{outcome.bound:.6g} | {nodes:.0f} | {outcome.seconds:.1f}{'' if outcome.termination == 'optimal' else '*'}"


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solver", default="highs")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=9)
    asked = parser.parse_args()
    print("| graph | bound | nodes | s | with the rows: bound | nodes | s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, text in texts(asked.seed, folder):
            both = (text, text.replace("minimize", EXTENSION, 1))
            cells = (told(solved(one, folder, asked.solver, asked.seconds)) for one in both)
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print("\n*: the time was over")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
