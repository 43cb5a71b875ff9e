"""Every method against enumeration: random small problems of each kind, and what it refuses.

A method is one that is asked for by name: dynamic programming, the program, ``auto``, and the registered ones.  A new
one is given in SAMPLES the problems that it is for.
"""

from __future__ import annotations

import functools
import math
from pathlib import Path

import pytest
from support.brute_force import best_by_evaluation
from support.enumeration import enumerated
from support.enumeration import least as least_of
from support.one_sample import least_of_calls, least_of_dataflow, random_calls, random_dataflow
from support.random_specs import random_spec

import placedsl
from placedsl.algorithms import registry
from placedsl.diagnostics import UsageError
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.request import METHODS, Request, resolve
from placedsl.planner.strategies.registry import STRATEGIES
from placedsl.problem.problem import Problem

#: Random problems of each kind.
SEEDS = 40
#: How a random problem of each kind is written, and its least objective by enumeration.
KINDS = {
    "throughput": (random_spec, lambda problem: (best_by_evaluation(problem) or (math.inf,))[0]),
    "calls": (random_calls, least_of_calls),
    "operators": (random_dataflow, least_of_dataflow),
}
FREE, CONTIGUOUS = "minimize time_per_sample", "minimize time_per_sample\nsubject to\n    contiguous"
PLAN = """graph {
    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }
    node b { time = 2 ms, memory = 2 GiB }
    a -> b
}
device gpu[3]: accelerator { memory = 4 GiB }
interconnect { bandwidth = 1 GB/s }
parallelism { data = 1..2, microbatches = 8 }
minimize time_per_sample
subject to
    memory
    contiguous"""
#: A rule of the spec, on devices enough that the program over nodes and devices is not small.
RULES = "device more[30]: accelerator\n" + CONTIGUOUS + "\n    few: devices_used <= 2"
CALLS, OPERATORS = "schedule calls\nminimize latency", "schedule dataflow\nminimize latency"
#: The problems, whole or over CHAIN, for which each method has to find a placement.
SAMPLES = {
    "auto": (FREE, CONTIGUOUS, CALLS, OPERATORS), "program": (FREE, CONTIGUOUS, CALLS, OPERATORS),
    "dp": (CONTIGUOUS, PLAN), "equi": (PLAN,), "megatron": (PLAN,), "alpa": (PLAN,),
    "galvatron": (PLAN,),
    "pipedream-2bw": (PLAN,),
    "slicegraph": (CONTIGUOUS,), "random": (CONTIGUOUS,), "brkga": (CONTIGUOUS,), "mla": (CONTIGUOUS,),
    "mla-weighted": (CONTIGUOUS,),
    "single": (FREE, CONTIGUOUS), "greedy": (FREE, CONTIGUOUS), "local-search": (FREE,), "pipedream": (CONTIGUOUS,),
    "scotch": (FREE,), "m-topo": (OPERATORS,), "etf": (OPERATORS,), "m-etf": (OPERATORS,), "m-sct": (OPERATORS,),
    "heft": (OPERATORS,), "getf": (OPERATORS,),
}  # fmt: skip
#: Of a path that the planner takes by itself: objective and constraints of a problem that it takes, and of one that it
#: does not take (None: it takes all).
PATHS = {
    "search for schedules": (OPERATORS, FREE),
    "dynamic programming": (CONTIGUOUS, FREE),
    "a program over paths": (RULES, CONTIGUOUS),
    "a start by slicing": (FREE, OPERATORS),
    "plug-ins": (FREE, OPERATORS),
    "program": (OPERATORS, None),
}
CHAIN = """graph {
    node a { time = 1 ms, output = 1 MiB }
    node b { time = 2 ms }
    a -> b
}
device gpu[2]: accelerator { memory = 4 GiB }
device cpu: host
interconnect { bandwidth = 1 GB/s }
"""
#: What no method that only places nodes decides: a variable of the spec.
VARIABLE = CHAIN + "var y in 0..1\nminimize time_per_sample + 1 ms * y\n"

