"""Rows of a comparison grounded a few at a time: the same program as all at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import placedsl
from placedsl.grounding import constraints
from placedsl.grounding.build import build
from placedsl.lowering.lower import lower
from placedsl.problem.formulation import choose

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("name", ["kv-cache", "balanced-loads", "at-most-k", "inline"])
def test_the_program_is_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = placedsl.load(EXAMPLES / f"{name}.place")
    formulation = choose(spec.problem, spec.elaborated.checked_formulations())
    whole = lower(build(spec.problem, formulation).program).program
    monkeypatch.setattr(constraints, "_MANY", 3)
    parts = lower(build(spec.problem, formulation).program).program
    assert len(parts.origins) > len(whole.origins)
    for field in ("cost", "lower", "upper", "integer", "start", "column", "coefficient", "row_lower", "row_upper"):
        np.testing.assert_array_equal(getattr(parts, field), getattr(whole, field))
    rows = range(len(whole.row_lower))
    assert [parts.row_name(r) for r in rows] == [whole.row_name(r) for r in rows]
