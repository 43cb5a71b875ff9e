"""What is asked for: the options of a call with the spec's settings and the defaults filled in."""

from __future__ import annotations

from math import inf
from numbers import Integral, Real

from placedsl.algorithms import registry
from placedsl.budget import MOST
from placedsl.diagnostics import Diagnostic, InputError, UsageError, nearest
from placedsl.problem.problem import Problem
from placedsl.records import dataclass
from placedsl.solvers.registry import ALSO, BUILT_IN, get, names
from placedsl.tolerances import SAME_VALUE

METHODS = ("auto", "dp", "program")


def methods() -> tuple[str, ...]:
    """The methods that can be named: those built in, and those that plug-ins bring."""
    return (*METHODS, *registry.own(), *tried())


def solver_names() -> tuple[str, ...]:
    """The solvers that can be named."""
    return ("auto", *names(), *ALSO)


def tried() -> tuple[str, ...]:
    """The methods that ``auto`` tries unasked: those of plug-ins."""
    return tuple(name for name in registry.brought() if name not in METHODS)


@dataclass(frozen=True)
class Request:
    """What is asked for.  None: as the spec's ``solve`` block says, else the default.

    ``dask``: the address of a cluster's scheduler, whose workers search and prove as well (None: this machine only).
    ``start``: whether a program may start from a placement that is found beforehand.  ``free``: a request that is
    filled in had no method named, and has the method program because a solver is named.
    """

    solver: str | None = None
    method: str | None = None
    time_limit: float | None = None
    gap: float | None = None
    workers: int | None = None
    seed: int | None = None
    start: bool = True
    free: bool = False
    dask: str | None = None


def _integral(value: object, low: int, high: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and low <= int(value) <= high


def _real(value: object, low: float, high: float) -> bool:
    """A number from ``low`` on and below ``high``; nan is none."""
    return isinstance(value, Real) and not isinstance(value, bool) and low <= float(value) < high


def _refuse_wrong_values(request: Request) -> None:
    """UsageError for what is no value of its kind."""
    for name in ("solver", "method", "dask"):
        word = getattr(request, name)
        if word is not None and not isinstance(word, str):
            example, what = ("tcp://host:8786", "an address") if name == "dask" else ("auto", "a name")
            raise UsageError(f"{name}={word!r}: {what} is expected, as in {name}='{example}'")
    limit, gap = request.time_limit, request.gap
    if limit is not None and not (_real(limit, 0.0, inf) or limit == inf):
        raise UsageError(f"time_limit={limit!r}: a number of seconds is expected, above 0")
    if gap is not None and not _real(gap, 0.0, 1.0):
        raise UsageError(f"gap={gap!r}: a relative gap is expected, from 0 to below 1, as in gap=0.01")
    for name in ("workers", "seed"):
        number = getattr(request, name)
        if number is not None and not _integral(number, 0, MOST[name]):
            raise UsageError(f"{name}={number!r}: a whole number is expected, from 0 to {MOST[name]:,}")


def resolve(problem: Problem, request: Request) -> Request:
    """The request with the spec's settings and the defaults filled in; UsageError for what does not exist.

    A solver that is named solves the program: it has no other use.
    """
    _refuse_wrong_values(request)
    said = problem.settings
    method = request.method or said.method or "auto"
    solver = request.solver or said.solver or "auto"
    wrong = []
    for what, word, own, built_in, every in (
        ("method", method, request.method, (*METHODS, *registry.own()), methods),
        ("solver", solver, request.solver, ("auto", *BUILT_IN), solver_names),
    ):
        # Looking for plug-ins takes longer than to check many a spec.
        if word not in built_in and word not in (known := every()):
            message, hint = f"there is no {what} '{word}'", nearest(word, known)
            if own:
                raise UsageError(f"{message}; {hint}")
            wrong.append(Diagnostic(message, said.places.get(what), hint))
    if wrong:
        raise InputError(sorted(wrong, key=lambda d: d.span.column + 10_000 * d.span.line if d.span else 0))
    chosen = [request.gap, said.gap, SAME_VALUE]
    limit = request.time_limit if request.time_limit is not None else said.time_limit
    if limit is not None and limit <= 0:
        raise UsageError("a time limit is longer than zero, as in --time-limit 60s")
    if limit == inf:
        limit = None
    free = method == "auto" and solver != "auto"
    return Request(
        solver, "program" if free else method, limit,
        next(g for g in chosen if g is not None),
        next(w for w in (request.workers, said.workers, 0) if w is not None),
        next(s for s in (request.seed, said.seed, 0) if s is not None),
        request.start, free, request.dask,
    )  # fmt: skip


def solvers_for(problem: Problem, name: str | None) -> tuple[str, ...]:
    """The solvers to try in turn: the one that is named, or for ``auto`` those that do best on such problems.

    docs/results.md has the times: CP-SAT proves contiguous splits several times faster, HiGHS the others.
    """
    if name not in (None, "auto"):
        return (str(name),)
    chained = (
        problem.execution.one_sample
        or problem.constraint("contiguous") is not None
        or problem.constraint("convex") is not None
    )
    wanted = ("cp-sat", "highs") if chained else ("highs", "cp-sat")
    return tuple(n for n in wanted if get(n).available() is not None) or wanted[:1]
