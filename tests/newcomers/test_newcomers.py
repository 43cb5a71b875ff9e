"""Twelve problems in prose, as people who knew nothing but the documentation wrote them down at first try."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import pytest

from placedsl import load

pytestmark = pytest.mark.rotates(4)

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def optima() -> dict[int, tuple[float, ...]]:
    spec = importlib.util.spec_from_file_location("reference", HERE / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.optima()


@pytest.mark.parametrize("number", range(1, 13))
def test_it_says_what_its_description_says(number: int, optima: dict[int, tuple[float, ...]]) -> None:
    data = HERE / "weights.json" if number == 11 else None
    answer = load(HERE / f"{number}.place", data=data).solve(workers=1)
    assert answer.termination == "optimal"
    assert answer.evaluation is not None
    for found, expected in zip(answer.evaluation.objectives, optima[number], strict=True):
        assert math.isclose(found, expected, rel_tol=2e-6)
