"""One sample's training step under schedule calls, by enumeration."""

from __future__ import annotations

import itertools
import math

import pytest
from support.paths import ROOT

from placedsl import load
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from placedsl.problem.problem import Problem

SPEC = ROOT / "examples" / "latency-training.place"


def least(problem: Problem) -> float:
    """Over the devices of each layer and the calls of each node."""
    layer = problem.graph.attributes["layer"].astype(int).tolist()
    calls = [range(1, problem.execution.slots + 1) if accelerator else (1,) for accelerator in problem.accelerators]
    best = math.inf
    for device_of in itertools.product(range(len(calls)), repeat=max(layer)):
        places = [device_of[number - 1] for number in layer]
        if next((d for d in places if d < 2), 0) == 1:
            continue  # the accelerators are alike
        for piece in itertools.product(*(calls[d] for d in places)):
            found = evaluate(problem, places, {"piece": {(v,): float(p) for v, p in enumerate(piece)}})
            best = min(best, found.objectives[0]) if found.feasible else best
    return best


@pytest.mark.parametrize("calls", [1, 2])
def test_against_enumeration(calls: int) -> None:
    spec = load(SPEC, {"calls": str(calls)})
    request = Request("cp-sat", "program", start=False)
    found = solve(spec.problem, spec.elaborated.checked_formulations, request, isolated=False)
    assert found.termination == "optimal"
    assert found.value == pytest.approx(least(spec.problem), rel=1e-9)
    where = found.device_of()
    for name in ("embed", "block1", "block2", "loss"):
        assert where[name] == where[f"{name}_back"]
