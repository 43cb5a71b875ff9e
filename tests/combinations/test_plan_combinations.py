"""Machines x chunks x samples in flight x exchanges x paths of plans: each cell is right, or refused by a message."""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet
from support.plan_combinations import PlanCell, plan_cells, plan_outcome


def _case(cell: PlanCell) -> ParameterSet:
    """Cells that share an enumeration run in one process."""
    group = f"{cell.machine} {cell.chunks} {cell.held} {cell.exchange}"
    name = f"{group} {cell.path}".replace(" ", "_")
    return pytest.param(cell, id=name, marks=pytest.mark.xdist_group(group))


@pytest.mark.sampled(60)
@pytest.mark.parametrize("cell", [_case(cell) for cell in plan_cells()])
def test_each_cell_works_or_says_why_not(cell: PlanCell) -> None:
    """``plan_outcome`` raises where a path answers anything but the optimum, or refuses without a message."""
    found = plan_outcome(cell)
    assert found.works != bool(found.message)
