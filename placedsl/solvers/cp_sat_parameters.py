"""Parameters of CP-SAT: what keeps the answers of version 9.15 right, and the runs of searches reproducible.

One presolve step of 9.15 (merging at-most-one constraints with linear rows) cuts off optimal points and then "proves" a
worse one: github.com/google/or-tools/issues/5293.  With intervals, probing may "prove" an order that does not hold, and
so may the simplification of clauses during the search: 3% of 547 runs of one model with other seeds and limits did, and
none of 603 without it.  tests/algorithms/operator_scheduling/test_exact_schedules.py has the instance.
"""

from __future__ import annotations

from typing import Any

#: The parameter that switches the defective presolve step off, and its value.
PRESOLVE_SWITCH = ("presolve_inclusion_work_limit", 0)
#: The parameter that switches probing off, and its value.
PROBING_SWITCH = ("cp_model_probing_level", 0)
#: The parameter that switches the simplification of clauses during the search off, and its value.
INPROCESSING_SWITCH = ("use_sat_inprocessing", False)


def defect_switches(*, intervals: bool) -> tuple[tuple[str, int], ...]:
    """Names and values of the parameters that switch off what is wrong in 9.15.

    ``intervals``: the model has intervals that may not overlap.
    """
    return (PRESOLVE_SWITCH, PROBING_SWITCH, INPROCESSING_SWITCH) if intervals else (PRESOLVE_SWITCH,)


def avoid_defects(parameters: Any, *, intervals: bool) -> None:
    """Set the parameters of :func:`defect_switches`."""
    for name, value in defect_switches(intervals=intervals):
        setattr(parameters, name, value)


def set_seed(parameters: Any, seed: int, workers: int) -> None:
    """The seed, in the range that CP-SAT takes, and the number of threads (0: all cores)."""
    parameters.num_workers, parameters.random_seed = workers, seed % 2**31


def reproducible(parameters: Any, seed: int, effort: float, *, intervals: bool) -> None:
    """One thread and a limit on deterministic time: the same result on every machine."""
    set_seed(parameters, seed, 1)
    parameters.max_deterministic_time = effort
    avoid_defects(parameters, intervals=intervals)
