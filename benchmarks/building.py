"""Building a program: this package against the same program written by hand in a Pyomo ConcreteModel.

    python benchmarks/building.py [WORKLOADS]

The workload is BERT-12 training (2,012 nodes, 7 devices), not contiguous; WORKLOADS is the folder of the published
inputs (default: $PLACEDSL_WORKLOADS, else ../shared/workloads).  Two programs are built, each both ways: over every
node as it stands in the file, and over the graph whose colocated nodes are one.  "build" is from the data in memory
to the model (here: grounding and lowering), "hand over" until HiGHS holds the matrix.  Each way has a process of its
own; its time is the least of several runs, its memory the peak above what was resident once everything was imported
and read.  Whether the two are the same program is checked on the matrices that HiGHS was given.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import placedsl
from placedsl.export.workload_spec import spec_of_workload
from placedsl.graph.readers import read
from placedsl.grounding.build import build
from placedsl.grounding.universe import quotient_of
from placedsl.lowering.lower import lower
from placedsl.problem.formulation import choose
from placedsl.problem.problem import Problem

FILE = "dnn-partitioning/throughput-inputs/OperatorGraphs/bert_L-12_training.json"
RUNS = 5


def folder(arguments: list[str]) -> Path:
    """Where the published inputs are."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "workloads"
    return Path(arguments[0] if arguments else os.environ.get("PLACEDSL_WORKLOADS", beside))


def problem_of(workload: Path) -> placedsl.Spec:
    """The workload as a checked spec."""
    with tempfile.TemporaryDirectory() as scratch:
        text = spec_of_workload(read(workload, "dnn-partitioning"), workload, Path(scratch), contiguous=False)
        return placedsl.loads(text, scratch)


def data_of(problem: Problem, contracted: bool) -> dict[str, Any]:
    """What a script would have read: lists and dictionaries of plain numbers."""
    quotient = quotient_of(problem, contracted)
    devices = range(len(problem.machine.devices))
    starts, pins = quotient.pin_start.tolist(), quotient.pin_unit.tolist()
    # The producer stands first.
    readers = [pins[begin + 1 : end] for begin, end in itertools.pairwise(starts)]
    groups = [] if contracted else [g.tolist() for c in problem.colocation_groups() for g in classes(c)]
    return {
        "nodes": range(quotient.units),
        "devices": devices,
        "accelerators": [d for d in devices if problem.accelerators[d]],
        "time": {(v, d): quotient.work[d][v] for v in range(quotient.units) for d in devices},
        "memory": quotient.memory.tolist(),
        "limit": problem.device_memory.tolist(),
        "producer": quotient.tensor_producer.tolist(),
        "readers": readers,
        "transfer": quotient.transfer.T.tolist(),
        "groups": groups,
    }


def classes(labels: np.ndarray) -> list[np.ndarray]:
    """Positions by label, those without one (-1) left out, single ones too."""
    found = [np.flatnonzero(labels == k) for k in np.unique(labels[labels >= 0])]
    return [members for members in found if len(members) > 1]


def by_hand(data: dict[str, Any]) -> Any:
    """Tarnawski et al. 2020, Figure 6 without contiguity, as one writes it in Pyomo."""
    import pyomo.environ as pyo

    nodes, devices, accelerators = data["nodes"], data["devices"], data["accelerators"]
    duration, memory, transfer = data["time"], data["memory"], data["transfer"]
    producer, readers = data["producer"], data["readers"]
    tensors = range(len(producer))
    reads = [(t, v) for t in tensors for v in readers[t]]
    placed = [(v, d) for v in nodes for d in devices if duration[v, d] < float("inf")]
    able = set(placed)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(placed, domain=pyo.Binary)
    model.crosses = pyo.Var(tensors, accelerators, bounds=(0, 1))
    model.longest = pyo.Var(bounds=(0, None))

    def x(v: int, d: int) -> Any:
        return model.x[v, d] if (v, d) in able else 0

    model.assigned = pyo.Constraint(nodes, rule=lambda m, v: sum(m.x[v, d] for d in devices if (v, d) in able) == 1)
    model.received = pyo.Constraint(
        reads, accelerators, rule=lambda m, t, v, d: m.crosses[t, d] - x(v, d) + x(producer[t], d) >= 0
    )
    model.sent = pyo.Constraint(
        reads, accelerators, rule=lambda m, t, v, d: m.crosses[t, d] + x(v, d) - x(producer[t], d) >= 0
    )
    model.fits = pyo.Constraint(
        [d for d in devices if data["limit"][d] < float("inf")],
        rule=lambda m, d: sum(memory[v] * m.x[v, d] for v in nodes if memory[v] and (v, d) in able) <= data["limit"][d],
    )
    pairs = [(group[0], v) for group in data["groups"] for v in group[1:]]
    model.together = pyo.Constraint(
        [(u, v, d) for u, v in pairs for d in devices if (u, d) in able or (v, d) in able],
        rule=lambda m, u, v, d: x(v, d) - x(u, d) == 0,
    )

    def load(m: Any, d: int) -> Any:
        work = sum(duration[v, d] * m.x[v, d] for v in nodes if (v, d) in able and duration[v, d])
        if d not in accelerators:
            return m.longest - work >= 0
        return m.longest - work - sum(transfer[t][d] * m.crosses[t, d] for t in tensors if transfer[t][d]) >= 0

    model.loads = pyo.Constraint(devices, rule=load)
    model.goal = pyo.Objective(expr=model.longest)
    return model


