"""Plans over clusters whose copies share samples: against enumeration, and where they come to what is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.piper_levels import drawn_levels, optimum

import placedsl
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.request import Request
from placedsl.planner.solve import solve


@pytest.mark.sampled(8)
@pytest.mark.parametrize("first", range(0, 640, 20))
def test_the_best_plan(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 20):
        asked, levels = drawn_levels(seed)
        (tmp_path / "w.json").write_text(json.dumps(asked.workload), encoding="utf-8")
        spec = placedsl.loads(levels.spec(asked, "w.json"), tmp_path)
        found = solve(spec.problem, spec.elaborated.checked_formulations, Request(workers=1), isolated=False)
        best = optimum(asked, levels)
        if best is None:
            assert found.termination == "infeasible", seed
            continue
        assert found.termination == "optimal", f"seed {seed}: {found.message}"
        assert found.evaluation is not None
        assert found.value == pytest.approx(float(best), rel=1e-9), seed
        assert found.bound == pytest.approx(float(best), rel=1e-9), seed
        again = evaluate(spec.problem, found.placement or (), found.evaluation.values)
        assert not again.violations
