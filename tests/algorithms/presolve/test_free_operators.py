"""Operators without time share the device of another only where that loses nothing."""

from __future__ import annotations

import math
import re

import pytest
from support import enumeration
from support.brute_force import confirm_dynamic_program, least_time
from support.free_operators import text_with_free_operators

import placedsl
from placedsl.algorithms.pipelines import solve as pipelines
from placedsl.algorithms.presolve.attached import attached, relaxed

#: What is enumerated at most.
_MOST = 300_000


@pytest.mark.sampled(40)
@pytest.mark.parametrize("block", range(40))
def test_random_problems(block: int) -> None:
    """Fifty each, of inference and of training, under every schedule."""
    for number in range(50):
        seed = 50 * block + number
        schedule = ("pipedream", "pipedream", "gpipe", "duplex", "overlapped")[number % 5]
        training = number % 2 == 1
        core, free = (2, 3) if training else (0, 0)
        text = text_with_free_operators(seed, training=training, schedule=schedule, core=core, free=free)
        problem = placedsl.loads(text).problem
        if len(problem.machine.devices) ** problem.graph.nodes <= _MOST:
            confirm_dynamic_program(problem, least_time(problem))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("block", range(8))
@pytest.mark.parametrize("how", ["shared", "clusters"])
def test_shared_stages_and_clusters(how: str, block: int) -> None:
    for seed in range(15 * block, 15 * block + 15):
        text = text_with_free_operators(seed, core=2, free=2, **{how: True})  # type: ignore[arg-type]
        problem = placedsl.loads(text).problem
        if len(problem.machine.devices) ** problem.graph.nodes <= 5_000:
            confirm_dynamic_program(problem, enumeration.least(enumeration.enumerated(problem))[0])


@pytest.mark.parametrize(("output", "host"), [(1, 1), (4, 1), (0.25, 3)])
def test_a_view_of_a_tensor_that_others_read(output: float, host: int) -> None:
    """With its reader where what it makes costs no less than the tensor; else wherever that tensor is: it is open."""
    problem = placedsl.loads(_view(output)).problem
    known = attached(problem, pipelines.SUPPORTS)
    assert known is not None
    assert known.root.tolist() == [0, 1, 2, host]  # a, b, c, and the view that b reads
    assert known.open[3] == (host == 3)
    confirm_dynamic_program(problem, least_time(problem))


def _view(output: float) -> str:
    return (
        "graph {\n    node a { time = 3 ms, output = 1 MiB }\n"
        "    node b { time = 3 ms }\n    node c { time = 3 ms }\n"
        f"    node view {{ time = 0 ms, output = {1024 * output:.0f} KiB }}\n"
        "    a -> c\n    a -> view\n    view -> b\n}\n"
        "device gpu[2]: accelerator { memory = 1 GiB }\ninterconnect { bandwidth = 1 GiB/s }\n"
        "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n"
    )


def test_an_unread_operator_leaves_its_maker_where_memory_is_short() -> None:
    """Attached it does not fit, and the least value is that of moving it."""
    text = (
        "graph {\n    node a { time = 3 ms, output = 1 MiB, memory = 600 MiB }\n"
        "    node b { time = 3 ms, memory = 500 MiB }\n    node rest { time = 0 ms, memory = 500 MiB }\n"
        "    a -> b\n    a -> rest\n}\n"
        "device gpu[2]: accelerator { memory = 1 GiB }\ninterconnect { bandwidth = 1 GiB/s }\n"
        "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n"
    )
    problem = placedsl.loads(text).problem
    known = attached(problem, pipelines.SUPPORTS)
    assert known is not None
    assert known.open.tolist() == [False, False, True]
    found = pipelines.solve(problem)
    assert found.complete
    assert found.placement is not None
    assert found.placement[2] == found.placement[1] != found.placement[0]


def test_a_device_for_nothing_but_an_operator_without_time() -> None:
    """What comes before a boundary has no room with the devices of the units that take time."""
    text = (
        "graph {\n    node a { time = 3 ms, output = 1 MiB, memory = 600 MiB }\n"
        "    node b { time = 3 ms, memory = 600 MiB }\n    node first { time = 0 ms, memory = 600 MiB }\n"
        "    a -> b\n    first -> b\n}\n"
        "device gpu[3]: accelerator { memory = 610 MiB }\ninterconnect { bandwidth = 1 GiB/s }\n"
        "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n"
    )
    problem = placedsl.loads(text).problem
    confirm_dynamic_program(problem, least_time(problem))
    placement = pipelines.solve(problem).placement
    assert placement is not None
    assert len(set(placement.tolist())) == 3


