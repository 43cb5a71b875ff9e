"""Random graphs and placements on them: in one line of devices, or anyhow."""

from __future__ import annotations

import random

import placedsl
from placedsl.problem.problem import Problem


def random_problem(
    seed: int,
    *,
    training: bool,
    schedule: str = "pipedream",
    nodes: int = 0,
    clusters: bool = False,
    shared: bool = False,
    rules: str = "",
) -> Problem:
    """Layers with forward and, for training, backward nodes; sizes and times from few values, so that ties occur."""
    rng = random.Random(seed)
    count = nodes or rng.randint(3, 14)
    lines = ["graph {"]
    weights = ", parameters = {} MiB" if shared else ""
    for part in ("f", "b")[: 1 + training]:
        for v in range(count):
            time = f"{{accelerator: {rng.choice([0, 1, 2, 3, 5, 8])} ms, host: {rng.choice([2, 5, 9])} ms}}"
            back = ", backward = true" if part == "b" else ""
            lines.append(f"    node {part}{v} {{ time = {time}, output = {rng.choice([0, 1, 4, 8])} MiB{back}"
                         f"{weights.format(rng.choice([0, 3])) if weights else ''} }}")  # fmt: skip
    for u in range(count):
        for v in range(u + 1, count):
            if rng.random() < 2.0 / count:
                own = f" {{ output = {rng.choice([1, 2, 6])} MiB }}" if rng.random() < 0.2 else ""
                lines.append(f"    f{u} -> f{v}{own}")
                lines += [f"    b{v} -> b{u}"] if training else []
        if training and u < count - 1 and rng.random() < 0.7:
            lines.append(f"    f{u} -> b{u}")
    lines += [f"    f{count - 1} -> b{count - 1}"] if training else []
    lines += ["}", *(_clusters(rng) if clusters else [f"device gpu[{rng.randint(1, 4 + 2 * shared)}]: accelerator"])]
    lines += [f"device cpu[{rng.randint(1, 2)}]: host"]
    lines += [f"interconnect {{ bandwidth = {rng.choice([1, 4])} GiB/s }}"]
    lines += ["parallelism { data = 1..3 }"] if shared else []
    lines += [f"schedule {schedule}", "minimize time_per_sample", *([f"subject to\n    {rules}"] if rules else [])]
    return placedsl.loads("\n".join(lines) + "\n").problem


def _clusters(rng: random.Random) -> list[str]:
    """Pods with an interconnect of their own or that of what is around them, in a rack or not, and a device beside."""
    own = [f"interconnect {{ bandwidth = {rng.choice([4, 16])} GiB/s, latency = 1 us }}"] if rng.random() < 0.8 else []
    pods = [f"cluster pod[{rng.randint(1, 3)}] {{", f"device gpu[{rng.randint(1, 2)}]: accelerator", *own, "}"]
    if rng.random() < 0.5:
        pods = [f"cluster rack[{rng.randint(1, 2)}] {{", *pods, "interconnect { bandwidth = 4 GiB/s }", "}"]
    return [*pods, *(["device edge: accelerator"] if rng.random() < 0.5 else [])]


def random_placement(problem: Problem, seed: int, *, line: bool) -> list[int]:
    """Devices of the nodes; ``line``: forward parts one after another along the devices, backward nodes with theirs."""
    rng = random.Random(seed)
    devices = list(range(len(problem.machine.devices)))
    rng.shuffle(devices)
    names = [str(name) for name in problem.graph.ids]
    count = sum(name.startswith("f") for name in names)
    cuts = sorted(rng.randint(0, count) for _ in devices[1:])
    stage = [sum(v >= cut for cut in cuts) if line else rng.randrange(len(devices)) for v in range(count)]
    return [devices[stage[int(name[1:])]] for name in names]


def random_copies(problem: Problem, placement: list[int], seed: int) -> dict[tuple[int, ...], float]:
    """How many devices share the stages of each that is used: 1 to 3 where as many of its class are free."""
    rng = random.Random(seed)
    kinds, used = problem.interchangeable().tolist(), sorted(set(placement))
    free = {kind: kinds.count(kind) - sum(kinds[d] == kind for d in used) for kind in kinds}
    out: dict[tuple[int, ...], float] = {}
    for device in rng.sample(used, len(used)):
        more = min(2, free[kinds[device]])
        number = rng.randint(0, more)
        free[kinds[device]] -= number
        out[device,] = 1.0 + number
    return out
