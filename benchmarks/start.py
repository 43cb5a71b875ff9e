"""The whole process of a warm ``placedsl solve`` and ``placedsl check``, and which packages their start goes into.

    python benchmarks/start.py

Seconds of wall clock and of the processor, the least of seven runs after one that is not counted; the spec is a layer
graph of 32 operators on six accelerators.  The second table adds up ``python -X importtime`` by package: milliseconds
in modules themselves, without what they import.  `$PLACEDSL_WORKLOADS` names the folder of the published inputs.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("PLACEDSL_WORKLOADS", ROOT.parent / "shared" / "workloads"))
GRAPH = FOLDER / "dnn-partitioning" / "throughput-inputs" / "LayerGraphs" / "bert24_inference.json"
SPEC = (
    f'graph from "{GRAPH}"\ndevice acc[6]: accelerator {{ memory = 16 GiB }}\ndevice cpu: host\n'
    "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n"
)
#: Packages that are told by themselves; the rest of a row is the standard library.
_PACKAGES = ("placedsl", "numba", "llvmlite", "numpy", "lark", "click", "rich")


def run(command: list[str], *flags: str) -> tuple[float, float, str]:
    """Seconds of wall clock and processor of one process, and what it wrote to standard error."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *flags, "-m", "placedsl", *command], capture_output=True, text=True, check=True,
        env=environment,
    )  # fmt: skip
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, busy, done.stderr


def by_package(stderr: str) -> Counter[str]:
    """Milliseconds of imports by package."""
    out: Counter[str] = Counter()
    for line in stderr.splitlines():
        parts = line.removeprefix("import time:").split("|")
        if line.startswith("import time:") and parts[0].strip().isdigit():
            package = parts[2].strip().partition(".")[0]
            out[package if package in _PACKAGES else "others"] += int(parts[0]) / 1000  # type: ignore[assignment]
    return out


def main() -> None:
    """Both tables."""
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "spec.place"
        spec.write_text(SPEC)
        commands = {"solve": ["solve", str(spec), "--quiet"], "check": ["check", str(spec)]}
        print("| command | s | processor s |\n| --- | ---: | ---: |")
        for name, command in commands.items():
            run(command)
            runs = [run(command)[:2] for _ in range(7)]
            print(f"| {name} | {min(s for s, _ in runs):.3f} | {min(busy for _, busy in runs):.3f} |", flush=True)
        print("\n| command |", " | ".join((*_PACKAGES, "others")), "|\n| ---", "| ---:" * (len(_PACKAGES) + 1), "|")
        for name, command in commands.items():
            spent = by_package(run(command, "-X", "importtime")[2])
            print(f"| {name} |", " | ".join(f"{spent[one]:.0f}" for one in (*_PACKAGES, "others")), "|")


if __name__ == "__main__":
    main()
