"""The paths to a placement in the order in which the planner tries them: exact before bounded before heuristic.

An algorithm is tried under ``auto`` by a row here: a :class:`Strategy` of its own, or :func:`by_protocol` for one that
has the functions ``fits`` and ``solve`` of ``placedsl.algorithms.interface``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from placedsl.planner.decision import Candidate, Decision, End, Outlook, Strategy, decide
from placedsl.planner.request import METHODS, Request, solvers_for
from placedsl.planner.strategies import dynamic_programming, path_program
from placedsl.problem.problem import Problem

if TYPE_CHECKING:
    from placedsl.planner.protocol_runs import Ended
    from placedsl.planner.run import Run

_AUTO, _PROGRAM, _DP = (frozenset(names) for names in (("auto",), ("auto", "program"), ("auto", "dp")))


def by_protocol(name: str, module: str) -> Strategy:
    """The row of an algorithm that is tried for a few seconds: its name, and the module with ``fits`` and ``solve``."""

    def against(problem: Problem, _request: Request) -> Sequence[str]:
        return list(import_module(module).fits(problem))

    def run(run: Run) -> End | None:
        from placedsl.planner.protocol_runs import run_unnamed

        return _ended(run, run_unnamed(name, module, run.request, run.best, run.left, run.notes))

    return Strategy(name, _AUTO, against, lambda _problem, _request: Outlook(name), run)


# What only some problems need is imported when it is asked for.
def _against_schedules(problem: Problem, _request: Request) -> Sequence[str]:
    return () if problem.execution.one_sample else ["it searches for the run of one sample"]


def _outlook_for_schedules(problem: Problem, request: Request) -> Outlook:
    from placedsl.planner.strategies import latency

    return latency.outlook(problem, request)


def _schedules(run: Run) -> End | None:
    from placedsl.planner.strategies import latency

    return latency.search(run)


def _nothing(_problem: Problem, _request: Request) -> Sequence[str]:
    return ()


def _outlook_for_the_program(problem: Problem, request: Request) -> Outlook:
    """The solvers in turn."""
    first, *others = solvers_for(problem, request.solver)
    return Outlook(f"program with {first}" + "".join(f", or {name} if that fails" for name in others), settles=True)


def _program(run: Run) -> End:
    from placedsl.planner.strategies import program

    return program.by_program(run)


def _against_plugins(problem: Problem, _request: Request) -> Sequence[str]:
    return ["plug-ins are tried for pipelines"] if problem.execution.one_sample else ()


def _slice(run: Run) -> None:
    dynamic_programming.start_by_slicing(run)


def _plugins(run: Run) -> End | None:
    from placedsl.planner.protocol_runs import run_fitting

    return _ended(run, run_fitting(run.problem, run.request, run.best, run.left, run.notes))


def _ended(run: Run, how: Ended | None) -> End | None:
    """Termination and message of an algorithm by protocol."""
    if how is None:
        return None
    run.method = how.method
    return how.termination, how.message


_SILENT = Outlook("")
STRATEGIES: tuple[Strategy, ...] = (
    Strategy("search for schedules", _PROGRAM, _against_schedules, _outlook_for_schedules, _schedules),
    Strategy("dynamic programming", _DP, dynamic_programming.against, dynamic_programming.outlook,
             dynamic_programming.by_dynamic_programming),
    Strategy("a program over paths", _AUTO, path_program.against, path_program.outlook, path_program.by_paths),
    Strategy("a start by slicing", _PROGRAM, dynamic_programming.against_slicing, lambda _p, _r: _SILENT, _slice),
    Strategy("plug-ins", _AUTO, _against_plugins, lambda _p, _r: _SILENT, _plugins),
    Strategy("program", _PROGRAM, _nothing, _outlook_for_the_program, _program),
)  # fmt: skip


def _named(method: str, looked_at: Sequence[Candidate]) -> Strategy:
    """The algorithm that the user has named; its run refuses what it does not fit, if nobody has looked before."""

    def against(_problem: Problem, _request: Request) -> Sequence[str]:
        return [reason for one in looked_at for reason in one.against]

    def run(run: Run) -> End | None:
        from placedsl.planner.protocol_runs import run_named

        return _ended(run, run_named(method, run.problem, run.request, run.best, run.left))

    return Strategy(method, frozenset((method,)), against, lambda _p, _r: Outlook(method, settles=True), run)


def decision(
    problem: Problem, request: Request, plugins: Sequence[Candidate] | None = None, beside: Sequence[str] = ()
) -> Decision:
    """What the planner does for a request that is filled in; nothing is run.

    ``plugins``: the algorithms of plug-ins that were looked at.  Without them they are neither imported nor named
    here; the step that tries them does that when its turn comes.  ``beside``: as :func:`beside` says; only who
    reads the decision needs it.
    """
    method = str(request.method)
    if method not in METHODS:
        planned = decide(problem, request, (_named(method, plugins or ()),))
        return replace(planned, notes=tuple(_notes(problem, request)))
    rows = list(STRATEGIES)
    if plugins is not None:
        fitting = " and ".join(one.name for one in plugins if not one.against)
        text = Outlook(f"{fitting} of a plug-in" if fitting else "")
        at = next(i for i, row in enumerate(rows) if row.name == "plug-ins")
        rows[at] = Strategy("plug-ins", _AUTO, _against_plugins, lambda _p, _r: text, _plugins)
    return replace(decide(problem, request, rows, beside), notes=tuple(_notes(problem, request)))


def _notes(problem: Problem, request: Request) -> Iterator[str]:
    """What a named solver keeps from being used, and what keeps it from being used."""
    if request.method not in ("program", "auto") and request.solver != "auto":
        yield f"method {request.method} has no use for a solver: {request.solver} was not used"
    if request.free and not dynamic_programming.against(problem, request):
        exact = dynamic_programming.outlook(problem, request).settles
        gives = "applies to this spec" if exact else "gives a bound for this spec"
        yield f"dynamic programming {gives} and was not used, because solver {request.solver} is named"


def beside(problem: Problem) -> Sequence[str]:
    """What searches and bounds in processes of its own, by name."""
    if problem.execution.one_sample:
        from placedsl.planner.portfolio.latency_members import against

        return () if against(problem) else ("searches for schedules", "lower bounds of the latency")
    from placedsl.planner.portfolio import throughput_members

    return throughput_members.beside(problem)
