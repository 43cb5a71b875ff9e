"""The built-in constraints, checked by their definitions rather than by their formulas."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import isfinite

from placedsl.evaluation.cluster_loads import ClusterLoads
from placedsl.evaluation.evaluation import Violation
from placedsl.evaluation.graph_paths import coming_back, cycle_of_sets, successors
from placedsl.evaluation.planned_stages import PlannedStages
from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.quantities import Quantities
from placedsl.evaluation.sample_times import Task
from placedsl.evaluation.set_properties import cycle, path
from placedsl.evaluation.tolerance import at_most
from placedsl.problem.execution import DataParallelism
from placedsl.problem.problem import Constraint, Problem, Variable
from placedsl.problem.values import Values
from placedsl.tolerances import SOLVER_ROW
from placedsl.units import DATA, show

SHOWN = 5


def some(texts: list[str]) -> str:
    """The first few texts, and how many more there are."""
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def missing(data: ProblemData, given: list[int]) -> Iterator[Violation]:
    """Nodes on no device, or on one that does not exist."""
    nowhere = [data.node_names[v] for v, d in enumerate(given) if d == -1]
    if nowhere:
        message = f"{_count(len(nowhere), 'node')} not placed: {some(nowhere)}"
        yield Violation("assigned", message, None, float(len(nowhere)))
    wrong = [f"{data.node_names[v]} on {d}" for v, d in enumerate(given) if d < -1 or d >= data.devices]
    if wrong:
        message = f"{_count(len(wrong), 'node')} on a device that does not exist: {some(wrong)}"
        yield Violation("assigned", message, None, float(len(wrong)))


def unsupported(data: ProblemData, quantities: Quantities) -> Iterator[Violation]:
    """Nodes on a device that does not support them."""
    supported = data.attributes["node", "supported"]
    wrong = [
        f"{data.node_names[v]} on {data.device_names[d]}"
        for v, d in enumerate(quantities.placement)
        if d >= 0 and not supported[v][d]
    ]
    if wrong:
        message = f"{_count(len(wrong), 'node')} on a device that does not support it: {some(wrong)}"
        yield Violation("supported", message, None, float(len(wrong)))


def unvalued(variable: Variable) -> Violation:
    """A variable of the spec without values."""
    message = f"variable '{variable.name}' has no values: a placement alone does not say them"
    return Violation(variable.name, message, variable.span, 0.0)


def copies(data: ProblemData, quantities: Quantities) -> Iterator[Violation]:
    """Devices that share the samples of a stage: an allowed number, none for nothing, and no more than there are."""
    sharing = data.problem.execution.data_parallelism
    if sharing is None:
        return
    held: dict[float, list[int]] = {}
    for device, kind in enumerate(data.attributes["device", "class"]):
        held.setdefault(kind, []).append(device)
        number, name = quantities.copies[device], data.device_names[device]
        if not quantities.nodes[device] and number:
            message = f"copies[{name}] is {number:g}, and nothing is on {name}"
            yield Violation("copies", message, sharing.span, number)
        elif quantities.nodes[device] and number not in sharing.degrees:
            message = f"copies[{name}] is {number:g}, allowed are {some([str(n) for n in sharing.degrees])}"
            yield Violation("copies", message, sharing.span, 1.0)
    stages = quantities.stages
    for devices in held.values() if quantities.clusters is None else ():
        taken = sum(quantities.copies[d] * (1.0 if stages is None else stages.tensor[d]) for d in devices)
        if taken > len(devices):
            names = some([data.device_names[d] for d in devices])
            what = "copies" if stages is None else "devices of stages"
            message = f"{taken:g} {what} on {_count(len(devices), 'device')} ({names})"
            yield Violation("copies", message, sharing.span, taken - len(devices))
    if stages is not None:
        yield from plan(data, sharing, stages)
    if quantities.clusters is not None:
        yield from clusters(data, sharing, quantities.clusters)


def plan(data: ProblemData, sharing: DataParallelism, stages: PlannedStages) -> Iterator[Violation]:
    """Every node has an option for the devices of its stage's copies, stages stand in an order that work follows, and
    no more samples are in flight than there are."""
    wrong = []
    for v, (device, option) in enumerate(zip(stages.placement, stages.option, strict=True)):
        known = option in stages.options[v] and stages.costs.degree[option] == stages.tensor[device]
        if device >= 0 and not (known and isfinite(stages.time(v, device))):
            wrong.append(f"{data.node_names[v]} over {stages.tensor[device]:g}")
    if wrong:
        message = f"no such option: {some(wrong)}"
        yield Violation("options", message, sharing.span, float(len(wrong)))
    odd = [d for d in stages.used if stages.tensor[d] not in sharing.tensor]
    if odd:
        given = some([f"{stages.tensor[d]:g} on {data.device_names[d]}" for d in odd])
        allowed = some([str(t) for t in sharing.tensor])
        yield Violation("tensor", f"devices of a copy: {given}, allowed are {allowed}", sharing.span, float(len(odd)))
    if len({stages.number[d] for d in stages.used}) < len(stages.used):
        yield Violation("stage", "two stages have one place in the pipeline", sharing.span, 1.0)
    if sharing.chunks > 1:
        yield from chunks(data, sharing, stages)
    back = [
        f"{data.node_names[u]} -> {data.node_names[v]}"
        for u, v in data.pairs
        if stages.position(u) > stages.position(v)
    ]
    if back:
        yield Violation("stage", f"goes back in the pipeline: {some(back)}", sharing.span, float(len(back)))
    in_flight = sum(stages.copies[d] for d in stages.used)
    most = sharing.most_in_pipeline
    if most is not None and in_flight > most:
        message = f"{in_flight:g} samples are in flight, a batch has {most}"
        yield Violation("microbatches", message, sharing.span, in_flight - most)


def chunks(data: ProblemData, sharing: DataParallelism, stages: PlannedStages) -> Iterator[Violation]:
    """Every stage holds so many parts of the model and no other, stages have as many copies, and copies take samples
    in whole rounds."""
    wrong = [data.node_names[v] for v, own in enumerate(stages.chunk) if own not in range(1, sharing.chunks + 1)]
    if wrong:
        message = f"a stage has chunks 1 to {sharing.chunks}: {some(wrong)}"
        yield Violation("chunks", message, sharing.span, float(len(wrong)))
    there = {(device, own) for device, own in zip(stages.placement, stages.chunk, strict=True)}
    empty = [(d, k) for d in stages.used for k in range(1, sharing.chunks + 1) if (d, float(k)) not in there]
    if empty:
        shown = some([f"{k} of {data.device_names[d]}" for d, k in empty])
        yield Violation("chunks", f"chunks without a node: {shown}", sharing.span, float(len(empty)))
    copies = {stages.copies[d] for d in stages.used}
    if len(copies) > 1:
        shown = some([f"{stages.copies[d]:g} of {data.device_names[d]}" for d in stages.used])
        yield Violation("chunks", f"stages have unlike numbers of copies: {shown}", sharing.span, 1.0)
    batch, rounds = sharing.microbatches or 1, max(copies, default=1.0) * len(stages.used)
    if sharing.held == "pipeline" and batch % max(1.0, rounds):
        message = f"{batch} microbatches are no whole rounds of {rounds:g}: a sample for each copy and each stage"
        yield Violation("microbatches", message, sharing.span, 1.0)


def clusters(data: ProblemData, sharing: DataParallelism, held: ClusterLoads) -> Iterator[Violation]:
    """Whole copies in every cluster, room for them and for copies of clusters, and stages of a cluster one after
    another."""
    levels, stages, names = held.levels, held.stages, data.problem.machine.clusters
    for cluster, copies in held.copies.items():
        if copies < 1 or copies != int(copies):
            message = f"{names[cluster].name} runs {copies:g} times: a whole number of clusters is expected"
            yield Violation("across", message, sharing.span, 1.0)
    odd = [d for d in stages.used if held.within(d) < 1 or held.within(d) != int(held.within(d))]
    if odd:
        shown = some([f"{stages.copies[d]:g} of {data.device_names[d]}" for d in odd])
        yield Violation("across", f"copies that clusters cannot share evenly: {shown}", sharing.span, float(len(odd)))
    groups: dict[int, float] = {}
    kinds, inner = data.attributes["device", "class"], dict[float, float]()  # a kind is of one innermost cluster
    for d in stages.used:
        inner[kinds[d]] = inner.get(kinds[d], 0.0) + held.within(d) * stages.tensor[d]
    for cluster, copies in held.copies.items():
        groups[levels.parent[cluster]] = groups.get(levels.parent[cluster], 0.0) + copies
    full = []
    for kind, taken in inner.items():
        alike = [d for d, own in enumerate(kinds) if own == kind]
        home = levels.around[alike[0]][0]
        of_kind = "" if len(alike) == levels.size[0] else f" '{data.problem.machine.devices[alike[0]].family}'"
        full += [(names[home].name, taken, len(alike), f"devices{of_kind}")] * (taken > len(alike))
    for parent, taken in groups.items():
        level = len(levels.clusters) - 1 if parent < 0 else levels.level_of[parent] - 1
        if taken > levels.size[level + 1]:
            where = "the machine" if parent < 0 else names[parent].name
            full.append((where, taken, levels.size[level + 1], f"clusters '{levels.families[level]}'"))
    for where, taken, most, what in full:
        yield Violation("across", f"{where} needs {taken:g} {what} of {most}", sharing.span, taken - most)
    order = sorted(stages.used, key=lambda d: stages.number[d])
    for level in range(len(levels.clusters)):
        runs = [levels.around[d][level] for d in order]
        changes = [b for a, b in itertools.pairwise([-1, *runs]) if a != b]
        if len(changes) > len(set(changes)):
            again = next(c for c in changes if changes.count(c) > 1)
            message = f"the stages of {names[again].name} do not follow one another"
            yield Violation("across", message, sharing.span, 1.0)


def times(data: ProblemData, quantities: Quantities) -> Iterator[Violation]:
    """Calls have an allowed number and wait in no circle; every transfer has a way."""
    problem = data.problem
    if problem.execution.run == "subgraph_calls":
        wrong = [
            f"{data.node_names[v]} in call {piece}"
            for v, (d, piece) in enumerate(zip(quantities.placement, quantities.piece, strict=True))
            if data.accelerator[d] and not 1 <= piece <= problem.execution.slots
        ]
        if wrong:
            message = f"a device has calls 1 to {problem.execution.slots}: {some(wrong)}"
            yield Violation("pieces", message, None, float(len(wrong)))
    if quantities.times.circle:
        names = [_task(data, task) for task in quantities.times.circle]
        message = "these wait for one another: " + " -> ".join([*names, names[0]])
        yield Violation("calls", message, None, 0.0)
    for (tensor, device), at in quantities.times.arrived.items():
        if not isfinite(at):
            home = data.device_names[quantities.placement[data.producer[tensor]]]
            message = f"{data.label('tensor', tensor)} cannot go from {home} to {data.device_names[device]}"
            yield Violation("routes", message, None, 0.0)
            break


def _task(data: ProblemData, task: Task) -> str:
    """How messages call what takes time."""
    kind, first, second = task
    if kind == "node":
        return data.node_names[first]
    return data.device_names[first] + (f" (call {second})" if data.problem.execution.slots > 1 else "")


def sequential(rule: Constraint, data: ProblemData, quantities: Quantities) -> Iterator[Violation]:
    """The nodes of a device run one after the other."""
    times = quantities.times
    for device, nodes in enumerate(quantities.nodes):
        runs = [(times.start[v], times.finish[v], data.node_names[v]) for v in nodes]
        yield from _meeting(rule, runs, f"on {data.device_names[device]}")


def congestion(rule: Constraint, data: ProblemData, quantities: Quantities) -> Iterator[Violation]:
    """Transfers do not meet on a port, or on a link."""
    times, moves = quantities.times, data.problem.device_to_device
    assert moves is not None
    shared: dict[str, list[tuple[float, float, str]]] = {}
    for (tensor, device), sent in times.sent.items():
        home = quantities.placement[data.producer[tensor]]
        run = (sent, times.arrived[tensor, device], data.label("tensor", tensor))
        if rule.by == "port":
            ways = [f"out of {data.device_names[home]}", f"into {data.device_names[device]}"]
        else:
            ends = [moves.hop_ends[link].tolist() for link in moves.hops(home, device)]
            ways = [f"from {data.device_names[a]} to {data.device_names[b]}" for a, b in ends]
        for way in ways:
            shared.setdefault(way, []).append(run)
    for way, runs in shared.items():
        yield from _meeting(rule, runs, way)


def _meeting(rule: Constraint, runs: list[tuple[float, float, str]], where: str) -> Iterator[Violation]:
    """The first two of some runs that overlap; one of no length overlaps nothing."""
    ordered = sorted(run for run in runs if run[1] > run[0])
    for (_, end, one), (start, _, other) in itertools.pairwise(ordered):
        if not at_most(end, start):
            message = f"{one} and {other} overlap {where}"
            yield Violation(rule.name, message, rule.span, end - start)
            return


def out_of_bounds(problem: Problem, data: ProblemData, values: Values) -> Iterator[Violation]:
    """Values of the spec's own variables outside of what they may be."""
    for name, variable in problem.variables.items():
        wrong = []
        for key, value in values[name].items():
            slack = 0.0 if variable.integer else SOLVER_ROW * abs(value)
            whole = not variable.integer or (isfinite(value) and value == round(value))
            if not (variable.low - slack <= value <= variable.high + slack and whole):
                index = ", ".join(data.label(sort, k) for sort, k in zip(variable.sorts, key, strict=True))
                wrong.append(f"{name}[{index}] = {value:g}" if index else f"{name} = {value:g}")
        if wrong:
            kind = " and whole" if variable.integer else ""
            message = f"not within {variable.low:g}..{variable.high:g}{kind}: {some(wrong)}"
            yield Violation(name, message, variable.span, float(len(wrong)))


