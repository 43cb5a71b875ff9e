"""Devices that stream what does not fit: every path over random small specs agrees with plain enumeration.

Rooms are below, at and above what stages hold; rates and reserves differ; with hosts, training, clusters, links from
device to device, and peaks of activations.  Each path has processes of its own: two solver libraries do not share one.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import numpy as np
import pytest
from support.paths import child_environment
from support.suites import PATHS

import placedsl
from placedsl.problem.problem import Problem

pytestmark = pytest.mark.rotates(6)

KINDS = ("plain", "peak", "links", "clusters")
METHODS = ("slicegraph", "random", "brkga", "mla", "mla-weighted", "local-search", "greedy", "pipedream", "single")
EVERY = ("dp", "searches", "bounds", "methods", *PATHS)
PROBLEMS, FEW = 500, 12
#: Whether each search over routes has found the best; at most this share of them has not.
ROUTED: list[bool] = []
MOST_MISSED = 0.04


def cases() -> list[object]:
    """Every path over every kind; by default a few problems each."""
    few = [(path, kind, FEW) for path in EVERY for kind in KINDS if (path, kind) != ("searches", "clusters")]
    return [*few, *(pytest.param(*case[:2], PROBLEMS, marks=pytest.mark.everything) for case in few)]


@pytest.mark.parametrize(("path", "kind", "count"), cases())
def test_agrees_with_enumeration(path: str, kind: str, count: int) -> None:
    command = [sys.executable, __file__, path, kind, "0", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=child_environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.splitlines()[-1].removeprefix("agree: ")) >= count // 4


def test_problems_are_of_every_kind() -> None:
    """Something is streamed at the optimum, or not, or there is just room; devices are unlike; parts go both ways."""
    from support.streaming_specs import streaming_spec

    texts = [streaming_spec(seed) for seed in range(300)]
    for word, least in (
        ("backward = true", 50), ("contiguous", 150), ("device cpu: host {", 20), ("device tpu", 100),
        ("memory = 0 ", 30), ("colocated", 20),
    ):  # fmt: skip
        assert sum(word in text for text in texts) >= least, word


@pytest.mark.parametrize("seed", range(8))
def test_an_objective_of_the_spec_says_the_same(seed: int) -> None:
    """Where devices are alike and a reserve is within the memory, ``max(d in gpu: load(d) + ...)`` is the same."""
    text = (
        "graph {\n    node a { time = 4 ms, memory = 2 GB, output = 8 MB }\n"
        f"    node b {{ time = {3 + seed} ms, memory = {seed % 4} GB, output = 4 MB }}\n"
        "    node c { time = 5 ms, memory = 3 GB, output = 1 MB }\n    a -> b -> c\n    a -> c\n}\n"
        "device gpu[2]: accelerator { memory = 3 GB, streams = 1 TB/s, reserve = 0.5 GB }\n"
        "interconnect { bandwidth = 8 GB/s }\nminimize time_per_sample\n"
    )
    own = text.replace(", streams = 1 TB/s, reserve = 0.5 GB", "").replace(
        "time_per_sample", "max(d in gpu: load(d) + max(memory(d) + 0.5 GB - 3 GB, 0 B) / (1 TB/s))"
    )
    one, other = (placedsl.loads(spec).solve(workers=1) for spec in (text, own))
    assert one.proven()
    assert other.proven()
    assert math.isclose(one.value, other.value, rel_tol=2e-6)


def test_formulations_that_do_not_know_it_are_not_taken() -> None:
    """Their loads are less than the evaluator's; parts that come along know it."""
    text = (
        "graph {\n    node a { time = 4 ms, memory = 3 GB, output = 8 MB }\n    node b { time = 5 ms, memory = 2 GB }\n"
        "    a -> b\n}\ndevice gpu[2]: accelerator { memory = 1 GB, streams = 1 TB/s }\n"
        "interconnect { bandwidth = 8 GB/s }\nminimize time_per_sample\nformulation mine {\n    HEAD\n"
        "    use placement\n    provides load(d) = sum(v in nodes: v.time[d] * x[v, d])\n}\n"
    )
    for head, reason in (
        ("schedule pipedream", "it does not say what devices stream"),
        ("under run pipeline, parallelism none", "it does not provide streamed"),
    ):
        answer = placedsl.loads(text.replace("HEAD", head)).solve(workers=1)
        assert answer.proven()
        assert answer.value == pytest.approx(7e-3)
        assert f"formulation 'mine' is not taken: {reason}" in answer.notes


def least_of(problem: Problem, kind: str) -> float:
    """The least time per sample, by enumeration; over links and clusters with the loads of the evaluator."""
    from support.brute_force import best_by_evaluation
    from support.streaming_specs import best

    if kind in ("plain", "peak"):
        return best(problem)
    found = best_by_evaluation(problem)
    assert found is not None
    return found[0]


def evaluated(problem: Problem, placement: Iterable[int]) -> float:
    """The value of a placement that satisfies everything."""
    from placedsl.evaluation.evaluate import evaluate

    found = evaluate(problem, [int(device) for device in placement])
    assert not found.violations, found.violations
    return found.objectives[0]


def by_dynamic_programming(problem: Problem, least: float, kind: str) -> bool:
    """It is exact, or leaves out peaks and routes: then its value is a bound."""
    from placedsl.algorithms.pipelines import solve as contiguous

    if problem.constraint("contiguous") is None:
        return False
    found = contiguous.solve(problem)
    assert found.complete
    assert found.placement is not None
    assert found.bound <= least * (1.0 + 1e-9)
    if kind in ("plain", "clusters"):
        assert math.isclose(found.value, least, rel_tol=1e-9)
        assert math.isclose(evaluated(problem, found.placement), least, rel_tol=1e-9)
    return True


