"""Execution models x sharing x clusters x graphs x objectives x paths: each cell is right, or refused by a message."""

from __future__ import annotations

import pytest
from support.combinations import Cell, cells, outcome


def _name(cell: Cell) -> str:
    return f"{cell.execution}-{cell.sharing}-{cell.levels}-{cell.graph}-{cell.goal}-{cell.path}".replace(" ", "_")


@pytest.mark.sampled(120)
@pytest.mark.parametrize("cell", list(cells()), ids=_name)
def test_each_cell_works_or_says_why_not(cell: Cell) -> None:
    """``outcome`` raises where a path answers anything but the optimum, or refuses without a message."""
    found = outcome(cell)
    assert found.works != bool(found.message)
