"""Members that improve the best placement of all: against brute force, and from process to process."""

from __future__ import annotations

import contextlib
import itertools
import time

import numpy as np
import pytest
from support import brute_force
from support.apart import Apart
from support.cluster_members import Hub
from support.free_specs import free_spec
from support.random_specs import random_spec

import placedsl
from placedsl.algorithms.partitions.instance import partition_units, value_of
from placedsl.algorithms.pipelines import large_neighbourhood_search as pipeline_search
from placedsl.algorithms.pipelines.large_neighbourhood_search import PipelineSearch, begin, improve_around, valued
from placedsl.algorithms.shared_neighbourhoods import SharedNeighbourhoods
from placedsl.algorithms.supports import reasons_against
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.portfolio.neighbourhood_members import KIND, MOST, around_pipelines, around_splits, in_turn
from placedsl.planner.portfolio.portfolio import Known, Member, Portfolio
from placedsl.planner.portfolio.throughput_members import further_members

pytestmark = pytest.mark.rotates(2)

MEMBERS, ROUNDS = 3, 15


class Stop(Exception):
    """The planner needs it no more."""


class Channel:
    """A member's channel in this process, to a planner that knows one placement and hears of others."""

    def __init__(self, problem: placedsl.Problem, placement: np.ndarray, most: int) -> None:
        self.problem, self.left = problem, most
        self.placement: np.ndarray | None = placement
        self.best, self.bound = evaluate(problem, placement.tolist()).objectives[0], -np.inf

    def report(self, placement, bound, values=None, by="", certificate=None):
        found = evaluate(self.problem, placement.tolist())
        assert not found.violations
        self.bound = max(self.bound, bound)
        if found.objectives[0] < self.best:
            self.best, self.placement = found.objectives[0], placement

    def tell(self, found):
        pass

    def heard(self):
        self.left -= 1
        if self.left < 0:
            raise Stop
        return {}