def memory(rule: Constraint, data: ProblemData, quantities: Quantities) -> Iterator[Violation]:
    """What the nodes of a device occupy fits into it."""
    for device, (held, limit) in enumerate(zip(quantities.memory, data.device_memory, strict=True)):
        if not at_most(held, limit):
            over = held - limit
            message = (
                f"{data.device_names[device]} holds {show(held, DATA)}, "
                f"{show(over, DATA)} more than its {show(limit, DATA)}"
            )
            yield Violation(rule.name, message, rule.span, over)


def contiguous(rule: Constraint, data: ProblemData, quantities: Quantities) -> Iterator[Violation]:
    """The devices, with a step wherever a precedence pair leads from one to another, have no cycle."""
    if quantities.stages is not None and data.problem.execution.chunks > 1:
        return  # each chunk is contiguous where work goes forward, which is checked in any case
    set_of = {v: d for v, d in enumerate(quantities.placement) if d >= 0}
    found = cycle_of_sets(set_of, data.pairs)
    if found is not None:
        names = [data.device_names[number] for _, number in found.vertices]
        message = "the devices form no pipeline, there is a cycle: " + cycle(data, names, found.steps)
        yield Violation(rule.name, message, rule.span, 0.0)
    for level in data.sets["cluster_levels"]:
        clusters = [(i, c) for i, c in enumerate(data.problem.machine.clusters) if c.level == level]
        cluster_of = {d: i for i, cluster in clusters for d in cluster.devices}
        found = cycle_of_sets({v: cluster_of[d] for v, d in set_of.items()}, data.pairs)
        if found is not None:
            names = [data.problem.machine.clusters[number].name for _, number in found.vertices]
            message = "the clusters form no pipeline, there is a cycle: " + cycle(data, names, found.steps)
            yield Violation(rule.name, message, rule.span, 0.0)


