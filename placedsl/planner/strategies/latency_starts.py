"""What programs need for the times of one sample: a first schedule that waits where it has to."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import islice

import numpy as np

from placedsl.algorithms.fill_devices import first_placements
from placedsl.evaluation.evaluate import evaluate
from placedsl.grounding.build import Grounded
from placedsl.lowering.continuous_refinement import refined
from placedsl.planner.run import Run
from placedsl.planner.strategies.endless_times import without

#: So many placements are given times that constraints ask for, within so many seconds.
_TRIES, _SECONDS = 12, 2.0


def start_by_waiting(run: Run, grounded: Grounded) -> None:
    """A first schedule where list schedules break constraints on times: their placements and orders, with later starts.

    The rules that a list schedule breaks are left out while its columns are found, and are back when its times are.
    """
    began, left = time.monotonic(), run.left
    seconds = _SECONDS if left is None else min(_SECONDS, left / 4.0)
    for placement in islice(first_placements(run.problem), _TRIES):
        found = evaluate(run.problem, [int(d) for d in placement])
        if not np.isnan(found.objectives).any():
            broken = {violation.rule for violation in found.violations}
            kept = without(grounded.program, broken)
            point = replace(grounded, program=kept).hint(placement, found.values)
            exact = None if np.isnan(point[grounded.program.integer]).any() else _timed(grounded, point)
            if exact is not None and run.best.offer(grounded.placement(exact), grounded.values(exact)):
                return
        if time.monotonic() - began > seconds:
            return


def _timed(grounded: Grounded, point: np.ndarray) -> np.ndarray | None:
    return refined(grounded.program, 0, (), np.where(np.isnan(point), 0.0, point))
