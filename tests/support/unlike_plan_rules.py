"""Random rules over plans on devices of two kinds, and the best plan under them by enumeration, in fractions.

Nothing here is placedsl's: a kind of device is a workload with its own times and memory.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

from support.piper_workloads import Asked, drawn, native
from support.plan_rules import COMPARE, NUMBERS, Rule, Stage, devices, of, stages_of

KINDS = ("big", "small")
#: Stages with the kind of their devices.
Plan = tuple[tuple[Stage, int], ...]


@dataclass(frozen=True)
class Kinds:
    """What is planned for, by kind of device, and how many there are of each."""

    asked: tuple[Asked, Asked]
    counts: tuple[int, int]
    graph: dict[str, Any]

    def spec(self, goals: tuple[str, ...], rules: list[KindRule]) -> str:
        """The spec, which refers to the graph as w.json."""
        head, _, rest = self.asked[0].spec("w.json").partition("device gpu")
        machine = "".join(
            f"device {kind}[{count}]: accelerator {{ memory = {asked.memory} B }}\n"
            for kind, count, asked in zip(KINDS, self.counts, self.asked, strict=True)
        )
        text = head.replace(" { time_unit = 1 s }", "") + machine + rest.partition("\n")[2]
        text = text.replace("minimize time_per_sample", "minimize " + " then ".join(goals))
        return text + "".join(f"    c{k}: {rule.text}\n" for k, rule in enumerate(rules))


@dataclass(frozen=True)
class KindRule:
    """A constraint of a spec, and what it says of a plan on devices of two kinds."""

    text: str
    holds: Callable[[Plan], bool]


def drawn_kinds(seed: int) -> Kinds:
    """A random problem: times and memory differ between the kinds, and some options are for one of them alone."""
    rng, first = random.Random(f"kinds {seed}"), drawn(seed, 3)
    counts = (rng.randint(1, 2), max(rng.randint(1, 3), first.tensor[0]))
    graph = native(first.workload)
    workloads = [copy.deepcopy(first.workload) for _ in KINDS]
    for node in graph["nodes"]:
        own = [next(n for n in w["nodes"] if n["id"] == node["id"])["TMPCs"] for w in workloads]
        for option in node["options"]:
            times = {"big": option["time"], "small": rng.choice((option["time"], rng.randint(0, 12) / 4))}
            if rng.random() < 0.15:
                del times[rng.choice(KINDS)]
            option["time"] = times
            for kind, listed in zip(KINDS, own, strict=True):
                degree = str(option["tensor"])
                given = next(o for o in listed[degree] if o["id"] == option["name"])
                if kind in times:
                    given["timePerSample"] = times[kind]
                else:
                    listed[degree] = [o for o in listed[degree] if o is not given]
    copies = tuple(d for d in first.copies if d <= sum(counts)) or (1,)
    asked = [
        replace(first, workload=w, devices=sum(counts), copies=copies, memory=rng.randint(4, 40)) for w in workloads
    ]
    return Kinds((asked[0], asked[1]), counts, graph)


def drawn_kind_rules(kinds: Kinds, rng: random.Random) -> list[KindRule]:
    """None to three of them."""
    return [_drawn(kinds, rng) for _ in range(rng.randint(0, 3))]


def _drawn(kinds: Kinds, rng: random.Random) -> KindRule:
    ids = [node["id"] for node in kinds.graph["nodes"]]
    a, b, k, op = rng.choice(ids), rng.choice(ids), rng.randint(1, 4), rng.choice(("<=", ">=", "=="))
    compare, quantity, small = COMPARE[op], rng.choice(("data", "tensor")), rng.randint(1, 2)
    kind, number = rng.randrange(2), NUMBERS[quantity]
    size, limit = rng.randint(2, max(one.memory for one in kinds.asked)), Fraction(rng.randint(0, 40), 4)
    node_a, node_b = f'nodes["{a}"]', f'nodes["{b}"]'

    def of_all(rule: Rule) -> KindRule:
        return KindRule(rule.text, lambda plan: rule.holds(tuple(stage for stage, _ in plan)))

    return rng.choice((
        of_all(Rule(f"stages_used {op} {k}", lambda plan: compare(len(plan), k))),
        of_all(Rule(f"devices_used {op} {k}", lambda plan: compare(devices(plan), k))),
        of_all(Rule(f"copies_used {op} {k}", lambda plan: compare(sum(s.copies for s in plan), k))),
        of_all(Rule(f"devices_used == {small} * stages_used", lambda plan: devices(plan) == small * len(plan))),
        of_all(Rule(f"{quantity}({node_a}) {op} {small}", lambda plan: compare(number(of(plan, a)), small))),
        of_all(Rule(f"{quantity}({node_a}) {op} {quantity}({node_b})",
                    lambda plan: compare(number(of(plan, a)), number(of(plan, b))))),
        of_all(Rule(f"in_flight({node_a}) <= {small}", lambda plan: of(plan, a).in_flight <= small)),
        of_all(Rule(f"stages_used >= 2 => devices_used >= {k}", lambda plan: len(plan) < 2 or devices(plan) >= k)),
        of_all(Rule(f"forall d in devices: load(d) <= {float(limit)} s",
                    lambda plan: all(s.load <= limit for s in plan))),
        KindRule(f"forall d in {KINDS[kind]}: load(d) <= {float(limit)} s",
                 lambda plan: all(s.load <= limit for s, on in plan if on == kind)),
        KindRule(f"forall d in {KINDS[kind]}: memory(d) <= {size} B",
                 lambda plan: all(s.memory <= size for s, on in plan if on == kind)),
        KindRule(f"forall d in {KINDS[kind]}: copies[d] <= {small}",
                 lambda plan: all(s.copies <= small for s, on in plan if on == kind)),
    ))  # fmt: skip


def optimum_of_kinds(kinds: Kinds, rules: list[KindRule], goals: tuple[str, ...]) -> tuple[Fraction, ...] | None:
    """The values of the best plan; None where there is none."""
    value: dict[str, Callable[[Plan], Fraction]] = {
        "time_per_sample": lambda plan: max(stage.load for stage, _ in plan),
        "devices_used": lambda plan: Fraction(sum(stage.copies * stage.degree for stage, _ in plan)),
        "stages_used": lambda plan: Fraction(len(plan)),
        "copies_used": lambda plan: Fraction(sum(stage.copies for stage, _ in plan)),
    }
    best: tuple[Fraction, ...] | None = None
    for plan in _plans(kinds):
        values = tuple(value[goal](plan) for goal in goals)
        if (best is None or values < best) and all(rule.holds(plan) for rule in rules):
            best = values
    return best


def _plans(kinds: Kinds) -> Iterator[Plan]:
    asked = kinds.asked[0]
    edges = {(e["sourceId"], e["destId"]): e["communicationCost"] for e in asked.workload["edges"]}
    nodes = [{node["id"]: node for node in one.workload["nodes"]} for one in kinds.asked]

    def before(left: frozenset[int], free: tuple[int, int], behind: int, later: Plan) -> Iterator[Plan]:
        if not left:
            yield later
            return
        listed = sorted(left)
        for chosen in product((False, True), repeat=len(listed)):
            stage = frozenset(v for v, taken in zip(listed, chosen, strict=True) if taken)
            if not stage or not all(v in stage for u, v in edges if u in stage and v in left):
                continue
            if asked.together and any(
                (u in stage) != (v in stage) and nodes[0][u]["name"] == nodes[0][v]["name"]
                for u in nodes[0] for v in nodes[0]
            ):  # fmt: skip
                continue
            for copies, degree, kind in product(asked.copies, asked.tensor, range(2)):
                many = behind + copies > asked.microbatches and asked.held == "pipeline"
                if copies * degree > free[kind] or many:
                    continue
                rest = (free[0] - copies * degree * (kind == 0), free[1] - copies * degree * (kind == 1))
                for own in stages_of(kinds.asked[kind], nodes[kind], edges, stage, copies, degree, behind + copies):
                    yield from before(left - stage, rest, behind + copies, ((own, kind), *later))

    yield from before(frozenset(nodes[0]), kinds.counts, 0, ())
