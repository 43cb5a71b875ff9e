"""Dynamic programming over ideals: seconds and memory beside the authors' program, and growth with the ideals.

    python benchmarks/ideals.py published     every published workload: solve, whole process, peak memory
    python benchmarks/ideals.py growth        generated graphs, up to hundreds of millions of ideals
    python benchmarks/ideals.py growth docs/pictures/growth.svg    the same, and a plot of it

Each measurement has a process of its own.  "solve" is the search from arrays to arrays, the best of five in one process
with compiled kernels; "process" is ``placedsl solve`` from start to end, the second of two runs, so that compiled
kernels and Python's own bytecode are read from the cache.  The authors' seconds and GB are those of their C++ program
(-O3, one core) on a machine like this one.  `$PLACEDSL_WORKLOADS` names the folder of the published inputs.
"""

from __future__ import annotations

import argparse
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

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("PLACEDSL_WORKLOADS", ROOT.parent / "shared" / "workloads"))
INPUTS = FOLDER / "dnn-partitioning" / "throughput-inputs"
#: Seconds of the authors' program where they are 2 or more, measured; GB where it was measured.
AUTHORS = {
    "LayerGraphs/inceptionv3_inference": (902.0, 18.3), "LayerGraphs/inceptionv3_training": (1503.0, 18.3),
    "OperatorGraphs/bert_L-12_training": (18.8, None), "OperatorGraphs/bert_l-12_inference": (8.8, None),
    "OperatorGraphs/bert_l-6_training": (11.6, None), "OperatorGraphs/bert_l-3_training": (3.0, None),
}  # fmt: skip
BRANCHES = ((3, 5, 8), (4, 5, 8), (5, 5, 8), (6, 5, 8), (7, 5, 8), (8, 5, 8), (9, 5, 8), (10, 5, 8))
DEVICES = 6


def spec_of(path: Path) -> str:
    """A published workload as a spec."""
    given = json.loads(path.read_text())
    return (
        f'graph from "{path}"\n'
        f"device acc[{given['maxFPGAs']}]: accelerator {{ memory = {given['maxSizePerFPGA']} B }}\n"
        f"device cpu[{given['maxCPUs']}]: host\n"
        "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n    colocated by colorClass\n"
    )


def one_published(name: str) -> dict[str, Any]:
    """In a process of its own: the search, five times."""
    import placedsl
    from placedsl.algorithms.pipelines.solve import pipeline_of
    from placedsl.algorithms.pipelines.state_dp import best_pipeline
    from placedsl.algorithms.stages.stage_costs import after_computation

    quotient, classes = pipeline_of(placedsl.loads(spec_of(INPUTS / f"{name}.json")).problem)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        found = best_pipeline(after_computation(quotient, classes))
        seconds.append(time.perf_counter() - start)
    assert found.complete
    return {
        "value": found.value,
        "met": found.met,
        "stored": found.stored,
        "pairs": found.pairs[0],
        "solve": min(seconds),
    }


