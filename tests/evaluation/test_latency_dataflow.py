"""One sample under schedule ``dataflow``, by hand: operators, transfers, devices that take turns, ports and links."""

from __future__ import annotations

import numpy as np
import pytest
from support.latency_problems import INF, dataflow_problem, run, starts

from placedsl.evaluation.evaluate import evaluate

RING = [(0, 1, 1.0, 0.0), (1, 2, 1.0, 0.0), (2, 0, 1.0, 0.0)]
MESH = [(a, b, 1.0, 0.0) for a in range(3) for b in range(3) if a != b]


def fan(rules=(), links=MESH, size=(2, 2), **changes):
    """a and b make a tensor each; c reads that of a, d that of b."""
    return dataflow_problem(
        [(0, 2, 0), (1, 3, 1)], [0, 1], [[1] * 3, [1] * 3, [3] * 3, [1] * 3], size, links, rules=rules
    )


# what waits for what


def test_a_node_starts_when_its_last_tensor_has_arrived() -> None:
    join = dataflow_problem([(0, 2, 0), (1, 2, 1)], [0, 1], [[1, 1], [5, 5], [1, 1]], [7, 1], [(0, 1, 2.0, 0.5)])
    found = run(join, [0, 0, 1])
    assert found.times.sent == {(0, 1): 1.0, (1, 1): 5.0}
    assert found.times.arrived == {(0, 1): 1.0 + 0.5 + 3.5, (1, 1): 5.0 + 0.5 + 0.5}
    assert found.times.start == [0.0, 0.0, 6.0]
    assert found.times.latency == 7.0


def test_on_its_own_device_a_reader_waits_for_the_producer_only() -> None:
    found = run(fan(), [0, 1, 0, 1])
    assert found.times.sent == {}
    assert found.times.finish == [1.0, 1.0, 4.0, 2.0]


def test_without_further_rules_devices_and_links_do_everything_at_once() -> None:
    found = run(fan(), [0, 0, 1, 1])
    assert found.times.start == [0.0, 0.0, 3.0, 3.0]
    assert found.times.latency == 6.0


def test_a_tensor_goes_once_to_each_device_that_reads_it() -> None:
    """Three readers, two on one device: two transfers, and ports that carry one at a time carry each once."""
    edges = [(0, 1, 0), (0, 2, 0), (0, 3, 0)]
    three = dataflow_problem(edges, [0], [[1] * 3] * 4, [2], MESH, rules=[("congestion", "port")])
    found = run(three, [0, 1, 1, 2])
    assert sorted(found.times.sent) == [(0, 1), (0, 2)]
    assert sorted(found.times.sent.values()) == [1.0, 3.0]


def test_a_reader_on_the_producers_device_does_not_wait_for_the_transfer() -> None:
    both = dataflow_problem([(0, 1, 0), (0, 2, 0)], [0], [[1] * 3] * 3, [2], MESH)
    assert run(both, [0, 0, 1]).times.start == [0.0, 1.0, 3.0]


def test_over_several_hops_a_tensor_takes_all_latencies_and_the_slowest_bandwidth() -> None:
    ring = dataflow_problem([(0, 1, 0)], [0], [[1] * 3] * 2, [6], [(0, 1, 2.0, 0.25), (1, 2, 3.0, 0.5)])
    assert run(ring, [0, 2]).times.arrived == {(0, 2): 1.0 + 0.75 + 3.0}


def test_a_device_without_a_way_to_it_is_told() -> None:
    one_way = dataflow_problem([(0, 1, 0)], [0], [[1] * 2] * 2, [6], [(0, 1, 2.0, 0.0)])
    run(one_way, [0, 1])
    (violation,) = evaluate(one_way, [1, 0]).violations
    assert (violation.rule, violation.message) == ("routes", "tensor of a cannot go from gpu[2] to gpu[1]")


def test_times_that_the_graph_gives_count_as_they_stand() -> None:
    given = np.zeros((2, 3, 3))
    given[0, 0, 1], given[1, 0, 1] = 4.0, 0.0
    problem = dataflow_problem([(0, 2, 0), (1, 3, 1)], [0, 1], [[1] * 3] * 4, given=given)
    assert run(problem, [0, 0, 1, 1]).times.arrived == {(0, 1): 5.0, (1, 1): 1.0}


# devices, ports and links


def test_a_sequential_device_runs_one_node_at_a_time() -> None:
    found = run(fan(["sequential"]), [0, 0, 0, 0])
    spans = sorted(zip(found.times.start, found.times.finish, strict=True))
    assert [a for a, _ in spans[1:]] == [b for _, b in spans[:-1]]
    assert found.times.latency == 6.0


