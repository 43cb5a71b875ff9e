"""What a placement means, in fractions, by the formulas of ``docs/language``; nothing of placedsl is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

INFINITE = Fraction(10**30)


@dataclass(frozen=True)
class Node:
    """Times in ``Problem.unit`` by kind (None: not supported), bytes of memory, MiB of output, group, direction."""

    name: str
    times: dict[str, Fraction]
    memory: int
    output: int
    weights: int
    group: int | None
    backward: bool = False


@dataclass(frozen=True)
class Device:
    """Its name, kind and family, bytes of memory (None: no limit), and the cluster that it is in (None: none)."""

    name: str
    kind: str
    memory: int | None
    cluster: int | None = None


@dataclass(frozen=True)
class Rule:
    """A constraint as text, and whether it holds of the quantities of a placement."""

    text: str
    holds: Callable[[Quantities], bool]


@dataclass
class Problem:
    """A problem as data."""

    family: str
    unit: str
    nodes: list[Node]
    edges: list[tuple[int, int]]
    devices: list[Device]
    machine: list[str]
    #: MiB per second, within clusters and between them.
    inner: int
    outer: int
    schedule: str = "pipedream"
    slots: int = 1
    #: Where tensors go; directly, seconds and seconds per MiB from device to device.
    transfers: str = "through_host"
    ways: dict[tuple[int, int], tuple[Fraction, Fraction]] = field(default_factory=dict)
    degrees: tuple[int, ...] = (1,)
    rules: list[Rule] = field(default_factory=list)
    built_in: set[str] = field(default_factory=set)
    goals: list[str] = field(default_factory=lambda: ["time_per_sample"])

    @property
    def second(self) -> Fraction:
        """Seconds of the unit of times."""
        return {"ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 1000), "s": Fraction(1)}[
            self.unit
        ]

    def text(self) -> str:
        """The spec."""
        lines = ["graph {"]
        for node in self.nodes:
            times = ", ".join(f"{kind}: {number(value)} {self.unit}" for kind, value in node.times.items())
            group = f", color = {node.group}" if node.group is not None else ""
            group += f", parameters = {node.weights} MiB" if node.weights else ""
            group += ", backward = true" if node.backward else ""
            sizes = f"memory = {node.memory} B, output = {node.output} MiB"
            lines.append(f"    node {node.name} {{ time = {{{times}}}, {sizes}{group} }}")
        lines += [f"    {self.nodes[u].name} -> {self.nodes[v].name}" for u, v in self.edges] + ["}", *self.machine]
        slots = f" {{ pieces = {self.slots} }}" if self.schedule == "calls" and self.slots > 1 else ""
        if self.transfers == "through_host":
            lines.append(f"schedule {self.schedule}{slots}")
        elif self.transfers == "unsaid":
            lines.append(f"schedule {self.schedule}")
        else:
            order = "gpipe" if self.schedule == "gpipe" else "1f1b"
            how = {"overlapped": "overlapped", "duplex": "full_duplex"}.get(self.schedule, "sequential")
            lines.append(f"schedule {order} {{ communication = {how}, transfers = {self.transfers} }}")
        if self.degrees != (1,):
            lines.append(f"parallelism {{ data = 1..{max(self.degrees)} }}")
        lines += [f"minimize {' then '.join(self.goals)}", "subject to"]
        lines += [f"    {'colocated by color' if name == 'colocated' else name}" for name in sorted(self.built_in)]
        lines += [f"    rule{k}: {rule.text}" for k, rule in enumerate(self.rules)]
        if not self.built_in and not self.rules:
            lines.pop()
        return "\n".join(lines) + "\n"


def number(value: Fraction) -> str:
    """A decimal that is exactly the value."""
    scaled = value * 1000
    assert scaled.denominator == 1
    return f"{scaled.numerator // 1000}.{scaled.numerator % 1000:03d}".rstrip("0").rstrip(".")


class Quantities:
    """What a placement means, in fractions; docs/language/expressions.md, schedule.md, clusters.md, parallelism.md."""

    def __init__(self, problem: Problem, device: Sequence[int], copies: Sequence[int]) -> None:
        self.problem, self.device, self.copies = problem, device, copies
        self.readers: list[list[int]] = [[] for _ in problem.nodes]
        for u, v in problem.edges:
            self.readers[u].append(v)
        self.on = [[v for v, d in enumerate(device) if d == k] for k in range(len(problem.devices))]
        self.memory = [sum(problem.nodes[v].memory for v in own) for own in self.on]
        passes = (False, True) if problem.schedule == "gpipe" else (None,)
        self.passes = [[self.busy(k, which) for k in range(len(problem.devices))] for which in passes]
        self.loads = [sum(parts, Fraction(0)) for parts in zip(*self.passes, strict=True)]

    def seconds(self, node: int, k: int) -> Fraction:
        """A node's time on a device."""
        return time_on(self.problem, node, k) * self.problem.second

    def moved(self, node: int, k: int, far: bool) -> Fraction:
        """How long an accelerator takes to read or write a tensor; ``far``: from or to outside its cluster."""
        if self.problem.devices[k].kind == "host":
            return Fraction(0)
        slow = far or self.problem.devices[k].cluster is None
        return Fraction(self.problem.nodes[node].output, self.problem.outer if slow else self.problem.inner)

    def way(self, node: int, a: int, b: int) -> Fraction:
        """How long a tensor takes from one device to another; one of 0 bytes takes the latency."""
        latency, each = self.problem.ways[a, b]
        return latency + each * self.problem.nodes[node].output

    def far(self, one: int, other: int) -> bool:
        """Whether devices are in different clusters."""
        mine = self.problem.devices[one].cluster
        return mine is not None and mine != self.problem.devices[other].cluster

    def received(self, k: int, which: bool | None) -> Fraction:
        """Tensors that are read on a device and made elsewhere, each once."""
        total = Fraction(0)
        for u in range(len(self.problem.nodes)):
            there = [v for v in self.readers[u] if self.device[v] == k and self.counts(v, which)]
            if there and self.device[u] != k and self.problem.ways:
                total += self.way(u, self.device[u], k) if self.problem.devices[k].kind != "host" else 0
            elif there and self.device[u] != k:
                total += self.moved(u, k, self.far(k, self.device[u]))
        return total

    def sent(self, k: int, which: bool | None) -> Fraction:
        """Tensors that are made on a device and read elsewhere, each once, for the farthest reader; directly each once
        per reading device."""
        total = Fraction(0)
        for u in self.on[k]:
            outside = [v for v in self.readers[u] if self.device[v] != k]
            if self.problem.ways:
                if outside and self.counts(u, which) and self.problem.devices[k].kind != "host":
                    each = [self.way(u, k, d) for d in {self.device[v] for v in outside}]
                    total += max(each) if self.problem.transfers == "broadcast" else sum(each)
            elif outside and self.counts(u, which):
                total += self.moved(u, k, any(self.far(k, self.device[v]) for v in outside))
        return total

    def counts(self, v: int, which: bool | None) -> bool:
        """Whether a node is in a pass."""
        return which is None or self.problem.nodes[v].backward == which

    def busy(self, k: int, which: bool | None) -> Fraction:
        """How long a device is busy in a pass, for each sample."""
        problem = self.problem
        computing = sum((self.seconds(v, k) for v in self.on[k] if self.counts(v, which)), Fraction(0))
        inward, outward = self.received(k, which), self.sent(k, which)
        alone = {
            "overlapped": max(computing, inward + outward), "duplex": max(computing, inward, outward),
        }.get(problem.schedule, computing + inward + outward)  # fmt: skip
        r = max(1, self.copies[k])
        if r == 1:
            return alone
        weights = Fraction(0)
        if which in (None, True) and problem.devices[k].kind != "host":
            speed = problem.outer if problem.devices[k].cluster is None else problem.inner
            each = Fraction(1, speed)
            if problem.ways:
                each = max((problem.ways[k, d][1] for d in range(len(problem.devices)) if problem.ways.get((k, d)) and
                            problem.devices[d].kind == problem.devices[k].kind), default=Fraction(0))  # fmt: skip
            weights = sum((problem.nodes[v].weights * each for v in self.on[k]), Fraction(0)) * Fraction(r - 1, r)
        together = problem.schedule in ("overlapped", "duplex")
        return max(alone / r, weights) if together else alone / r + weights

    def value(self, goal: str) -> Fraction:
        """An objective; INFINITE where it has none."""
        if goal == "time_per_sample":
            return sum((max(loads) for loads in self.passes), Fraction(0))
        if goal == "devices_used":
            return Fraction(sum(self.copies))
        if goal == "peak_memory":
            held = [m for m, d in zip(self.memory, self.problem.devices, strict=True) if d.kind != "host"]
            return Fraction(max(held, default=0))
        if goal == "communication":
            return sum(
                (self.received(k, None) + self.sent(k, None) for k in range(len(self.problem.devices))), Fraction(0)
            )
        assert goal == "latency"
        return self.of_calls() if self.problem.schedule == "calls" else self.of_operators()

    def of_calls(self) -> Fraction:
        """docs/language/latency.md: an accelerator runs all its nodes in one call, a host each when it can."""
        problem = self.problem
        end: dict[int, Fraction] = {}
        waiting = set(range(len(problem.nodes)))
        before: list[list[int]] = [[] for _ in problem.nodes]
        for u, v in problem.edges:
            before[v].append(u)
        while waiting:
            ready = None
            for v in sorted(waiting):
                k = self.device[v]
                call = [v] if problem.devices[k].kind == "host" else self.on[k]
                needed = {u for w in call for u in before[w]} - set(call)
                if all(u in end for u in needed):
                    ready = k, call, needed
                    break
            if ready is None:
                return INFINITE
            k, call, needed = ready
            start = max((end[u] for u in needed), default=Fraction(0))
            length = sum((self.seconds(w, k) for w in call), Fraction(0))
            if problem.devices[k].kind != "host":
                length += self.received(k, None) + self.sent(k, None)
            for w in call:
                end[w] = start + length
                waiting.discard(w)
        return max(end.values())

    def of_operators(self) -> Fraction:
        """docs/language/latency.md: each operator when its inputs are there; if ``sequential``, in the best order."""
        if "sequential" in self.problem.built_in:
            return min(self.in_order(order) for order in topological(self.problem))
        return self.in_order(next(topological(self.problem)))

    def in_order(self, order: Sequence[int]) -> Fraction:
        """The end of the last operator, devices taking theirs in this order where they are sequential."""
        problem, free = self.problem, [Fraction(0)] * len(self.problem.devices)
        one_at_a_time = "sequential" in problem.built_in
        end = [Fraction(0)] * len(problem.nodes)
        for v in order:
            k = self.device[v]
            start = Fraction(0)
            for u, w in problem.edges:
                if w == v:
                    way = Fraction(0)
                    if self.device[u] != k:
                        way = Fraction(problem.nodes[u].output, problem.outer)
                    start = max(start, end[u] + way)
            length = self.seconds(v, k)
            if one_at_a_time and length > 0:
                start = max(start, free[k])
            end[v] = start + length
            if length > 0:
                free[k] = max(free[k], end[v])
        return max(end)

    def allowed(self) -> bool:
        """Whether the constraints hold."""
        problem = self.problem
        if "memory" in problem.built_in:
            for k, device in enumerate(problem.devices):
                if device.memory is not None and self.memory[k] > device.memory:
                    return False
        if "colocated" in problem.built_in:
            place: dict[int, int] = {}
            for node, d in zip(problem.nodes, self.device, strict=True):
                if node.group is not None and place.setdefault(node.group, d) != d:
                    return False
        if "contiguous" in problem.built_in and not self.pipeline():
            return False
        if "convex" in problem.built_in and not self.convex():
            return False
        return all(rule.holds(self) for rule in problem.rules)

    def pipeline(self) -> bool:
        """Devices, and clusters, have an order in which the forward part runs; the backward part in reverse."""
        inside = [[self.device[v] for v in range(len(self.problem.nodes))]]
        clusters = [device.cluster for device in self.problem.devices]
        if any(c is not None for c in clusters):
            names = {}
            # On each level, a device outside all clusters counts as a cluster.
            inside.append(
                [
                    names.setdefault(clusters[d] if clusters[d] is not None else ("alone", d), len(names))
                    for d in self.device
                ]
            )
        for place in inside:
            arcs = set()
            for u, v in self.problem.edges:
                a, b = place[u], place[v]
                back = self.problem.nodes[u].backward
                if a != b and back == self.problem.nodes[v].backward:
                    arcs.add((b, a) if back else (a, b))
            if cyclic(arcs):
                return False
        return True

    def convex(self) -> bool:
        """No path within the forward, or the backward, part leaves a device and comes back."""
        problem = self.problem
        for part in (False, True):
            own = [v for v, node in enumerate(problem.nodes) if node.backward == part]
            after = {v: {w for u, w in problem.edges if u == v and w in own} for v in own}
            reach = {v: closure(after, v) for v in own}
            for u in own:
                home = self.device[u]
                away = [m for m in reach[u] if self.device[m] != home]
                if any(self.device[w] == home and w in reach[m] for m in away for w in reach[u]):
                    return False
        return True


