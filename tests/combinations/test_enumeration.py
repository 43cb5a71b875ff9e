"""The enumeration that combinations are compared with: leaving out what symmetry makes alike loses nothing."""

from __future__ import annotations

import itertools

import pytest
from support.combinations import Cell, outcome, spec_text
from support.enumeration import enumerated, least

import placedsl
from placedsl.evaluation.evaluate import evaluate


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_symmetry_loses_no_value(levels: int) -> None:
    """Every value of a feasible placement is enumerated, and no other."""
    cell = Cell("1F1B", "RAM", "alone", levels, "inference", "{}", "auto")
    problem = placedsl.loads(spec_text(cell, "time_per_sample then peak_memory then devices_used")).problem
    devices = range(len(problem.machine.devices))
    every = (evaluate(problem, place) for place in itertools.product(devices, repeat=problem.graph.nodes))
    feasible = [found.objectives for found in every if not found.violations]
    few = enumerated(problem)
    assert len(few) < len(feasible)
    assert least(few) == pytest.approx(least(feasible))
    rounded = [{tuple(round(x, 9) for x in objectives) for objectives in found} for found in (few, feasible)]
    assert rounded[0] == rounded[1]


def test_a_placement_that_does_not_run_by_itself_satisfies_no_rule() -> None:
    """Subgraph calls: a placement that needs two calls of a device was once taken to satisfy any constraint."""
    found = outcome(Cell("subgraph calls", "RAM", "alone", 0, "training", "{}", "conflict"))
    assert found.works
