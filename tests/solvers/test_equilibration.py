"""Units of rows, columns and the objective for solvers with absolute tolerances."""

from __future__ import annotations

import numpy as np
import pytest
from support.programs import INF, linear

from placedsl.ir.program import LinearProgram
from placedsl.solvers.equilibration import conditioned


def of_unit(unit: float) -> LinearProgram:
    """Two integer columns and a time, two times that only rows of their own hold, and one in no row."""
    matrix = [[2 * unit, 3 * unit, -1, 0, 0, 0], [0, 0, 0, 1, -1, 0], [0, 0, 0, 1, 0, 0]]
    return linear(
        [0, 0, 1, 0, -1, -1], np.array(matrix), [-INF, 0, 0], [0, INF, 7 * unit], [0, 0, 0, 0, 0, 0],
        [1, 1, INF, INF, 5 * unit, 4 * unit], [True, True, False, False, False, False],
    )  # fmt: skip


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1.0, 1e9])
def test_nothing_depends_on_the_unit_of_continuous_columns(unit: float) -> None:
    made, expected = conditioned(of_unit(unit)).program, conditioned(of_unit(1.0)).program
    for name in ("cost", "coefficient", "upper", "row_upper"):
        found, wanted = getattr(made, name), getattr(expected, name)
        some = np.isfinite(wanted) & (wanted != 0.0)
        ratio = found[some] / wanted[some]
        assert ratio.max() / ratio.min() <= 8, name
        assert (found[~some] == wanted[~some]).all(), name
    assert 0.5 <= np.abs(made.cost).max() <= 1e4


def test_fixed_columns_are_no_measure() -> None:
    hours, microseconds = 3600.0, 1e-6
    matrix = np.array([[hours, 2 * microseconds, -1]])
    program = linear([hours, 0, 1], matrix, [-INF], [0], [0, 0, 0], [0, 1, INF], [True, True, False])
    made = conditioned(program).program
    assert 0.5 <= abs(made.coefficient[1]) <= 2
    assert abs(made.cost[2]) >= 0.5


def test_the_way_back() -> None:
    program = of_unit(1e-9)
    scaled = conditioned(program)
    point = np.array([1.0, 0.0, 2e-9, 5e-9, 5e-9, 4e-9])
    there = point / scaled.unit
    assert scaled.point(there) == pytest.approx(point, rel=1e-15)
    assert scaled.value(float(scaled.program.cost @ there)) == pytest.approx(float(program.cost @ point), rel=1e-12)
