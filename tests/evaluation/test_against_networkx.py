"""Loads, convexity and contiguity of random problems against naive definitions."""

import random

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import evaluation_problems as c

from placedsl.evaluation.evaluate import evaluate
from placedsl.problem import expressions as core

KINDS = ("accelerator", "accelerator", "host")


@st.composite
def placed_problems(draw):
    n = draw(st.integers(1, 8))
    possible = [(u, v) for u in range(n) for v in range(u + 1, n)]
    chosen = draw(st.lists(st.sampled_from(possible), unique=True, max_size=14)) if possible else []
    producers = sorted({u for u, _ in chosen})
    edges = [(u, v, producers.index(u)) for u, v in chosen]
    numbers = st.integers(0, 50)
    time_of = [[draw(numbers) / 8 for _ in KINDS] for _ in range(n)]
    placement = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    backward = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    problem = c.problem_of(
        edges, producers, time_of, [draw(numbers) / 8 for _ in producers], backward=backward,
        memory=[float(draw(numbers)) for _ in range(n)],
        rules=[c.built_in("contiguous"), c.built_in("convex")],
        objectives=[c.goal(c.quantity(q)) for q in ("time_per_sample", "communication", "devices_used")],
    )  # fmt: skip
    return problem, placement


def graph_of(problem):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(problem.graph.nodes))
    graph.add_edges_from(zip(problem.graph.edge_source.tolist(), problem.graph.edge_target.tolist(), strict=True))
    return graph


@settings(max_examples=150, deadline=None)
@given(placed_problems())
def test_loads(case):
    problem, placement = case
    graph, out = graph_of(problem), evaluate(problem, placement)
    crossing = 0.0
    for d in range(3):
        load = sum(problem.time[v, d] for v in graph if placement[v] == d)
        for t, u in enumerate(problem.graph.tensor_producer.tolist()):
            inside = [placement[v] == d for v in (u, *graph.successors(u))]
            if any(inside) and not all(inside) and d < 2:
                load += problem.transfer[t, d]
                crossing += problem.transfer[t, d]
        assert out.loads[d] == pytest.approx(load)
    assert out.objectives == pytest.approx((max(out.loads), crossing, len(set(placement))))


@settings(max_examples=300, deadline=None)
@given(placed_problems())
def test_convex_and_contiguous(case):
    problem, placement = case
    graph = graph_of(problem)
    broken = [v.rule for v in evaluate(problem, placement).violations]
    pieces = 0
    for part in (False, True):
        within = graph.subgraph([v for v in graph if problem.graph.backward[v] == part])
        for d in range(3):
            held = {v for v in within if placement[v] == d}
            after = {w for v in held for w in nx.descendants(within, v)} - held
            pieces += any(nx.descendants(within, w) & held for w in after)
    assert broken.count("convex") == pieces
    devices = nx.DiGraph((placement[u], placement[v]) for u, v in graph.edges if placement[u] != placement[v])
    assert broken.count("contiguous") == (not nx.is_directed_acyclic_graph(devices))


@settings(max_examples=150, deadline=None)
@given(placed_problems(), st.sampled_from(["devices", "accelerators", "hosts"]))
def test_pipeline_of_some_devices(case, name):
    """By definition: an order of the sets, with no path from a later to an earlier set or out of one and back."""
    problem, placement = case
    graph = graph_of(problem)
    binder = c.bind("d", c.named(name, "device"))
    body = core.SetProperty("pipeline", (binder,), c.nodes(), c.v_on_d(), c.SPAN)
    chosen = {"devices": [0, 1, 2], "accelerators": [0, 1], "hosts": [2]}[name]
    held = {d: {v for v in graph if placement[v] == d} for d in chosen}
    below = {d: {w for v in held[d] for w in nx.descendants(graph, v)} for d in chosen}
    order = nx.DiGraph((d, e) for d in chosen for e in chosen if d != e and below[d] & held[e])
    convex = not any(nx.descendants(graph, w) & held[d] for d in chosen for w in below[d] - held[d])
    expected = convex and nx.is_directed_acyclic_graph(order)
    fresh = c.problem_of(
        [(u, v, 0) for u, v in graph.edges], [0], problem.time.tolist(), [0.0], rules=[c.custom(body)]
    )  # fmt: skip
    assert evaluate(fresh, placement).feasible == expected


