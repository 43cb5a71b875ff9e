"""First answers for one sample: without compiled code, and where searches do not know all that is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from placedsl import loads
from placedsl.algorithms.fill_devices import first_placements
from placedsl.algorithms.repair import repaired
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.incumbent import Incumbent
from placedsl.planner.portfolio.latency_members import members_for_a_start, members_for_one_sample, search_a_start
from placedsl.planner.request import Request
from placedsl.planner.solve import solve

GRAPH = """graph {
    node a { time = {accelerator: 2 s, host: 9 s}, memory = 2 GiB, output = 1 GiB, layer = 1 }
    node b { time = {accelerator: 4 s},            memory = 3 GiB, output = 1 GiB, layer = 2 }
    node c { time = {accelerator: 4 s, host: 5 s}, memory = 3 GiB, output = 1 GiB, layer = 2 }
    node d { time = {accelerator: 2 s, host: 9 s}, memory = 3 GiB, layer = 3 }
    a -> b -> d
    a -> c -> d
}
device gpu[2]: accelerator { memory = 6 GiB }
device cpu: host
interconnect { bandwidth = 1 GiB/s }
"""
ASKED = {
    "dataflow": "schedule dataflow\nminimize finish(d) + finish(b)\nsubject to\n    memory\n    sequential\n",
    "calls": "schedule calls { pieces = 2 }\nminimize latency\nsubject to\n    memory\n",
}
OWN = "    colocated by layer\n    some: count(v in nodes: v on cpu) >= 1\n"


@pytest.mark.parametrize("schedule", ASKED)
def test_placements_keep_memory_support_and_colocation(schedule: str) -> None:
    problem = loads(GRAPH + ASKED[schedule] + "    colocated by layer\n").problem
    found = [placement.tolist() for placement in first_placements(problem)]
    assert len({tuple(p) for p in found}) == len(found) >= 3
    for placement in found:
        assert placement[1] == placement[2] != 2
        assert (np.bincount(placement, problem.graph.memory, minlength=3) <= problem.device_memory).all()


def test_there_are_none_where_nothing_fits() -> None:
    problem = loads(GRAPH.replace("memory = 6 GiB", "memory = 2 GiB") + ASKED["calls"]).problem
    assert list(first_placements(problem)) == []


class Line:
    """A line to a planner that takes what the evaluator accepts."""

    def __init__(self, problem) -> None:  # type: ignore[no-untyped-def]
        self.taken, self.said = Incumbent(problem, None, 0.0), 0
        self.bounds: list[float] = []

    @property
    def best(self) -> float:
        return self.taken.value

    def report(self, placement, bound, values=None, by="", certificate=None) -> None:  # type: ignore[no-untyped-def]
        self.said += 1
        self.bounds.append(bound)
        if placement is not None:
            self.taken.offer(placement, values)


@pytest.mark.parametrize("schedule", ASKED)
def test_a_search_for_a_start_says_what_the_evaluator_may_take(schedule: str) -> None:
    """It does not know the constraint of the spec's own, and tells no bound."""
    problem = loads(GRAPH + ASKED[schedule] + OWN).problem
    (member,) = members_for_a_start(problem, 0)
    assert member.work is search_a_start
    line = Line(problem)
    search_a_start(line, *member.arguments)
    assert line.said > 1
    assert set(line.bounds) == {-np.inf}
    best = line.taken.placement
    assert best is not None
    assert not evaluate(problem, best.tolist(), line.taken.evaluation.values).violations


def test_variables_of_the_spec_have_no_such_start() -> None:
    text = GRAPH + "var z: binary\n" + ASKED["dataflow"] + "    own: z <= 0\n"
    assert members_for_a_start(loads(text).problem, 0) == []


CALLS = GRAPH + "schedule calls { pieces = 3 }\n%s\nsubject to\n    memory\n"
REPAIRED = {
    "a later call": (CALLS % "minimize latency", "    last: piece(d) == 3\n"),
    "calls apart": (
        CALLS % "minimize latency",
        "    apart: piece(b) != piece(c)\n    there: b on gpu[1] and c on gpu[1]\n",
    ),
    "an integer": (
        CALLS % "var y: integer in 0..3\nminimize latency",
        "    most: y >= count(v in nodes: v on gpu) + 1\n",
    ),
    "a binary a device": (
        CALLS % "var w[d in devices]: binary\nminimize latency",
        "    bought: forall d in devices: used(d) => w[d] == 1\n    few: sum(d in devices: w[d]) <= 2\n",
    ),
    "a time": (CALLS % "var z: time\nminimize z", "    last: forall v in nodes: z >= finish(v)\n"),
    "dataflow": (GRAPH + ASKED["dataflow"], "    some: count(v in nodes: v on cpu) >= 2\n"),
}


@pytest.mark.parametrize("name", REPAIRED)
def test_a_placement_is_repaired_until_it_keeps_what_is_asked_for(name: str) -> None:
    asked, rule = REPAIRED[name]
    problem = loads(asked + rule).problem
    found = repaired(problem, 0, 20.0)
    assert found is not None
    assert evaluate(problem, found.placement.tolist(), found.values).violations == ()


@pytest.mark.parametrize("name", REPAIRED)
def test_a_solver_starts_from_a_placement_that_is_known(name: str) -> None:
    """The first that is told is there before any program is made."""
    asked, rule = REPAIRED[name]
    read = loads(asked + rule)

    def formulations() -> object:
        raise AssertionError("a program is made")

    told: list[float] = []
    with pytest.raises(AssertionError, match="a program is made"):
        solve(read.problem, formulations, Request(), lambda value, _bound, _seconds: told.append(value))
    assert np.isfinite(told).any()


@pytest.mark.parametrize("way", ["dataflow", "calls"])
@pytest.mark.parametrize(("workers", "searches"), [(1, 1), (2, 1), (3, 2), (8, 7)])
def test_the_bounds_have_a_core_of_their_own(way: str, workers: int, searches: int) -> None:
    """With fewer than two cores they share one."""
    problem = loads(f"{GRAPH}schedule {way}\nminimize latency\nsubject to\n    memory\n").problem
    *found, bounds = members_for_one_sample(problem, workers, 0, None, alone=True)
    assert [member.name for member in found] == [f"search {i + 1}" for i in range(searches)]
    assert bounds.name.startswith(("the bounds", "dynamic programming"))
    seeds = {member.arguments[-1] for member in found}
    assert len(seeds) == searches
