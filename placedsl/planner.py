"""Which path to a placement fits, and walking it: exact before bounded before heuristic.

The dynamic program over ideals where it applies; a program for a solver elsewhere, with the dynamic program's
placement as a start and its value as a bound where those are to be had.  Whatever finds a placement, only the
evaluator says what it costs and whether it counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from placedsl.algorithms import contiguous, local_search
from placedsl.algorithms.simple_bound import simple_bound
from placedsl.answer import Answer, gap
from placedsl.diagnostics import PlacedslError, UsageError
from placedsl.expressions import Provided
from placedsl.formulation import Formulation, choose, passed_over
from placedsl.graph.graph import Floats, Integers
from placedsl.incumbent import SAME, Incumbent, Progress
from placedsl.lowering.lower import lower
from placedsl.plugged import Ended, run_fitting, run_named
from placedsl.portfolio.members import members_for, search_splits, searchers
from placedsl.portfolio.portfolio import Member, Portfolio
from placedsl.portfolio.program_member import solve_program
from placedsl.problem import Problem
from placedsl.program.build import Grounded, build
from placedsl.program.contradiction import refuse_contradictions
from placedsl.program.program import LinearProgram
from placedsl.request import METHODS, Request, settled, solvers_for
from placedsl.solvers.interface import Budget, Outcome
from placedsl.solvers.isolated import run_isolated
from placedsl.solvers.registry import get
from placedsl.units import show
from placedsl.versions import versions

#: What is this small a share of the largest value of an objective is zero.
_NOTHING = 1e-9
#: Seconds that a solver has before others begin to search beside it.
_SOON = 1.0


def solve(
    problem: Problem,
    formulations: Callable[[], Iterable[Formulation]],
    request: Request | None = None,
    progress: Progress | None = None,
    read_seconds: float = 0.0,
    isolated: bool = True,
) -> Answer:
    """Find a placement.  Interruption (Ctrl-C) ends the search and returns the best so far."""
    run = _Run(problem, formulations, settled(problem, request or Request()), progress, read_seconds, isolated)
    return run.answer()


class _Run:
    """One call of :func:`solve`."""

    def __init__(
        self,
        problem: Problem,
        formulations: Callable[[], Iterable[Formulation]],
        request: Request,
        progress: Progress | None,
        read_seconds: float,
        isolated: bool,
    ) -> None:
        self.problem, self.formulations, self.request = problem, formulations, request
        self.isolated = isolated
        self.began = time.monotonic()
        self.best = Incumbent(problem, progress, self.began)
        self.read_seconds, self.build_seconds = read_seconds, 0.0
        self.relaxed: Integers | None = None
        self.nothing = 0.0
        self.asked = 0.0
        self.notes = list(problem.notes)
        self.method, self.solver, self.prover = "none", "", ""
        self.used_versions = versions()
        #: What searches for the first objective beside dynamic programming, and then beside a solver.
        self.beside: Portfolio | None = None

    @property
    def left(self) -> float | None:
        """Seconds until the time limit (None: no limit)."""
        limit = self.request.time_limit
        return None if limit is None else limit - (time.monotonic() - self.began)

    def answer(self) -> Answer:
        """Walk the paths until one settles the problem."""
        try:
            termination, message = self.walk()
        except KeyboardInterrupt:
            termination, message = "interrupted", "stopped by the user"
        finally:
            if self.beside is not None:
                self.beside.stop()
        best = self.best
        if best.refuted():
            termination = "error"
            message = f"{self.solver or self.method} claims a bound that a verified placement refutes; try another one"
        bounds = best.bounds
        if best.evaluation is not None:
            if bounds[0] > best.value + SAME * abs(best.value):
                raise PlacedslError(
                    f"internal error: the bound {bounds[0]!r} exceeds the verified value {best.value!r}; "
                    "please report this with the spec"
                )
            bounds = [min(b, v) for b, v in zip(bounds, best.evaluation.objectives, strict=True)]
        total = self.read_seconds + time.monotonic() - self.began
        read, build, verify = self.read_seconds, self.build_seconds, best.verifying
        solving = max(0.0, total - read - build - verify)
        seconds = {"read": read, "build": build, "solve": solving, "verify": verify, "total": total}
        placement = None if best.placement is None else tuple(int(d) for d in best.placement)
        return Answer(
            self.problem, termination, message, placement, best.evaluation, tuple(bounds), self.method, self.solver,
            self.request.seed or 0, seconds, self.used_versions, tuple(self.notes),
        )  # fmt: skip

    def walk(self) -> tuple[str, str]:
        """Termination and message."""
        method = self.request.method
        against = contiguous.structure(self.problem)
        if method == "dp" and against:
            raise UsageError("method dp does not fit: " + "; ".join(against) + ". Use --method program, or auto")
        if any(isinstance(o.body, Provided) and o.body.name == "time_per_sample" for o in self.problem.objectives[:1]):
            self.best.bound(simple_bound(self.problem))
        if self.best.own[0] == np.inf:
            self.best.own[0] = -np.inf
            return "infeasible", "some node, or group of nodes that must share a device, is supported by no device"
        if method not in METHODS:
            return self.ended(run_named(str(method), self.problem, self.request, self.best, self.left))
        if method != "program" and not against:
            ended = self.by_dp()
            if ended is not None:
                return ended
        elif self.request.start and not (against and (self.problem.variables or self.problem.own_formulations)):
            self.start_by_slicing()
        if method == "auto":
            settled_by_plugin = run_fitting(self.problem, self.request, self.best, self.left, self.notes)
            if settled_by_plugin is not None:
                return self.ended(settled_by_plugin)
        return self.by_program()

    def ended(self, run: Ended) -> tuple[str, str]:
        """Termination and message of a plug-in's algorithm."""
        self.method = run.method
        return run.termination, run.message

    # the dynamic program

    def by_dp(self) -> tuple[str, str] | None:
        """Run it; None when a program has to go on."""
        self.method = "dp"
        limit = self.request.time_limit
        found = contiguous.solve(
            self.problem, deadline=None if limit is None else self.began + limit, stop=self._closed,
            progress=lambda placement, _, bound: self._heard(placement, bound),
        )  # fmt: skip
        accepted = found.placement is not None and self.best.offer(found.placement, found.values)
        self.best.bound(found.bound if found.bound < np.inf else -np.inf)
        self.relaxed = found.placement
        beyond, goal = contiguous.left_out(self.problem), self.problem.objectives[0]
        if len(self.problem.objectives) > 1 and not found.fewest and not any(b.startswith("then ") for b in beyond):
            beyond.append(f"then {self.problem.objectives[1].name}")
        if found.complete and found.placement is None:
            return "infeasible", "no contiguous split satisfies the memory limits and what the devices support"
        # With clusters within clusters a placement may cost more than the program, which sees none, says.
        reached = accepted and self.best.value <= found.value + SAME * abs(found.value)
        if found.complete and reached and not any(b.startswith("then ") for b in beyond):
            for k, value in enumerate(self.best.evaluation.objectives if self.best.evaluation else ()):
                self.best.bound(value, k)
            if beyond:
                unseen = ", ".join(beyond)
                self.notes.append(f"dynamic programming does not look at {unseen}; what it found satisfies them")
            return "optimal", "proven by dynamic programming over ideals"
        if found.complete and beyond:
            self.notes.append(
                f"dynamic programming bounds {goal.name} by {show(found.bound, goal.dimension)}; "
                f"it does not know: {', '.join(beyond)}"
            )
        if found.complete and not beyond:
            violated = "; ".join(v.message for v in self.best.refused.violations) if self.best.refused else "nothing"
            raise PlacedslError(f"internal error: the evaluator refuses what dynamic programming found: {violated}")
        if found.message:
            self.notes.append(f"dynamic programming was not used: {found.message}")
        elif self._impossible:
            self.best.claimed[0] = -np.inf
            return "infeasible", f"{self.prover} proved that no placement satisfies the constraints"
        elif not found.complete:
            return self._near(self._gap()) or (
                "time_limit",
                "the time limit was reached during dynamic programming",
            )
        if self.request.method == "dp":
            if found.complete:
                return "error", "method dp cannot take " + ", ".join(beyond) + "; use --method program, or auto"
            return "error", found.message + "; use --method program, or auto"
        if found.message:
            self._accompany()  # while a program is made ready
        return None

    def _closed(self) -> bool:
        """Asked during dynamic programming: whether what searches beside it has settled the problem."""
        # From the first question on: before it kernels are compiled, on a machine where they never were.
        self.asked = self.asked or time.monotonic()
        if self.request.method == "dp" or time.monotonic() - self.asked < _SOON:
            return False
        self._accompany()
        return self._impossible or self._near(self._gap()) is not None

    def _accompany(self) -> None:
        """Hear what searches beside, and start it the first time."""
        if self.beside is None:
            self.beside = self._members(0, 0.0)
            if self.best.evaluation is None and self.isolated and not self.problem.variables:
                self.beside.add(self._program_member())
        self.beside.tell(self.best.value)
        self._listen(self.beside)

    def _program_member(self) -> Member:
        """The program beside dynamic programming, where that has no placement to begin with."""
        name = solvers_for(self.problem, self.request.solver)[0]
        budget = Budget(self.left, 0.5 * SAME, 1, self.request.seed or 0)
        formulation = choose(self.problem, self.formulations())
        return Member(f"the program in {name}", solve_program, (self.problem, formulation, name, budget))

    @property
    def _impossible(self) -> bool:
        """Whether something has proven that there is no placement."""
        return self.best.evaluation is None and self.best.bounds[0] == np.inf

    def _gap(self) -> float:
        """The gap, where that is all there is to settle: inf without a placement, or with further objectives."""
        alone = self.best.evaluation is not None and len(self.problem.objectives) == 1
        return gap(self.best.value, self.best.bounds[0]) if alone else np.inf

    def _near(self, distance: float) -> tuple[str, str] | None:
        """Termination and message where the best value is as near to its bound as is asked for."""
        if distance <= SAME:
            return "optimal", f"proven by {self.prover or self.solver or 'the simple bound'}"
        if distance <= (self.request.gap or SAME):
            return "gap_reached", f"within the gap that was asked for, {self.request.gap:.3g}"
        return None

    def _heard(self, placement: Integers, bound: float) -> None:
        self.best.bound(bound)
        self.best.offer(placement)

    def start_by_slicing(self) -> None:
        """A first placement from the best contiguous split (contiguity is only more than is asked for)."""
        limit = self.left
        seconds = 10.0 if limit is None else min(10.0, limit / 4)
        found = contiguous.solve(self.problem, deadline=time.monotonic() + seconds, most=100_000)
        if found.placement is None and not found.complete:
            found = contiguous.sliced(self.problem)  # milliseconds, once kernels are loaded
        if found.placement is None:
            return
        accepted = self.best.offer(found.placement, found.values)
        if accepted and local_search.fits(self.problem):
            local_search.improve(
                self.problem, found.placement, seed=self.request.seed or 0, deadline=time.monotonic() + seconds,
                found=lambda placement: self._heard(placement, -np.inf),
            )  # fmt: skip
        if accepted:
            goal = self.problem.objectives[0]
            self.notes.append(
                f"the solver started from a placement with {goal.name} = {show(self.best.value, goal.dimension)}"
            )

    # a program

    def by_program(self) -> tuple[str, str]:
        """Ground, then solve with the first solver that does not give up."""
        names = solvers_for(self.problem, self.request.solver)
        self.method, self.solver = "program", names[0]
        start = time.monotonic()
        known = list(self.formulations())
        formulation = choose(self.problem, known)
        self.notes += passed_over(self.problem, known, formulation)
        grounded = build(self.problem, formulation)
        refuse_contradictions(self.problem, formulation, grounded)
        self.build_seconds += time.monotonic() - start
        for name, further in zip(names, (*names[1:], ""), strict=True):
            self.solver = name
            termination, message = self.with_solver(name, grounded)
            if termination != "error" or not further:
                break
            self.notes.append(f"{name} gave up and {further} went on: {message}")
        return termination, message

    def with_solver(self, name: str, grounded: Grounded) -> tuple[str, str]:
        """Lower and hand over, once for each objective."""
        solver = get(name)
        fixed: tuple[tuple[int, float], ...] = ()
        termination, message = "optimal", f"proven by {name}"
        for position in range(len(self.problem.objectives)):
            if position and self._settled(position):
                continue
            start = time.monotonic()
            start_from = self.best.placement if self.best.placement is not None else self.relaxed
            hint = None if start_from is None else grounded.hint(start_from)
            lowered = lower(
                grounded.program, native=solver.features.native, integral=solver.features.integers_only,
                objective=position, fixed=fixed, hint=hint,
            )  # fmt: skip
            self.build_seconds += time.monotonic() - start
            self.nothing = _NOTHING * _largest(lowered.program)
            strict = next((n for n in lowered.notes if n.rewrite.startswith("strict")), None)
            if strict is not None:
                note = f"{strict.constraint}: {strict.rewrite}; placements within the margin were not considered"
                self.notes += [note] if note not in self.notes else []
            left = self.left
            if left is not None and left <= 0:
                return "time_limit", "the time limit was reached before the solver could start"
            # Half of what counts as the same, so that what the solver calls optimal still is after evaluation.
            near = max(self.request.gap or 0.0, 0.5 * SAME)
            budget = Budget(left, near, self.request.workers or 0, self.request.seed or 0)
            outcome = self._run(name, grounded, lowered.program, budget, position)
            ended = self._judge(outcome, grounded, position)
            if ended[0] not in ("optimal", "gap_reached") or self.best.evaluation is None:
                return ended
            # The whole is proven no better than its least proven objective.
            if termination == "optimal":
                termination, message = ended
            reached = self.best.evaluation.objectives[position]
            fixed += ((position, reached + 1e-7 * abs(reached)),)
        return termination, message

    def _settled(self, position: int) -> bool:
        """The best placement reaches a bound of this objective that needs no proof."""
        body, evaluation = self.problem.objectives[position].body, self.best.evaluation
        if evaluation is None or not isinstance(body, Provided) or body.name != "devices_used":
            return False
        if evaluation.objectives[position] <= 1.0:
            self.best.bound(1.0, position)
            return True
        return False

    def _run(self, name: str, grounded: Grounded, program: LinearProgram, budget: Budget, position: int) -> Outcome:
        beside = self.beside if self.beside is not None and not position else self._members(position)

        def heard(point: Floats | None, _value: float, bound: float) -> bool:
            self._listen(beside)
            if point is not None:
                self.best.offer(grounded.placement(point), grounded.values(point))
            if bound > self.best.bounds[position]:
                self.best.bound(bound, position, claimed=True)
                self.prover = name
            beside.tell(self.best.value)
            if (done := self.best.evaluation) is None:
                return False
            return position == 0 and gap(done.objectives[0], self.best.bounds[0]) <= budget.gap

        if self.isolated:
            with beside:
                if beside.members or beside.running:
                    cores = self.request.workers or os.cpu_count() or 1
                    # Where a search knows all that is asked for, what is left to the solver are the small problems.
                    patient = any(member.work is search_splits for member in beside.members)
                    budget = replace(budget, workers=max(1, cores - searchers(cores)), patient=patient)
                outcome = run_isolated(name, program, budget, heard)
            self._listen(beside)
            return outcome
        return get(name).run(program, budget, heard)

    def _members(self, position: int, delay: float = _SOON) -> Portfolio:
        """What searches beside the solver, for the first objective."""
        if position or not self.isolated or not self.request.start:
            return Portfolio(())
        workers, seed = self.request.workers or 0, self.request.seed or 0
        return Portfolio(members_for(self.problem, self.best.placement, workers, seed), delay)

    def _listen(self, beside: Portfolio) -> None:
        """Take what the others have found."""
        for news in beside.news():
            if news.placement is not None:
                self.best.offer(news.placement)
            if news.bound > self.best.bounds[0]:
                self.best.bound(news.bound, claimed=True)
                self.prover = news.member
            if news.failed:
                self.notes.append(f"{news.member} ended early: {news.failed}")

    def _judge(self, outcome: Outcome, grounded: Grounded, position: int) -> tuple[str, str]:
        """What a solver's outcome amounts to once its placement has been evaluated."""
        if outcome.version:
            self.used_versions[self.solver] = outcome.version
        point = outcome.incumbent
        accepted = point is None or self.best.offer(grounded.placement(point), grounded.values(point))
        if outcome.bound > self.best.bounds[position]:
            self.best.bound(outcome.bound, position, claimed=True)
            self.prover = self.solver
        if self.best.evaluation is None:
            if outcome.termination == "infeasible":
                return "infeasible", outcome.message or "the solver proved that no placement satisfies the constraints"
            if not accepted and self.best.refused is not None:
                broken = "; ".join(v.message for v in self.best.refused.violations[:3])
                return "error", f"the evaluator refuses the placement that {self.solver} gave: {broken}"
            return outcome.termination, outcome.message
        value = self.best.evaluation.objectives[position]
        if abs(value) <= self.nothing and value - self.best.bounds[position] <= self.nothing:
            self.best.bound(value, position, claimed=True)  # zero, as far as numbers of this size can tell
        distance = gap(value, self.best.bounds[position])
        if outcome.termination == "infeasible":
            return "error", f"{self.solver} calls infeasible what a verified placement satisfies; try another solver"
        if (near := self._near(distance)) is not None:
            return near
        if outcome.termination in ("optimal", "gap_reached"):
            return "error", (
                f"{self.solver} reports {outcome.termination}, but the verified value is {distance:.2g} from the bound"
            )
        return outcome.termination, outcome.message


def _largest(program: LinearProgram) -> float:
    """The largest absolute value that the objective can take, as far as its columns have bounds."""
    ends = np.maximum(abs(program.lower), abs(program.upper))
    return float((abs(program.cost) * np.where(np.isfinite(ends), ends, 0.0)).sum())
