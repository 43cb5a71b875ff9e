"""Random small specs as texts: training and inference, tight memory, unsupported nodes, odd machines, rules."""

from __future__ import annotations

import random
import re

_CUSTOM = (
    "count(v in nodes: v on {a}) <= {k}",
    "load({a}) <= {f} * load({b}) + {t} ms",
    "({v} on {a}) => ({w} on {b})",
    "({v} on {a}) => not ({w} on {a})",
    "({v} on {a}) or ({w} on {b}) or ({v} on {b})",
    "not ({v} on {a} and {w} on {b})",
    "memory({a}) <= {m} MiB",
    "traffic({a}, {b}) + traffic({b}, {a}) <= {m} MiB",
    "sum(d in accelerators: load(d)) <= {s} ms",
    "devices_used <= {k}",
    "forall v in nodes where memory > {m} MiB: v on {a} or v on {b}",
    "({v} on {a}) => load({a}) <= {s} ms",
    "({v} on {a}) == ({w} on {a})",
    "communication <= {s} ms",
    "max(d in devices: memory(d)) <= {m2} MiB",
    "min(load({a}), load({b})) <= {s} ms",
    "load({a}) >= {t} ms or load({b}) <= {s} ms",
    "count(d in devices: count(v in nodes: v on d) >= 2) <= 1",
)