def test_memory_at_the_boundaries_raises_the_bound() -> None:
    """Unread operators of the last unit go nowhere else: the first bound knows that, before any of them is counted."""
    nodes = "".join(f"    node x{i} {{ time = 0 ms, memory = 100 MiB }}\n    c -> x{i}\n" for i in range(3))
    text = (
        "graph {\n    node a { time = 4 ms, memory = 100 MiB }\n    node b { time = 3 ms, memory = 500 MiB }\n"
        f"    node c {{ time = 3 ms, memory = 300 MiB }}\n    a -> b -> c\n{nodes}}}\n"
        "device gpu[2]: accelerator { memory = 1000 MiB }\ninterconnect { bandwidth = 1 GiB/s }\n"
        "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n"
    )
    problem = placedsl.loads(text).problem
    confirm_dynamic_program(problem, least_time(problem))
    known = attached(problem, pipelines.SUPPORTS)
    assert known is not None
    assert known.open.sum() == 3
    smaller = relaxed(known, known.open & False)
    bounds = [
        pipelines.searched(smaller.problem, fewest=False, behind=behind).value for behind in (None, smaller.behind)
    ]
    assert bounds[0] < bounds[1] == pytest.approx(least_time(problem))


def test_what_is_inside_the_graph_is_counted_from_the_start() -> None:
    text = (
        "graph {\n    node a { time = 3 ms, memory = 300 MiB }\n    node add { time = 0 ms, memory = 300 MiB }\n"
        "    node b { time = 3 ms, memory = 300 MiB }\n    node c { time = 3 ms, memory = 300 MiB }\n"
        "    node rest { time = 0 ms, memory = 100 MiB }\n    a -> add -> b -> c\n    a -> b\n    a -> rest\n}\n"
        "device gpu[2]: accelerator { memory = 700 MiB }\ninterconnect { bandwidth = 1 GiB/s }\n"
        "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n"
    )
    problem = placedsl.loads(text).problem
    known = attached(problem, pipelines.SUPPORTS)
    assert known is not None
    assert known.open.tolist() == [False, True, False, False, True]
    assert known.inside.tolist() == [False, True, False, False, False]
    confirm_dynamic_program(problem, least_time(problem))


@pytest.mark.parametrize("rule", [
    "few = forall d in accelerators: count(v in nodes: v on d) <= 3",
    "away = forall d in accelerators: count(v in nodes: v on d and v.memory > 0 MiB) <= 3",
    "small = forall d in accelerators: sum(v in nodes: v.memory * (v on d)) <= 700 MiB",
])  # fmt: skip
def test_rules_of_the_user_that_may_care_switch_it_off(rule: str) -> None:
    text = text_with_free_operators(3, core=3, free=3)
    head, tail = text.split("minimize")
    problem = placedsl.loads(f"{head}constraint {rule}\nminimize{tail}    {rule.partition(' ')[0]}\n").problem
    assert attached(problem, pipelines.SUPPORTS) is None
    assert attached(placedsl.loads(text).problem, pipelines.SUPPORTS) is not None


@pytest.mark.parametrize("seed", range(6))
def test_where_devices_stream_what_does_not_fit_it_is_switched_off(seed: int) -> None:
    """An unread operator with parameters takes time where they do not fit; the whole planner against enumeration."""
    text = text_with_free_operators(seed, core=3, free=2).replace("    memory\n", "")
    text = re.sub(r"accelerator \{ memory = \S+ \S+ \}", "accelerator { memory = 1 MiB, streams = 1 GiB/s }", text)
    assert "streams" in text
    spec = placedsl.loads(text)
    assert attached(spec.problem, pipelines.SUPPORTS) is None
    least = enumeration.least(enumeration.enumerated(spec.problem))[0]
    found = spec.solve()
    assert found.termination == "optimal"
    assert found.value == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_answers_under_a_rule_that_counts_operators(seed: int) -> None:
    """The whole planner against enumeration by the evaluator."""
    head, tail = text_with_free_operators(seed, core=3, free=2).split("minimize")
    rule = "constraint few = forall d in accelerators: count(v in nodes: v on d) <= 3\n"
    spec = placedsl.loads(f"{head}{rule}minimize{tail}    few\n")
    least = enumeration.least(enumeration.enumerated(spec.problem))[0]
    answer = spec.solve(solver="cp-sat") if seed % 2 else spec.solve()
    if math.isinf(least):
        assert answer.termination == "infeasible"
    else:
        assert answer.value == pytest.approx(least, rel=1e-6)
        assert answer.bound <= least * (1 + 1e-6)


def test_explain_says_what_is_done() -> None:
    text = pipelines.fits(placedsl.loads(_view(1)).problem).presolve
    assert text == "1 of 4 units take no time; 1 of them share the device of another without loss"


def test_graphs_of_nothing_but_operators_without_time() -> None:
    """All of them are open where memory is short."""
    text = (
        "graph {\n    node a { time = 0 ms, memory = 600 MiB }\n    node b { time = 0 ms, memory = 600 MiB }\n"
        "    a -> b\n}\ndevice gpu[2]: accelerator { memory = 1 GiB }\ninterconnect { bandwidth = 1 GiB/s }\n"
        "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n"
    )
    confirm_dynamic_program(placedsl.loads(text).problem, 0.0)
