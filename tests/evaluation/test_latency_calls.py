"""One sample under schedule ``calls``: the sentences of Tarnawski et al. 2020, section 4, by hand; random graphs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from support.latency_problems import calls_problem, random_graph, run

from placedsl.evaluation.evaluate import evaluate, quantities_of
from placedsl.evaluation.problem_data import ProblemData
from placedsl.problem.problem import Problem

GPU, OTHER, CPU = range(3)


def pieces(*numbers):
    return {"piece": {(v,): float(p) for v, p in enumerate(numbers)}}


def chain(pieces=1, **changes):
    """a -> b -> c: 1, 2 and 4 on accelerators, ten times that on the host; every tensor takes 0.5 in or out."""
    given = {
        "edges": [(0, 1, 0), (1, 2, 1)], "producers": [0, 1, 2], "time": [[1, 1, 10], [2, 2, 20], [4, 4, 40]],
        "transfer": [0.5, 0.5, 0.5],
    }  # fmt: skip
    return calls_problem(**(given | changes), pieces=pieces)


def test_a_call_transfers_in_computes_and_transfers_out() -> None:
    found = run(chain(), [CPU, GPU, CPU])
    assert found.times.calls == {(GPU, 1): (10.0, 13.0)}  # 0.5 in, 2 of work, 0.5 out
    assert found.times.start == [0.0, 10.0, 13.0]
    assert found.times.finish == [10.0, 13.0, 53.0]
    assert found.times.latency == 53.0


def test_what_stays_within_a_call_is_not_transferred() -> None:
    found = run(chain(), [GPU, GPU, GPU])
    assert found.times.calls == {(GPU, 1): (0.0, 7.0)}


def test_all_nodes_of_a_call_end_with_it_and_so_do_its_outputs() -> None:
    """b is done early, and its reader waits all the same until c is done."""
    fork = calls_problem(
        [(0, 1, 0), (0, 2, 0), (1, 3, 1)], [0, 1], [[1, 1, 1], [1, 1, 1], [7, 7, 7], [1, 1, 1]], [0.5] * 2
    )
    found = run(fork, [GPU, GPU, GPU, CPU])
    assert found.times.finish == [9.5, 9.5, 9.5, 10.5]


def test_a_call_waits_for_all_of_its_inputs_even_for_those_of_its_last_node() -> None:
    join = calls_problem([(0, 1, 0), (2, 1, 1)], [0, 2], [[1, 1, 1], [1, 1, 1], [9, 9, 9]], [0.5] * 2)
    found = run(join, [GPU, GPU, CPU])
    assert found.times.calls[GPU, 1] == (9.0, 11.5)


def test_a_tensor_is_transferred_once_a_call_however_many_read_it() -> None:
    fan = calls_problem([(0, 1, 0), (0, 2, 0), (0, 3, 0)], [0], [[1, 1, 1]] * 4, [0.5])
    assert run(fan, [CPU, GPU, GPU, GPU]).times.latency == 1 + 0.5 + 3
    found = run(fan, [GPU, OTHER, OTHER, CPU])
    assert found.times.calls == {(GPU, 1): (0.0, 1.5), (OTHER, 1): (1.5, 4.0)}  # out once, although two devices read it


def test_two_tensors_of_one_node_are_two_transfers() -> None:
    two = calls_problem([(0, 1, 0), (0, 1, 1)], [0, 0], [[1, 1, 1]] * 2, [0.5, 0.25])
    assert run(two, [GPU, OTHER]).times.calls == {(GPU, 1): (0.0, 1.75), (OTHER, 1): (1.75, 3.5)}


def test_a_tensor_that_nobody_reads_outside_costs_nothing() -> None:
    assert run(chain(transfer=[0.5, 0.5, 9.0]), [GPU, GPU, GPU]).times.latency == 7.0


def test_hosts_do_everything_at_once_and_transfer_for_nothing() -> None:
    fan = calls_problem([(0, 1, 0), (0, 2, 0), (1, 3, 1), (2, 3, 2)], [0, 1, 2], [[1, 1, 3]] * 4, [0.5] * 3)
    found = run(fan, [CPU] * 4)
    assert found.times.start == [0.0, 3.0, 3.0, 6.0]
    assert found.times.latency == 9.0
    assert found.times.calls == {}


def test_accelerators_run_beside_one_another() -> None:
    fan = calls_problem([(0, 1, 0), (0, 2, 0)], [0], [[4, 4, 3]] * 3, [0.5])
    assert run(fan, [CPU, GPU, OTHER]).times.calls == {(GPU, 1): (3.0, 7.5), (OTHER, 1): (3.0, 7.5)}


def test_calls_of_one_accelerator_follow_one_another_by_their_numbers() -> None:
    """The second call could start before the first, and may not."""
    two = calls_problem([(0, 1, 0)], [0], [[9, 9, 9], [1, 1, 1], [2, 2, 2]], [0.5], pieces=2)
    found = run(two, [CPU, GPU, GPU], pieces(1, 1, 2))
    assert found.times.calls == {(GPU, 1): (9.0, 10.5), (GPU, 2): (10.5, 12.5)}
    found = run(two, [CPU, GPU, GPU], pieces(1, 2, 1))
    assert found.times.calls == {(GPU, 1): (0.0, 2.0), (GPU, 2): (9.0, 10.5)}


def test_from_call_to_call_of_one_accelerator_a_tensor_goes_through_ram() -> None:
    found = run(chain(pieces=2), [GPU, GPU, GPU], pieces(1, 1, 2))
    assert found.times.calls == {(GPU, 1): (0.0, 3.5), (GPU, 2): (3.5, 8.0)}
    assert found.loads[GPU] == 8.0


def test_a_tensor_read_in_two_calls_comes_in_twice() -> None:
    fan = calls_problem([(0, 1, 0), (0, 2, 0)], [0], [[1, 1, 1]] * 3, [0.5], pieces=2)
    assert run(fan, [CPU, GPU, GPU], pieces(1, 1, 2)).times.calls == {(GPU, 1): (1.0, 2.5), (GPU, 2): (2.5, 4.0)}


def test_an_empty_call_takes_no_time() -> None:
    assert run(chain(pieces=3), [GPU, GPU, GPU], pieces(2, 2, 3)).times.calls == {
        (GPU, 2): (0.0, 3.5),
        (GPU, 3): (3.5, 8.0),
    }


def test_without_pieces_everything_of_an_accelerator_is_one_call() -> None:
    assert run(chain(pieces=2), [GPU, GPU, GPU]).times.latency == 7.0


def test_nodes_of_no_length_still_wait() -> None:
    found = run(chain(time=[[0, 0, 0]] * 3, transfer=[0.0, 0.0, 3.0]), [CPU, GPU, CPU])
    assert found.times.finish == [0.0, 0.0, 0.0]
    found = run(chain(time=[[0, 0, 0]] * 3), [CPU, GPU, CPU])
    assert found.times.finish == [0.0, 1.0, 1.0]


def test_two_accelerators_that_wait_for_one_another_are_told() -> None:
    """a and c on one device, b on the other: the device would have to be interrupted."""
    found = evaluate(chain(), [GPU, OTHER, GPU])
    (violation,) = found.violations
    assert violation.rule == "calls"
    assert violation.message in (
        "these wait for one another: gpu[1] -> gpu[2] -> gpu[1]",
        "these wait for one another: gpu[2] -> gpu[1] -> gpu[2]",
    )
    assert found.times is None
    assert np.isnan(found.objectives).all()


def test_an_accelerator_and_a_host_node_that_wait_for_one_another_are_told() -> None:
    (violation,) = evaluate(chain(), [GPU, CPU, GPU]).violations
    assert violation.rule == "calls"
    assert "b" in violation.message


def test_two_calls_undo_the_circle() -> None:
    found = run(chain(pieces=2), [GPU, OTHER, GPU], pieces(1, 1, 2))
    assert found.times.calls == {(GPU, 1): (0.0, 1.5), (OTHER, 1): (1.5, 4.5), (GPU, 2): (4.5, 9.0)}


def test_calls_in_the_wrong_order_wait_for_one_another() -> None:
    (violation,) = evaluate(chain(pieces=2), [GPU, OTHER, GPU], pieces(2, 1, 1)).violations
    assert violation.rule == "calls"
    assert "gpu[1] (call 2)" in violation.message


@pytest.mark.parametrize(("first", "last", "told"), [(1, 3, "c in call 3"), (0, 2, "a in call 0")])
def test_a_call_of_a_number_that_there_is_not_is_told(first: int, last: int, told: str) -> None:
    violations = evaluate(chain(pieces=2), [GPU, GPU, GPU], pieces(first, 1, last)).violations
    assert [v.rule for v in violations] == ["pieces"]
    assert violations[0].message == f"a device has calls 1 to 2: {told}"


def test_the_number_of_a_call_is_the_nearest_whole_one() -> None:
    """As solvers give it."""
    assert run(chain(pieces=2), [GPU, GPU, GPU], pieces(1, 0.9999999, 1.9999999)).times.latency == 8.0


def test_what_an_answer_says_of_calls_is_kept_of_hosts_it_is_one() -> None:
    found = run(chain(pieces=2), [CPU, GPU, GPU], pieces(2, 1, 2))
    assert found.values["piece"] == {(0,): 1.0, (1,): 1.0, (2,): 2.0}


def longest_paths(problem: Problem, placement, piece):
    """Starts and ends by longest paths between the begin and the end of each call, and of each node on a host; None
    where there is a circle."""
    graph = problem.graph
    host = [problem.machine.devices[d].kind == "host" for d in placement]
    unit = [("host", v, 0) if host[v] else ("call", placement[v], piece[v]) for v in range(graph.nodes)]
    reads = set(zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True))
    world = nx.DiGraph()
    for one in set(unit):
        inside = [v for v in range(graph.nodes) if unit[v] == one]
        comes_in = {t for t, r in reads if unit[r] == one and unit[graph.tensor_producer[t]] != one}
        goes_out = {t for t, r in reads if unit[r] != one and unit[graph.tensor_producer[t]] == one}
        length = sum(problem.time[v, placement[v]] for v in inside)
        if one[0] == "call":
            length += sum(problem.transfer[t, one[1]] for t in [*comes_in, *goes_out])
        world.add_edge((one, "begin"), (one, "end"), weight=-length)
        for t in comes_in:
            world.add_edge((unit[graph.tensor_producer[t]], "end"), (one, "begin"), weight=0.0)
    for a in set(unit):
        for b in set(unit):
            if a[:2] == b[:2] and a[0] == "call" and a[2] < b[2]:
                world.add_edge((a, "end"), (b, "begin"), weight=0.0)
    if not nx.is_directed_acyclic_graph(world):
        return None
    world.add_edges_from((("source", ""), one) for one in list(world))
    ways = nx.single_source_bellman_ford_path_length(world, ("source", ""), weight=lambda u, v, d: d.get("weight", 0.0))
    return [-ways[one, "begin"] for one in unit], [-ways[one, "end"] for one in unit]


@pytest.mark.parametrize("seed", range(300))
def test_random_graphs_against_longest_paths(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes, q = int(rng.integers(2, 10)), int(rng.integers(1, 4))
    edges, producers = random_graph(rng, nodes, 0.5)
    kinds = ("accelerator",) * int(rng.integers(1, 4)) + ("host",) * int(rng.integers(0, 3))
    time = rng.uniform(1, 9, (nodes, len(kinds))) * (rng.random((nodes, 1)) < 0.85)
    problem = calls_problem(edges, producers, time, rng.uniform(0, 3, len(producers)), kinds, q)
    by_position = np.sort(rng.integers(1, q + 1, nodes))  # later nodes in later calls: few circles
    piece = by_position if rng.random() < 0.7 else rng.integers(1, q + 1, nodes)
    placement = (
        np.sort(rng.integers(0, len(kinds), nodes)) if rng.random() < 0.5 else rng.integers(0, len(kinds), nodes)
    )
    expected = longest_paths(problem, placement.tolist(), piece.tolist())
    found = evaluate(problem, placement, pieces(*piece))
    if expected is None:
        assert [v.rule for v in found.violations] == ["calls"]
        circle = quantities_of(ProblemData(problem), placement, pieces(*piece)).times.circle
        assert len(circle) == len(set(circle)) >= 2
        return
    assert found.times.start == pytest.approx(expected[0], rel=1e-12, abs=1e-12)
    assert found.times.finish == pytest.approx(expected[1], rel=1e-12, abs=1e-12)


def test_the_random_graphs_are_of_both_kinds() -> None:
    """Some wait in a circle, some do not, and with three calls more than with one do not."""
    ends = {1: [0, 0], 3: [0, 0]}
    for q, counts in ends.items():
        for seed in range(60):
            rng = np.random.default_rng(seed)
            edges, producers = random_graph(rng, 6, 0.5)
            problem = calls_problem(edges, producers, np.ones((6, 3)), [1.0] * len(producers), pieces=q)
            piece = np.sort(rng.integers(1, q + 1, 6))
            counts[evaluate(problem, rng.integers(0, 3, 6), pieces(*piece)).feasible] += 1
    assert ends[1][False] > 10
    assert ends[1][True] > 5
    assert ends[3][True] > ends[1][True]
