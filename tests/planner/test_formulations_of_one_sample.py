"""The programs of the schedules of one sample: every solver finds what enumeration does, and the evaluator agrees.

Each solver has a process of its own, because two solver libraries do not go into one.
"""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from support.paths import child_environment

import placedsl

pytestmark = pytest.mark.rotates(4)

SOLVERS = ("highs", "cp-sat", "pyomo", "mip", "cvxpy")
KINDS = ("calls", "dataflow")
#: Problems of each kind; one fifth is compared by default.
SEEDS = 30


def compare(kind: str, solver: str, first: int, last: int) -> int:
    """How many specs this solver answers as enumeration does; one that differs ends the process."""
    from support.one_sample import least_of_calls, least_of_dataflow, random_calls, random_dataflow

    from placedsl.planner.request import Request
    from placedsl.planner.solve import solve

    write, least = (random_calls, least_of_calls) if kind == "calls" else (random_dataflow, least_of_dataflow)
    for seed in range(first, last):
        text = write(seed)
        spec = placedsl.loads(text)
        best = least(spec.problem)
        request = Request(solver, "program", workers=1, start=False, time_limit=60.0)
        answer = solve(spec.problem, spec.elaborated.checked_formulations, request, isolated=False)
        if best == math.inf:
            agrees = answer.termination == "infeasible" and answer.placement is None
        else:
            near = 3e-6 * max(1.0, best)
            agrees = (
                answer.termination == "optimal"
                and answer.evaluation is not None
                and not answer.evaluation.violations
                and abs(answer.value - best) <= near
                and answer.bound <= best + near
            )
        if not agrees:
            found = f"{answer.termination} {answer.value} {answer.bound} {answer.message}"
            sys.exit(f"seed {seed}: {found}; best {best}\n{text}")
    return last - first


@pytest.mark.parametrize("solver", SOLVERS)
def test_agrees_with_enumeration(solver: str, pytestconfig: pytest.Config) -> None:
    seeds = SEEDS if pytestconfig.getoption("--everything") else SEEDS // 5
    environment = child_environment()
    command = [sys.executable, __file__, solver, str(seeds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"agree: {len(KINDS) * seeds}"


if __name__ == "__main__":
    print("agree:", sum(compare(kind, sys.argv[1], 0, int(sys.argv[2])) for kind in KINDS))  # noqa: T201
