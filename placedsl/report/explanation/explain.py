"""What will be done with a spec and why: sizes, the path and why not the others, the program part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.exclusion import with_implied
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.graph.graph import Graph
from placedsl.grounding.build import build
from placedsl.ir.program import LinearProgram
from placedsl.lowering.context import Note
from placedsl.lowering.lower import lower
from placedsl.planner.decision import Candidate, Decision, candidates
from placedsl.planner.request import Request, resolve, solvers_for
from placedsl.planner.strategies.parallel_plans import MOST_COLUMNS, columns_of_program
from placedsl.planner.strategies.registry import beside, decision
from placedsl.problem.execution import Transfers
from placedsl.problem.formulation import Formulation, choose, passed_over
from placedsl.problem.problem import Problem
from placedsl.report.explanation.coefficients import NumericalWarning, numerical_warnings
from placedsl.report.explanation.contributions import Contribution, contributions
from placedsl.solvers.registry import get, installed


@dataclass(frozen=True, eq=False)
class Explanation:
    """Everything that ``explain`` tells.

    ``facts`` are sizes by name.  ``fit`` and ``budget`` say whether dynamic programming fits; ``candidates`` are the
    algorithms of plug-ins that come into question; ``decision`` is the planner's.  The program is that of the first
    objective for ``solver``; ``needed`` whether it will be solved as far as is known beforehand.  ``native`` holds, by
    solver, what each takes without lowering.  Where the program is too large to be stated there is no ``formulation``,
    and ``unstated`` says so.
    """

    spec: str
    facts: tuple[tuple[str, str], ...]
    fit: contiguous.Fit
    budget: int
    candidates: tuple[Candidate, ...]
    decision: Decision
    needed: bool
    formulation: Formulation | None
    solver: str
    native: tuple[tuple[str, tuple[str, ...]], ...]
    program: LinearProgram | None
    units: int
    nodes: int
    contributions: tuple[Contribution, ...]
    lowerings: tuple[Note, ...]
    warnings: tuple[NumericalWarning, ...]
    unstated: str = ""

    @property
    def path(self) -> str:
        """What will be run, in turn."""
        return self.decision.text


def explain(problem: Problem, formulations: Callable[[], Iterable[Formulation]], request: Request) -> Explanation:
    """Ask the planner for its decision, ground and lower; nothing is solved.

    InputError for what cannot be stated as a program.
    """
    problem = with_implied(problem)
    chosen = resolve(problem, request)
    fit = _fit(problem)
    quotient, classes = contiguous.pipeline_of(problem)
    columns = 0 if problem.execution.options is None else columns_of_program(problem)
    if columns > MOST_COLUMNS and chosen.method != "program":
        unstated = f"not stated: it has {columns:,} columns (--method program tries it)"
        return _without_program(problem, chosen, fit, contiguous.most_stored(classes), unstated)
    known = list(formulations())
    formulation = choose(problem, known)
    in_turn = solvers_for(problem, chosen.solver)
    features = get(in_turn[0]).features
    grounded = build(problem, formulation)
    lowered = lower(grounded.program, native=features.native, integral=features.integers_only)
    contributed = contributions(grounded, lowered)
    looked_at = candidates(problem, str(chosen.method))
    planned = decision(problem, chosen, looked_at, beside(problem))
    own = (in_turn[0], tuple(sorted(features.native)))
    others = (f for f, _ in installed() if f.name != in_turn[0] and ":" not in f.name)
    return Explanation(
        spec=problem.objectives[0].span.source.name,
        facts=(
            *_facts(problem, quotient.units, classes.devices),
            *(("formulation", reason) for reason in passed_over(problem, known, formulation)),
            *(("note", note) for note in (*problem.notes, *planned.notes)),
        ),
        fit=fit,
        budget=contiguous.most_stored(classes),
        candidates=looked_at,
        decision=planned,
        needed=planned.takes("program"),
        formulation=formulation,
        solver=in_turn[0],
        native=(own, *((f.name, tuple(sorted(f.native))) for f in others)),
        program=lowered.program,
        units=grounded.quotient.units,
        nodes=problem.graph.nodes,
        contributions=contributed,
        lowerings=lowered.notes,
        warnings=numerical_warnings(problem.objectives, grounded, lowered, contributed),
    )


def _without_program(
    problem: Problem, request: Request, fit: contiguous.Fit, budget: int, unstated: str
) -> Explanation:  # fmt: skip
    """Of a plan whose program is too large."""
    quotient, classes = contiguous.pipeline_of(problem)
    looked_at = candidates(problem, str(request.method))
    planned = decision(problem, request, looked_at, beside(problem))
    return Explanation(
        spec=problem.objectives[0].span.source.name,
        facts=(
            *_facts(problem, quotient.units, classes.devices),
            *(("note", note) for note in (*problem.notes, *planned.notes)),
        ),
        fit=fit, budget=budget, candidates=looked_at, decision=planned, needed=False, formulation=None, solver="",
        native=(), program=None, units=quotient.units, nodes=problem.graph.nodes, contributions=(), lowerings=(),
        warnings=(), unstated=unstated,
    )  # fmt: skip


def _fit(problem: Problem) -> contiguous.Fit:
    """Whether dynamic programming fits: over pipelines, or over plans."""
    if problem.execution.options is None:
        return contiguous.fits(problem)
    from placedsl.algorithms.pipelines.parallel_plans import plans_of_problems as plans

    quotient, _ = contiguous.pipeline_of(problem)
    against = plans.against(problem)
    beyond = [] if against else plans.beyond(problem)
    return contiguous.Fit(tuple(against), tuple(beyond), contiguous.ideals_of(quotient), quotient.units)


_TRANSFERS: Mapping[Transfers, str] = {
    "through_host": "through RAM: each accelerator over its own link, or the interconnect",
    "direct": "from device to device: the sender once for each receiving device, the receiver once",
    "broadcast": "from device to device: the sender once, as long as the farthest receiver takes; the receiver once",
}


def _facts(problem: Problem, units: int, classes: Sequence[np.ndarray]) -> tuple[tuple[str, str], ...]:
    graph, devices = problem.graph, problem.machine.devices
    size = f"{graph.nodes} nodes, {len(graph.edge_source)} edges, {graph.tensors} tensors"
    if graph.backward.any():
        size += f"; {int(graph.backward.sum())} nodes are backward"
    facts = [
        ("graph", size),
        *([("fusion", _fusion(graph))] if graph.fusion is not None else []),
        ("devices", ", ".join(f"{len(members)} x {devices[members[0]].family}" for members in classes)),
        ("schedule", problem.execution.name),
        *([("transfers", _TRANSFERS[problem.execution.transfers])] if problem.execution.run == "pipeline" else []),
    ]
    if problem.orientation:
        way = "the reverse order" if problem.orientation == "against" else "the same order"
        facts.append(("backward", f"the backward part runs through the devices in {way} of the forward part"))
    if problem.constraint("contiguous") is not None:
        facts.append(("contraction", f"{graph.nodes} nodes to {units} units"))
    if problem.variables:
        facts.append(("variables", ", ".join(problem.variables)))
    if problem.soft_constraints:
        names = ", ".join(one.name for one in problem.soft_constraints)
        facts.append(("soft", f"{names}: their costs are in the first objective"))
    return tuple(facts)


def _fusion(graph: Graph) -> str:
    """How many operators there were, and which rule made how many of those that are left."""
    assert graph.fusion is not None
    made = ", ".join(f"{said}: {count}" for said, count in graph.fusion.made)
    return f"{graph.written.nodes} nodes to {graph.nodes}; {made}"
