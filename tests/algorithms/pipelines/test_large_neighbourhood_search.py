"""The search for pipelines by parts, against brute force and against dynamic programming on the whole."""

from __future__ import annotations

import numpy as np
import pytest
from support.brute_force import best
from support.random_pipelines import random_problem
from support.random_specs import random_spec

import placedsl
from placedsl.algorithms.pipelines import large_neighbourhood_search as pipeline_search
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.algorithms.pipelines.large_neighbourhood_search import PipelinePlacement, PipelineSearch, begin, run
from placedsl.algorithms.supports import reasons_against
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem

pytestmark = pytest.mark.rotates(2)

STEPS = 60
RULES = "contiguous"


def known(seeds: range) -> list[tuple[int, Problem]]:
    """Random small problems, all that the search knows: every schedule, memory, groups, several kinds of devices."""
    problems = ((seed, placedsl.loads(random_spec(seed)).problem) for seed in seeds)
    return [(seed, problem) for seed, problem in problems if not reasons_against(problem, pipeline_search.SUPPORTS)]


def searched(search: PipelineSearch) -> PipelineSearch:
    """After so many steps, or proven."""
    for step, _ in enumerate(run(search)):
        if step == STEPS:
            break
    return search


@pytest.fixture
def few_ideals(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few ideals a step that these small graphs have to be taken in parts."""
    monkeypatch.setattr(pipeline_search, "_FIRST_IDEALS", 5)
    monkeypatch.setattr(pipeline_search, "_MOST_IDEALS", 7)
    monkeypatch.setattr(pipeline_search, "_REACH", 1.0)


def check(problem: Problem, search: PipelineSearch) -> None:
    """What is held satisfies everything and has the value that it is said to have."""
    assert search.best is not None
    found = evaluate(problem, search.best.placement.tolist())
    assert not found.violations
    assert found.objectives[0] == pytest.approx(search.best.value)


@pytest.mark.parametrize("first", [0, *(pytest.param(k, marks=pytest.mark.everything) for k in (400, 800, 1200))])
@pytest.mark.usefixtures("few_ideals")
def test_parts_lead_to_the_best_pipeline(first: int) -> None:
    """Never better than the optimum, always allowed, and nearly always as good, with seven ideals a step."""
    problems = known(range(first, first + 400))
    assert len(problems) > 40
    equal = unproven = 0
    for seed, problem in problems:
        least, search = best(problem), searched(begin(problem, None, seed))
        unproven += not search.proven
        if least is None or search.best is None:
            assert search.best is None or least is not None, seed
            equal += least is None and search.best is None
            continue
        check(problem, search)
        assert search.value >= least[0] * (1 - 1e-9), seed
        assert not search.proven or search.value <= least[0] * (1 + 1e-9), seed
        equal += search.value <= least[0] * (1 + 1e-9)
    assert equal >= 0.9 * len(problems)
    assert unproven >= len(problems) // 5


@pytest.mark.usefixtures("few_ideals")
def test_parts_lead_to_the_best_pipeline_over_clusters() -> None:
    """Pods, racks, devices beside them: against dynamic programming on the whole, which knows clusters as well."""
    equal = unproven = compared = 0
    for seed in range(120):
        problem = random_problem(70_000 + seed, training=seed % 2 == 1, nodes=3 + seed % 5, clusters=True, rules=RULES)
        whole, search = contiguous.solve(problem), searched(begin(problem, None, seed))
        assert whole.complete
        unproven += not search.proven
        if whole.placement is None or search.best is None:
            assert search.best is None or whole.placement is not None, seed
            continue
        compared += 1
        check(problem, search)
        assert search.value >= whole.value * (1 - 1e-9), seed
        assert not search.proven or search.value <= whole.value * (1 + 1e-9), seed
        equal += search.value <= whole.value * (1 + 1e-9)
    assert compared >= 100
    assert equal >= 0.9 * compared
    assert unproven >= 20


def test_what_is_small_enough_is_solved_as_a_whole_and_proven() -> None:
    problems = known(range(2000, 2100))
    for seed, problem in problems:
        least, search = best(problem), searched(begin(problem, None, seed))
        if least is not None and search.best is not None and len(problem.machine.devices) > 1:
            check(problem, search)
            assert search.value == pytest.approx(least[0]), seed


def test_a_bad_start_is_left() -> None:
    """Everything on one device, which has room for it."""
    begun = 0
    for seed, problem in known(range(3000, 3200)):
        device = int(np.argmax(problem.device_memory))
        start = np.full(problem.graph.nodes, device)
        if evaluate(problem, start.tolist()).violations or len(problem.machine.devices) < 2:
            continue
        begun += 1
        value = evaluate(problem, start.tolist()).objectives[0]
        least = best(problem)
        assert least is not None
        search = searched(PipelineSearch(problem, PipelinePlacement(start, value), seed))
        assert search.value == pytest.approx(least[0]), seed
    assert begun > 10


def test_a_seed_gives_one_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Branches side by side, taken in parts."""
    monkeypatch.setattr(pipeline_search, "_FIRST_IDEALS", 50)
    monkeypatch.setattr(pipeline_search, "_MOST_IDEALS", 800)
    problem = placedsl.loads(branches(5, 6)).problem

    def sequence(seed: int) -> list[float]:
        search = PipelineSearch(problem, None, seed)
        return [search.value for step, _ in zip(range(30), run(search), strict=False)]

    assert sequence(1) == sequence(1)
    assert len(set(sequence(1))) > 1, "it has become better"


def test_the_first_step_is_the_whole_where_a_step_may_take_it() -> None:
    """Not much good would come of parts: 7^5 ideals are fewer than a step may have."""
    problem = placedsl.loads(branches(5, 6)).problem
    assert pipeline_search.fits_a_step(problem)
    search = begin(problem, None, 1)
    assert len(list(run(search))) == 1
    assert search.proven
    assert search.value == contiguous.solve(problem).value


def test_unrelated_nodes_make_coarse_graphs_too() -> None:
    """No node comes before another: what is coarse has to hold together what nothing connects."""
    nodes = "\n".join(f"    node n{i} {{ time = {{accelerator: {1 + i % 7} ms}}, memory = 1 MiB }}" for i in range(60))
    text = (
        f"graph {{\n{nodes}\n}}\ndevice gpu[4]: accelerator {{ memory = 16 MiB }}\n"
        "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n"
    )
    problem = placedsl.loads(text).problem
    assert contiguous.fits(problem).ideals is None
    search = PipelineSearch(problem, None, 0)
    for step, _ in enumerate(run(search)):
        if step == 10:
            break
    check(problem, search)


def branches(count: int, length: int) -> str:
    """A node, rows of nodes side by side, a node."""
    names = [[f"b{i}_{j}" for j in range(length)] for i in range(count)]
    each = [name for row in names for name in row]
    nodes = [
        f"    node {name} {{ time = {{accelerator: {3 + (7 * k) % 11} ms}}, output = {1 + k % 5} MiB }}"
        for k, name in enumerate(["first", *each, "last"])
    ]
    edges = ["    " + " -> ".join(["first", *row, "last"]) for row in names]
    body = "\n".join([*nodes, *edges])
    return (
        f"graph {{\n{body}\n}}\ndevice gpu[4]: accelerator\ninterconnect {{ bandwidth = 1 GiB/s }}\n"
        "minimize time_per_sample\nsubject to\n    contiguous\n"
    )


def test_parts_reach_what_dynamic_programming_proves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph with 7^5 ideals, a hundred at a time."""
    problem = placedsl.loads(branches(5, 6)).problem
    whole = contiguous.solve(problem)
    assert whole.complete
    monkeypatch.setattr(pipeline_search, "_FIRST_IDEALS", 100)
    monkeypatch.setattr(pipeline_search, "_MOST_IDEALS", 400)
    search = searched(begin(problem, None, 0))
    check(problem, search)
    assert whole.value * (1 - 1e-9) <= search.value <= whole.value * 1.02
