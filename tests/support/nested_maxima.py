"""Tiny random specs that nest max, min, abs and if in constraints, soft constraints, prices and objectives."""

from __future__ import annotations

import random

#: Where a nested number stands.
PLACES = ("constraint", "under an implication", "as what is implied by", "soft", "negated", "of truths", "objective")


def nested_spec(seed: int, schedule: str = "pipedream") -> str:
    """At most 27 placements, three values of an integer and two of a binary; all times whole milliseconds.

    Under schedule ``calls`` the times of one sample nest as well.
    """
    rng = random.Random(seed)
    nodes, gpus = 3, rng.choice([1, 1, 2])
    lines = ["graph {"]
    for v in range(nodes):
        fast, slow = rng.randint(1, 4), rng.randint(2, 8)
        sizes = f"memory = {rng.randint(0, 3)} MiB, output = {rng.choice([0, 1, 2])} MiB"
        lines.append(f"    node n{v} {{ time = {{accelerator: {fast} ms, host: {slow} ms}}, {sizes} }}")
    lines += [f"    n{u} -> n{v}" for u, v in ((0, 1), (0, 2), (1, 2)) if rng.random() < 0.6]
    lines += ["}", f"device gpu[{gpus}]: accelerator {{ memory = 16 MiB }}", "device cpu[1]: host"]
    lines += ["interconnect { bandwidth = 1000 MiB/s }", "var y: integer in 0..2", "var z: binary"]
    devices = [f"gpu[{i + 1}]" for i in range(gpus)] + ["cpu[1]"]
    numbers = _Numbers(rng, devices, [f"n{v}" for v in range(nodes)], schedule)
    lines += [f"schedule {schedule}"]
    rules, objective = [], rng.choice([numbers.value, numbers.value, "sum(d in devices: load(d))"])
    for k in range(rng.randint(1, 2)):
        rules.append(_rule(rng, numbers, k, rng.choice(PLACES[:-1])))
    if rng.random() < 0.4:
        objective = rng.choice(
            [numbers.nested(2), f"{numbers.value} + {numbers.nested(1)}", f"({numbers.nested(1)}) - y * 1 ms"]
        )
    more = f" then {numbers.nested(1)}" if rng.random() < 0.2 else ""
    lines += [f"minimize {objective}{more}", "subject to", *(f"    {rule}" for rule in rules)]
    return "\n".join(lines) + "\n"


def _rule(rng: random.Random, numbers: _Numbers, k: int, place: str) -> str:
    depth = rng.randint(1, 3)
    compared = (
        f"{numbers.nested(depth)} {rng.choice(['<=', '>=', '<=', '>=', '<', '>', '==', '!='])} {numbers.limit(rng)}"
    )
    if rng.random() < 0.15:
        compared = f"{rng.randint(0, 2)} ms <= {numbers.nested(depth)} <= {rng.randint(2, 9)} ms"
    match place:
        case "under an implication":
            return f"r{k}: {numbers.truth()} => {compared}"
        case "as what is implied by":
            return f"r{k}: ({compared}) => {numbers.truth()}"
        case "soft" if "!=" in compared:
            return f"soft s{k} at {rng.randint(1, 3)} ms: {compared}"
        case "soft":
            return f"soft s{k} at {rng.choice(['0.5', '1', '3'])}: {compared}"
        case "negated":
            return rng.choice([f"r{k}: not ({compared})", f"soft s{k} at 2 ms: not ({compared})"])
        case "of truths":
            other = numbers.truth()
            return rng.choice([f"r{k}: ({compared}) <=> {other}", f"soft s{k} at 1 ms: ({compared}) or {other}",
                               f"r{k}: ({compared}) or {numbers.nested(1)} <= {numbers.limit(rng)}"])  # fmt: skip
    return f"r{k}: {compared}"


class _Numbers:
    """Times that depend on the placement and on the spec's own variables ``y`` and ``z``."""

    def __init__(self, rng: random.Random, devices: list[str], nodes: list[str], schedule: str) -> None:
        self.rng, self.devices, self.nodes = rng, devices, nodes
        self.one_sample = schedule == "calls"
        self.value = "latency" if self.one_sample else "time_per_sample"

    def truth(self) -> str:
        """A condition of one decision."""
        return self.rng.choice([f"({self.rng.choice(self.nodes)} on {self.rng.choice(self.devices)})", "(z == 1)"])

    def limit(self, rng: random.Random) -> str:
        """What a number is compared with."""
        return rng.choice([f"{rng.randint(0, 9)} ms"] * 3 + [self.plain(), self.nested(1)])

    def plain(self) -> str:
        """A number without a maximum of its own."""
        rng, d, e = self.rng, self.rng.choice(self.devices), self.rng.choice(self.devices)
        v = rng.choice(self.nodes)
        if self.one_sample and rng.random() < 0.5:
            return rng.choice([f"finish({v})", f"start({v})", f"({v} on {d}) * finish({v})", "latency"])
        return rng.choice([
            f"load({d})", f"load({e})", self.value, f"memory({d}) / (1 MiB) * 1 ms", "y * 2 ms",
            f"({v} on {d}) * load({e})", "z * load(cpu[1])", f"traffic({d}, {e}) / (1 MiB) * 1 ms",
            f"{rng.randint(0, 6)} ms", f"count(v in nodes: v on {d}) * 1 ms", f"-load({d})",
            f"(load({d}) - load({e}))", "sum(d in devices: load(d))",
        ])  # fmt: skip

    def nested(self, depth: int) -> str:
        """A number that nests maxima and the like to a depth."""
        rng = self.rng
        if depth == 0:
            return self.plain()
        one, other = self.nested(depth - 1), self.nested(rng.randint(0, depth - 1))
        index = rng.choice(["max", "min"])
        return rng.choice([
            f"max({one}, {other})", f"min({one}, {other})", f"max({one}, {other})", f"min({one}, {other})",
            f"abs({one})", f"abs({one} - {other})", f"({one} - {other})", f"({one} + {other})",
            f"max({one}, {other}, {self.plain()})", f"z * ({one})",
            f"(if {rng.choice(self.nodes)}.memory >= 2 MiB then {one} else {other})",
            f"{index}(d in devices: {rng.choice(['max', 'min'])}(load(d), {one}))",
            f"{index}(d in devices: memory(d) / (1 MiB) * 1 ms - {one})", f"mean(d in devices: max(load(d), {one}))",
            f"0.5 * ({one})", f"-({one})",
        ])  # fmt: skip
