"""The first solve of each example on an installation that has compiled nothing: seconds, and whether limits are kept.

    python benchmarks/first_run.py [--limit 2] [--examples quickstart,fleet] [--installed]

The package is installed into a fresh virtual environment (``--installed``: this one is used).  Each run gets a copy of
the examples, a home that cannot be made, and a folder of its own for what it compiles: it knows nothing of the runs
before.  The graphs of three examples are those of ``$PLACEDSL_WORKLOADS``.  An example is solved once without a limit,
for 60 s at most, and once with ``--time-limit``.  Processor seconds are those of the command and of all that it waited
for; what compiles kernels in the background is ended with it.

The exit code is 1 where a run ends with exit code 70, writes a traceback, or exceeds its limit by more than a second.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Where nothing else is asked for, a run may take so many seconds, and a limit may be exceeded by so many.
MOST_S, LATE_S = 60.0, 1.0
#: Files with the values of parameters that some examples leave open.
DATA = {"experts-by-traffic": "routing.toml", "fleet": "fleet-small.json", "measured-energy": "energy.json"}
#: Graphs that some examples expect beside them.
GRAPHS = "dnn-partitioning/throughput-inputs/OperatorGraphs/bert_l-3_*.json"
WORKLOADS = Path(os.environ.get("PLACEDSL_WORKLOADS", ROOT.parent / "shared" / "workloads"))
#: The exit code of a fault of placedsl.
FAULT = 70


@dataclass(frozen=True)
class Run:
    """One solve: wall and processor seconds, the exit code, the first line of the answer, and whether it is a fault."""

    wall: float
    cpu: float
    code: int
    ended: str
    faulty: bool


def installed(folder: Path) -> Path:
    """A virtual environment with the package as a newcomer has it; its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    told = os.environ | {"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", str(ROOT)], check=True, env=told)
    return python


def solved(python: Path, spec: Path, home: Path, *options: str) -> Run:
    """Solve a spec where nothing has ever run."""
    with tempfile.TemporaryDirectory() as scratch:
        told = {key: value for key, value in os.environ.items() if not key.startswith(("PLACEDSL", "NUMBA", "PYTHON"))}
        told |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "TMPDIR": scratch}
        told["NUMBA_CACHE_DIR"] = str(Path(scratch) / "kernels")  # beside the package, kernels would be kept
        command = [str(python), "-P", "-m", "placedsl", "solve", str(spec), "--quiet", *options]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        process = subprocess.Popen(
            command, env=told, cwd=scratch, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        out, errors = process.communicate()
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(["pkill", "-f", "placedsl.planner.compile_kernels"], check=False)
    cpu = sum(getattr(after, key) - getattr(before, key) for key in ("ru_utime", "ru_stime"))
    lines = (out or errors).splitlines()
    faulty = process.returncode in (FAULT, -signal.SIGKILL) or "Traceback" in errors
    return Run(wall, cpu, process.returncode, lines[0] if lines else "", faulty)


def main() -> int:
    """Every example, twice."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=2.0)
    parser.add_argument("--examples", default="")
    parser.add_argument("--installed", action="store_true")
    asked = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        python = Path(sys.executable) if asked.installed else installed(place / "venv")
        shutil.copytree(ROOT / "examples", place / "examples")
        for graph in WORKLOADS.glob(GRAPHS):
            shutil.copy(graph, place / "examples")
        (place / "file").touch()
        home = place / "file" / "home"  # nobody can make it, not even root
        names = (
            asked.examples.split(",") if asked.examples else sorted(p.stem for p in (ROOT / "examples").glob("*.place"))
        )
        print("| example | wall (s) | processor (s) | ended | with a limit (s) | ended |")
        print("| --- | ---: | ---: | --- | ---: | --- |")
        for name in names:
            spec = place / "examples" / f"{name}.place"
            data = ("--data", str(spec.parent / "data" / DATA[name])) if name in DATA else ()
            free = solved(python, spec, home, *data, "--time-limit", f"{MOST_S:g}s")
            short = solved(python, spec, home, *data, "--time-limit", f"{asked.limit:g}s")
            late = short.wall > asked.limit + LATE_S
            wrong += free.faulty or short.faulty or late
            took = f"{short.wall:.2f}{' **late**' if late else ''}"
            print(f"| {name} | {free.wall:.2f} | {free.cpu:.2f} | {free.ended} | {took} | {short.ended} |", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
