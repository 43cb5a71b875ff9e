"""What can be combined: small specs that cross the choices of the language, and each path's answer by enumeration.

A cell is one execution model, one way of sharing stages, a number of cluster levels, a kind of graph, an objective and
a path.  It *works* if the path answers with the optimum that enumeration by the evaluator finds, it is *refused* if a
message says why the combination is not known.  Anything else is a fault.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import placedsl
from placedsl.diagnosis.sensitivity.what_if import changes
from placedsl.diagnostics import InputError, UsageError
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem
from support.brute_force import best_by_evaluation
from support.one_sample import latency_of, placements

#: Execution models and how a spec asks for them.
EXECUTIONS = {
    "1F1B": "schedule pipedream",
    "1F1B, overlapped": "schedule overlapped",
    "1F1B, full duplex": "schedule duplex",
    "GPipe": "schedule gpipe",
    "GPipe, overlapped": "schedule gpipe { communication = overlapped }",
    "GPipe, full duplex": "schedule gpipe { communication = full_duplex }",
    "subgraph calls": "schedule calls { pieces = 2 }",
    "operators": "schedule dataflow",
}
ONE_SAMPLE = ("subgraph calls", "operators")
SHARING = {"alone": "", "shared": "parallelism { data = 1..2, weights = memory }"}
MACHINES = (
    "device gpu[2]: accelerator { memory = 8 GiB }\ndevice cpu: host\ninterconnect { bandwidth = 8 GiB/s }",
    "cluster pod[2] {\n    device gpu[1]: accelerator { memory = 8 GiB }\n"
    "    interconnect { bandwidth = 32 GiB/s }\n}\ndevice cpu: host\ninterconnect { bandwidth = 8 GiB/s }",
    "cluster rack[2] {\n    cluster server[1] {\n        device gpu[1]: accelerator { memory = 8 GiB }\n"
    "        interconnect { bandwidth = 32 GiB/s }\n    }\n    interconnect { bandwidth = 16 GiB/s }\n}\n"
    "device cpu: host\ninterconnect { bandwidth = 8 GiB/s }",
)
GRAPHS = {
    "inference": """graph {
    node a { time = {accelerator: 400 ms, host: 700 ms}, memory = 3 GiB, output = 2 GiB }
    node b { time = {accelerator: 500 ms, host: 900 ms}, memory = 2 GiB, output = 1 GiB }
    node c { time = {accelerator: 300 ms, host: 800 ms}, memory = 4 GiB, output = 1 GiB }
    a -> b -> c
    a -> c
}""",
    "training": """graph {
    node a  { time = {accelerator: 400 ms, host: 700 ms}, memory = 3 GiB, output = 2 GiB, layer = 1 }
    node b  { time = {accelerator: 500 ms, host: 900 ms}, memory = 2 GiB, output = 1 GiB, layer = 2 }
    node bb { time = {accelerator: 800 ms, host: 1 s}, memory = 4 GiB, output = 1 GiB, layer = 2, backward = true }
    node ab { time = {accelerator: 600 ms, host: 2 s}, memory = 1 GiB, output = 1 GiB, layer = 1, backward = true }
    a -> b -> bb -> ab
    a -> ab
}""",
}
OBJECTIVES = ("{}", "peak_memory", "{} then devices_used")
PATHS = ("dynamic programming", "auto", "program", "timeline", "why", "conflict")


@dataclass(frozen=True)
class Cell:
    """One combination of everything."""

    execution: str
    sharing: str
    levels: int
    graph: str
    objective: str
    path: str

    @property
    def goal(self) -> str:
        """The objective as the spec states it."""
        return self.objective.format("latency" if self.execution in ONE_SAMPLE else "time_per_sample")

    def text(self) -> str:
        """The spec."""
        constraints = ["memory"]
        if self.graph == "training":
            constraints.append("colocated by layer")
        if self.path == "dynamic programming":
            constraints.append("contiguous")
        if self.path == "conflict":
            constraints.append("never: forall d in devices: count(v in nodes: v on d) <= 0")
        parts = [GRAPHS[self.graph], MACHINES[self.levels], EXECUTIONS[self.execution], SHARING[self.sharing]]
        rules = "".join(f"    {constraint}\n" for constraint in constraints)
        return "\n".join([*(part for part in parts if part), f"minimize {self.goal}", "subject to", rules])


@dataclass(frozen=True)
class Outcome:
    """Whether a cell works, and if not the message that refuses it."""

    works: bool
    message: str = ""


class Fault(AssertionError):
    """A cell that neither works nor is refused."""


def cells() -> Iterator[Cell]:
    """All of them."""
    axes = (EXECUTIONS, SHARING, range(len(MACHINES)), GRAPHS, OBJECTIVES, PATHS)
    return itertools.starmap(Cell, itertools.product(*axes))


def reference(problem: Problem) -> tuple[float, ...]:
    """The least objectives in order, over all placements and all that an answer decides beside them."""
    if problem.device_to_device is not None:
        return _least(_of_operators(problem))
    if "latency" in {quantity for objective in problem.objectives for quantity in objective.name.split()}:
        return _least(_of_calls(problem))
    found = best_by_evaluation(problem)
    return (math.inf,) * len(problem.objectives) if found is None else found


def _least(all_objectives: Iterator[tuple[float, ...]]) -> tuple[float, ...]:
    """Least in order of importance; values that differ by rounding are equal."""
    found = list(all_objectives)
    for position in range(len(found[0])):
        least = min(objectives[position] for objectives in found)
        found = [o for o in found if o[position] <= least + 1e-9 * abs(least)]
    return found[0]


def _of_calls(problem: Problem) -> Iterator[tuple[float, ...]]:
    slots = [2 if accelerator else 1 for accelerator in problem.accelerators]
    choices = [(d, p) for d, most in enumerate(slots) for p in range(1, most + 1)]
    for chosen in itertools.product(choices, repeat=problem.graph.nodes):
        found = evaluate(
            problem, [d for d, _ in chosen], {"piece": {(v,): float(p) for v, (_, p) in enumerate(chosen)}}
        )
        if not found.violations:
            yield found.objectives


def _of_operators(problem: Problem) -> Iterator[tuple[float, ...]]:
    names = [objective.name for objective in problem.objectives]
    for place in placements(problem):
        found = evaluate(problem, place)
        if not found.violations:
            latency = latency_of(problem, place)
            yield tuple(
                latency if name == "latency" else value for name, value in zip(names, found.objectives, strict=True)
            )


def outcome(cell: Cell) -> Outcome:
    """Run the path of a cell and compare it with the reference; Fault where it neither works nor says why not."""
    try:
        spec = placedsl.loads(cell.text())
        return _PATHS[cell.path](cell, spec)
    except InputError as refused:
        if not all(d.span is not None for d in refused.diagnostics):
            raise Fault(f"{cell}: refused without a place: {refused}") from refused
        return Outcome(False, "; ".join(d.message for d in refused.diagnostics))
    except UsageError as refused:
        return Outcome(False, str(refused))


def _compare(cell: Cell, problem: Problem, answer: placedsl.Answer) -> Outcome:
    if answer.termination == "error" and answer.message.startswith("method dp cannot take"):
        return Outcome(False, answer.message)
    if answer.termination != "optimal" or answer.evaluation is None:
        raise Fault(f"{cell}: {answer.termination}: {answer.message}")
    expected = reference(problem)
    if not all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(answer.evaluation.objectives, expected, strict=True)):
        raise Fault(f"{cell}: {answer.evaluation.objectives}, enumeration {expected}")
    return Outcome(True)


def _dynamic_programming(cell: Cell, spec: placedsl.Spec) -> Outcome:
    return _compare(cell, spec.problem, spec.solve(method="dp", workers=1, time_limit=60))


def _auto(cell: Cell, spec: placedsl.Spec) -> Outcome:
    return _compare(cell, spec.problem, spec.solve(workers=1, time_limit=60))


def _program(cell: Cell, spec: placedsl.Spec) -> Outcome:
    return _compare(cell, spec.problem, spec.solve(method="program", solver="highs", workers=1, time_limit=60))


def _timeline(cell: Cell, spec: placedsl.Spec) -> Outcome:
    answer = spec.solve(workers=1, time_limit=60)
    document = answer.timeline().document()
    assert answer.evaluation is not None
    if cell.objective.startswith("{}"):
        measured = document["latency" if cell.execution in ONE_SAMPLE else "largest_load"]
        if not math.isclose(measured, answer.evaluation.objectives[0], rel_tol=1e-6):
            raise Fault(f"{cell}: the timeline measures {measured}, the evaluator {answer.evaluation.objectives[0]}")
    return Outcome(True)


def _why(cell: Cell, spec: placedsl.Spec) -> Outcome:
    answer = spec.solve(workers=1, time_limit=60)
    found = spec.why(answer, workers=1, time_limit=30)
    changed = {change.text: change.problem for change in changes(spec.problem)}
    more = [effect for effect in found.effects if effect.change.startswith("one more")]
    if len(more) < 2:
        raise Fault(f"{cell}: one more device is missing for some family")
    for effect in found.effects:
        problem = changed[effect.change]
        small = len(problem.machine.devices) ** problem.graph.nodes <= 300 and cell.sharing == "alone"
        if effect.proven and small and not math.isclose(effect.value, reference(problem)[0], rel_tol=1e-6):
            raise Fault(f"{cell}: {effect.change} gives {effect.value}, enumeration {reference(problem)[0]}")
    return Outcome(True)


def _conflict(cell: Cell, spec: placedsl.Spec) -> Outcome:
    found = spec.conflict(time_limit=60)
    if found is None or [member.name for member in found.members] != ["never"]:
        raise Fault(f"{cell}: {found}")
    return Outcome(True)


_PATHS = {
    "dynamic programming": _dynamic_programming, "auto": _auto, "program": _program,
    "timeline": _timeline, "why": _why, "conflict": _conflict,
}  # fmt: skip
