"""The simulation of one sample against others, written another way: longest paths for a given order, and a list of all
tasks that is gone through at each instant for the dispatch rule."""

from __future__ import annotations

import itertools
import json

import networkx as nx
import numpy as np
import pytest
from support.latency_problems import calls_problem, random_dataflow, random_graph, run

from placedsl.diagnostics import Source
from placedsl.evaluation.evaluate import Evaluation, evaluate
from placedsl.problem import placement_files as placements
from placedsl.problem.problem import Problem
from placedsl.report.json.schedule_document import schedule_document

RULES = {
    "nothing": (),
    "sequential": ("sequential",),
    "ports": (("congestion", "port"),),
    "links": (("congestion", "link"),),
    "devices and ports": ("sequential", ("congestion", "port")),
    "devices and links": ("sequential", ("congestion", "link")),
    "all": ("sequential", ("congestion", "port"), ("congestion", "link")),
}


def precedence(problem: Problem, placement):
    """Tasks ("node", v) and ("move", t, d), each with its length and what it shares with others, and who waits."""
    graph, between = problem.graph, problem.device_to_device
    asked = {(rule.built_in, rule.by) for rule in problem.constraints}
    world = nx.DiGraph()
    for v, d in enumerate(placement):
        shared = {f"device {d}"} if ("sequential", "") in asked else set()
        world.add_node(("node", v), length=float(problem.time[v, d]), shared=shared)
    for t, reader in zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True):
        maker = int(graph.tensor_producer[t])
        a, b = placement[maker], placement[reader]
        if a == b:
            world.add_edge(("node", maker), ("node", reader))
            continue
        shared = {f"from {a}", f"to {b}"} if ("congestion", "port") in asked else set()
        if ("congestion", "link") in asked:
            shared |= {f"link {hop}" for hop in between.hops(a, b).tolist()}
        world.add_node(("move", t, b), length=float(between.time(t, a, b)), shared=shared)
        world.add_edge(("node", maker), ("move", t, b))
        world.add_edge(("move", t, b), ("node", reader))
    for task in world:
        if not world.nodes[task]["length"]:
            world.nodes[task]["shared"] = set()
    return world


def earliest(world: nx.DiGraph, order) -> dict:
    """Longest paths where tasks that share something follow one another in this order."""
    chained = world.copy()
    last: dict[str, tuple] = {}
    for task in order:
        for what in world.nodes[task]["shared"]:
            if what in last:
                chained.add_edge(last[what], task)
            last[what] = task
    begin: dict[tuple, float] = {}
    for task in nx.topological_sort(chained):
        begin[task] = max((begin[b] + world.nodes[b]["length"] for b in chained.predecessors(task)), default=0.0)
    return begin


def by_the_rule(world: nx.DiGraph) -> dict:
    """At each instant: end what ends, then go through all tasks that could start, the most urgent first."""
    length = {task: world.nodes[task]["length"] for task in world}
    urgency: dict[tuple, float] = {}
    for task in reversed(list(nx.topological_sort(world))):
        urgency[task] = length[task] + max((urgency[other] for other in world.successors(task)), default=0.0)
    begin: dict[tuple, float] = {}
    end: dict[tuple, float] = {}
    now = 0.0

    def can(task) -> bool:
        if task in begin or any(end.get(b, np.inf) > now for b in world.predecessors(task)):
            return False
        running = (r for r in begin if end[r] > now)
        return all(world.nodes[task]["shared"].isdisjoint(world.nodes[r]["shared"]) for r in running)

    while len(begin) < len(world):
        instant = [task for task in world if not length[task] and can(task)]
        if not instant:
            able = [task for task in world if can(task)]
            instant = [max(able, key=lambda task: urgency[task])] if able else []
        for task in instant:
            begin[task], end[task] = now, now + length[task]
        if not instant:
            now = min(at for at in end.values() if at > now)
    return begin


def told(begin: dict) -> dict:
    """Starts as an answer says them."""
    return {
        "start": {task[1:]: at for task, at in begin.items() if task[0] == "node"},
        "sent": {task[1:]: at for task, at in begin.items() if task[0] == "move"},
    }


def same(found: Evaluation, begin: dict) -> None:
    times = found.times
    nodes = [begin["node", v] for v in range(len(times.start))]
    assert times.start == pytest.approx(nodes, rel=1e-12, abs=1e-12)
    assert times.sent == pytest.approx({task[1:]: at for task, at in begin.items() if task[0] == "move"}, rel=1e-12)