@settings(max_examples=100, deadline=None)
@given(placed_problems())
def test_gpipe(case):
    problem, placement = case
    graph = graph_of(problem)
    gpipe = c.problem_of(
        list(zip(problem.graph.edge_source, problem.graph.edge_target, problem.graph.edge_tensor, strict=True)),
        problem.graph.tensor_producer.tolist(), problem.time.tolist(), problem.transfer[:, 0].tolist(),
        backward=problem.graph.backward.tolist(), schedule="gpipe", objectives=[c.goal(c.quantity("time_per_sample"))],
    )  # fmt: skip
    back = problem.graph.backward.tolist()
    cost = {(d, p): 0.0 for d in range(3) for p in (False, True)}
    for d, p in cost:
        cost[d, p] += sum(problem.time[v, d] for v in graph if placement[v] == d and back[v] == p)
        for t, u in enumerate(problem.graph.tensor_producer.tolist()):
            if d == 2:
                continue
            readers = list(graph.successors(u))
            if placement[u] == d and back[u] == p and any(placement[r] != d for r in readers):
                cost[d, p] += problem.transfer[t, d]
            if placement[u] != d and any(placement[r] == d and back[r] == p for r in readers):
                cost[d, p] += problem.transfer[t, d]
    out = evaluate(gpipe, placement)
    assert out.loads == pytest.approx([cost[d, False] + cost[d, True] for d in range(3)])
    best = sum(max(cost[d, p] for d in range(3)) for p in (False, True))
    assert out.objectives == pytest.approx((best,))


def test_two_thousand_nodes():
    rng = random.Random(1)
    n, kinds = 2000, ("accelerator",) * 6 + ("host",)
    edges = [(u, min(n - 1, u + rng.randint(1, 9)), u) for u in range(n - 1) for _ in range(2)]
    each = c.forall(
        [c.nodes(), c.devices()],
        c.logic("=>", c.v_on_d(), c.attribute(c.slot("v"), "supported", on=c.slot("d", "device"))),
    )
    rules = [
        c.built_in("memory"),
        c.built_in("contiguous"),
        c.built_in("convex"),
        c.built_in("colocated", "g"),
        c.custom(each),
    ]
    problem = c.problem_of(
        edges, list(range(n - 1)), [[1.0] * 7] * n, [0.5] * (n - 1), kinds=kinds, device_memory=(1e9,) * 7,
        rules=rules, groups={"g": [v // 2 for v in range(n)]}, objectives=[c.goal(c.quantity("time_per_sample"))],
    )  # fmt: skip
    placement = [v * 7 // n // 1 if v % 2 == 0 else (v - 1) * 7 // n for v in range(n)]
    out = evaluate(problem, placement)
    assert out.feasible


def test_pairs_of_nodes_by_devices():
    n = 235
    together = c.logic("and", c.v_on_d(), c.on(c.slot("w"), c.slot("d", "device")))
    light = c.compare(
        c.arithmetic(c.attribute(c.slot("v"), "memory"), "+", c.attribute(c.slot("w"), "memory")), "<=", c.number(2)
    )
    body = c.forall([c.nodes(), c.nodes("w"), c.devices()], c.logic("=>", together, light))
    problem = c.problem_of([], [], [[1.0] * 7] * n, [], kinds=("accelerator",) * 7, device_memory=(1e9,) * 7,
                           rules=[c.custom(body)])  # fmt: skip
    assert evaluate(problem, [v % 7 for v in range(n)]).feasible
