"""Compile time and memory against the size of the program, and against other modelling layers.

    python benchmarks/scaling.py program [--most N]     the same program in five layers, up to 10 million non-zeros
    python benchmarks/scaling.py joins                  nested quantifiers: what passes against the cross product

The program is max_load without contiguity (Tarnawski et al. 2020, Figure 6) over a random layered graph on seven
accelerators and a host.  Every layer goes from the data in memory to a matrix in memory (rows, columns, coefficients):
here grounding and lowering; in Pyomo the model and its standard form; in python-mip the model (which holds CBC's
matrix); in CVXPY the canonical data of the problem; in linopy the model and its matrix.  CVXPY and linopy are written
with sparse selections and labelled arrays, as their users would.  Each measurement has a process of its own; memory is
its peak above what was resident before; what a process uses has been touched by another one just before.  Seconds of
layers that take less than five are the median of five runs in turns.  A layer that took more than a minute is not asked
for the next size.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

LAYERS = ("placedsl", "linopy", "cvxpy", "mip", "pyomo")
ACCELERATORS, HOSTS = 7, 1
SIZES = (1_000, 9_000, 91_000)
PATIENCE = 60.0
#: Seconds below which a layer is measured so often.
SHORT, TURNS = 5.0, 5
LIMIT = 7_200


class Data:
    """A layered random graph with n nodes and about 2 n edges; one tensor a node that is read."""

    def __init__(self, nodes: int) -> None:
        rng = np.random.default_rng(nodes)
        self.nodes = nodes
        target = np.repeat(np.arange(1, nodes), 2)
        source = np.maximum(0, target - rng.integers(1, 20, len(target)))
        edges = np.unique(np.stack((source, target)), axis=1)
        self.source, self.target = edges
        self.producer, self.tensor = np.unique(self.source, return_inverse=True)
        kinds = [rng.integers(1, 9, nodes) * 1.0, rng.integers(10, 40, nodes) * 1.0]
        self.time = np.column_stack([kinds[0]] * ACCELERATORS + [kinds[1]] * HOSTS)
        self.memory = rng.integers(1, 5, nodes) * 1.0
        self.transfer = rng.integers(1, 4, len(self.producer)) * 1.0
        self.room = 2.0 * self.memory.sum() / ACCELERATORS

    def spec(self, folder: Path) -> Any:
        """The same as a checked spec."""
        import placedsl

        out = np.full(self.nodes, 1.0)
        out[self.producer] = self.transfer
        nodes = [
            {"id": v, "time": {"accelerator": a, "host": h}, "memory": m, "transfer": t}
            for v, (a, h, m, t) in enumerate(
                zip(
                    self.time[:, 0].tolist(), self.time[:, -1].tolist(), self.memory.tolist(), out.tolist(), strict=True
                )
            )
        ]
        edges = [{"from": u, "to": v} for u, v in zip(self.source.tolist(), self.target.tolist(), strict=True)]
        (folder / "graph.json").write_text(
            json.dumps({"format": "placedsl-graph", "version": 1, "time_unit": "ms", "nodes": nodes, "edges": edges})
        )
        text = (
            'graph from "graph.json"\n'
            f"device gpu[{ACCELERATORS}]: accelerator {{ memory = {self.room:.0f} B }}\ndevice cpu: host\n"
            "minimize time_per_sample\nsubject to\n    memory\n"
        )
        return placedsl.loads(text, folder)


def by_placedsl(data: Data) -> Any:
    """Read beforehand; what is timed is returned."""
    from placedsl.grounding.build import build
    from placedsl.lowering.lower import lower
    from placedsl.problem.formulation import choose

    with tempfile.TemporaryDirectory() as scratch:
        spec = data.spec(Path(scratch))
    formulation = choose(spec.problem, spec.elaborated.checked_formulations())

    def run() -> tuple[int, int, int]:
        program = lower(build(spec.problem, formulation, contracted=False).program).program
        return program.columns, program.rows, len(program.column)

    return run


def by_pyomo(data: Data) -> Any:
    """A ConcreteModel as one writes it, and its standard form."""
    import pyomo.environ as pyo
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    devices, accelerators = range(ACCELERATORS + HOSTS), range(ACCELERATORS)
    reads = list(zip(data.tensor.tolist(), data.target.tolist(), strict=True))
    producer, work, memory = data.producer.tolist(), data.time.tolist(), data.memory.tolist()
    transfer, nodes, tensors = data.transfer.tolist(), range(data.nodes), range(len(data.producer))

    def run() -> tuple[int, int, int]:
        m = pyo.ConcreteModel()
        m.x = pyo.Var(nodes, devices, domain=pyo.Binary)
        m.c = pyo.Var(tensors, accelerators, bounds=(0, 1))
        m.longest = pyo.Var(bounds=(0, None))
        m.assigned = pyo.Constraint(nodes, rule=lambda m, v: sum(m.x[v, d] for d in devices) == 1)
        m.received = pyo.Constraint(
            reads, accelerators, rule=lambda m, t, v, d: m.c[t, d] >= m.x[v, d] - m.x[producer[t], d]
        )
        m.sent = pyo.Constraint(
            reads, accelerators, rule=lambda m, t, v, d: m.c[t, d] >= m.x[producer[t], d] - m.x[v, d]
        )
        m.fits = pyo.Constraint(accelerators, rule=lambda m, d: sum(memory[v] * m.x[v, d] for v in nodes) <= data.room)

        def load(m: Any, d: int) -> Any:
            busy = sum(work[v][d] * m.x[v, d] for v in nodes)
            return m.longest >= busy + (sum(transfer[t] * m.c[t, d] for t in tensors) if d < ACCELERATORS else 0)

        m.loads = pyo.Constraint(devices, rule=load)
        m.goal = pyo.Objective(expr=m.longest)
        form = LinearStandardFormCompiler().write(m, mixed_form=True)
        return form.A.shape[1], form.A.shape[0], form.A.nnz

    return run


def by_mip(data: Data) -> Any:
    """A python-mip model as one writes it."""
    import mip

    devices, accelerators = range(ACCELERATORS + HOSTS), range(ACCELERATORS)
    reads = list(zip(data.tensor.tolist(), data.target.tolist(), strict=True))
    producer, work, memory = data.producer.tolist(), data.time.tolist(), data.memory.tolist()
    transfer, nodes, tensors = data.transfer.tolist(), range(data.nodes), range(len(data.producer))

    def run() -> tuple[int, int, int]:
        m = mip.Model(solver_name=mip.CBC)
        m.verbose = 0
        x = [[m.add_var(var_type=mip.BINARY) for _ in devices] for _ in nodes]
        c = [[m.add_var(ub=1.0) for _ in accelerators] for _ in tensors]
        longest = m.add_var()
        for v in nodes:
            m.add_constr(mip.xsum(x[v]) == 1)
        for t, v in reads:
            for d in accelerators:
                m.add_constr(c[t][d] - x[v][d] + x[producer[t]][d] >= 0)
                m.add_constr(c[t][d] - x[producer[t]][d] + x[v][d] >= 0)
        for d in accelerators:
            m.add_constr(mip.xsum(memory[v] * x[v][d] for v in nodes) <= data.room)
        for d in devices:
            busy = mip.xsum(work[v][d] * x[v][d] for v in nodes)
            moved = mip.xsum(transfer[t] * c[t][d] for t in tensors) if d < ACCELERATORS else 0
            m.add_constr(longest - busy - moved >= 0)
        m.objective = longest
        return m.num_cols, m.num_rows, m.num_nz

    return run


def by_cvxpy(data: Data) -> Any:
    """CVXPY with sparse selections, and its canonical data."""
    import cvxpy as cp
    import scipy.sparse as sp

    def run() -> tuple[int, int, int]:
        reads, tensors = len(data.tensor), len(data.producer)
        every, one = np.arange(reads), np.ones(reads)
        of_tensor = sp.csr_matrix((one, (every, data.tensor)), shape=(reads, tensors))
        of_reader = sp.csr_matrix((one, (every, data.target)), shape=(reads, data.nodes))
        of_maker = sp.csr_matrix((one, (every, data.producer[data.tensor])), shape=(reads, data.nodes))
        x = cp.Variable((data.nodes, ACCELERATORS + HOSTS), boolean=True)
        c = cp.Variable((tensors, ACCELERATORS), bounds=[0, 1])
        longest = cp.Variable(nonneg=True)
        on = x[:, :ACCELERATORS]
        busy = cp.sum(cp.multiply(data.time, x), axis=0)
        moved = data.transfer @ c
        rows = [
            cp.sum(x, axis=1) == 1,
            of_tensor @ c - of_reader @ on + of_maker @ on >= 0,
            of_tensor @ c - of_maker @ on + of_reader @ on >= 0,
            data.memory @ on <= data.room,
            longest >= busy[:ACCELERATORS] + moved,
            longest >= busy[ACCELERATORS:],
        ]
        found = cp.Problem(cp.Minimize(longest), rows).get_problem_data(cp.HIGHS)[0]
        matrix = found["A"]
        return matrix.shape[1], matrix.shape[0], matrix.nnz

    return run


def by_linopy(data: Data) -> Any:
    """linopy with labelled arrays, and its matrix."""
    import linopy
    import pandas as pd
    import xarray as xr

    def run() -> tuple[int, int, int]:
        m = linopy.Model()
        nodes, devices = pd.RangeIndex(data.nodes, name="v"), pd.RangeIndex(ACCELERATORS + HOSTS, name="d")
        tensors, accelerators = pd.RangeIndex(len(data.producer), name="t"), pd.RangeIndex(ACCELERATORS, name="d")
        x = m.add_variables(coords=[nodes, devices], binary=True, name="x")
        c = m.add_variables(0, 1, coords=[tensors, accelerators], name="c")
        longest = m.add_variables(lower=0, name="longest")
        m.add_constraints(x.sum("d") == 1, name="assigned")
        read = pd.RangeIndex(len(data.tensor), name="read")

        def pick(variable: Any, dim: str, where: np.ndarray) -> Any:
            return variable.isel({dim: xr.DataArray(where, coords=[read])})

        on = x.isel(d=slice(0, ACCELERATORS))
        crossing = pick(c, "t", data.tensor)
        reader, maker = pick(on, "v", data.target), pick(on, "v", data.producer[data.tensor])
        m.add_constraints(crossing - reader + maker >= 0, name="received")
        m.add_constraints(crossing - maker + reader >= 0, name="sent")
        memory = xr.DataArray(data.memory, coords=[nodes])
        m.add_constraints((on * memory).sum("v") <= data.room, name="fits")
        work = xr.DataArray(data.time, coords=[nodes, devices])
        busy = (x * work).sum("v")
        moved = (c * xr.DataArray(data.transfer, coords=[tensors])).sum("t")
        m.add_constraints(busy.isel(d=slice(0, ACCELERATORS)) + moved - longest <= 0, name="loads")
        m.add_constraints(busy.isel(d=slice(ACCELERATORS, None)) - longest <= 0, name="host")
        m.add_objective(1 * longest)
        matrix = m.matrices.A
        return matrix.shape[1], matrix.shape[0], matrix.nnz

    return run


def measure(layer: str, nodes: int) -> dict[str, Any]:
    """Run in a process of its own."""
    run = globals()[f"by_{layer}"](Data(nodes))
    globals()[f"by_{layer}"](Data(20))()  # what is imported or compiled at first use
    before = peak()
    start = time.perf_counter()
    columns, rows, entries = run()
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "MiB": peak() - before, "columns": columns, "rows": rows, "entries": entries}


def _have_memory(nodes: int) -> None:
    """Touch more memory than a layer needs, in a process of its own.

    On a virtual machine memory that has not been used for some seconds has to come from its host, which takes longer
    than to fill it; without this whoever is asked first pays for all.
    """
    code = f"import numpy; numpy.ones({nodes * 4_000})"
    subprocess.run([sys.executable, "-c", code], check=False)


def peak() -> float:
    """The largest resident memory so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def program(most: int) -> None:
    """The table of layers and sizes."""
    print("| non-zeros | layer | seconds | ratio | MiB | ratio | rows x columns |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    slow: set[str] = set()
    for nodes in (n for n in SIZES if n <= most):
        base: dict[str, Any] = {}
        runs: dict[str, list[dict[str, Any]]] = {}
        for turn in range(TURNS):
            for layer in LAYERS:
                first = turn == 0 and layer not in slow
                if (first or _is_short(runs.get(layer))) and (found := _one(layer, nodes)) is not None:
                    runs.setdefault(layer, []).append(found)
        for layer, several in runs.items():
            found = sorted(several, key=lambda run: run["seconds"])[len(several) // 2]
            base = base or found
            times, memory = found["seconds"] / base["seconds"], found["MiB"] / max(base["MiB"], 1e-9)
            print(
                f"| {found['entries']:,} | {layer} | {found['seconds']:.3g} | {times:.3g} | {found['MiB']:.0f} "
                f"| {memory:.2g} | {found['rows']:,} x {found['columns']:,} |",
                flush=True,
            )
            if found["seconds"] > PATIENCE:
                slow.add(layer)


def _is_short(runs: list[dict[str, Any]] | None) -> bool:
    return bool(runs) and runs[0]["seconds"] < SHORT


def _one(layer: str, nodes: int) -> dict[str, Any] | None:
    """One measurement in a process of its own; None, and a line that says why, where it fails."""
    _have_memory(nodes)
    command = [sys.executable, __file__, "one", layer, str(nodes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
    if done.returncode:
        print(f"| | {layer} | failed: {done.stderr.strip().splitlines()[-1][:80]} | | | | |", flush=True)
        return None
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def joins() -> None:
    """Nested quantifiers whose conditions let few combinations through."""
    from placedsl.grounding.build import build
    from placedsl.problem.formulation import choose

    passes = "(u on gpu[1]) => not (v on gpu[2])"
    cases = {
        "equality": f"forall u in nodes, v in nodes where u.layer == v.layer and u != v: {passes}",
        "one side": f"forall u in nodes, v in nodes where u.layer == 3 and v.layer == 4: {passes}",
        "inequality": f"forall u in nodes, v in nodes where u.memory + v.memory > 7.9 GiB: {passes}",
    }
    print("| condition | nodes | cross product | pass | seconds | per million that pass |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    import placedsl

    for name, rule in cases.items():
        for nodes in (1_000, 4_000, 16_000, 64_000):
            rng = np.random.default_rng(nodes)
            memory = rng.random(nodes) * 4
            if name == "inequality":
                if nodes > 16_000:
                    continue
                memory = np.where(rng.random(nodes) < 4 / nodes**0.5, 3.99, memory * 0.9)
            text = [
                f"    node n{v} {{ time = 1 ms, memory = {memory[v]:.6f} GiB, output = 1 MiB, layer = {v // 8} }}"
                for v in range(nodes)
            ]
            spec = placedsl.loads(
                "\n".join(["graph {", *text, "    n0 -> n1", "}", "device gpu[2]: accelerator",
                           "interconnect { bandwidth = 1 GiB/s }", "minimize time_per_sample", "subject to",
                           f"    apart: {rule}"])
            )  # fmt: skip
            formulation = choose(spec.problem, spec.elaborated.checked_formulations())
            bare = placedsl.loads(spec.elaborated.module.source.text.split("subject to")[0])
            best, passed = {}, 0
            for kind, problem in (("with", spec.problem), ("without", bare.problem)):
                times = []
                for _ in range(3):
                    start = time.perf_counter()
                    grounded = build(problem, formulation, contracted=False)
                    times.append(time.perf_counter() - start)
                best[kind] = min(times)
                rows = sum(b.rows for b in grounded.program.rows if b.origin.name == "apart")
                passed = max(passed, rows)
            spent = max(best["with"] - best["without"], 1e-6)
            each = spent / max(passed, 1) * 1e6
            print(f"| {name} | {nodes:,} | {nodes**2:,} | {passed:,} | {spent:.4f} | {each:.2f} |", flush=True)


def main() -> None:
    """See the text above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["program", "joins", "one"])
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--most", type=int, default=max(SIZES))
    given = parser.parse_args()
    if given.what == "one":
        print(json.dumps(measure(given.rest[0], int(given.rest[1]))))
    elif given.what == "joins":
        joins()
    else:
        program(given.most)


if __name__ == "__main__":
    main()
