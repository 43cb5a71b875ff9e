"""Compile the kernels that the tests run, once and before them: ``python -P -m support.compile_kernels KIND``.

A kernel that is compiled is kept on disk.  Without this, each process of a test that needs one compiles it anew until
one of them lives long enough to keep it, and processes beside a solver seldom do.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable

import numpy as np

import placedsl
from placedsl.planner.portfolio.latency_members import members_for_one_sample
from placedsl.planner.portfolio.throughput_members import members_for
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from support.combinations import EXECUTIONS, GRAPHS, SHARING, machine

#: Execution models, ways of sharing stages, levels of clusters and constraints, by the kind of run.
KINDS = {
    "pipelines": [
        (execution, sharing, levels, rules)
        for execution in ("1F1B", "1F1B, overlapped", "1F1B, full duplex", "GPipe")
        for sharing, levels in (("alone", 0), ("shared", 0), ("shared", 1))
        for rules in ("    contiguous\n", "")
    ],
    "one sample": [
        ("subgraph calls", "alone", 0, ""), ("operators", "alone", 0, "    sequential\n    congestion by port\n"),
        ("operators", "alone", 0, "    sequential\n"), ("operators", "alone", 0, ""),
    ],
}  # fmt: skip
#: How long a member works on after its first report, and the longest that it may take, in seconds.
_AFTER, _MOST = 1.0, 120.0


class _Reports:
    """A channel to no planner; says by a pipe that there was a report, so that kernels are compiled."""

    best = np.inf

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe

    def report(self, placement: object, bound: float, values: object = None) -> None:
        os.write(self.pipe, b".")


def _apart(work: Callable[[_Reports], object]) -> None:
    """Do it in a process of its own, which is ended soon after it has reported; the disk keeps what it compiled."""
    reports, pipe = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            work(_Reports(pipe))
            code = 0
        except Exception:  # noqa: BLE001 - shown, and the parent sees the exit code
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(pipe)
    if select.select([reports], [], [], _MOST)[0] and os.read(reports, 1):  # nothing to read: it has ended
        time.sleep(_AFTER)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(reports)
    if os.waitstatus_to_exitcode(status) not in (0, -signal.SIGKILL):
        sys.exit("what compiles the kernels has failed: see above")


def _solve(spec: placedsl.api.spec.Spec) -> None:
    solve(spec.problem, spec.elaborated.checked_formulations, Request("highs", workers=1), isolated=False)


def compile_kind(kind: str) -> None:
    """Solve small problems of one kind, and do all that runs beside a solver."""
    for execution, sharing, levels, rules in KINDS[kind]:
        goal = "latency" if kind == "one sample" else "time_per_sample"
        devices = machine(levels, sharing)
        parts = [GRAPHS["inference"], devices, EXECUTIONS[execution], SHARING[sharing], f"minimize {goal}"]
        spec = placedsl.loads("\n".join([*parts, "subject to\n    memory\n"]) + rules)
        if kind == "one sample":
            members = members_for_one_sample(spec.problem, 1, 0, None, alone=False)
        else:
            _apart(lambda _, spec=spec: _solve(spec))  # type: ignore[misc]
            members = members_for(spec.problem, None, 1, 0)
        for member in members:
            _apart(lambda channel, member=member: member.work(channel, *member.arguments))  # type: ignore[misc]


if __name__ == "__main__":
    compile_kind(sys.argv[1])
