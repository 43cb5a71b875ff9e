"""Execution models x sharing x clusters x graphs x objectives x paths: each cell is right, or refused by a message."""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet
from support.combinations import Cell, cells, outcome


def _name(cell: Cell) -> str:
    parts = (cell.execution, cell.transfers, cell.sharing, cell.levels, cell.graph, cell.goal, cell.path)
    return "-".join(map(str, parts)).replace(" ", "_")


def _case(cell: Cell) -> ParameterSet:
    """Cells that share an enumeration run in one process."""
    group = f"{cell.execution} {cell.transfers} {cell.sharing} {cell.levels} {cell.graph}"
    return pytest.param(cell, id=_name(cell), marks=pytest.mark.xdist_group(group))


#: Of cells with routes one in five, by a number that meets every choice of the others; the page is written from all.
CELLS = [cell for number, cell in enumerate(cells()) if cell.transfers == "RAM" or number % 5 == 0]


@pytest.mark.sampled(120)
@pytest.mark.parametrize("cell", [_case(cell) for cell in CELLS])
def test_each_cell_works_or_says_why_not(cell: Cell) -> None:
    """``outcome`` raises where a path answers anything but the optimum, or refuses without a message."""
    found = outcome(cell)
    assert found.works != bool(found.message)
