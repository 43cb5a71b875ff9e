"""What is left between a point and a bound decides how a run is called."""

from __future__ import annotations

import numpy as np
import pytest
from support.programs import linear

from placedsl.budget import Budget
from placedsl.solvers.outcome import Clock, outcome


@pytest.mark.parametrize(
    ("bound", "called"),
    [
        (-100.0, "optimal"),
        (-119.0, "gap_reached"),
        (-120.0, "gap_reached"),
        (-120.00000001, "gap_reached"),  # rounding of what a solver prints
        (-120.1, "error"),
        (-np.inf, "error"),
    ],
)
def test_a_gap_of_exactly_what_was_asked_for_is_reached(bound: float, called: str) -> None:
    program = linear([-1.0], np.ones((1, 1)), [-np.inf], [100.0], [0], [200], [1])
    budget = Budget(time_limit=10.0, gap=0.2)
    found = outcome(program, budget, Clock.start(budget), "optimal", np.array([100.0]), bound)
    assert (found.termination, found.objective, found.bound) == (
        called,
        -100.0,
        max(bound, -200.0),
    )  # the columns alone say -200
