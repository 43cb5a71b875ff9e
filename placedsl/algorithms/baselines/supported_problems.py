"""The problems that the baselines of Tarnawski et al. 2020 (section 6) are for."""

from __future__ import annotations

from placedsl.algorithms.supports import PLACING, Supports
from placedsl.problem.execution import Execution

#: Methods that give a placement for any problem, and leave it to the evaluator whether the constraints hold.
ANY_PLACEMENT = Supports(data_parallelism=True, routes=True, peaks=True)
#: Methods for the throughput of a pipeline whose stages need not be contiguous, with transfers after computation.
THROUGHPUT = Supports(objectives=("time_per_sample",), executions=(Execution(),), constraints=PLACING, peaks=True)
