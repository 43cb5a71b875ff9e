"""Checking a certificate, in rational numbers: an account of its own, which imports nothing that finds bounds.

Every number of a certificate is read as the fraction that it is.  A set of units on a device of a class takes the time
of its nodes there, and that of moving each tensor of which it has some of the units and not all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

#: How near the value of an answer is to that of its placement: sums of doubles in another order.
_SAME = Fraction(1, 10**9)


class RefusedError(Exception):
    """The certificate, or the answer, is not what it says."""


@dataclass(frozen=True)
class Checked:
    """What holds: the value of the answer's placement (None: it has none), the bound, and what proves it."""

    value: Fraction | None
    bound: Fraction
    kind: str


def number(value: object, what: str) -> Fraction:
    """A finite number; RefusedError where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RefusedError(f"{what} is no number")
    try:
        return Fraction(value)
    except (OverflowError, ValueError):
        raise RefusedError(f"{what} is not finite") from None


class Instance:
    """The problem of a certificate: c classes, units, and tensors by the units that touch them."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        nodes, devices = document["nodes"], document["devices"]
        self.class_of = {device["name"]: int(device["class"]) for device in devices}
        self.counts = [sum(kind == k for kind in self.class_of.values()) for k in range(len(document["memory"]))]
        if len(self.class_of) != len(devices) or not all(self.counts):
            raise RefusedError("devices of one name, or a class without devices")
        self.unit = [int(node["unit"]) for node in nodes]
        self.node = {node["id"]: v for v, node in enumerate(nodes)}
        if len(self.node) != len(nodes):
            raise RefusedError("nodes of one id")
        classes, units = len(self.counts), max(self.unit, default=-1) + 1
        self.limit = [None if m is None else number(m, "a memory") for m in document["memory"]]
        self.time: list[list[Fraction | None]] = [
            [None if t is None else number(t, "a time") for t in node["time"]] for node in nodes
        ]
        self.memory = [number(node["memory"], "a memory") for node in nodes]
        if any(len(times) != classes or any(t is not None and t < 0 for t in times) for times in self.time):
            raise RefusedError("times that do not fit the classes of devices")
        self.work: list[list[Fraction | None]] = [[Fraction(0)] * units for _ in range(classes)]
        held = [Fraction(0)] * units
        for v, u in enumerate(self.unit):
            held[u] += self.memory[v]
            for c in range(classes):
                own, before = self.time[v][c], self.work[c][u]
                self.work[c][u] = None if own is None or before is None else before + own
        for c, limit in enumerate(self.limit):
            for u in range(units):
                if limit is not None and held[u] > limit * (1 + _SAME):
                    self.work[c][u] = None
        self.tensors: list[tuple[list[int], list[Fraction]]] = []
        self.moving: list[dict[frozenset[int], Fraction]] = [{} for _ in range(classes)]
        for tensor in document["tensors"]:
            touching = [int(tensor["maker"]), *map(int, tensor["readers"])]
            costs = [number(cost, "a cost") for cost in tensor["moving"]]
            if len(costs) != classes or min(costs, default=Fraction(0)) < 0:
                raise RefusedError("costs of moving that do not fit the classes of devices")
            self.tensors.append((touching, costs))
            units_of = frozenset(self.unit[v] for v in touching)
            for c, cost in enumerate(costs):
                if len(units_of) > 1 and cost:
                    self.moving[c][units_of] = self.moving[c].get(units_of, Fraction(0)) + cost

    def largest_load(self, placement: Mapping[str, str]) -> Fraction:
        """Of the devices, for a device of each node; RefusedError where a node is on none that runs it."""
        if set(placement) != set(self.node):
            raise RefusedError("the answer does not place the nodes of the certificate")
        device = {self.node[node]: name for node, name in placement.items()}
        loads = dict.fromkeys(self.class_of, Fraction(0))
        for v, name in device.items():
            own = self.time[v][self.class_of[name]] if name in self.class_of else None
            if own is None:
                raise RefusedError("a node is on a device that does not run it")
            loads[name] += own
        for touching, costs in self.tensors:
            names = {device[v] for v in touching}
            for name in names if len(names) > 1 else ():
                loads[name] += costs[self.class_of[name]]
        return max(loads.values())


def simple(instance: Instance, _proof: Mapping[str, Any]) -> Fraction:
    """The longest unit on its quickest class, or the even share of all of them."""
    least = []
    for u in range(len(instance.work[0]) if instance.work else 0):
        known = [own for own in (of[u] for of in instance.work) if own is not None]
        if not known:
            raise RefusedError("a unit runs nowhere")
        least.append(min(known))
    return max(max(least, default=Fraction(0)), sum(least, Fraction(0)) / sum(instance.counts))


