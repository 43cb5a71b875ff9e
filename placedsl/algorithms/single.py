"""The baseline "single accelerator": everything on one, and what it does not support on the host that is quickest.

Where the spec limits memory and one accelerator does not hold the whole, the evaluator refuses the placement and says
by how much it is out of memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.baseline import first_of_each_kind, named, undecided, units_of
from placedsl.algorithms.interface import Budget, NothingFoundError, Progress
from placedsl.problem import Problem


def fits(problem: Problem) -> Sequence[str]:
    """Why it does not apply: nowhere to put anything, or more to decide than a placement."""
    return undecided(problem) + ([] if problem.accelerators.any() else ["there is no accelerator"])


def solve(problem: Problem, _budget: Budget, progress: Progress) -> tuple[Sequence[int] | None, float]:
    """One placement for each kind of accelerator; the evaluator keeps the best."""
    quotient = units_of(problem)
    hosts = np.where(problem.accelerators[:, None], np.inf, quotient.work)
    supported = np.isfinite(quotient.work)
    wrong = ""
    placed = None
    for device in first_of_each_kind(problem, problem.accelerators):
        unit_device = np.where(supported[device], device, hosts.argmin(axis=0))
        nowhere = np.flatnonzero(~supported[unit_device, np.arange(quotient.units)])
        if len(nowhere):
            name = problem.machine.devices[device].name
            wrong = f"neither {name} nor a host supports {named(problem, int(nowhere[0]), quotient)}"
            continue
        placed = unit_device[quotient.unit_of_node].tolist()
        if progress(placed, -np.inf):
            break
    if placed is None:
        raise NothingFoundError(wrong)
    return placed, -np.inf
