"""Random pipelines of devices that are all alike, small enough to enumerate: with leaves, hubs, and shared tensors."""

from __future__ import annotations

import random


def like_pipeline(seed: int, devices: int = 0) -> str:
    """A spec: with or without a backward part, groups that share a device, and memory."""
    rng = random.Random(f"like pipeline {seed}")
    devices = devices or rng.choice([2, 2, 3, 4])
    training = rng.random() < 0.3
    count = rng.randint(1, {2: 9, 3: 7, 4: 6}[devices] // (2 if training else 1))
    wide = rng.choice([1, 1, 10, 1000])
    lines = ["graph {"]
    for part in ("f", "b")[: 1 + training]:
        for v in range(count):
            time = rng.choice([0, 1, 2, 3, 5, 8, wide]) / rng.choice([1, 1, 3])
            group = f", group = {v}" if training or rng.random() < 0.3 else ""
            back = ", backward = true" if part == "b" else ""
            lines.append(
                f"    node {part}{v} {{ time = {{accelerator: {time:.9g} ms}}, memory = {rng.choice([0, 1, 2])} MiB, "
                f"output = {rng.choice([0, 1, 4, 8, 64])} MiB{group}{back} }}"
            )
    hub = rng.randrange(count)
    for u in range(count):
        for v in range(u + 1, count):
            if rng.random() < 1.5 / count or (hub in (u, v) and rng.random() < 0.4):
                lines.append(f"    f{u} -> f{v}")
                lines += [f"    b{v} -> b{u}"] if training else []
        if training and rng.random() < 0.7:
            lines.append(f"    f{u} -> b{u}")
    grouped = any(", group = " in line for line in lines)
    room = f" {{ memory = {rng.choice([2, 3, 5, 20])} MiB }}" if rng.random() < 0.4 else ""
    rules = [
        "    contiguous",
        *(["    memory"] if room else []),
        *(["    colocated by group"] * (grouped and rng.random() < 0.6)),
    ]
    lines += ["}", f"device gpu[{devices}]: accelerator{room}"]
    lines += [f"interconnect {{ bandwidth = {rng.choice([1, 4])} GiB/s }}", "minimize time_per_sample", "subject to"]
    return "\n".join(lines + rules) + "\n"