def random_spec(seed: int) -> str:
    """A spec with at most about 20,000 placements."""
    rng = random.Random(seed)
    accelerators, hosts = rng.choice([(1, 1), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (1, 2)])
    second = rng.random() < 0.2 and accelerators > 1
    total = accelerators + hosts
    most = {2: 11, 3: 8, 4: 7}[min(4, total)]
    training = rng.random() < 0.45
    nodes = rng.randint(2, most // 2 if training else most)
    lines = ["graph {"]
    # Of a source of its own, so that the other draws do not depend on it.
    other = random.Random(f"schedule {seed}").choice(["overlapped", "duplex", None, None, None])
    orphans = [v for v in range(nodes) if training and rng.random() < 0.15]
    backward = [v for v in range(nodes) if training and rng.random() < 0.85]

    def node(name: str, back: bool, color: int | None) -> str:
        accelerator, host = rng.choice([1, 2, 3, 5, 8]) / rng.choice([1, 2, 3]), rng.choice([2, 5, 9, 20])
        times = [f"accelerator: {accelerator:.4g} ms"] if rng.random() > 0.08 or not hosts else []
        times += [f"host: {host} ms"] if rng.random() > 0.15 or not times else []
        if second and rng.random() < 0.5:
            times.append(f"tpu: {rng.choice([1, 2, 4])} ms")
        extra = ", backward = true" if back else ""
        extra += f", color = {color}" if color is not None else ""
        memory, output = rng.choice([0, 1, 2, 3, 5]), rng.choice([0, 1, 4, 8, 16])
        return (
            f"    node {name} {{ time = {{{', '.join(times)}}}, memory = {memory} MiB, output = {output} MiB{extra} }}"
        )

    grouped = rng.random() < 0.7
    for v in range(nodes):
        paired = training and v in backward and v not in orphans
        lines.append(
            node(f"n{v}", False, v if paired and grouped else rng.choice([None, 100 + v // 2]) if grouped else None)
        )
    for v in backward:
        lines.append(node(f"b{v}", True, v if grouped and v not in orphans else None))
    edges = [(u, v) for u in range(nodes) for v in range(u + 1, nodes) if rng.random() < 1.6 / nodes]
    for u, v in edges:
        own = f" {{ output = {rng.choice([1, 2, 8])} MiB }}" if rng.random() < 0.15 else ""
        lines.append(f"    n{u} -> n{v}{own}")
        if u in backward and v in backward:
            lines.append(f"    b{v} -> b{u}")
    if backward:
        lines.append(f"    n{backward[-1]} -> b{backward[-1]}")
    lines.append("}")
    limit = rng.choice([3, 5, 8, 12, 40])
    first = accelerators - 1 if second else accelerators
    lines.append(f"device gpu[{first}]: accelerator {{ memory = {limit} MiB }}")
    if second:
        lines.append(f"device tpu[1]: accelerator {{ memory = {rng.choice([4, 9])} MiB }}")
    lines.append(f"device cpu[{hosts}]: host" + (" { memory = 20 MiB }" if rng.random() < 0.2 else ""))
    lines.append(f"interconnect {{ bandwidth = {rng.choice([1, 2, 8])} GiB/s }}")
    if training and rng.random() < 0.2:
        lines.append("schedule gpipe")
    elif other is not None:
        lines.append(f"schedule {other}")
    lines += ["minimize time_per_sample", "subject to"]
    rules = ["memory"] if rng.random() < 0.8 else []
    rules += rng.choice([["contiguous"], ["contiguous"], ["convex"], []])
    if any("color" in line for line in lines):
        rules.append("colocated by color")
    devices = [f"gpu[{i + 1}]" for i in range(first)] + (["tpu[1]"] if second else [])
    devices += [f"cpu[{i + 1}]" for i in range(hosts)]
    names = [f"n{v}" for v in range(nodes)] + [f"b{v}" for v in backward]
    gpipe = "schedule gpipe" in lines
    if rng.random() < 0.5:
        for i in range(rng.randint(1, 2)):
            template = rng.choice([t for t in _CUSTOM if not (gpipe and "communication" in t)])
            a, b = rng.choice(devices), rng.choice(devices)
            v, w = rng.choice(names), rng.choice(names)
            values = {"a": a, "b": b, "v": v, "w": w, "k": rng.randint(1, 4), "f": rng.choice([1, 1.5, 3]),
                      "t": rng.choice([0, 1, 5]), "m": rng.choice([0, 2, 4, 9]), "s": rng.choice([2, 6, 15]),
                      "m2": rng.choice([6, 12])}  # fmt: skip
            rules.append(f"custom{i}: " + template.format(**values))
    lines += [f"    {r}" for r in rules]
    if not rules:
        lines.pop()
    return "\n".join(lines) + "\n"


def long_spec(lines: int) -> str:
    """A chain of nodes over so many lines."""
    out = ["graph {"]
    nodes = (lines - 12) // 2
    for v in range(nodes):
        out.append(
            f"    node n{v} {{ time = {{accelerator: {v % 7 + 1} ms, host: 9 ms}}, memory = 1 MiB, output = 1 MiB }}"
        )
    out += [f"    n{v} -> n{v + 1}" for v in range(nodes - 1)]
    out += ["}", "device gpu[3]: accelerator { memory = 16 GiB }", "device cpu: host"]
    out += [
        "link gpu <-> cpu { bandwidth = 16 GB/s }",
        "minimize time_per_sample",
        "subject to",
        "    memory",
        "    contiguous",
    ]
    out += ["    few: forall d in gpu: count(v in nodes: v on d) <= 4000"]
    out += [""] * (lines - len(out))
    return "\n".join(out) + "\n"


def random_formulas(seed: int) -> str:
    """A random spec whose custom constraints are nested at random."""
    rng = random.Random(1000 + seed)
    text = random_spec(seed).split("    custom0")[0].rstrip()
    if "subject to" not in text:
        text += "\nsubject to"
    names = re.findall(r"node (\w+) ", text)
    families = re.findall(r"device (\w+)\[(\d+)\]", text)
    devices = [f"{name}[{i + 1}]" for name, count in families for i in range(int(count))]
    formulas = [_formula(rng, names, devices, rng.randint(0, depth)) for depth in (3, 2)]
    return "\n".join([text, *(f"    formula{i}: {f}" for i, f in enumerate(formulas))]) + "\n"


def _formula(rng: random.Random, names: list[str], devices: list[str], depth: int, own: tuple[str, ...] = ()) -> str:
    """A condition, nested at random; ``own`` are further atoms."""
    if depth == 0:
        return _atom(rng, names, devices, own)
    operator = rng.choice(["and", "or", "=>", "not", "<=>", "==", "!="])
    if operator == "not":
        return f"(not {_formula(rng, names, devices, depth - 1, own)})"
    left, right = (_formula(rng, names, devices, depth - 1, own) for _ in range(2))
    return f"({left} {operator} {right})"


def _atom(rng: random.Random, names: list[str], devices: list[str], own: tuple[str, ...]) -> str:
    d, e, v = rng.choice(devices), rng.choice(devices), rng.choice(names)
    compare = rng.choice(["<=", ">=", "<", ">", "!="])
    atoms = [
        f"({v} on {d})",
        f"({v} on {d})",
        f"(count(v in nodes: v on {d}) {rng.choice(['<=', '>=', '==', '<', '>', '!='])} {rng.randint(0, 4)})",
        f"(forall v in nodes where v.memory >= 2 MiB: v on {d} or v on {e})",
        f"(count(d in devices: count(v in nodes: v on d) >= 1) <= {rng.randint(1, 3)})",
        *own,
    ]
    numbers = [
        f"load({d})", f"max(load({d}), load({e}))", f"min(load({d}), load({e}))", "time_per_sample",
        f"memory({d}) / (1 MiB) * 1 ms", f"sum(v in nodes where v.supported[{d}]: v.time[{d}] * (v on {d}))",
        f"(({v} on {d}) * load({e}))", f"abs(load({d}) - load({e}))", "mean(d in devices: load(d))",
    ]  # fmt: skip
    atoms += [f"({rng.choice(numbers)} {compare} {rng.choice([1, 3, 6, 12, 25])} ms)"] * 3
    return rng.choice(atoms)


def random_algebra(seed: int) -> str:
    """A tiny random spec over everything that the algebra has: sets, tables, definitions, variables, prices."""
    rng = random.Random(2000 + seed)
    nodes, gpus, hosts = rng.randint(2, 4), rng.randint(1, 2), rng.randint(0, 1)
    names = [f"n{v}" for v in range(nodes)]
    lines = ["graph {"]
    for name in names:
        memory, time = rng.choice([1, 2, 3]), rng.choice([1, 2, 3, 5])
        lines.append(
            f"    node {name} {{ time = {{accelerator: {time} ms, host: {2 * time} ms}}, memory = {memory} MiB, "
            f"output = {rng.choice([1, 4])} MiB, layer = {rng.randint(1, 2)} }}"
        )
    pairs = [(u, v) for u in range(nodes) for v in range(u + 1, nodes) if rng.random() < 0.5] or [(0, 1)]
    lines += [f"    n{u} -> n{v}" for u, v in pairs]
    lines += ["}", f"device gpu[{gpus}]: accelerator {{ memory = {rng.choice([4, 8])} MiB }}"]
    lines += ["device cpu[1]: host"] if hosts or gpus == 1 else []
    devices = [f"gpu[{i + 1}]" for i in range(gpus)] + (["cpu[1]"] if hosts or gpus == 1 else [])
    a, b, v, w = rng.choice(devices), rng.choice(devices), rng.choice(names), rng.choice(names)
    k = rng.randint(1, 3)
    lines += [
        "interconnect { bandwidth = 2 GiB/s }",
        f"param k: int = {k}",
        "param w[v in nodes]: number = v.memory / (1 MiB)",
        "param p[d in devices] = {" + ", ".join(f"{d}: {rng.randint(0, 3)}" for d in devices) + "}",
        f"set heavy = nodes where memory >= {rng.randint(1, 3)} MiB",
        f"set some = (heavy {rng.choice(['union', 'intersect', 'except'])} {{{v}, {w}}}) union {{n0}}",
        "set ahead = {(u, v) in edges: u.memory <= v.memory or u.layer == v.layer}",
        "set near = {v in nodes, d in devices: d.number <= k and w[v] >= 2}",
        "define held(s: nodes, d in devices) = count(v in s: v on d)",
        "define imbalance = max(d in devices: load(d)) - min(d in devices: load(d))",
        "constraint few(limit: int, s: nodes) = forall d in devices: held(s, d) <= limit",
        "var y: integer in 0..2",
        "var z[d in devices]: binary",
    ]
    own = (
        f"(y + held(some, {a}) {rng.choice(['<=', '==', '>'])} {rng.randint(1, 3)})",
        f"(z[{a}] == 1 <=> load({a}) {rng.choice(['<=', '>', '>='])} {rng.choice([2, 4, 7])} ms)",
        f"(forall (u, v) in ahead: (u on {a}) => (v on {a} or v on {b}))",
        "(forall (v, d) in near: (v on d) => z[d] == 1)",
        f"(sum(v in some: w[v] * (v on {a})) <= {rng.randint(1, 5)})",
        f"(sum(d in devices: p[d] * held(nodes, d)) >= {rng.randint(1, 4)})",
        f"few({rng.randint(1, 2)}, {rng.choice(['heavy', 'some', 'nodes'])})",
        f"(forall u in nodes, v in nodes where u.layer == v.layer and u != v: (u on {a}) => not (v on {b}))",
        f"(forall i in 1..{gpus}, j in i..{gpus}: load(gpu[i]) >= load(gpu[j]))",
        f"(sum(v in nodes: (if v.memory > 1 MiB then 2 else 1) * (v on {a})) <= {rng.randint(1, 5)})",
        f"(count((u, v) in edges where not ((u, v) in ahead): u on {a}) <= y)",
        f"(imbalance {rng.choice(['<=', '>='])} {rng.choice([1, 3, 6])} ms)",
        "(forall i in {1, 2}: y != i)",
        f"(forall g in partition(nodes, layer): count(v in g: v on {a}) <= k)",
        f"({v} in some => ({v} on {a}))",
        f"(exists v in heavy: v on {a})",
        f"(exists d in devices: used(d) and load(d) <= {rng.choice([2, 5])} ms)",
        f"({v} on accelerators)",
    )
    goals = ["time_per_sample", "imbalance + 0.1 * time_per_sample", "time_per_sample + 1 ms * sum(d in devices: z[d])",
             "sum(d in devices: p[d] * held(nodes, d)) + y", "mean(d in devices: load(d))"]  # fmt: skip
    goal = rng.choice(goals)
    lines.append(f"minimize {goal}" + rng.choice(["", " then devices_used", " then y", " then imbalance"]))
    lines.append("subject to")
    rules = ["memory"] if rng.random() < 0.6 else []
    rules += [f"r{i}: {_formula(rng, names, devices, rng.randint(0, 2), own)}" for i in range(rng.randint(1, 3))]
    if "p[d]" not in goal and rng.random() < 0.5:
        rules.append(f"soft cheap at {rng.choice([0.5, 2])}: forall d in devices: load(d) <= {rng.choice([1, 3])} ms")
        rules.append(f"soft wish at {rng.choice([1, 3])} ms: not {_formula(rng, names, devices, 1, own)}")
    return "\n".join(lines + [f"    {rule}" for rule in rules]) + "\n"