@pytest.fixture
def few_ideals(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few ideals a step that these small graphs have to be taken in parts."""
    monkeypatch.setattr(pipeline_search, "_FIRST_IDEALS", 5)
    monkeypatch.setattr(pipeline_search, "_MOST_IDEALS", 7)
    monkeypatch.setattr(pipeline_search, "_LEVELS", (5, 7))
    monkeypatch.setattr(pipeline_search, "_REACH", 1.0)


@pytest.mark.parametrize("first", [0, *(pytest.param(k, marks=pytest.mark.everything) for k in (150, 300, 450))])
@pytest.mark.usefixtures("few_ideals")
def test_pipelines_that_several_improve_in_turn(first: int) -> None:
    """Never better than the optimum, always allowed, and mostly as good, with seven ideals a step."""
    asked = optimal = 0
    for seed in range(first, first + 150):
        problem = placedsl.loads(random_spec(seed)).problem
        if reasons_against(problem, pipeline_search.SUPPORTS):
            continue
        start, least = begin(problem, None, seed).best, brute_force.best(problem)
        if start is None or least is None:
            continue
        hub, best = Hub(MEMBERS), start
        members = [(begin(problem, start.placement, seed + k), line) for k, line in enumerate(hub.lines)]
        shared = [SharedNeighbourhoods(line) for _, line in members]
        for step in range(ROUNDS * MEMBERS):
            search: PipelineSearch = members[step % MEMBERS][0]
            if best.value < search.value:
                search.take(valued(problem, best.placement))
            if not search.proven and improve_around(search, step, shared[step % MEMBERS]):
                assert search.best is not None
                best = search.best
        found = evaluate(problem, best.placement.tolist())
        assert not found.violations
        assert found.objectives[0] == pytest.approx(best.value)
        assert best.value >= least[0] * (1 - 1e-9), seed
        proven = any(search.proven for search, _ in members)
        assert not proven or best.value <= least[0] * (1 + 1e-9), seed
        asked, optimal = asked + 1, optimal + (best.value <= least[0] * (1 + 1e-9))
    assert asked > 20
    assert optimal >= 0.8 * asked


def test_a_member_proves_small_pipelines() -> None:
    """Steps that may take the whole end with its optimum, as a bound."""
    proven = 0
    for seed in range(150):
        problem = placedsl.loads(random_spec(seed)).problem
        if reasons_against(problem, pipeline_search.SUPPORTS) or (least := brute_force.best(problem)) is None:
            continue
        start = begin(problem, None, seed).best
        if start is None:
            continue
        channel = Channel(problem, start.placement, 400)
        try:
            around_pipelines(channel, problem, seed)
        except Stop:
            continue
        proven += 1
        assert channel.bound == pytest.approx(least[0], rel=1e-9), seed
        assert channel.best == pytest.approx(least[0], rel=1e-9), seed
    assert proven > 20


def splits_improved(seeds: range, most: int) -> list[tuple[float, float, float]]:
    """Of problems of these seeds: the value of the start, that of what a member found, and its own bound."""
    out = []
    for seed in seeds:
        problem = placedsl.loads(free_spec(seed)).problem
        units = partition_units(problem)
        every = brute_force.placements(problem)
        allowed = every[brute_force.allowed(problem, every)]
        if not len(allowed):
            out.append((np.inf, np.inf, -np.inf))
            continue
        start = allowed[np.random.default_rng(seed).integers(len(allowed))]
        value = value_of(units.instance, units.device_of(start))
        channel = Channel(problem, start, most)
        with contextlib.suppress(Stop):
            around_splits(channel, units, seed)
        out.append((value, channel.best, channel.bound))
    return out


def test_splits_against_brute_force() -> None:
    seeds = range(40)
    process = Apart()
    try:
        found = process.call("neighbourhoods", splits_improved, seeds, 60)
    finally:
        process.close()
    for seed, (start, value, bound) in zip(seeds, found, strict=True):
        least = brute_force.best(placedsl.loads(free_spec(seed)).problem)
        if least is None:
            assert (start, value) == (np.inf, np.inf)
            continue
        assert least[0] * (1 - 1e-9) <= value <= start * (1 + 1e-9), seed
        assert bound == -np.inf
        assert value <= least[0] * (1 + 1e-6), seed  # neighbourhoods grow to the whole


def wide(nodes: int) -> str:
    """Layers of unlike nodes, each read by two of the next layer."""
    rng = np.random.default_rng(nodes)
    lines = ["graph {"]
    for v in range(nodes):
        lines.append(f"    node n{v} {{ time = {rng.uniform(1, 9):.3f} ms, output = {rng.integers(1, 9)} MiB }}")
    lines += [f"    n{v} -> n{v + k}" for v in range(nodes - 5) for k in (4, 5)]
    lines += ["}", "device gpu[4]: accelerator", "interconnect { bandwidth = 2 GiB/s }", "minimize time_per_sample"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("contiguous", [False, True])
def test_a_process_goes_on_from_the_placement_that_it_is_told(contiguous: bool) -> None:
    problem = placedsl.loads(wide(24) + ("subject to\n    contiguous\n" if contiguous else "")).problem
    start = np.minimum(np.arange(24) // 3, 3)  # the last device has most of the work
    first = evaluate(problem, start.tolist())
    assert not first.violations
    work = (around_pipelines, (problem, 5)) if contiguous else (around_splits, (partition_units(problem), 5))
    with Portfolio([Member("around", *work)]) as portfolio:
        portfolio.announce(first.objectives[0], -np.inf, start)
        until, value = time.monotonic() + 60, first.objectives[0]
        while value > 0.6 * first.objectives[0]:
            assert time.monotonic() < until
            for message in portfolio.messages():
                assert not message.failed
                if message.placement is not None:
                    found = evaluate(problem, message.placement.tolist())
                    assert not found.violations
                    assert found.objectives[0] <= value
                    value = found.objectives[0]
            time.sleep(0.02)


def test_what_is_known_is_sent_once() -> None:
    one, other = np.array([0, 1]), np.array([1, 1])
    first = Known().joined(Known(5.0, 1.0, one))
    assert first.placement is one
    assert first.after(np.inf).placement is one
    assert first.after(5.0).placement is None
    assert first.after(5.0) == first
    second = first.joined(Known(5.0, 2.0))
    assert (second, second.placement) == (Known(5.0, 2.0), one)
    assert second.joined(Known(6.0, 2.0, other)).placement is one
    assert second.joined(Known(4.0, 2.0, other)).placement is other
    # A value without its placement: one that was told before is better than none.
    assert second.joined(Known(4.0)).placement is one


@pytest.mark.parametrize("contiguous", [False, True])
def test_further_machines_improve_the_best_placement_in_turn_with_searches(contiguous: bool) -> None:
    problem = placedsl.loads(wide(24) + ("subject to\n    contiguous\n" if contiguous else "")).problem
    members = list(itertools.islice(further_members(problem, lambda: None, 3), 24))
    around = [member for member in members if member.kind == KIND]
    own = {"the search for pipelines"} if contiguous else {"search for splits"}
    assert len(around) >= 3
    assert len(around) <= sum(member.kind in own for member in members) <= len(around) + 1
    seeds = [member.arguments[-1] for member in around]
    assert len(set(seeds)) == len(seeds)
    assert {member.work for member in around} == {around_pipelines if contiguous else around_splits}


def test_in_turn() -> None:
    searches = (Member(f"search {k}", around_splits, (None, k)) for k in (3, 4))
    names = [member.name for member in in_turn(searches, around_pipelines, None)]  # type: ignore[arg-type]
    assert names == ["search 3", f"{KIND} 1", "search 4", f"{KIND} 2"]
    many = (Member(f"search {k}", around_splits, (None, k)) for k in range(MOST + 5))
    kinds = [member.kind for member in in_turn(many, around_pipelines, None)]  # type: ignore[arg-type]
    assert kinds.count(KIND) == MOST
    assert kinds[-5:] == [""] * 5
