"""Random tiny specs whose own constraints compare what placements reach exactly, with all operators: loads and memories
that are sums of some nodes', uses of devices as 0 and 1, and products with conditions."""

from __future__ import annotations

import random

_COMPARE = ("<=", ">=", "<", ">", "==", "!=")
_GOALS = (
    "time_per_sample", "time_per_sample", "time_per_sample", "devices_used then time_per_sample",
    "peak_memory then time_per_sample", "-devices_used then time_per_sample",
)  # fmt: skip


def exact_comparison(seed: int) -> str:
    """A spec with at most 81 placements; times are whole numbers of one unit."""
    rng = random.Random(3000 + seed)
    nodes, accelerators = rng.randint(1, 4), rng.randint(1, 2)
    hosts = 1 if accelerators == 1 else rng.randint(0, 1)
    unit = rng.choice([1, 1, 0.001, 1000, 0.37])
    times = [(rng.choice([1, 2, 3, 5, 11]) * unit, rng.choice([0, 1, 1, 4, 20]) * unit) for _ in range(nodes)]
    memory = [rng.choice([0, 1, 2, 3]) for _ in range(nodes)]
    lines = ["graph {"]
    for v, (fast, slow) in enumerate(times):
        # Half a millisecond beside seconds is within the margin of strict comparisons of real numbers.
        time, output = f"{{accelerator: {fast:g} ms, host: {slow:g} ms}}", rng.choice([0, 1, 3]) * (unit <= 1)
        lines.append(f"    node n{v} {{ time = {time}, memory = {memory[v]} GiB, output = {output} MiB }}")
    lines += [f"    n{u} -> n{v}" for u in range(nodes) for v in range(u + 1, nodes) if rng.random() < 0.5]
    lines += ["}", f"device gpu[{accelerators}]: accelerator", *(["device cpu[1]: host"] if hosts else [])]
    lines += ["interconnect { bandwidth = 2 GiB/s }", f"minimize {rng.choice(_GOALS)}", "subject to"]
    devices = [f"gpu[{i + 1}]" for i in range(accelerators)] + (["cpu[1]"] if hosts else [])
    for i in range(rng.randint(1, 2)):
        lines.append(f"    c{i}: {_formula(rng, devices, times, memory, rng.choice([0, 0, 1, 1, 2]))}")
    if rng.random() < 0.4:
        lines.append(f"    m: memory({rng.choice(devices)}) <= {rng.randint(0, 4)} GiB")
    if rng.random() < 0.3:
        lines.append("    contiguous")
    return "\n".join(lines) + "\n"


def _formula(
    rng: random.Random, devices: list[str], times: list[tuple[float, float]], memory: list[int], depth: int
) -> str:
    """A condition, nested at random."""
    if depth == 0:
        return _atom(rng, devices, times, memory)
    operator = rng.choice(["and", "or", "=>", "not", "<=>", "==", "!="])
    left, right = (_formula(rng, devices, times, memory, depth - 1) for _ in range(2))
    return f"(not {left})" if operator == "not" else f"({left} {operator} {right})"


def _atom(rng: random.Random, devices: list[str], times: list[tuple[float, float]], memory: list[int]) -> str:
    """A comparison; what is compared with is reached by some nodes."""
    d, e, v, w = rng.choice(devices), rng.choice(devices), rng.randrange(len(times)), rng.randrange(len(times))
    some = [u for u in range(len(times)) if rng.random() < 0.5]
    time = f"{sum(times[u]['cpu' in d] for u in some):g} ms"
    size = f"{sum(memory[u] for u in some)} GiB"
    compare, same = rng.choice(_COMPARE), rng.choice(_COMPARE[4:])
    both = rng.choice([f"n{v} on {d} and n{w} on {d}", f"n{v} on {d} or n{w} on {e}", f"not n{v} on {e}"])
    atoms = [
        f"used({d})",
        f"n{v} on {d}",
        f"used({d}) {compare} {rng.choice([0, 1, 1])}",
        f"used({d}) {same} used({e})",
        f"used({d}) {same} (n{v} on {e})",
        f"used({d}) + used({e}) {compare} {rng.randint(0, 2)}",
        f"2 * used({d}) - used({e}) {compare} 1",
        f"0.5 * used({d}) {compare} 0.5",
        f"count(d in devices: used(d) {compare} 1) {rng.choice(_COMPARE)} {rng.randint(0, 2)}",
        f"devices_used {compare} {rng.randint(0, 3)}",
        f"load({d}) {compare} {time}",
        f"load({d}) {compare} load({e})",
        f"abs(load({d}) - load({e})) {compare} {time}",
        f"time_per_sample {compare} {time}",
        f"memory({d}) {compare} {size}",
        f"memory({d}) {compare} memory({e})",
        f"traffic({d}, {e}) {compare} {rng.choice([0, 1, 3])} MiB" if d != e else f"used({e})",
        f"used({d}) * load({e}) {compare} {time}",
        f"({both}) * load({d}) {compare} {time}",
        f"(1 - used({d})) * memory({e}) {compare} {size}",
        f"sum(d in devices: (count(v in nodes: v on d) >= 2) * load(d)) {compare} {time}",
    ]
    return f"({rng.choice(atoms)})"
