"""Random rules over plans, as text of a spec and as predicates, and the best plan under them by enumeration.

Nothing here is placedsl's: plans are enumerated from the JSON of a workload, their values are fractions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from support.piper_workloads import BANDWIDTH, Asked


@dataclass(frozen=True)
class Stage:
    """A stage: its nodes with the names of their options, copies, devices of each, samples in flight, load, bytes."""

    options: dict[int, str]
    copies: int
    degree: int
    in_flight: int
    load: Fraction
    memory: int


Plan = tuple[Stage, ...]


@dataclass(frozen=True)
class Rule:
    """A constraint of a spec, and what it says of a plan."""

    text: str
    holds: Callable[[Plan], bool]


def of(plan: Plan, node: int) -> Stage:
    """The stage of a node."""
    return next(stage for stage in plan if node in stage.options)


GOALS: dict[str, Callable[[Plan], Fraction]] = {
    "time_per_sample": lambda plan: max(stage.load for stage in plan),
    "devices_used": lambda plan: Fraction(sum(stage.copies * stage.degree for stage in plan)),
    "stages_used": lambda plan: Fraction(len(plan)),
    "copies_used": lambda plan: Fraction(sum(stage.copies for stage in plan)),
}
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "==": lambda a, b: a == b,
}  # fmt: skip


def devices(plan: Plan) -> int:
    """How many devices take part."""
    return sum(stage.copies * stage.degree for stage in plan)


NUMBERS: dict[str, Callable[[Stage], int]] = {"data": lambda stage: stage.copies, "tensor": lambda stage: stage.degree}


def drawn_rules(asked: Asked, rng: random.Random) -> list[Rule]:
    """One to three of them."""
    return [_drawn_rule(asked, rng) for _ in range(rng.randint(1, 3))]


def _drawn_rule(asked: Asked, rng: random.Random) -> Rule:
    ids = [node["id"] for node in asked.workload["nodes"]]
    a, b, k, op = rng.choice(ids), rng.choice(ids), rng.randint(1, 4), rng.choice(("<=", ">=", "=="))
    name = f"option {rng.randint(0, 1)}"
    compare, quantity = COMPARE[op], rng.choice(("data", "tensor"))
    number = NUMBERS[quantity]
    node_a, node_b, small = f'nodes["{a}"]', f'nodes["{b}"]', rng.randint(1, 2)
    alike = [node["id"] for node in asked.workload["nodes"] if node["name"] == "layer"]
    known = {name for node in asked.workload["nodes"] for own in node["TMPCs"].values() for name in _names(own)}

    def takes(plan: Plan, node: int) -> bool:
        return of(plan, node).options[node] == name

    size, limit = rng.randint(2, asked.memory), Fraction(rng.randint(1, 40), 4)
    rules = [
        Rule(f'forall v in nodes where type == "layer": tensor(v) <= {small}',
             lambda plan: all(of(plan, v).degree <= small for v in alike)),
        Rule(f"stages_used {op} {k}", lambda plan: compare(len(plan), k)),
        Rule(f"copies_used {op} {k}", lambda plan: compare(sum(s.copies for s in plan), k)),
        Rule(f"devices_used {op} {k}", lambda plan: compare(devices(plan), k)),
        Rule(f"devices_used + stages_used {op} {k + 2}", lambda plan: compare(devices(plan) + len(plan), k + 2)),
        Rule(f"devices_used >= {k} or tensor({node_a}) >= {small}",
             lambda plan: devices(plan) >= k or of(plan, a).degree >= small),
        Rule(f"{quantity}({node_a}) {op} {small}", lambda plan: compare(number(of(plan, a)), small)),
        Rule(f"{quantity}({node_a}) {op} {quantity}({node_b})",
             lambda plan: compare(number(of(plan, a)), number(of(plan, b)))),
        Rule(f"forall v in nodes, w in nodes: {quantity}(v) == {quantity}(w)",
             lambda plan: len({number(s) for s in plan}) == 1),
        Rule(f"in_flight({node_a}) <= {small}", lambda plan: of(plan, a).in_flight <= small),
        Rule(f"forall v in nodes: in_flight(v) <= {k}", lambda plan: all(s.in_flight <= k for s in plan)),
        Rule(f"2 * tensor({node_a}) + data({node_b}) <= {k + 1}",
             lambda plan: 2 * of(plan, a).degree + of(plan, b).copies <= k + 1),
        Rule(f"data({node_a}) + stages_used {op} {k + 1}", lambda plan: compare(of(plan, a).copies + len(plan), k + 1)),
        Rule(f"sum(v in nodes: data(v)) <= {2 * k}",
             lambda plan: sum(s.copies * len(s.options) for s in plan) <= 2 * k),
        Rule(f"forall d in devices: memory(d) <= {size} B", lambda plan: all(s.memory <= size for s in plan)),
        Rule(f"time_per_sample <= {float(limit)} s", lambda plan: max(s.load for s in plan) <= limit),
        Rule(f"forall d in devices: load(d) <= {float(limit)} s", lambda plan: all(s.load <= limit for s in plan)),
        Rule(f"forall d in devices: copies[d] <= {small}", lambda plan: all(s.copies <= small for s in plan)),
        Rule(f"sum(d in devices: copies[d]) <= {k}", lambda plan: sum(s.copies for s in plan) <= k),
        Rule(f"tensor({node_a}) >= 2 or data({node_b}) <= 1",
             lambda plan: of(plan, a).degree >= 2 or of(plan, b).copies <= 1),
        Rule(f"data({node_a}) >= 2 => tensor({node_b}) == 1",
             lambda plan: of(plan, a).copies < 2 or of(plan, b).degree == 1),
    ]  # fmt: skip
    if name in known:
        rules += [
            Rule(f'not takes({node_a}, "{name}")', lambda plan: not takes(plan, a)),
            Rule(f'forall v in nodes: not takes(v, "{name}")', lambda plan: not any(takes(plan, v) for v in ids)),
            Rule(f'takes({node_a}, "{name}") == takes({node_b}, "{name}")',
                 lambda plan: takes(plan, a) == takes(plan, b)),
            Rule(f'count(v in nodes: takes(v, "{name}")) <= {small}',
                 lambda plan: sum(takes(plan, v) for v in ids) <= small),
            Rule(f'count(v in nodes: takes(v, "{name}")) >= {small}',
                 lambda plan: sum(takes(plan, v) for v in ids) >= small),
            Rule(f'takes({node_a}, "{name}") => data({node_b}) <= {small}',
                 lambda plan: not takes(plan, a) or of(plan, b).copies <= small),
        ]  # fmt: skip
    return rng.choice(rules)


def further_rules(asked: Asked, rng: random.Random) -> list[Rule]:
    """One or two of what the search for plans does not know."""

    def drawn_rule() -> Rule:
        ids = [node["id"] for node in asked.workload["nodes"]]
        a, b, k, op = rng.choice(ids), rng.choice(ids), rng.randint(1, 3), rng.choice(("<=", ">=", "=="))
        node_a, node_b, compare = f'nodes["{a}"]', f'nodes["{b}"]', COMPARE[op]
        limit = Fraction(rng.randint(1, 40), 4)

        def place(plan: Plan, node: int) -> int:
            return 1 + [node in stage.options for stage in plan].index(True)

        return rng.choice([
            Rule(f"stage({node_a}) {op} {k}", lambda plan: compare(place(plan, a), k)),
            Rule(f"stage({node_a}) != stage({node_b})", lambda plan: place(plan, a) != place(plan, b)),
            Rule(f"stage({node_a}) + data({node_b}) {op} {k + 1}",
                 lambda plan: compare(place(plan, a) + of(plan, b).copies, k + 1)),
            Rule(f"in_flight({node_a}) {op} {k}", lambda plan: compare(of(plan, a).in_flight, k)),
            Rule(f"2 * in_flight({node_a}) {op} stages_used",
                 lambda plan: compare(2 * of(plan, a).in_flight, len(plan))),
            Rule(f"devices_used {op} {k}", lambda plan: compare(sum(s.copies * s.degree for s in plan), k)),
            Rule(f"sum(d in devices: memory(d)) <= {asked.memory} B",
                 lambda plan: sum(s.memory for s in plan) <= asked.memory),
            Rule(f"sum(d in devices: load(d)) <= {float(limit)} s", lambda plan: sum(s.load for s in plan) <= limit),
        ])  # fmt: skip

    return [drawn_rule() for _ in range(rng.randint(1, 2))]


def drawn_goals(rng: random.Random) -> tuple[str, ...]:
    """What is minimised, the most important first."""
    return rng.choice((
        ("time_per_sample",), ("time_per_sample",), ("time_per_sample",), ("time_per_sample", "devices_used"),
        ("time_per_sample", "stages_used"), ("devices_used", "time_per_sample"), ("stages_used", "time_per_sample"),
        ("copies_used",), ("time_per_sample", "copies_used", "stages_used"),
    ))  # fmt: skip


def optimum(asked: Asked, rules: list[Rule], goals: tuple[str, ...]) -> tuple[Fraction, ...] | None:
    """The values of the best plan; None where there is none."""
    best: tuple[Fraction, ...] | None = None
    for plan in plans(asked):
        values = tuple(GOALS[goal](plan) for goal in goals)
        if (best is None or values < best) and all(rule.holds(plan) for rule in rules):
            best = values
    return best


def plans(asked: Asked) -> Iterator[Plan]:
    """All plans that fit the machine."""
    nodes = {node["id"]: node for node in asked.workload["nodes"]}
    edges = {(e["sourceId"], e["destId"]): e["communicationCost"] for e in asked.workload["edges"]}

    def before(left: frozenset[int], devices: int, behind: int, later: Plan) -> Iterator[Plan]:
        if not left:
            yield later
            return
        listed = sorted(left)
        for chosen in product((False, True), repeat=len(listed)):
            stage = frozenset(v for v, taken in zip(listed, chosen, strict=True) if taken)
            if not stage or not all(v in stage for u, v in edges if u in stage and v in left):
                continue
            if asked.together and any(
                (u in stage) != (v in stage) and nodes[u]["name"] == nodes[v]["name"] for u in nodes for v in nodes
            ):
                continue
            for copies, degree in product(asked.copies, asked.tensor):
                many = behind + copies > asked.microbatches and asked.held == "pipeline"
                if devices + copies * degree > asked.devices or many:
                    continue
                for own in stages_of(asked, nodes, edges, stage, copies, degree, behind + copies):
                    yield from before(left - stage, devices + copies * degree, behind + copies, (own, *later))

    yield from before(frozenset(nodes), 0, 0, ())


def _names(options: list[dict[str, Any]]) -> list[str]:
    return [option["id"] for option in options]


def stages_of(
    asked: Asked,
    nodes: dict[int, dict[str, Any]],
    edges: dict[tuple[int, int], int],
    stage: frozenset[int],
    copies: int,
    degree: int,
    behind: int,
) -> Iterator[Stage]:
    """A stage with each choice of options that fits."""
    listed = [nodes[v]["TMPCs"].get(str(degree), []) for v in sorted(stage)]
    if not all(listed):
        return
    moved = Fraction(0)
    for (u, v), size in edges.items():
        if (u in stage) != (v in stage):
            inside, key, other = (v, "syncTimeFw", u) if v in stage else (u, "syncTimeBw", v)
            moved += 2 * (size + nodes[inside]["TMPCs"][str(degree)][0][key][str(other)])
    in_flight = asked.in_flight(copies, behind)
    period = {"sample": 1, "round": copies, "batch": asked.microbatches}[asked.exchange]
    for options in product(*listed):
        memory = sum(o["memoryUsageA"] * in_flight + o["memoryUsageB"] for o in options)
        if memory > asked.memory:
            continue
        time = sum((Fraction(o["timePerSample"]) for o in options), Fraction(0)) + moved / BANDWIDTH
        weights = sum((Fraction(o["parameterSize"]) for o in options), Fraction(0)) / BANDWIDTH
        load = time / copies + 4 * Fraction(copies - 1, copies) * weights / period
        names = dict(zip(sorted(stage), _names(list(options)), strict=True))
        yield Stage(names, copies, degree, in_flight, load, memory)