def shape(model: Any) -> dict[str, float]:
    """What tells two matrices apart: sizes, and sums over the entries."""
    lp = model.getLp()
    values = np.abs(np.asarray(lp.a_matrix_.value_))
    return {
        "columns": lp.num_col_, "rows": lp.num_row_, "entries": len(values),
        "sum": float(values.sum()), "squares": float((values**2).sum()),
    }  # fmt: skip


def measure(way: str, workload: Path) -> dict[str, Any]:
    """Run in a process of its own."""
    import highspy

    kind, size = way.split(":")
    spec = problem_of(workload)
    formulation = choose(spec.problem, spec.elaborated.checked_formulations())
    data: dict[str, Any] = {}
    if kind == "pyomo":
        from pyomo.contrib.solver.solvers.highs import Highs

        data = data_of(spec.problem, size == "contracted")
        by_hand({**data, "nodes": [], "producer": [], "readers": [], "groups": [], "devices": [], "accelerators": []})
    else:
        from placedsl.solvers.highs import pass_model
    before = resident()
    times, given = [], {}
    for _ in range(RUNS):
        start = time.perf_counter()
        if kind == "pyomo":
            model = by_hand(data)
            built = time.perf_counter()
            solver = Highs()
            solver.set_instance(model)
            done = time.perf_counter()
            given = shape(solver._solver_model)
        else:
            grounded = build(spec.problem, formulation, contracted=size == "contracted")
            program = lower(grounded.program).program
            built = time.perf_counter()
            matrix: Any = highspy.Highs()
            matrix.setOptionValue("output_flag", False)
            pass_model(matrix, program)
            done = time.perf_counter()
            given = shape(matrix)
        times.append((done - start, built - start, done - built))
        if len(times) == 1:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    total, built, handed = min(times)
    return {"build": built, "hand over": handed, "total": total, "peak": peak, "shape": given}


def resident() -> float:
    """MiB that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(arguments: list[str]) -> int:
    """Measure all four, compare, print a table."""
    if arguments and arguments[0] == "--measure":
        print(json.dumps(measure(arguments[1], Path(arguments[2]))))
        return 0
    workload = folder(arguments) / FILE
    if not workload.exists():
        print(f"there is no '{workload}': give the folder of the published workloads", file=sys.stderr)
        return 1
    print("| program | way | columns | rows | entries | build s | hand over s | total s | peak MiB |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    lines = []
    for size in ("every node", "contracted"):
        found = {}
        for kind in ("placedsl", "pyomo"):
            command = [sys.executable, __file__, "--measure", f"{kind}:{size}", str(workload)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found[kind] = json.loads(done.stdout)
            f, s = found[kind], found[kind]["shape"]
            print(
                f"| {size} | {kind} | {s['columns']} | {s['rows']} | {s['entries']} | {f['build']:.3f} "
                f"| {f['hand over']:.3f} | {f['total']:.3f} | {f['peak']:.0f} |",
                flush=True,
            )
        ours, theirs = found["placedsl"], found["pyomo"]
        for key, value in ours["shape"].items():
            if not np.isclose(value, theirs["shape"][key], rtol=1e-9):
                lines.append(f"{size}: not the same program, {key}: {value} and {theirs['shape'][key]}")
        lines.append(
            f"{size}: {theirs['total'] / ours['total']:.1f} times as fast in all, "
            f"{theirs['build'] / ours['build']:.1f} times in building; peak memory {ours['peak'] / theirs['peak']:.2f}"
        )
    print("\n" + "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
