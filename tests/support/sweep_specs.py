"""A spec that takes long, for sweeps, and the answers of a sweep."""

from __future__ import annotations

import random
from pathlib import Path

NO_DASK = "Dask is not tested: the package distributed is not installed"


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


def answers(folder: Path) -> dict[str, int]:
    """The answers that a folder holds, with the time each was written."""
    names = [p for p in folder.glob("*.json") if p.name != "sweep.json" and ".failed." not in p.name]
    return {p.name: p.stat().st_mtime_ns for p in names}