every_method = pytest.mark.parametrize("method", sorted({*METHODS, *registry.own()}))


@functools.cache
def case(kind: str, seed: int) -> tuple[placedsl.api.spec.Spec, float]:
    """A spec, and its optimum by enumeration."""
    write, least = KINDS[kind]
    spec = placedsl.loads(write(seed))
    return spec, least(spec.problem)


def attempt(spec: placedsl.api.spec.Spec, method: str) -> placedsl.Answer | str:
    """The answer, or the reason why the method does not take the problem."""
    try:
        answer = spec.solve(method=method, workers=1, time_limit=60)
    except (UsageError, placedsl.InputError) as reason:  # the latter for a row that is false whatever the placement
        return str(reason)
    refused = answer.termination == "error" and answer.message.startswith(f"method {method} cannot take")
    return answer.message if refused else answer


def confirm(problem: Problem, answer: placedsl.Answer, least: float) -> None:
    """Feasible, no better than the optimum, with a bound that is no higher; proven only where it is the optimum."""
    near = 3e-6 * max(abs(least), 1e-9) if math.isfinite(least) else 0.0
    assert answer.bound <= least + near
    if answer.placement is None:
        assert answer.value == math.inf
        assert answer.message
        assert answer.termination in ("infeasible", "ended")
        assert math.isinf(least) or answer.termination == "ended"
        return
    assert answer.evaluation is not None
    assert evaluate(problem, answer.placement, answer.evaluation.values).violations == ()
    assert answer.value >= least - near
    if answer.termination == "optimal":
        assert answer.value <= least + near


def test_every_method_has_a_sample() -> None:
    assert set(SAMPLES) == {*METHODS, *registry.own()}


def test_every_path_has_a_sample() -> None:
    assert set(PATHS) == {strategy.name for strategy in STRATEGIES}


@pytest.mark.sampled(40)
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", KINDS)
def test_answers_and_bounds_enclose_the_optimum(kind: str, seed: int, partitioner: Path) -> None:
    spec, least = case(kind, seed)
    for method in SAMPLES:
        answer = attempt(spec, method)
        if isinstance(answer, str):
            assert method not in ("auto", "program") or math.isinf(least), answer
        else:
            confirm(spec.problem, answer, least)
        if method in ("auto", "program") and not isinstance(answer, str):
            assert answer.termination == ("infeasible" if math.isinf(least) else "optimal"), answer.message


@every_method
def test_a_method_takes_the_problems_that_it_is_for(method: str, partitioner: Path) -> None:
    for goal in SAMPLES[method]:
        spec = placedsl.loads((goal if goal.startswith("graph") else CHAIN + goal) + "\n")
        answer = attempt(spec, method)
        assert not isinstance(answer, str), answer
        assert answer.placement is not None
        assert answer.method == method or method in ("auto", "program")
        confirm(spec.problem, answer, least_of(enumerated(spec.problem))[0])


@pytest.mark.parametrize("method", sorted({*registry.own(), "dp"}))
def test_a_method_refuses_with_a_reason_what_it_does_not_decide(method: str) -> None:
    answer = attempt(placedsl.loads(VARIABLE), method)
    assert isinstance(answer, str)
    assert "y" in answer


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
def test_a_path_is_taken_or_says_why_not(strategy) -> None:
    takes, leaves = PATHS[strategy.name]
    request = Request(workers=1)
    problem = placedsl.loads(CHAIN + takes + "\n").problem
    assert list(strategy.against(problem, resolve(problem, request))) == []
    if leaves is not None:
        problem = placedsl.loads(CHAIN + leaves + "\n").problem
        reasons = list(strategy.against(problem, resolve(problem, request)))
        assert reasons
        assert all(isinstance(reason, str) and reason for reason in reasons)
