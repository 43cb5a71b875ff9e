"""Every quantity of the vocabulary against values computed by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support.evaluation_problems import INF, SPAN, built_in, device, diamond, goal, problem_of, quantity

from placedsl.diagnostics import InputError
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.execution import DataParallelism, Execution

SPLIT = [0, 0, 1, 1, 2]  # a, b on gpu[1]; c, d on gpu[2]; e on the host


def value(problem_changes, placement, name, *arguments):
    problem = diamond(objectives=[goal(quantity(name, *arguments))], **problem_changes)
    return evaluate(problem, placement).objectives[0]


def test_loads_pipedream():
    # gpu[1]: 1 + 2, writes tensors 0 and 1; gpu[2]: 3 + 4, reads 0 (once) and 1, writes 3; host: times only.
    out = evaluate(diamond(), SPLIT)
    assert out.loads == (3 + 0.5 + 0.25, 7 + 0.5 + 0.25 + 0.0625, 50.0)
    assert out.memory == (3.0, 7.0, 5.0)
    assert out.nodes == ((0, 1), (2, 3), (4,))
    assert out.feasible


def test_one_device_transfers_nothing():
    assert evaluate(diamond(), [0] * 5).loads == (15.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("load", (device(0),), 3.75),
        ("load", (device(2),), 50.0),
        ("memory", (device(1),), 7.0),
        ("traffic", (device(0), device(1)), 300.0),
        ("traffic", (device(1), device(2)), 800.0),
        ("traffic", (device(1), device(0)), 0.0),
        ("traffic", (device(0), device(0)), 0.0),
        ("time_per_sample", (), 50.0),
        ("devices_used", (), 3.0),
        ("communication", (), 0.75 + 0.8125),
        ("peak_memory", (), 7.0),
    ],
)
def test_quantity(name, arguments, expected):
    assert value({}, SPLIT, name, *arguments) == expected


def test_devices_used_and_peak_memory_of_accelerators_only():
    assert value({"time": [[1, 1, 1]] * 5}, [2] * 5, "devices_used") == 1.0
    assert value({"time": [[1, 1, 1]] * 5}, [2] * 5, "peak_memory") == 0.0
    hosts = {"kinds": ("host",), "device_memory": (INF,), "time": [[1.0]] * 5}
    assert value(hosts, [0] * 5, "peak_memory") == 0.0


def gpipe(**changes):
    """a -> b forward, both read by c and d backward; tensor of a: b, c, d; of b: c."""
    given = {
        "edges": [(0, 1, 0), (0, 2, 0), (0, 3, 0), (1, 2, 1)],
        "producers": [0, 1],
        "time": [[1, 1, 10], [2, 2, 20], [4, 4, 40], [8, 8, 80]],
        "transfer": [0.5, 0.25],
        "backward": [False, False, True, True],
        "schedule": "gpipe",
    }
    return problem_of(**(given | changes))


def test_gpipe_counts_a_tensor_in_each_pass_that_reads_it():
    # a alone on gpu[1]: writes tensor 0 once, forward.  gpu[2]: tensor 0 read in both passes, tensor 1 stays.
    problem = gpipe(objectives=[goal(quantity("time_per_sample")), goal(quantity("communication"))])
    out = evaluate(problem, [0, 1, 1, 1])
    assert out.loads == (1 + 0.5, (2 + 0.5) + (12 + 0.5), 0.0)
    assert out.objectives == (max(1.5, 2.5) + max(0.0, 12.5), 0.5 + 0.5)
    once = evaluate(gpipe(schedule="pipedream", objectives=problem.objectives), [0, 1, 1, 1])
    assert once.loads == (1.5, 14.5, 0.0)
    assert once.objectives == (14.5, 1.0)


def test_gpipe_maxima_may_sit_on_different_devices():
    # gpu[1] has the backward part, gpu[2] the forward part.
    problem = gpipe(objectives=[goal(quantity("time_per_sample"))])
    out = evaluate(problem, [1, 1, 0, 0])
    # gpu[2] writes both tensors forward; gpu[1] reads both backward.
    assert out.loads == (12 + 0.75, 3 + 0.75, 0.0)
    assert out.objectives == (12.75 + 3.75,)


def running(order, communication, **changes):
    problem = gpipe(**changes)
    return replace(problem, execution=Execution(order=order, communication=communication))


@pytest.mark.parametrize(
    ("communication", "loads", "time_per_sample"),
    [
        # gpu[2] computes 3 and sends 2 + 1 forward; gpu[1] receives 2 + 1 and computes 12 backward.
        ("sequential", (12 + 3, 3 + 3, 0.0), 15 + 6),
        ("overlapped", (12, 3, 0.0), 12 + 3),
        ("full_duplex", (12, 3, 0.0), 12 + 3),
    ],
)
def test_gpipe_takes_the_longer_of_work_and_transfers_in_each_pass(communication, loads, time_per_sample):
    goals = [goal(quantity("time_per_sample")), goal(quantity("communication"))]
    out = evaluate(running("gpipe", communication, transfer=[2, 1], objectives=goals), [1, 1, 0, 0])
    assert out.loads == loads
    assert out.objectives == (time_per_sample, 6.0)


@pytest.mark.parametrize(
    ("order", "communication", "load", "forward", "backward"),
    [
        # gpu[2] computes 2 (b) forward and 4 (c) backward.  It reads tensor 0 (5) in both passes, so under 1F1B once;
        # tensor 1 (3) goes from b to c and stays; tensor 2 (7) goes from c to d on gpu[1].
        ("gpipe", "sequential", (2 + 5) + (4 + 5 + 7), 2 + 5, 4 + 5 + 7),
        ("gpipe", "overlapped", 5 + 12, 5, 5 + 7),
        ("gpipe", "full_duplex", 5 + 7, 5, 7),
        ("1f1b", "sequential", (2 + 4) + 5 + 7, 2 + 5, 4 + 5 + 7),
        ("1f1b", "overlapped", 5 + 7, 5, 5 + 7),
        ("1f1b", "full_duplex", 7, 5, 7),
    ],
)
def test_load_components_are_combined_alike_under_both_orders(order, communication, load, forward, backward):
    names = ("load", "forward_load", "backward_load")
    problem = running(
        order, communication, edges=[(0, 1, 0), (0, 2, 0), (0, 3, 0), (1, 2, 1), (2, 3, 2)], producers=[0, 1, 2],
        transfer=[5, 3, 7], objectives=[goal(quantity(name, device(1))) for name in names],
    )  # fmt: skip
    assert evaluate(problem, [0, 1, 1, 0]).objectives == (load, forward, backward)


def test_data_parallelism_needs_a_schedule_that_defines_its_load():
    sharing = DataParallelism((1, 2), np.zeros(1), np.zeros((1, 1)), SPAN)
    assert Execution(data_parallelism=sharing).parallelism == ("data",)
    for other in (Execution(run="subgraph_calls"), Execution(run="operators")):
        with pytest.raises(ValueError, match="not defined"):
            replace(other, data_parallelism=sharing)


def test_gpipe_host_has_times_only():
    assert evaluate(gpipe(), [2, 0, 2, 2]).loads == (2 + 0.5 + 0.25, 0.0, 130.0)


def test_tensor_written_in_the_backward_pass():
    problem = problem_of([(0, 1, 0)], [0], [[1, 1], [1, 1]], [0.5], backward=[True, True], schedule="gpipe",
                         kinds=("accelerator",) * 2, objectives=[goal(quantity("time_per_sample"))])  # fmt: skip
    assert evaluate(problem, [0, 1]).objectives == (1.5,)


def test_a_node_that_is_not_placed():
    out = evaluate(
        diamond(objectives=[goal(quantity("time_per_sample"))], rules=[built_in("memory")]), [0, -1, 0, 0, 7]
    )
    assert math.isnan(out.objectives[0])
    assert [v.rule for v in out.violations] == ["assigned", "assigned"]
    assert "1 node not placed: b" in out.violations[0].message
    assert "e on 7" in out.violations[1].message
    assert out.nodes == ((0, 2, 3), (), ())


def test_a_placement_of_the_wrong_length():
    with pytest.raises(InputError, match="4 entries"):
        evaluate(diamond(), [0, 0, 0, 0])


def test_a_device_that_does_not_support_the_node():
    out = evaluate(diamond(), [0, 0, 0, 2, 0])
    (violation,) = out.violations
    assert (violation.rule, violation.amount) == ("supported", 1.0)
    assert "d on cpu[1]" in violation.message
    assert out.loads[2] == INF


def test_empty_graph():
    out = evaluate(problem_of([], [], np.zeros((0, 3)), []), [])
    assert out.loads == (0.0, 0.0, 0.0)
    assert out.feasible


@pytest.mark.parametrize("schedule", ["pipedream", "gpipe"])
def test_transfers_of_a_host_never_count(schedule):
    problem = diamond(schedule=schedule)
    problem.transfer[:, 2] = 1000.0
    assert evaluate(problem, SPLIT).loads == (3.75, 7.8125, 50.0)