def whole_process(name: str) -> dict[str, float]:
    """``placedsl solve`` from start to end, and the peak of its memory."""
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "workload.place"
        spec.write_text(spec_of(INPUTS / f"{name}.json"))
        command = [sys.executable, "-m", "placedsl", "solve", str(spec), "--quiet"]
        environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        for _ in range(2):
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=environment)
            seconds = time.perf_counter() - start
    return {"process": seconds, "mib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024}


def published() -> None:
    """The table of the published workloads."""
    print("| workload | value | ideals met | stored | pairs | solve s | authors' s | times | process s | MiB | GB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for path in sorted(INPUTS.glob("*/*.json")):
        name = f"{path.parent.name}/{path.stem}"
        solve, whole = _apart("one_published", name), _apart("whole_process", name)
        theirs, memory = AUTHORS.get(name, (None, None))
        faster = f"{theirs / solve['solve']:,.0f}" if theirs else ""
        print(
            f"| {name} | {solve['value']:.3f} | {solve['met']:,} | {solve['stored']:,} | {solve['pairs']:,} "
            f"| {solve['solve']:.4f} | {theirs or '< 2'} | {faster} | {whole['process']:.2f} | {whole['mib']:.0f} "
            f"| {memory or ''} |",
            flush=True,
        )


def blocks(branches: int, length: int, count: int) -> Any:
    """Blocks of parallel branches in a row, with random times and transfers, on like devices; and all its ideals."""
    from placedsl.algorithms.stages.stage_costs import DeviceClasses, after_computation
    from placedsl.graph.contraction import contract

    rng = np.random.default_rng(1)
    step = branches * length + 1
    units = count * step + 1
    pairs: list[tuple[int, int]] = []
    for fork in range(0, units - 1, step):
        for first in range(fork + 1, fork + step, length):
            pairs.append((fork, first))
            pairs += [(u, u + 1) for u in range(first, first + length - 1)]
            pairs.append((first + length - 1, fork + step))
    before, after = np.array(sorted(pairs)).T
    work = rng.uniform(1, 10, units)[None]
    producer = np.unique(before)
    quotient = contract(
        memory=np.zeros(units), work=work, groups=[], before=before, after=after, tensor_producer=producer,
        read_tensor=np.searchsorted(producer, before), read_node=after,
        transfer=rng.uniform(0.2, 2, len(producer))[None],
    )  # fmt: skip
    stages = after_computation(quotient, DeviceClasses((DEVICES,), (np.inf,), (np.arange(DEVICES),)))
    return stages, count * ((length + 1) ** branches) + 2


def one_of_growth(name: str) -> dict[str, Any]:
    """In a process of its own: the search, once with compiled kernels."""
    from placedsl.algorithms.pipelines.search_limits import SearchLimits
    from placedsl.algorithms.pipelines.state_dp import best_pipeline

    best_pipeline(blocks(3, 2, 3)[0])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    stages, ideals = blocks(*(int(n) for n in name.split("x")))
    start = time.perf_counter()
    found = best_pipeline(stages, SearchLimits(deadline=time.monotonic() + 120))
    return {
        "units": stages.units, "ideals": ideals, "met": found.met, "stored": found.stored, "pairs": found.pairs[0],
        "value": found.value, "bound": found.value if found.complete else found.bound, "complete": found.complete,
        "seconds": time.perf_counter() - start,
        "mib": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
    }  # fmt: skip


def growth(picture: str) -> None:
    """The table of generated graphs, and a plot where a file is named."""
    points = []
    print("| branches x length x blocks | units | ideals | met | stored | pairs | value | bound | proven | s | MiB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |")
    for shape in BRANCHES:
        name = "x".join(map(str, shape))
        one = _apart("one_of_growth", name)
        points.append((one["ideals"], one["seconds"]))
        print(
            f"| {name.replace('x', ' x ')} | {one['units']} | {one['ideals']:,} | {one['met']:,} | {one['stored']:,} "
            f"| {one['pairs']:,} | {one['value']:.3f} | {one['bound']:.3f} | {'yes' if one['complete'] else 'no'} "
            f"| {one['seconds']:.3f} | {one['mib']:.0f} |",
            flush=True,
        )
    if picture:
        plot(points, picture)


def plot(points: list[tuple[int, float]], picture: str) -> None:
    """Seconds against ideals, both logarithmic, beside what ten nanoseconds for each of all ideals would be."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    ideals, seconds = np.array(points).T
    with mpl.rc_context({"svg.hashsalt": "placedsl"}):
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axes = figure.subplots()
        axes.loglog(ideals, seconds, "o-", label="solved, with proof")
        axes.loglog(ideals, ideals * 1e-8, ":", color="grey", label="10 ns an ideal")
        axes.set_xlabel("ideals of the graph")
        axes.set_ylabel("seconds")
        axes.grid(visible=True, which="major", linewidth=0.3)
        axes.legend(frameon=False)
        figure.savefig(picture, metadata={"Date": None} if picture.endswith(".svg") else None)


def _apart(task: str, name: str) -> Any:
    """What a task prints in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, __file__, task, name], capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main() -> None:
    """Dispatch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["published", "growth", "one_published", "whole_process", "one_of_growth"])
    parser.add_argument("name", nargs="?", default="")
    given = parser.parse_args()
    if given.what == "published":
        published()
    elif given.what == "growth":
        growth(given.name)
    else:
        print(json.dumps(globals()[given.what](given.name)))


if __name__ == "__main__":
    main()
