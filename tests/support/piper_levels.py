"""The best plan over clusters whose copies share samples, by enumeration of the formulas of Appendix E, in fractions.

Nothing here is placedsl's: plans are enumerated from the JSON of a workload.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product

from support.piper_workloads import BANDWIDTH, Asked, _ends, drawn
from support.plan_rules import Plan, Stage

#: Ways to divide what is left within a cluster: its copies, the weights of one of them, and the largest load.
Ways = frozenset[tuple[int, Fraction, Fraction]]


@dataclass(frozen=True)
class Levels:
    """Devices of a server, servers of a rack or of the machine, racks; and bytes per second around each."""

    size: tuple[int, ...]
    bandwidth: tuple[int, ...]

    def spec(self, asked: Asked, file: str) -> str:
        """The spec, which refers to the workload by a file name."""
        text = asked.spec(file)
        machine = f"""    device gpu[{self.size[0]}]: accelerator {{ memory = {asked.memory} B }}
    interconnect {{ bandwidth = {BANDWIDTH} B/s }}
"""
        for name, number, outer in zip(("server", "rack"), self.size[1:], self.bandwidth, strict=False):
            around = f"interconnect {{ bandwidth = {outer} B/s }}\n"
            machine = f"cluster {name}[{number}] {{\n{machine}}}\n{around}"
        head, _, tail = text.partition("device gpu")
        _, _, tail = tail.partition("parallelism {\n")
        return f"{head}{machine}parallelism {{\n    across = server\n{tail}"


def drawn_levels(seed: int) -> tuple[Asked, Levels]:
    """A random problem of up to three nodes, with options of one degree that have the same weights."""
    rng = random.Random(seed)
    asked = drawn(seed)
    while len(asked.workload["nodes"]) > 3:
        seed += 100_000
        asked = drawn(seed)
    size = rng.choice(((2, 2), (1, 3), (3, 2), (2, 3), (4, 1), (1, 2, 2), (2, 2, 2), (2, 1, 2), (1, 1, 3)))
    if size[0] < min(asked.tensor):
        size = (3, 2)
    workload = copy.deepcopy(asked.workload)
    for node in workload["nodes"]:
        for options in node["TMPCs"].values():
            for option in options:
                option["parameterSize"] = options[0]["parameterSize"]
    most = 1
    for number in size:
        most *= number
    batch = asked.exchange == "batch"
    able = [c for c in range(1, most + 1) if not batch or asked.microbatches % c == 0]
    copies = tuple(sorted({1, *rng.sample(able, rng.randint(1, len(able)))}))
    tensor = tuple(t for t in asked.tensor if t <= size[0])
    bandwidth = tuple(rng.choice((BANDWIDTH, BANDWIDTH // 2, BANDWIDTH // 8)) for _ in size[1:])
    asked = replace(asked, workload=workload, devices=most, copies=copies, tensor=tensor, together=False)
    return asked, Levels(size, bandwidth)


def optimum(asked: Asked, levels: Levels) -> Fraction | None:
    """The least largest load of a device or of a link around a cluster; None where there is no plan."""
    nodes = {node["id"]: node for node in asked.workload["nodes"]}
    edges = {(e["sourceId"], e["destId"]): e["communicationCost"] for e in asked.workload["edges"]}

    def stages(stage: frozenset[int], own: int, degree: int, around: int, together: int) -> Ways:
        """The best load of a stage with so many copies in a cluster."""
        listed = [nodes[v]["TMPCs"].get(str(degree), []) for v in sorted(stage)]
        if not all(listed):
            return frozenset()
        moved = Fraction(0)
        for (u, v), size in edges.items():
            if (u in stage) != (v in stage):
                inside, key, other = (v, "syncTimeFw", u) if v in stage else (u, "syncTimeBw", v)
                moved += 2 * (size + nodes[inside]["TMPCs"][str(degree)][0][key][str(other)])
        every = own * around
        in_flight = asked.in_flight(every, together)
        weights = sum((Fraction(own_options[0]["parameterSize"]) for own_options in listed), Fraction(0))
        often = Fraction(4 * (own - 1), own)
        often /= {"sample": around, "round": around * own, "batch": asked.microbatches}[asked.exchange]
        found = []
        for options in product(*listed):
            if sum(o["memoryUsageA"] * in_flight + o["memoryUsageB"] for o in options) <= asked.memory:
                time = sum((Fraction(o["timePerSample"]) for o in options), Fraction(0))
                found.append((time + moved / BANDWIDTH) / every + often * weights / BANDWIDTH)
        return frozenset({(own, degree * weights, min(found))} if found else ())

    def link(level: int, inside: frozenset[int], number: int, around: int, weights: Fraction) -> Fraction:
        """The load of the link around a cluster."""
        moved = sum(2 * size for (u, v), size in edges.items() if (u in inside) != (v in inside))
        bandwidth = levels.bandwidth[level - 1]
        often = Fraction(4 * (number - 1), number)
        often /= {"sample": around, "round": around * number, "batch": asked.microbatches}[asked.exchange]
        return Fraction(moved, bandwidth * number * around) + often * weights / bandwidth

    @cache
    def divided(level: int, left: frozenset[int], behind: int, around: int, units: int) -> Ways:
        """All ways to divide what is left over so many devices, or clusters of a level."""
        if not left:
            return frozenset({(0, Fraction(0), Fraction(0))})
        out: set[tuple[int, Fraction, Fraction]] = set()
        for part in _ends(left, edges):
            heads: list[tuple[int, int, Ways]] = []
            if level == 0:
                for own, degree in product(range(1, units + 1), asked.tensor):
                    together = behind + own * around
                    many = together > asked.microbatches and asked.held == "pipeline"
                    if own * degree <= units and own * around in asked.copies and not many:
                        heads.append((1, own * degree, stages(part, own, degree, around, together)))
            else:
                for number in range(1, units + 1):
                    inner = divided(level - 1, part, behind, around * number, levels.size[level - 1])
                    loaded = {(x, w, max(load, link(level, part, number, around, w))) for x, w, load in inner}
                    heads.append((number, number, frozenset(loaded)))
            for times, taken, ways in heads:
                for own, weights, load in ways:
                    start = behind + around * times * own
                    for more, other, rest in divided(level, left - part, start, around, units - taken):
                        out.add((times * own + more, weights + other, max(load, rest)))
        return frozenset(out)

    ways = divided(len(levels.size) - 1, frozenset(nodes), 0, 1, levels.size[-1])
    return min((load for _, _, load in ways), default=None)


def plans(asked: Asked, levels: Levels) -> list[Plan]:
    """All plans; the load of a stage is the largest of its devices and of the links around them."""
    nodes = {node["id"]: node for node in asked.workload["nodes"]}
    edges = {(e["sourceId"], e["destId"]): e["communicationCost"] for e in asked.workload["edges"]}
    # Copies, the weights of one of each, and the stages, of what stands in so many devices or clusters.
    Parts = list[tuple[int, Fraction, Plan]]

    def exchanged(number: int, around: int, weights: Fraction) -> Fraction:
        often = Fraction(4 * (number - 1), number) * weights
        return often / {"sample": around, "round": around * number, "batch": asked.microbatches}[asked.exchange]

    def stages(stage: frozenset[int], own: int, degree: int, around: int, together: int) -> Parts:
        listed = [nodes[v]["TMPCs"].get(str(degree), []) for v in sorted(stage)]
        if not all(listed):
            return []
        moved = 0
        for (u, v), size in edges.items():
            if (u in stage) != (v in stage):
                inside, key, other = (v, "syncTimeFw", u) if v in stage else (u, "syncTimeBw", v)
                moved += 2 * (size + nodes[inside]["TMPCs"][str(degree)][0][key][str(other)])
        every = own * around
        in_flight = asked.in_flight(every, together)
        weights = sum((Fraction(own_options[0]["parameterSize"]) for own_options in listed), Fraction(0))
        found: Parts = []
        for options in product(*listed):
            memory = sum(o["memoryUsageA"] * in_flight + o["memoryUsageB"] for o in options)
            time = sum((Fraction(o["timePerSample"]) for o in options), Fraction(0))
            load = (time + Fraction(moved, BANDWIDTH)) / every + exchanged(own, around, weights) / BANDWIDTH
            names = {v: o["id"] for v, o in zip(sorted(stage), options, strict=True)}
            if memory <= asked.memory:
                found.append((own, degree * weights, (Stage(names, every, degree, in_flight, load, memory),)))
        return found

    def within(level: int, part: frozenset[int], number: int, behind: int, around: int) -> Parts:
        """What so many clusters of a level hold alike."""
        moved = sum(2 * size for (u, v), size in edges.items() if (u in part) != (v in part))
        bandwidth, out = levels.bandwidth[level - 1], list[tuple[int, Fraction, Plan]]()
        for own, weights, plan in divided(level - 1, part, behind, around * number, levels.size[level - 1]):
            link = Fraction(moved, bandwidth * number * around) + exchanged(number, around, weights) / bandwidth
            out.append((own, weights, tuple(replace(stage, load=max(stage.load, link)) for stage in plan)))
        return out

    def divided(level: int, left: frozenset[int], behind: int, around: int, units: int) -> Parts:
        if not left:
            return [(0, Fraction(0), ())]
        out: Parts = []
        for part in _ends(left, edges):
            heads: list[tuple[int, int, Parts]] = []
            if level == 0:
                for own, degree in product(range(1, units + 1), asked.tensor):
                    together = behind + own * around
                    many = together > asked.microbatches and asked.held == "pipeline"
                    if own * degree <= units and own * around in asked.copies and not many:
                        heads.append((1, own * degree, stages(part, own, degree, around, together)))
            else:
                for number in range(1, units + 1):
                    heads.append((number, number, within(level, part, number, behind, around)))
            for times, taken, ways in heads:
                for own, weights, plan in ways:
                    start = behind + around * times * own
                    for more, other, rest in divided(level, left - part, start, around, units - taken):
                        out.append((times * own + more, weights + other, (*rest, *plan)))
        return out

    return [plan for _, _, plan in divided(len(levels.size) - 1, frozenset(nodes), 0, 1, levels.size[-1])]