def convex(rule: Constraint, data: ProblemData, quantities: Quantities) -> Iterator[Violation]:
    """No path within the forward or the backward part leaves a device and comes back."""
    for part, among in zip(("forward", "backward"), data.members["part"], strict=True):
        nodes = set(among)
        after = successors(data.edges, nodes)
        for device, held in enumerate(quantities.nodes):
            found = coming_back(nodes.intersection(held), after)
            if found is not None:
                where = data.device_names[quantities.placement[found.outside]]
                message = (
                    f"a path of the {part} part leaves {data.device_names[device]} and comes back: "
                    f"{path(data, found)} ({data.node_names[found.outside]} is on {where})"
                )
                yield Violation(rule.name, message, rule.span, 0.0)


def colocated(rule: Constraint, data: ProblemData, quantities: Quantities) -> Iterator[Violation]:
    """Nodes of one group share a device, and where devices hold several chunks of the model, a chunk."""
    stages = quantities.stages if data.problem.execution.chunks > 1 else None
    for group, nodes in enumerate(data.group_members[rule.by]):
        places: dict[tuple[int, float], list[str]] = {}
        for v in nodes:
            chunk = 0.0 if stages is None else stages.chunk[v]
            places.setdefault((quantities.placement[v], chunk), []).append(data.node_names[v])
        if len(places) > 1:
            split = "; ".join(
                data.device_names[d]
                + (f" (chunk {chunk:g})" if stages is not None else "")
                + f": {some(places[d, chunk])}"
                for d, chunk in sorted(places)
            )
            label = data.label(f"group:{rule.by}", group)
            what = "devices" if stages is None else "chunks"
            message = f"the nodes that share the {label} are split over {len(places)} {what} ({split})"
            yield Violation(rule.name, message, rule.span, float(len(places) - 1))


CHECKS = {
    "memory": memory, "contiguous": contiguous, "convex": convex, "colocated": colocated, "sequential": sequential,
    "congestion": congestion,
}  # fmt: skip
