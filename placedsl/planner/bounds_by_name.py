"""The bounds by name, each in a process of its own: what each proves in the time that it has."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.colocation import with_implied_colocation
from placedsl.algorithms.partitions.bounds import named
from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.diagnostics import UsageError, nearest
from placedsl.planner.portfolio.portfolio import Member, PlannerChannel, Portfolio
from placedsl.problem.problem import Problem

#: Seconds of each bound where no limit is given; those by which it may exceed its limit before it is ended.
SECONDS, _GRACE = 60.0, 2.0
#: Seconds between two looks at what a process has said.
_PAUSE = 0.005
#: What a process says, in place of what proves a bound, when it begins, and when its last bound is final.
_BEGUN, _FINAL = "begun", "final"


@dataclass(frozen=True)
class FoundBound:
    """What came of a bound.

    ``value``     seconds (None: nothing was proven);  ``by``: what proves it, in words
    ``seconds``   that it took, without the start of its process;  ``last``: until the value was known
    ``final``     whether more time gives no more
    ``against``   why it is no bound of the problem, a clause each; it is not computed then
    ``failed``    why its process ended early
    """

    name: str
    meaning: str
    paper: bool
    value: float | None = None
    by: str = ""
    seconds: float = 0.0
    last: float = 0.0
    final: bool = False
    against: tuple[str, ...] = ()
    failed: str = ""


def known(names: Sequence[str]) -> tuple[str, ...]:
    """All names, or those that are asked for in their order; UsageError where one is none."""
    for name in names:
        if name not in named.BY_NAME:
            raise UsageError(f"there is no bound '{name}'; {nearest(name, named.BY_NAME)}")
    return tuple(name for name in named.BY_NAME if not names or name in names)


def bounds_by_name(
    problem: Problem, names: Sequence[str] = (), upper: float = np.inf, seconds: float | None = None,
    doing: Callable[[str], None] = lambda _: None,
) -> Iterator[FoundBound]:  # fmt: skip
    """What each bound proves, in turn (no names: all of them).

    ``upper``: the value of a placement that is known (inf: none); a bound that reaches it goes no further.  ``seconds``
    of each bound (None: 60).  ``doing`` hears which is computed.
    """
    problem = with_implied_colocation(problem)
    for name in known(names):
        doing(f"computing {name}")
        one = named.BY_NAME[name]
        against = tuple(one.against(problem))
        if against:
            yield FoundBound(name, one.meaning, one.paper, against=against)
        else:
            yield _found(one, problem, upper, SECONDS if seconds is None else seconds)


def compute(channel: PlannerChannel, problem: Problem, name: str, upper: float, seconds: float) -> None:
    """Say ever better bounds of one name."""
    channel.report(None, -np.inf, by=_BEGUN)

    def told(bound: Bound) -> None:
        channel.report(None, bound.value, by=bound.by, certificate=bound.certificate)

    if named.BY_NAME[name].run(problem, upper, seconds, told):
        channel.report(None, -np.inf, by=_FINAL)


def _found(one: named.NamedBound, problem: Problem, upper: float, seconds: float) -> FoundBound:
    """What comes of a bound in a process that is ended soon after its time."""
    value, by, final, failed = -np.inf, "", False, ""
    began, last = time.monotonic(), 0.0
    beside = Portfolio([Member(one.name, compute, (problem, one.name, upper, seconds))])
    with beside:
        active = True
        while active and time.monotonic() - began < seconds + _GRACE:
            active = beside.active
            for message in beside.messages():
                if message.failed:
                    failed = message.failed
                elif message.by == _BEGUN:
                    began = time.monotonic()
                elif message.by == _FINAL:
                    final = True
                elif message.bound > value:
                    value, by, last = message.bound, message.by, time.monotonic() - began
            time.sleep(_PAUSE)
    shown = None if value == -np.inf else float(value)
    return FoundBound(
        one.name, one.meaning, one.paper, shown, by, time.monotonic() - began, last, final, (), failed
    )  # fmt: skip
