"""Which paths the planner takes for a problem, in order, and why not the others; decided without running anything.

:mod:`placedsl.planner.solve` walks the decision and ``explain`` prints it, so the two cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from placedsl import plugins
from placedsl.algorithms import registry
from placedsl.planner.request import METHODS, Request, tried
from placedsl.problem.problem import Problem
from placedsl.records import dataclass

if TYPE_CHECKING:
    from placedsl.planner.run import Run

#: Termination and message of a run that is over.
End = tuple[str, str]


@dataclass(frozen=True)
class Outlook:
    """What a strategy will do for a problem, as far as is known beforehand.

    ``text``     what is run; empty: a preparation that is not worth a word
    ``then``     how a strategy that follows is announced: ``"; then "``
    ``settles``  the run is expected to end here
    """

    text: str
    then: str = "; "
    settles: bool = False


@dataclass(frozen=True)
class Strategy:
    """A path to a placement that the planner may take; its row in ``placedsl.planner.strategies.registry``.

    ``methods``  the values of ``--method`` under which it is considered
    ``against``  why it does not apply to a problem as it is asked for, in the user's words; empty where it does
    ``outlook``  what it will do where it applies
    ``run``      takes the path; None where another one has to go on
    """

    name: str
    methods: frozenset[str]
    against: Callable[[Problem, Request], Sequence[str]]
    outlook: Callable[[Problem, Request], Outlook]
    run: Callable[[Run], End | None]


@dataclass(frozen=True, eq=False)
class Step:
    """A path that is taken for a problem as it is asked for."""

    strategy: Strategy
    problem: Problem
    request: Request

    @cached_property
    def outlook(self) -> Outlook:
        """What it will do."""
        return self.strategy.outlook(self.problem, self.request)


@dataclass(frozen=True)
class NotTaken:
    """A path that is not taken, and the reasons against it."""

    name: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Decision:
    """The paths in the order in which they are taken, each until one settles the problem.

    ``beside``    what searches and bounds in processes of its own while the others run
    ``not_taken`` the paths that were considered, and why they do not apply
    ``refusal``   why what was asked for cannot be done at all; there are no steps then
    ``notes``     what is worth knowing of the choice, in sentences
    """

    steps: tuple[Step, ...]
    beside: tuple[str, ...] = ()
    not_taken: tuple[NotTaken, ...] = ()
    refusal: str = ""
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What will be run, in turn."""
        if self.refusal:
            return "none: " + self.refusal.partition(":")[0]
        out, then = "", ""
        for outlook in (step.outlook for step in self.steps):
            if outlook.text:
                out += then + outlook.text
                then = outlook.then
            if outlook.settles:
                break
        return out

    def takes(self, name: str) -> bool:
        """Whether a strategy may be run: it applies, and none before it is expected to settle the problem."""
        for step in self.steps:
            if step.strategy.name == name:
                return True
            if step.outlook.settles:
                return False
        return False


def decide(problem: Problem, request: Request, strategies: Sequence[Strategy], beside: Sequence[str] = ()) -> Decision:
    """The decision for a request that is filled in (:func:`placedsl.planner.request.resolve`).

    ``strategies`` in the order in which they are tried; ``beside``: names of what may run beside them.
    """
    method = str(request.method)
    considered = [one for one in strategies if method in one.methods]
    against = {one.name: tuple(one.against(problem, request)) for one in considered}
    steps = tuple(Step(one, problem, request) for one in considered if not against[one.name])
    not_taken = tuple(NotTaken(name, reasons) for name, reasons in against.items() if reasons)
    if not steps:
        reasons = "; ".join(reason for one in not_taken for reason in one.reasons)
        return Decision((), (), not_taken, f"method {method} does not fit: {reasons}")
    return Decision(steps, tuple(beside), not_taken)


@dataclass(frozen=True)
class Candidate:
    """An algorithm by name: its name, who brings it, and why it does not fit (empty: it does)."""

    name: str
    plugin: str
    against: tuple[str, ...]


def candidates(problem: Problem, method: str) -> tuple[Candidate, ...]:
    """The algorithm that is named, or all those of plug-ins where the choice is free; imports them."""
    looked_at = (method,) if method not in METHODS else tried() if method == "auto" else ()
    out = []
    for name in looked_at:
        plugin = registry.find(name, METHODS)
        try:
            against = tuple(plugin.call(plugin.load("fits", "solve").fits, problem))
        except plugins.PluginError as error:
            against = (str(error),)
        out.append(Candidate(name, str(plugin), against))
    return tuple(out)
