"""What will be done with a spec and why: sizes, the path and why not the others, the program part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from placedsl import plugins
from placedsl.algorithms import contiguous, registry
from placedsl.formulation import Formulation, choose, passed_over
from placedsl.graph.graph import Graph
from placedsl.lowering.lower import lower
from placedsl.lowering.state import Note
from placedsl.paths.one_sample import head_start
from placedsl.portfolio.latency_members import against, alone
from placedsl.problem import Problem
from placedsl.program.build import build
from placedsl.program.program import LinearProgram
from placedsl.report.coefficients import NumericalWarning, numerical_warnings
from placedsl.report.contributions import Contribution, contributions
from placedsl.request import METHODS, Request, settled, solvers_for, tried
from placedsl.solvers.registry import get, installed


@dataclass(frozen=True)
class Candidate:
    """An algorithm by name: its name, who brings it, and why it does not fit (empty: it does)."""

    name: str
    plugin: str
    against: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Explanation:
    """Everything that ``explain`` tells.

    ``facts`` are sizes by name.  ``fit`` and ``budget`` say whether dynamic programming fits; ``candidates`` are the
    algorithms of plug-ins that come into question.  The program is that of the first objective for ``solver``;
    ``needed`` whether it will be solved as far as is known beforehand.  ``native`` holds, by solver, what each takes
    without lowering.
    """

    spec: str
    facts: tuple[tuple[str, str], ...]
    fit: contiguous.Fit
    budget: int
    candidates: tuple[Candidate, ...]
    needed: bool
    formulation: Formulation
    solver: str
    native: tuple[tuple[str, tuple[str, ...]], ...]
    program: LinearProgram
    units: int
    nodes: int
    contributions: tuple[Contribution, ...]
    lowerings: tuple[Note, ...]
    warnings: tuple[NumericalWarning, ...]
    path: str


def explain(problem: Problem, formulations: Callable[[], Iterable[Formulation]], request: Request) -> Explanation:
    """Look at every path, ground and lower; nothing is solved.  InputError for what cannot be stated as a program."""
    chosen = settled(problem, request)
    fit = contiguous.fits(problem)
    quotient, classes = contiguous.pipeline_of(problem)
    known = list(formulations())
    formulation = choose(problem, known)
    in_turn = solvers_for(problem, chosen.solver)
    features = get(in_turn[0]).features
    grounded = build(problem, formulation)
    lowered = lower(grounded.program, native=features.native, integral=features.integers_only)
    contributed = contributions(grounded, lowered)
    candidates = _candidates(problem, str(chosen.method))
    own = (in_turn[0], tuple(sorted(features.native)))
    others = (f for f, _ in installed() if f.name != in_turn[0] and ":" not in f.name)
    return Explanation(
        spec=problem.objectives[0].span.source.name,
        facts=(
            *_facts(problem, quotient.units, classes.devices),
            *(("formulation", reason) for reason in passed_over(problem, known, formulation)),
            *(("note", note) for note in problem.notes),
        ),
        fit=fit,
        budget=contiguous.most_stored(classes),
        candidates=candidates,
        needed=chosen.method == "program" or (chosen.method == "auto" and not fit.exact),
        formulation=formulation,
        solver=in_turn[0],
        native=(own, *((f.name, tuple(sorted(f.native))) for f in others)),
        program=lowered.program,
        units=grounded.quotient.units,
        nodes=problem.graph.nodes,
        contributions=contributed,
        lowerings=lowered.notes,
        warnings=numerical_warnings(problem.objectives, grounded, lowered, contributed),
        path=_path(problem, str(chosen.method), str(chosen.solver), fit, candidates, in_turn),
    )


def _facts(problem: Problem, units: int, classes: Sequence[np.ndarray]) -> tuple[tuple[str, str], ...]:
    graph, devices = problem.graph, problem.machine.devices
    size = f"{graph.nodes} nodes, {len(graph.edge_source)} edges, {graph.tensors} tensors"
    if graph.backward.any():
        size += f"; {int(graph.backward.sum())} nodes are backward"
    facts = [
        ("graph", size),
        *([("fusion", _fusion(graph))] if graph.fusion is not None else []),
        ("devices", ", ".join(f"{len(members)} x {devices[members[0]].family}" for members in classes)),
        ("schedule", problem.schedule),
    ]
    if problem.orientation:
        way = "the reverse order" if problem.orientation == "against" else "the same order"
        facts.append(("backward", f"the backward part runs through the devices in {way} of the forward part"))
    if problem.rule("contiguous") is not None:
        facts.append(("contraction", f"{graph.nodes} nodes to {units} units"))
    if problem.variables:
        facts.append(("variables", ", ".join(problem.variables)))
    if problem.soft:
        facts.append(("soft", ", ".join(one.name for one in problem.soft) + ": their costs are in the first objective"))
    return tuple(facts)


def _fusion(graph: Graph) -> str:
    """How many operators there were, and which rule made how many of those that are left."""
    assert graph.fusion is not None
    made = ", ".join(f"{said}: {count}" for said, count in graph.fusion.made)
    return f"{graph.written.nodes} nodes to {graph.nodes}; {made}"


def _candidates(problem: Problem, method: str) -> tuple[Candidate, ...]:
    """The algorithm that is named, or all those of plug-ins where the choice is free."""
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


def _path(
    problem: Problem,
    method: str,
    solver: str,
    fit: contiguous.Fit,
    candidates: Sequence[Candidate],
    in_turn: Sequence[str],
) -> str:
    """What will be run, in turn."""
    if method not in METHODS:
        return method if not candidates[0].against else f"none: {method} does not fit"
    program = f"program with {in_turn[0]}" + "".join(f", or {name} if that gives up" for name in in_turn[1:])
    fitting = [c.name for c in candidates if not c.against]
    if fitting:
        program = f"{' and '.join(fitting)} of a plug-in; {program}"
    if problem.told and not against(problem):
        if alone(problem, method, solver):
            return "searches for schedules, and lower bounds; a program would be too large to help"
        return f"searches for schedules, and lower bounds; after {head_start(problem):g} s, beside them, a {program}"
    # Dynamic programming gives a placement, no values of variables, and looks at the first objective alone.
    beyond_help = bool(problem.variables) or any(name.startswith("then ") for name in fit.beyond)
    if method == "dp":
        if fit.against:
            return "none: method dp does not fit"
        if beyond_help:
            return "none: method dp cannot take " + ", ".join(fit.beyond)
        return "dynamic programming" + (", whose placement has to satisfy the rest" if fit.beyond else "")
    if method == "program" or fit.against:
        return program
    if fit.exact:
        return "dynamic programming"
    if beyond_help:
        return f"dynamic programming for a bound and a start; then {program}"
    return f"dynamic programming, whose placement is the answer if it satisfies the rest; else {program}"
