"""What algorithms declare to support, and the reasons against problems that ask for more."""

from __future__ import annotations

from dataclasses import replace

import pytest

import placedsl
from placedsl.algorithms.baselines.supported_problems import ANY_PLACEMENT, THROUGHPUT
from placedsl.algorithms.partitions import short_annealing, stage_annealing
from placedsl.algorithms.partitions.bounds import relaxation
from placedsl.algorithms.pipelines import large_neighbourhood_search
from placedsl.algorithms.pipelines import solve as dynamic_programming
from placedsl.algorithms.subgraph_calls import instance as subgraph_calls
from placedsl.algorithms.supports import Supports, ignored, reasons_against
from placedsl.problem.problem import Problem

GRAPH = "graph {\n    node a { time = 1 ms, output = 1 MiB }\n    node b { time = 2 ms }\n    a -> b\n}\n"
DEVICES = "device gpu[2]: accelerator { memory = 4 GiB }\ninterconnect { bandwidth = 1 GB/s }\n"
CLUSTERS = """cluster rack[2] {
    device gpu[2]: accelerator { memory = 4 GiB }
    interconnect { bandwidth = 1 GB/s }
}
interconnect { bandwidth = 1 GB/s }
"""
PLAIN = "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n"


def problem(rest: str, devices: str = DEVICES) -> Problem:
    return placedsl.loads(GRAPH + devices + rest).problem


def test_what_is_declared_is_a_built_in_constraint() -> None:
    with pytest.raises(ValueError, match="memroy"):
        Supports(constraints=frozenset(("memroy",)))


def test_the_plain_problem_has_no_reasons_against_it() -> None:
    for supports in (dynamic_programming.SUPPORTS, large_neighbourhood_search.SUPPORTS, relaxation.SUPPORTS):
        assert reasons_against(problem(PLAIN), supports) == []
    assert ignored(problem(PLAIN), dynamic_programming.SUPPORTS) == []


@pytest.mark.parametrize(
    ("rest", "supports", "reasons"),
    [
        (PLAIN, short_annealing.SUPPORTS, ["it does not look at contiguous"]),
        (PLAIN.replace("time_per_sample", "communication"), THROUGHPUT,
         ["it minimises time_per_sample, not communication", "it does not look at contiguous"]),
        (PLAIN.replace("time_per_sample", "peak_memory"), dynamic_programming.SUPPORTS, []),
        (PLAIN.replace("time_per_sample", "communication"), dynamic_programming.SUPPORTS,
         ["it minimises time_per_sample or peak_memory, not communication"]),
        ("schedule overlapped\nminimize time_per_sample\n", THROUGHPUT,
         ["it knows schedule pipedream, not overlapped"]),
        ("minimize time_per_sample\n", dynamic_programming.SUPPORTS,
         ["it requires the 'contiguous' constraint: non-contiguous stages do not form a chain of ideals"]),
        ("schedule gpipe { communication = overlapped }\n" + PLAIN, dynamic_programming.SUPPORTS, []),
        ("schedule gpipe { communication = full_duplex }\nparallelism { data = 1..2, weights = 0 }\n" + PLAIN,
         dynamic_programming.SUPPORTS, []),
        ("var y in 0..1\n" + PLAIN, ANY_PLACEMENT, ["it gives no value to the variable y"]),
        ("var y in 0..1\n" + PLAIN, dynamic_programming.SUPPORTS, []),
        ("parallelism { data = 1..2, weights = 0 }\n" + PLAIN, relaxation.SUPPORTS,
         ["it does not know devices that share a stage"]),
        ("extend max_load {\n    subject to\n        r: forall v in nodes, d in devices: x[v, d] <= 1\n}\n" + PLAIN,
         ANY_PLACEMENT, ["it does not look at formulations, and the spec has its own"]),
        ("schedule dataflow\nminimize latency\n", subgraph_calls.SUPPORTS, ["it knows schedule calls, not dataflow"]),
        ("schedule calls\nminimize latency\nsubject to\n    memory\n", subgraph_calls.SUPPORTS, []),
    ],
)  # fmt: skip
def test_reasons(rest: str, supports: Supports, reasons: list[str]) -> None:
    assert reasons_against(problem(rest), supports) == reasons


def test_clusters_are_known_or_not() -> None:
    clustered = problem(PLAIN, CLUSTERS)
    assert reasons_against(clustered, dynamic_programming.SUPPORTS) == []
    assert reasons_against(clustered, large_neighbourhood_search.SUPPORTS) == []
    assert reasons_against(clustered, stage_annealing.SUPPORTS) == []
    assert "it does not know clusters" in reasons_against(clustered, short_annealing.SUPPORTS)
    flat = replace(dynamic_programming.SUPPORTS, clusters=False)
    assert ignored(clustered, flat) == ["clusters"]


def test_whoever_relaxes_names_what_is_left_out() -> None:
    text = (
        "var y in 0..1\nminimize time_per_sample then communication\nsubject to\n    contiguous\n"
        "    few: devices_used <= 1\n"
    )
    assert ignored(problem(text), dynamic_programming.SUPPORTS) == ["few", "variable y", "then communication"]
    fewest = text.replace("communication", "devices_used").replace("var y in 0..1\n", "")
    assert ignored(problem(fewest), dynamic_programming.SUPPORTS) == ["few"]


def test_soft_constraints_make_another_objective() -> None:
    soft = PLAIN.replace("    contiguous\n", "    contiguous\n    soft few at 1 ms: devices_used <= 1\n")
    (reason,) = reasons_against(problem(soft), dynamic_programming.SUPPORTS)
    assert reason.startswith("it minimises time_per_sample or peak_memory, not ")


def test_memory_limits_are_there_where_the_spec_asks_for_them() -> None:
    assert problem(PLAIN).memory_limits.tolist() == [4 * 2.0**30] * 2
    assert problem("minimize time_per_sample\n").memory_limits.tolist() == [float("inf")] * 2
