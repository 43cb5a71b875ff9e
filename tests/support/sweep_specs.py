"""Specs for sweeps, and the command in a process of its own."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.paths import child_environment

NO_DASK = "Dask is not tested: the package distributed is not installed"
SMALL = """
graph {
    node a { time = {accelerator: 4 ms, host: 9 ms}, memory = 2 GiB, output = 8 MiB }
    node b { time = {accelerator: 6 ms, host: 40 ms}, memory = 3 GiB, output = 8 MiB }
    node c { time = {accelerator: 5 ms}, memory = 3 GiB }
    a -> b -> c
}
param room = 6 GiB
param gpus: int = 2
device gpu[gpus]: accelerator { memory = room }
device cpu: host
link gpu <-> cpu { bandwidth = 16 GB/s }
minimize time_per_sample
subject to
    memory
    contiguous
"""


def hard_spec() -> str:
    """Sixty unlike nodes over six devices, not contiguous: far more than any solver proves in a minute."""
    rng = random.Random(3)
    lines = ["graph {"]
    for v in range(60):
        time_on = f"{{accelerator: {rng.uniform(1, 9):.3f} ms, host: {rng.uniform(9, 60):.3f} ms}}"
        size = f"memory = {rng.randint(1, 9)} MiB, output = {rng.randint(1, 9)} MiB"
        lines.append(f"    node n{v} {{ time = {time_on}, {size} }}")
    lines += [f"    n{v} -> n{w}" for v in range(60) for w in rng.sample(range(v + 1, 60), min(59 - v, 2))]
    lines += [
        "}", "device gpu[5]: accelerator { memory = 70 MiB }", "device cpu: host",
        "link gpu <-> cpu { bandwidth = 2 GiB/s }", "minimize time_per_sample", "subject to", "    memory",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def started(*arguments: object, folder: Path, **further: Any) -> subprocess.Popen[str]:
    """``placedsl sweep`` in a process of its own."""
    environment = child_environment()
    command = [sys.executable, "-m", "placedsl", "sweep", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder, **further
    )


def run(*arguments: object, folder: Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a sweep that runs to its end."""
    process = started(*arguments, folder=folder)
    out, err = process.communicate(timeout=120)
    assert "Traceback" not in out + err
    return process.returncode, out, err


def answers(folder: Path) -> dict[str, int]:
    """The answers that a folder holds, with the time each was written."""
    names = [p for p in folder.glob("*.json") if p.name != "sweep.json" and ".failed." not in p.name]
    return {p.name: p.stat().st_mtime_ns for p in names}