def by_searches(problem: Problem, least: float, kind: str) -> bool:
    """What searches say of their placements is what the evaluator says, and not less than there is; so few steps find
    the best of these, and over routes of nearly all."""
    from placedsl.algorithms.partitions import routed_search, short_annealing, stage_annealing
    from placedsl.algorithms.partitions.instance import partition_units
    from placedsl.algorithms.partitions.search import run, search_from
    from placedsl.algorithms.pipelines import large_neighbourhood_search as pipelines
    from placedsl.algorithms.pipelines import solve as contiguous
    from placedsl.algorithms.supports import reasons_against

    looked = False

    def found(
        slices: Iterator[bool], placement: Callable[[], Iterable[int]], value: Callable[[], float], routes: bool = False
    ) -> None:
        nonlocal looked
        looked = True
        for _ in islice(slices, 6):
            pass
        known = evaluated(problem, placement())
        assert known >= least * (1.0 - 1e-9)
        if kind != "peak":
            assert math.isclose(known, value(), rel_tol=1e-9, abs_tol=1e-15)
            best = math.isclose(known, least, rel_tol=1e-9, abs_tol=1e-15)
            assert best or routes, "so few steps find the best of these"
            if routes:
                ROUTED.append(best)

    if not reasons_against(problem, stage_annealing.SUPPORTS):
        stages = stage_annealing.begin(problem, contiguous.sliced(problem).placement, 0)
        found(stage_annealing.run(stages), lambda: stages.placement, lambda: stages.value)
    if not reasons_against(problem, short_annealing.SUPPORTS):
        units = partition_units(problem)
        splits = search_from(units.instance, None, 0)
        found(run(splits), lambda: units.placement(splits.best), lambda: splits.value)
    if problem.device_to_device is not None and not reasons_against(problem, routed_search.SUPPORTS):
        routed = routed_search.begin(problem, None, 0)
        found(routed_search.run(routed), lambda: routed.placement, lambda: routed.value, routes=True)
    if not reasons_against(problem, pipelines.SUPPORTS):
        search = pipelines.begin(problem, None, 0)
        for _ in islice(pipelines.run(search), 6):
            pass
        if search.best is not None:
            assert evaluated(problem, search.best.placement) >= least * (1.0 - 1e-9)
            assert not search.proven or search.best.value <= least * (1.0 + 1e-9)
    return looked


def by_bounds(problem: Problem, least: float, kind: str) -> bool:
    """No bound is above the least value, whatever is streamed."""
    from placedsl.algorithms.partitions.bounds import superblocks
    from placedsl.algorithms.partitions.bounds.bound import Bound
    from placedsl.algorithms.partitions.bounds.streams import proven_bounds
    from placedsl.algorithms.simple_bounds import streamed_bound
    from placedsl.algorithms.supports import reasons_against

    del kind
    limit = least * (1.0 + 1e-9) + 1e-18
    assert streamed_bound(problem) <= limit
    for bound in proven_bounds(problem, upper=lambda: 2.0 * least, deadline=time.monotonic() + 2.0):
        assert bound.value <= limit, bound

    def told(bound: Bound | None, placement: np.ndarray | None) -> None:
        assert bound is None or bound.value <= limit, bound
        assert placement is None or evaluated(problem, placement.tolist()) >= least * (1.0 - 1e-9)

    if not reasons_against(problem, superblocks.SUPPORTS) and superblocks.fits(problem):
        superblocks.prove_superblocks(problem, lambda: np.inf, lambda: False, told, blocks=(2, 4))
    return True


def by_solving(spec: placedsl.Spec, least: float, request: placedsl.planner.request.Request, *, exact: bool) -> bool:
    """The planner's answer is the least value, proven; a method by name finds nothing less."""
    from placedsl.planner.solve import solve

    try:
        answer = solve(spec.problem, spec.elaborated.checked_formulations, request, isolated=False)
    except placedsl.UsageError as error:
        if exact or "does not fit" not in str(error):
            raise
        return False
    if answer.evaluation is None:
        assert not exact, (answer.termination, answer.message)
        return False
    assert not answer.evaluation.violations
    assert answer.bound <= least * (1.0 + 1e-9) + 1e-15
    assert answer.value >= least * (1.0 - 1e-9)
    if exact:
        assert answer.termination == "optimal", (answer.termination, answer.message)
        assert math.isclose(answer.value, least, rel_tol=2e-6, abs_tol=1e-12), (answer.value, least)
    return True


def compare(path: str, kind: str, first: int, last: int) -> int:
    """How many problems were compared."""
    from support.streaming_specs import streaming_spec

    from placedsl.planner.request import Request

    direct = {"dp": by_dynamic_programming, "searches": by_searches, "bounds": by_bounds}
    compared = 0
    for seed in range(first, last):
        spec = placedsl.loads(
            streaming_spec(seed, peak=kind == "peak", links=kind == "links", clusters=kind == "clusters")
        )
        least = least_of(spec.problem, kind)
        try:
            if path in direct:
                compared += direct[path](spec.problem, least, kind)
            elif path == "methods":
                requests = [Request(method=name, workers=1, time_limit=10.0) for name in METHODS]
                compared += sum(by_solving(spec, least, request, exact=False) for request in requests) > 0
            else:
                request = Request(workers=1) if path == "auto" else Request(path, "program", workers=1)
                compared += by_solving(spec, least, request, exact=True)
        except AssertionError as error:
            raise AssertionError(f"{path}, {kind}, seed {seed}, least {least}") from error
    assert ROUTED.count(False) <= MOST_MISSED * len(ROUTED), ROUTED
    return compared


if __name__ == "__main__":
    print("agree:", compare(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))  # noqa: T201
