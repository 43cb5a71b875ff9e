"""Random small problems with operators that take no time: unread, read once or often, views, alone."""

from __future__ import annotations

import random


def text_with_free_operators(
    seed: int, *, training: bool = False, schedule: str = "pipedream", core: int = 0, free: int = 0, rules: str = "",
    shared: bool = False, clusters: bool = False,
) -> str:  # fmt: skip
    """A spec of a few operators and some without time, on accelerators whose memory is loose or tight."""
    rng = random.Random(seed)
    count, more = core or rng.randint(2, 4), free or rng.randint(1, 4)
    devices, host = rng.randint(1, 3), training or clusters or rng.random() < 0.5
    nodes: dict[str, str] = {}
    sizes: list[float] = []

    def node(name: str, time: str, output: int, memory: float, rest: str = "") -> None:
        sizes.append(memory)
        nodes[name] = f"    node {name} {{ time = {time}, output = {output} MiB, memory = {memory} MiB{rest} }}"

    for v in range(count):
        for part in ("c", "b")[: 1 + training]:
            own = rng.choice([1, 2, 3, 5, 8, round(rng.uniform(0.1, 9), 3)])
            weights = ", parameters = 1 MiB" if shared and rng.random() < 0.5 else ""
            node(f"{part}{v}", f"{{accelerator: {own} ms, host: {rng.choice([2, 5, 30])} ms}}",
                 rng.choice([0, 1, 4, 8]), rng.choice([100.0, 200.0, 300.0, 500.0] if part == "c" else [0.0, 100.0]),
                 weights + (", backward = true" if part == "b" else ""))  # fmt: skip
    edges: dict[str, None] = {}
    for u in range(count):
        for v in range(u + 1, count):
            if rng.random() < 0.5:
                edges[f"    c{u} -> c{v}"] = None
                if training:
                    edges[f"    b{v} -> b{u}"] = None
        if training and rng.random() < 0.6:
            edges[f"    c{u} -> b{u}"] = None
    for i in range(more):
        side = "b" if training and rng.random() < 0.5 else "c"
        times = ["{accelerator: 0 ms, host: 0 ms}"] * 8 + ["{accelerator: 0 ms}", "{host: 0 ms}"]
        time = rng.choice(times if host else times[:-1])
        node(f"x{i}", time, rng.choice([0, 0, 1, 4]), rng.choice([0.0, 0.0, 0.5, 50.0, 100.0, 300.0]),
             ", backward = true" if side == "b" else "")  # fmt: skip
        low, high = sorted(rng.sample(range(count), 2))
        first, second = (f"{side}{v}" for v in ((high, low) if side == "b" else (low, high)))
        kind = rng.choice(["after", "before", "view", "both", "alone", "many"])
        pairs = {
            "after": [(first, f"x{i}")], "before": [(f"x{i}", second)], "view": [(first, f"x{i}"), (f"x{i}", second)],
            "both": [(first, f"x{i}"), (second, f"x{i}")], "many": [(f"x{i}", first), (f"x{i}", second)], "alone": [],
        }[kind]  # fmt: skip
        if kind == "many" and training and side == "c":
            pairs.append((f"x{i}", f"b{low}"))
        if kind == "after" and rng.random() < 0.3:
            node(f"y{i}", "{accelerator: 0 ms, host: 0 ms}", 0, rng.choice([0.0, 100.0]),
                 ", backward = true" if side == "b" else "")  # fmt: skip
            pairs.append((f"x{i}", f"y{i}"))
        edges.update({f"    {u} -> {v}": None for u, v in pairs})
    total = sum(sizes)
    room = rng.choice([2 * total, total / devices * 1.05 + 1, total / devices * 1.3 + 1, total / devices * 1.6])
    machine = f"device gpu[{devices}]: accelerator {{ memory = {room:.1f} MiB }}"
    if clusters:
        machine = (
            f"cluster pod[2] {{\n    device gpu[{rng.randint(1, 2)}]: accelerator {{ memory = {room:.1f} MiB }}\n"
            "    interconnect { bandwidth = 16 GiB/s }\n}"
        )
    lines = [
        "graph {", *nodes.values(), *edges, "}", machine, *(["device cpu: host"] if host else []),
        f"interconnect {{ bandwidth = {rng.choice([1, 4])} GiB/s }}",
        *(["parallelism { data = 1..2 }"] if shared else []), f"schedule {schedule}", "minimize time_per_sample",
        "subject to", "    memory", "    contiguous", *([f"    {rules}"] if rules else []),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def text_with_dear_tensors(seed: int) -> str:
    """A spec of operators in a row or beside one another, with dear tensors, and operators without time at each.

    They occupy much of what there is: what a device has at home often does not fit.
    """
    rng = random.Random(seed)
    devices, core, free = rng.choice([(2, rng.randint(2, 6), 7), (3, rng.randint(2, 4), 5), (4, 3, 4)])
    unit = rng.choice([1.0, 1e-3, 1e3])
    hosts = rng.random() < 0.25
    lines, total = ["graph {"], 0
    for v in range(core):
        size, time = rng.choice([0, 50, 100, rng.randint(1, 400)]), rng.choice([1, 2, 3, rng.randint(1, 9)]) * unit
        other = f"{{accelerator: {time} ms, host: {rng.choice([1, 3]) * time} ms}}" if hosts else f"{time} ms"
        output = rng.choice([0, 0.25, 1, 2, rng.uniform(0, 3)]) * unit * 2**20
        lines.append(f"    node n{v} {{ time = {other}, memory = {size} KiB, output = {output:.0f} B }}")
        total += size
    edges = {(rng.randrange(v) if rng.random() < 0.3 else v - 1, v) for v in range(1, core) if rng.random() < 0.8}
    pairs = [f"    n{u} -> n{v}" for u, v in sorted(edges)]
    earlier: dict[str, list[int]] = {}
    for i in range(free):
        size = rng.choice([50, 100, rng.randint(1, 300)])
        output = rng.choice([0, 1, rng.uniform(0, 3)]) * unit * 2**20
        lines.append(f"    node x{i} {{ time = 0 ms, memory = {size} KiB, output = {output:.0f} B }}")
        total += size
        kind, at = rng.choice(["after", "after", "both", "before", "fan", "view"]), rng.randrange(core)
        if at + 1 == core:
            kind = "after"
        # Of two in a row either none is read or none reads.
        if kind != "view" and earlier.get(kind) and rng.random() < 0.15:
            pairs.append(f"    x{rng.choice(earlier[kind])} -> x{i}")
        earlier.setdefault(kind, []).append(i)
        if kind in ("after", "both"):
            pairs.append(f"    n{at} -> x{i}")
            if kind == "both" and at + 1 < core:
                pairs.append(f"    n{rng.randrange(at + 1, core)} -> x{i}")
        else:
            pairs.append(f"    x{i} -> n{rng.randrange(at + 1, core)}")
            pairs += [f"    n{at} -> x{i}"] if kind == "view" else []
            pairs += [f"    x{i} -> n{at}"] if kind == "fan" else []
    room = total / devices * rng.choice([1.02, 1.1, 1.3, 1.6]) * 1024 + 1
    machine = [f"device gpu[{devices}]: accelerator {{ memory = {room:.0f} B }}"]
    if hosts:
        machine = [f"device gpu[{devices - 1}]: accelerator {{ memory = {room:.0f} B }}",
                   f"device cpu: host {{ memory = {rng.choice([0.7, 1.5]) * room:.0f} B }}"]  # fmt: skip
    schedule = rng.choice(["pipedream"] * 4 + ["duplex", "overlapped"])
    lines += [*pairs, "}", *machine, "interconnect { bandwidth = 1 GiB/s }", f"schedule {schedule}"]
    return "\n".join([*lines, "minimize time_per_sample", "subject to", "    memory", "    contiguous"]) + "\n"
