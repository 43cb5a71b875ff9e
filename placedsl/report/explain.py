"""What will be done with a spec and why: the paths, their sizes, and why the others were not taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from placedsl import plugins
from placedsl.algorithms import contiguous
from placedsl.formulation import Formulation, choose, passed_over
from placedsl.lowering.lower import lower
from placedsl.problem import Problem
from placedsl.program.build import build
from placedsl.request import METHODS, Request, methods, settled, solvers_for
from placedsl.solvers.registry import get


def explain(problem: Problem, formulations: Callable[[], Iterable[Formulation]], request: Request) -> str:
    """Lines of text: sizes, contraction, the path taken, the program a solver would get."""
    chosen = settled(problem, request)
    graph = problem.graph
    fit = contiguous.fits(problem)
    quotient, classes = contiguous.pipeline_of(problem)
    lines = [
        f"graph        {graph.nodes} nodes, {len(graph.edge_source)} edges, {graph.tensors} tensors"
        + (f"; {int(graph.backward.sum())} nodes are backward" if graph.backward.any() else ""),
        "devices      " + ", ".join(_class(problem, members) for members in classes.devices),
        f"schedule     {problem.schedule}",
    ]
    if problem.orientation:
        way = "the reverse order" if problem.orientation == "against" else "the same order"
        lines.append(f"backward     the backward part runs through the devices in {way} of the forward part")
    lines.append(f"contraction  {graph.nodes} nodes to {quotient.units} units, where contiguity is asked for")
    lines.append("")
    lines.append("dynamic programming over ideals")
    if fit.against:
        lines += [f"  does not fit: {reason}" for reason in fit.against]
    else:
        lines.append("  objective time_per_sample, pieces contiguous, devices alike within each class")
        lines.append(f"  {fit.ideals:,} ideals (budget {contiguous.most_ideals(classes, contiguous.MOST_IDEALS):,})")
        if fit.beyond:
            lines.append(f"  as a bound only, for it does not know: {', '.join(fit.beyond)}")
        else:
            lines.append("  exact for this problem")
    program = chosen.method == "program" or not fit.exact
    lines += ["", "program"]
    if not program:
        lines.append("  not needed; --method program would solve:")
    known = list(formulations())
    formulation = choose(problem, known)
    name = solvers_for(problem, chosen.solver)[0]
    solver = get(name)
    grounded = build(problem, formulation)
    lowered = lower(grounded.program, native=solver.features.native, integral=solver.features.integers_only)
    linear = lowered.program
    lines.append(f"  formulation {formulation.name} ({formulation.span.source.name.rsplit('/', 1)[-1]}), solver {name}")
    lines += [f"  {reason}" for reason in passed_over(problem, known, formulation)]
    lines.append(
        f"  {linear.columns:,} columns ({int(linear.integer.sum()):,} integer), {linear.rows:,} rows, "
        f"{len(linear.column):,} entries; {grounded.quotient.units} units of {graph.nodes} nodes"
    )
    if solver.features.native:
        lines.append("  taken natively: " + ", ".join(sorted(solver.features.native)))
    lines += [
        f"  {note.constraint}: {note.rewrite}, {note.instances} times"
        + (f", largest big-M {note.big_m:.6g}" if note.big_m not in (0.0, 1.0) else "")
        for note in lowered.notes
    ]
    named = chosen.method not in METHODS
    tried = [str(chosen.method)] if named else list(methods()[len(METHODS) :]) if chosen.method == "auto" else []
    for algorithm in tried:
        plugin, against = _fit(algorithm, problem)
        lines += ["", plugin, *([f"  does not fit: {reason}" for reason in against] or ["  fits"])]
    path = f"program with {name}" if program else "dynamic programming"
    if program and chosen.method == "auto" and not fit.against:
        path = f"dynamic programming, whose placement is the answer if it satisfies the rest; else {path}"
    lines += ["", f"path taken: {chosen.method if named else path}"]
    return "\n".join(lines) + "\n"


def _fit(name: str, problem: Problem) -> tuple[str, Sequence[str]]:
    """What brings an algorithm of a plug-in, and why it does not fit (empty: it does)."""
    plugin = plugins.get("algorithms", name, METHODS)
    try:
        return str(plugin), plugin.call(plugin.load("fits", "solve").fits, problem)
    except plugins.PluginError as error:
        return str(plugin), [str(error)]


def _class(problem: Problem, members: np.ndarray) -> str:
    devices = problem.machine.devices
    return f"{len(members)} x {devices[members[0]].family}"