def instance(seed: int, rules):
    rng = np.random.default_rng(seed)
    problem = random_dataflow(rng, rules)
    placement = rng.integers(0, problem.device_to_device.devices, problem.graph.nodes).tolist()
    return rng, problem, placement, precedence(problem, placement)


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
def test_the_order_of_a_schedule_against_longest_paths(rules) -> None:
    """A schedule with pauses: its order is kept, its pauses are not."""
    for seed in range(60):
        rng, problem, placement, world = instance(seed, rules)
        weights = {task: rng.random() for task in world}
        order = list(nx.lexicographical_topological_sort(world, key=weights.__getitem__))
        paused: dict[tuple, float] = {}
        free: dict[str, float] = {}
        for task in order:
            before = [paused[b] + world.nodes[b]["length"] for b in world.predecessors(task)]
            before += [free.get(what, 0.0) for what in world.nodes[task]["shared"]]
            paused[task] = max(before, default=0.0) + float(rng.uniform(0, 3))
            free |= dict.fromkeys(world.nodes[task]["shared"], paused[task] + world.nodes[task]["length"])
        begin = earliest(world, sorted(order, key=paused.__getitem__))
        same(run(problem, placement, told(paused)), begin)
        assert all(begin[task] <= paused[task] for task in world)


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
def test_any_starts_give_an_order(rules) -> None:
    """One that contradicts what waits for what counts as right after that; then nothing waits without a reason."""
    for seed in range(60):
        rng, problem, placement, world = instance(seed, rules)
        wanted = {task: float(rng.random()) for task in world}
        found = run(problem, placement, told(wanted))
        late: dict[tuple, float] = {}
        for task in nx.topological_sort(world):
            late[task] = max([wanted[task], *(late[b] for b in world.predecessors(task))])
        begin = {("node", v): at for v, at in enumerate(found.times.start)}
        begin |= {("move", *key): at for key, at in found.times.sent.items()}
        assert begin.keys() == set(world)
        for one, other in itertools.permutations(world, 2):
            if world.nodes[one]["shared"] & world.nodes[other]["shared"] and late[one] < late[other]:
                assert begin[one] + world.nodes[one]["length"] <= begin[other] * (1 + 1e-12)
        same(found, earliest(world, sorted(world, key=lambda task: begin[task])))


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
def test_the_dispatch_rule_against_going_through_all_tasks(rules) -> None:
    for seed in range(60):
        _, problem, placement, world = instance(seed, rules)
        same(run(problem, placement), by_the_rule(world))


def test_congestion_and_sequential_devices_cost_something_in_many_of_these() -> None:
    """The comparisons above are of different numbers."""
    slower = 0
    for seed in range(60):
        free, bound = (instance(seed, RULES[name]) for name in ("nothing", "all"))
        slower += run(bound[1], bound[2]).times.latency > run(free[1], free[2]).times.latency + 1e-9
    assert slower > 30


def read_back(problem: Problem, placement, found: Evaluation) -> Evaluation:
    """The evaluation of what an answer's JSON says."""
    names = {str(i): problem.machine.devices[d].name for i, d in zip(problem.graph.ids, placement, strict=True)}
    text = json.dumps({"placement": names, "schedule": schedule_document(problem, found)}, allow_nan=False)
    source = Source("answer.json", text)
    return evaluate(problem, placements.read(problem, source), placements.read_values(problem, source))


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
def test_an_answer_read_back_is_the_same_run(rules) -> None:
    for seed in range(40):
        rng, problem, placement, world = instance(seed, rules)
        for values in (None, told({task: float(rng.random()) for task in world})):
            found = run(problem, placement, values)
            again = read_back(problem, placement, found)
            assert again.times == found.times
            assert again.values == found.values


def test_calls_read_back_are_the_same_calls() -> None:
    seen = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        edges, producers = random_graph(rng, 7, 0.4)
        problem = calls_problem(edges, producers, rng.uniform(1, 5, (7, 3)), rng.random(len(producers)), pieces=3)
        placement, piece = rng.integers(0, 3, 7).tolist(), np.sort(rng.integers(1, 4, 7))
        found = evaluate(problem, placement, {"piece": {(v,): float(p) for v, p in enumerate(piece)}})
        if found.feasible:
            seen += 1
            again = read_back(problem, placement, found)
            assert again.times == found.times
            assert again.values == found.values
    assert seen > 15