def flow(instance: Instance, proof: Mapping[str, Any]) -> Fraction:
    """The least flow out of one unit, over the classes that run it: no set with that unit loads less."""
    unit, given = int(proof["unit"]), {int(one["class"]): one for one in proof["flows"]}
    if not all(0 <= unit < len(work) for work in instance.work) or not set(given) <= set(range(len(instance.work))):
        raise RefusedError("there is no such unit, or no such class of devices")
    found = {c: _flow_value(instance, c, unit, one) for c, one in given.items()}
    runs = [c for c, work in enumerate(instance.work) if work[unit] is not None]
    if set(runs) != set(found):
        raise RefusedError("flows are not those of the classes of devices that run the unit")
    values = [found[c] for c in runs]
    if not values:
        raise RefusedError("no device runs the unit")
    return min(values)


def _flow_value(instance: Instance, c: int, source: int, given: Mapping[str, Any]) -> Fraction:
    """What leaves the source, once every arc has room for its flow, and as much leaves every other unit as enters."""
    scale = number(given["scale"], "a scale")
    if scale <= 0:
        raise RefusedError("a scale that is not positive")
    balance: dict[int, int] = {}

    def amounts(entries: Sequence[Sequence[int]], sign: int) -> int:
        total = 0
        for unit, amount in entries:
            if type(unit) is not int or type(amount) is not int or amount < 0:
                raise RefusedError("a flow that is no whole number")
            balance[unit] = balance.get(unit, 0) + sign * amount
            total += amount
        return total

    work, seen = instance.work[c], set[int]()
    for unit, amount in given["sink"]:
        if unit in seen or not 0 <= unit < len(work):
            raise RefusedError("an arc to the sink twice, or from no unit")
        seen.add(unit)
        room = work[unit]
        if room is not None and Fraction(amount) > room * scale:
            raise RefusedError("more flows to the sink than the unit works")
    amounts(given["sink"], 1)
    through = set[frozenset[int]]()
    for tensor in given["tensors"]:
        units = frozenset(tensor["units"])
        if units in through or not all(unit in units for side in ("out", "into") for unit, _ in tensor[side]):
            raise RefusedError("a tensor twice, or units that do not touch it")
        through.add(units)
        out, into = amounts(tensor["out"], 1), amounts(tensor["into"], -1)
        if out != into or Fraction(out) > instance.moving[c].get(units, Fraction(0)) * scale:
            raise RefusedError("more flows through a tensor than moving it costs, or than leaves it")
    value = balance.pop(source, 0)
    if any(balance.values()):
        raise RefusedError("a unit that more enters than leaves, or less")
    return Fraction(value) / scale


#: How each kind is checked: the bound that it proves.
KINDS: dict[str, Callable[[Instance, Mapping[str, Any]], Fraction]] = {"simple": simple, "flow": flow}


def check(answer: Mapping[str, Any], certificate: Mapping[str, Any]) -> Checked:
    """Check an answer and its certificate, both as JSON data; RefusedError with the reason where something is wrong."""
    try:
        return _checked(answer, certificate)
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as problem:
        raise RefusedError(f"it lacks something, or has something of another kind: {problem}") from None


def _checked(answer: Mapping[str, Any], certificate: Mapping[str, Any]) -> Checked:
    if certificate["certificate"] != 1:
        raise RefusedError("a certificate of another version")
    goal, proof = answer["objective"], certificate["proof"]
    if goal["name"] != "time_per_sample":
        raise RefusedError("the first objective is not time_per_sample")
    kind = proof["kind"]
    if kind not in KINDS:
        raise RefusedError(f"there is no kind '{kind}'")
    instance = Instance(certificate["problem"])
    proven = KINDS[kind](instance, proof)
    claimed = number(goal["bound"], "the bound of the answer")
    # A claim of doubles may be above the fraction that is proven by their rounding.
    if claimed > proven * (1 + _SAME) or number(certificate["bound"], "the bound") > proven * (1 + _SAME):
        raise RefusedError(f"a bound of {float(claimed)!r} is claimed, and {float(proven)!r} is proven")
    value = None
    if answer["placement"] is not None:
        value = instance.largest_load(answer["placement"])
        told = number(goal["value"], "the value of the answer")
        if abs(told - value) > _SAME * value:
            raise RefusedError(f"the placement takes {float(value)!r}, and the answer says {float(told)!r}")
        if value < proven * (1 - _SAME):
            raise RefusedError("the placement is better than the bound: one of the two is of another problem")
    return Checked(value, proven, kind)