def cyclic(arcs: set[tuple[int, int]]) -> bool:
    """Whether arcs form a circle."""
    after: dict[int, set[int]] = {}
    for a, b in arcs:
        after.setdefault(a, set()).add(b)
    return any(a in closure(after, a) for a in after)


def closure(after: dict[int, set[int]], start: int) -> set[int]:
    """What can be reached from a node by at least one arc."""
    seen: set[int] = set()
    left = list(after.get(start, ()))
    while left:
        v = left.pop()
        if v not in seen:
            seen.add(v)
            left.extend(after.get(v, ()))
    return seen


def topological(problem: Problem) -> Iterator[list[int]]:
    """All topological orders."""
    before = [{u for u, w in problem.edges if w == v} for v in range(len(problem.nodes))]

    def further(done: list[int]) -> Iterator[list[int]]:
        if len(done) == len(before):
            yield list(done)
        for v in range(len(before)):
            if v not in done and before[v] <= {*done}:
                yield from further([*done, v])

    return further([])


def time_on(problem: Problem, node: int, k: int) -> Fraction | None:
    """A node's time on a device in the problem's unit, of its family, else of its kind; None: not supported."""
    times, kind = problem.nodes[node].times, problem.devices[k].kind
    return times.get(kind, None if kind == "host" else times.get("accelerator"))