def test_ports_carry_one_transfer_in_each_direction() -> None:
    """Both leave gpu[1]; then both come into gpu[1]; then one leaves it while the other comes in."""
    port = fan([("congestion", "port")])
    assert run(port, [0, 0, 1, 2]).times.sent == {(0, 1): 1.0, (1, 2): 3.0}
    assert run(port, [1, 2, 0, 0]).times.sent == {(0, 0): 1.0, (1, 0): 3.0}
    assert run(port, [0, 1, 1, 0]).times.sent == {(0, 1): 1.0, (1, 0): 1.0}


def test_links_carry_one_transfer_each() -> None:
    link = fan([("congestion", "link")])
    assert run(link, [0, 0, 1, 2]).times.sent == {(0, 1): 1.0, (1, 2): 1.0}  # two links
    assert run(link, [0, 0, 1, 1]).times.sent == {(0, 1): 1.0, (1, 1): 3.0}  # one
    assert run(link, [0, 1, 1, 0]).times.sent == {(0, 1): 1.0, (1, 0): 1.0}  # one each way


def test_a_transfer_occupies_every_link_of_its_route_all_the_time() -> None:
    """From gpu[1] over gpu[2] to gpu[3], and from gpu[2] to gpu[3]; no port of gpu[2] is involved in the first."""
    link, port = fan([("congestion", "link")], RING), fan([("congestion", "port")], RING)
    found = run(link, [0, 1, 2, 2])
    assert found.times.sent == {(0, 2): 1.0, (1, 2): 3.0}
    assert run(link, [0, 0, 2, 1]).times.sent == {(0, 2): 1.0, (1, 1): 3.0}
    assert run(port, [0, 1, 2, 1]).times.sent == {(0, 2): 1.0}


def test_a_free_port_is_not_enough() -> None:
    """The transfer of b waits for the way out of gpu[1] and for that into gpu[3], which two others have."""
    edges = [(0, 3, 0), (1, 4, 1), (2, 5, 2)]
    problem = dataflow_problem(edges, [0, 1, 2], [[1] * 3] * 6, [4, 2, 3], MESH, rules=[("congestion", "port")])
    found = run(problem, [0, 0, 1, 1, 2, 2])
    assert found.times.sent == {(0, 1): 1.0, (2, 2): 1.0, (1, 2): 5.0}


def test_what_takes_no_time_meets_nothing() -> None:
    """A node of no length starts amid another; a transfer of no length leaves amid another."""
    two = dataflow_problem([], [], [[4] * 2, [0] * 2], [], rules=["sequential"])
    found = run(two, [0, 0], starts(0.0, 2.0))
    assert found.times.start == [0.0, 0.0]
    crossing = fan([("congestion", "port")], size=(0, 2))
    assert run(crossing, [0, 0, 1, 1]).times.sent == {(0, 1): 1.0, (1, 1): 1.0}


def test_what_takes_no_time_waits_all_the_same() -> None:
    line = dataflow_problem(
        [(0, 1, 0), (1, 2, 1)], [0, 1], [[2] * 2, [0] * 2, [2] * 2], [0, 0], [(0, 1, 1, 0), (1, 0, 1, 0)]
    )
    found = run(line, [0, 1, 0])
    assert found.times.start == [0.0, 2.0, 2.0]


# the dispatch rule


def test_of_two_that_could_start_the_one_goes_first_that_more_is_to_come_after() -> None:
    found = run(fan(["sequential"]), [0, 0, 1, 2])
    assert found.times.start == [0.0, 1.0, 3.0, 4.0]  # a, as c takes longer than d
    longer_last = dataflow_problem([(1, 2, 0)], [1], [[1], [1], [3]], [0], rules=["sequential"])
    assert run(longer_last, [0, 0, 0]).times.start[:2] == [4.0, 0.0]


def test_transfers_are_to_come_as_well() -> None:
    found = run(fan(["sequential"], size=(0.5, 9)), [0, 0, 1, 2])
    assert found.times.start[:2] == [1.0, 0.0]


def test_a_device_does_not_wait_for_what_is_more_urgent_but_not_there_yet() -> None:
    """b is there, c comes a little later and has more after it: b goes first all the same."""
    edges = [(0, 2, 0), (2, 3, 1)]
    problem = dataflow_problem(
        edges,
        [0, 2],
        [[0.5] * 2, [4] * 2, [1] * 2, [9] * 2],
        [0, 0],
        [(0, 1, 1, 0), (1, 0, 1, 0)],
        rules=["sequential"],
    )
    found = run(problem, [0, 1, 1, 1])
    assert found.times.start[1:3] == [0.0, 4.0]


def test_what_becomes_ready_at_an_instant_is_compared_before_anything_starts() -> None:
    """a ends when b, which takes no time, could start: c, which waits for b, is more urgent than d."""
    edges = [(0, 1, 0), (1, 2, 1), (0, 3, 2)]
    problem = dataflow_problem(edges, [0, 1, 0], [[2], [0], [5], [1]], [0, 0, 0], rules=["sequential"])
    assert run(problem, [0] * 4).times.start == [0.0, 2.0, 2.0, 7.0]


