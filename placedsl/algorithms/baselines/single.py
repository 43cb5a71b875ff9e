"""The baseline "single accelerator": all nodes on one accelerator, unsupported ones on the quickest host.

If the specification limits memory and one accelerator does not hold everything, the evaluator rejects the placement and
reports the excess.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.baselines.supported_problems import ANY_PLACEMENT
from placedsl.algorithms.interface import NothingFoundError, Progress
from placedsl.algorithms.supports import reasons_against
from placedsl.algorithms.units import placement_units, unit_name
from placedsl.budget import Budget
from placedsl.problem.problem import Problem


def fits(problem: Problem) -> Sequence[str]:
    """Why it does not apply: nowhere to put anything, or more to decide than a placement."""
    return reasons_against(problem, ANY_PLACEMENT) + ([] if problem.accelerators.any() else ["there is no accelerator"])


def solve(problem: Problem, _budget: Budget, progress: Progress) -> tuple[Sequence[int] | None, float]:
    """One placement per kind of accelerator; the evaluator keeps the best."""
    quotient = placement_units(problem)
    hosts = np.where(problem.accelerators[:, None], np.inf, quotient.work)
    supported = np.isfinite(quotient.work)
    wrong = ""
    placed = None
    for device in _one_of_each_kind(problem):
        unit_device = np.where(supported[device], device, hosts.argmin(axis=0))
        nowhere = np.flatnonzero(~supported[unit_device, np.arange(quotient.units)])
        if len(nowhere):
            name = problem.machine.devices[device].name
            wrong = f"neither {name} nor a host supports {unit_name(problem, quotient, int(nowhere[0]))}"
            continue
        placed = unit_device[quotient.unit_of_node].tolist()
        if progress(placed, -np.inf):
            break
    if placed is None:
        raise NothingFoundError(wrong)
    return placed, -np.inf


def _one_of_each_kind(problem: Problem) -> list[int]:
    """The first accelerator of each class of interchangeable ones."""
    accelerators = np.flatnonzero(problem.accelerators)
    _, first = np.unique(problem.interchangeable()[accelerators], return_index=True)
    chosen: list[int] = accelerators[np.sort(first)].tolist()
    return chosen
