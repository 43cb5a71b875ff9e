"""Compile the kernels that the tests run, once and before them: ``python -P -m support.compile_kernels KIND``.

A kernel that is compiled is kept on disk.  Without this, each process of a test that needs one compiles it anew until
one of them lives long enough to keep it, and processes beside a solver seldom do.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

import numpy as np

import placedsl
from placedsl.planner.portfolio.latency_members import members_for_one_sample
from placedsl.planner.portfolio.portfolio import Member
from placedsl.planner.portfolio.throughput_members import members_for
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from support.combinations import EXECUTIONS, GRAPHS, MACHINES, SHARING

#: Execution models, ways of sharing stages, machines and constraints, by the kind of run.
KINDS = {
    "pipelines": [
        (execution, sharing, machine, rules)
        for execution in ("1F1B", "1F1B, overlapped", "1F1B, full duplex", "GPipe")
        for sharing, machine in (("alone", 0), ("shared", 0), ("shared", 1))
        for rules in ("    contiguous\n", "")
    ],
    "one sample": [
        ("subgraph calls", "alone", 0, ""), ("operators", "alone", 0, "    sequential\n    congestion by port\n"),
        ("operators", "alone", 0, "    sequential\n"), ("operators", "alone", 0, ""),
    ],
}  # fmt: skip
#: A member that has not ended within so many seconds after its first report is stopped.
_SECONDS = 1


class _Stopped(Exception):
    """The alarm of a member."""


class _Nobody:
    """A channel to no planner."""

    best = np.inf

    def report(self, placement: object, bound: float, values: object = None) -> None:
        """Its kernels are compiled once it reports."""
        signal.setitimer(signal.ITIMER_REAL, _SECONDS)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _Stopped


def _work(member: Member) -> None:
    try:
        member.work(_Nobody(), *member.arguments)
    except _Stopped:
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def compile_kind(kind: str) -> None:
    """Solve small problems of one kind in this process, with all that runs beside a solver."""
    signal.signal(signal.SIGALRM, _stop)
    for execution, sharing, machine, rules in KINDS[kind]:
        goal = "latency" if kind == "one sample" else "time_per_sample"
        parts = [GRAPHS["inference"], MACHINES[machine], EXECUTIONS[execution], SHARING[sharing], f"minimize {goal}"]
        spec = placedsl.loads("\n".join([*parts, "subject to\n    memory\n"]) + rules)
        if kind == "one sample":
            members = members_for_one_sample(spec.problem, 1, 0, None, alone=False)
        else:
            solve(spec.problem, spec.elaborated.checked_formulations, Request("highs", workers=1), isolated=False)
            members = members_for(spec.problem, None, 1, 0)
        for member in members:
            _work(member)


if __name__ == "__main__":
    compile_kind(sys.argv[1])