# starts that an answer gives


def test_given_starts_are_an_order() -> None:
    sequential = fan(["sequential"])
    assert run(sequential, [0] * 4, starts(0, 1, 2, 5)).times.start == [0.0, 1.0, 2.0, 5.0]
    assert run(sequential, [0] * 4, starts(50, 10, 70, 30)).times.start == [2.0, 0.0, 3.0, 1.0]


def test_given_leaving_times_are_an_order() -> None:
    port = fan([("congestion", "port")])
    found = run(port, [0, 0, 1, 2], starts(0, 0, 9, 9, sent={(0, 1): 5.0, (1, 2): 1.0}))
    assert found.times.sent == {(1, 2): 1.0, (0, 1): 3.0}
    assert found.times.start == [0.0, 0.0, 5.0, 3.0]


def test_ties_are_decided_by_number() -> None:
    assert run(fan(["sequential"]), [0] * 4, starts(7, 7, 7, 7)).times.start == [0.0, 1.0, 2.0, 5.0]
    crossing = dataflow_problem(
        [(1, 2, 1), (0, 2, 0)], [0, 1], [[1] * 2] * 3, [1, 1], [(0, 1, 1, 0)], rules=[("congestion", "port")]
    )
    assert run(crossing, [0, 0, 1], starts(0, 0, 9, sent={(0, 1): 1.0, (1, 1): 1.0})).times.sent == {
        (0, 1): 1.0,
        (1, 1): 2.0,
    }


def test_a_start_before_that_of_what_it_waits_for_is_one_right_after_it() -> None:
    """c is said to start before a, which it reads from; b stays last."""
    found = run(fan(["sequential"]), [0] * 4, starts(1, 5, 0, 9))
    assert found.times.start == [0.0, 4.0, 1.0, 5.0]


def test_a_transfer_of_which_nothing_is_said_leaves_in_the_order_of_the_makers() -> None:
    port = fan([("congestion", "port")])
    assert run(port, [0, 0, 1, 2], starts(4, 0, 9, 9)).times.sent == {(1, 2): 1.0, (0, 1): 3.0}


def test_starts_are_kept_where_a_rule_needs_them() -> None:
    """Only the order counts, until a constraint of the spec asks for more."""
    import placedsl

    text = """graph {
        node a { time = 2 s }
        node b { time = 2 s }
    }
    device gpu: accelerator
    minimize latency
    subject to
        late: start(b) >= 7 s
    """
    problem = placedsl.loads(text).problem
    assert [v.rule for v in evaluate(problem, [0, 0]).violations] == ["late"]
    kept = run(problem, [0, 0], starts(1, 8))
    assert kept.times.start == [1.0, 8.0]
    assert kept.objectives == (10.0,)
    early = evaluate(problem, [0, 0], starts(1, 6))
    assert [v.rule for v in early.violations] == ["late"]
    assert early.times.start == [0.0, 0.0]


def test_a_kept_start_that_comes_too_early_is_moved() -> None:
    """The device is busy, or the tensor is not there yet; what comes after is moved as well."""
    import placedsl

    text = """graph {
        node a { time = 2 s, output = 1 MB }
        node b { time = 2 s }
        a -> b
    }
    device gpu[2]: accelerator
    interconnect { bandwidth = 1 MB/s }
    minimize latency
    subject to
        late: start(a) >= 1 s
    """
    problem = placedsl.loads(text).problem
    found = run(problem, [0, 1], starts(1, 2, sent={(0, 1): 2.5}))
    assert found.times.start == [1.0, 4.0]
    assert found.times.sent == {(0, 1): 3.0}


# what is asked of a run


def test_quantities_of_tensors_that_do_not_move() -> None:
    from placedsl.evaluation.evaluate import quantities_of
    from placedsl.evaluation.problem_data import ProblemData

    problem = fan()
    quantities = quantities_of(ProblemData(problem), [0, 1, 1, 1])
    assert quantities.of_element("moved", (0, 0, 1)) == 1.0
    assert quantities.of_element("moved", (0, 1, 1)) == 0.0
    assert quantities.of_element("moved", (1, 1, 1)) == 0.0
    assert (quantities.of_element("sent", (0, 1)), quantities.of_element("arrived", (0, 1))) == (1.0, 3.0)
    assert quantities.of_element("sent", (1, 0)) == quantities.of_element("arrived", (1, 0)) == 1.0  # when it is made


def test_a_node_that_a_device_does_not_support_is_told_and_has_no_times() -> None:
    found = evaluate(dataflow_problem([], [], [[1, INF]], []), [1])
    assert [v.rule for v in found.violations] == ["supported"]
    assert found.times is None


def test_loads_are_computation_alone() -> None:
    assert run(fan(), [0, 0, 1, 1]).loads == pytest.approx([2.0, 4.0, 0.0])
