"""What can be combined: small specs that cross the choices of the language, and each path's answer by enumeration.

A cell is one execution model, one way of transfers between devices, one way of sharing stages, a number of cluster
levels, a kind of graph, an objective and a path.
It *works* if the path answers with the optimum that enumeration by the evaluator finds, it is *refused* if a
message says why the combination is not known.  Anything else is a fault.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import placedsl
from placedsl.diagnosis.sensitivity.what_if import changes
from placedsl.problem.problem import Problem
from support.combination_paths import walk
from support.enumeration import Objectives, enumerated, least

#: Execution models and how a spec asks for them.
EXECUTIONS = {
    "1F1B": "schedule 1f1b",
    "1F1B, overlapped": "schedule 1f1b { communication = overlapped }",
    "1F1B, full duplex": "schedule 1f1b { communication = full_duplex }",
    "GPipe": "schedule gpipe",
    "GPipe, overlapped": "schedule gpipe { communication = overlapped }",
    "GPipe, full duplex": "schedule gpipe { communication = full_duplex }",
    "subgraph calls": "schedule calls { pieces = 2 }",
    "operators": "schedule dataflow",
}
#: Ways of transfers and the setting of each; without any, tensors go through RAM where there are no links.
TRANSFERS = {"RAM": "", "direct": "transfers = direct", "broadcast": "transfers = broadcast"}
ONE_SAMPLE = ("subgraph calls", "operators")
SHARING = {"alone": "", "shared": "parallelism { data = 1..2, weights = memory }"}
LEVELS = range(3)
GRAPHS = {
    # Three nodes read what a makes, and nothing reads what c makes.
    "inference": """graph {
    node a { time = {accelerator: 400 ms, host: 700 ms}, memory = 3 GiB, output = 2 GiB }
    node b { time = {accelerator: 500 ms, host: 900 ms}, memory = 2 GiB, output = 1 GiB }
    node c { time = {accelerator: 200 ms, host: 300 ms}, memory = 2 GiB, output = 1 GiB }
    node d { time = {accelerator: 300 ms, host: 800 ms}, memory = 4 GiB, output = 1 GiB }
    a -> b -> d
    a -> c
    a -> d
}""",
    "training": """graph {
    node a  { time = {accelerator: 400 ms, host: 700 ms}, memory = 3 GiB, output = 2 GiB, layer = 1 }
    node b  { time = {accelerator: 500 ms, host: 900 ms}, memory = 2 GiB, output = 1 GiB, layer = 2 }
    node c  { time = {accelerator: 200 ms, host: 300 ms}, memory = 1 GiB, output = 1 GiB, layer = 3 }
    node bb { time = {accelerator: 800 ms, host: 1 s}, memory = 4 GiB, output = 1 GiB, layer = 2, backward = true }
    node ab { time = {accelerator: 600 ms, host: 2 s}, memory = 1 GiB, output = 1 GiB, layer = 1, backward = true }
    a -> b -> bb -> ab
    a -> c
    a -> ab
}""",
}
OBJECTIVES = ("{}", "peak_memory", "{} then devices_used")
PATHS = ("dynamic programming", "search", "auto", "program", "timeline", "why", "conflict")
#: The search that is named where it looks at the objective (descent, a list schedule); else devices are filled in turn.
SEARCHES = {"1F1B": "local-search", "operators": "m-etf"}
ANY_SEARCH = "greedy"


def machine(levels: int, sharing: str) -> str:
    """Devices in so many levels of clusters, two of them alike where they may share stages."""
    gpu = "device gpu[{}]: accelerator {{ memory = 8 GiB }}\n"
    inside = "interconnect { bandwidth = 32 GiB/s }\n"
    number = 2 if sharing == "shared" else 1
    parts = (
        gpu.format(2),
        f"cluster pod[2] {{\n{gpu.format(2)}{inside}}}\n",
        f"cluster rack[2] {{\ncluster server[{3 - number}] {{\n{gpu.format(number)}{inside}}}\n"
        "interconnect { bandwidth = 16 GiB/s }\n}\n",
    )
    return parts[levels] + "device cpu: host\ninterconnect { bandwidth = 8 GiB/s }"


@dataclass(frozen=True)
class Cell:
    """One combination of everything."""

    execution: str
    transfers: str
    sharing: str
    levels: int
    graph: str
    objective: str
    path: str

    @property
    def goal(self) -> str:
        """The objective as the spec states it."""
        return self.objective.format(self.time)

    @property
    def time(self) -> str:
        """The quantity that a run of the execution model takes."""
        return "latency" if self.execution in ONE_SAMPLE else "time_per_sample"

    @property
    def contiguous(self) -> bool:
        """Whether splits have to be: dynamic programming searches no others."""
        return self.path == "dynamic programming"

    @property
    def method(self) -> str:
        """The method that is named."""
        named = {"dynamic programming": "dp", "program": "program", "auto": "auto"}
        if self.path != "search":
            return named.get(self.path, "")
        plain = self.sharing == "alone" and self.objective.startswith("{}")
        return SEARCHES.get(self.execution, ANY_SEARCH) if plain else ANY_SEARCH

    def text(self) -> str:
        """The spec."""
        never = "    never: forall d in devices: count(v in nodes: v on d) <= 0\n" if self.path == "conflict" else ""
        return spec_text(self, self.goal, never)


def spec_text(cell: Cell, goal: str, more: str = "") -> str:
    """The spec of a cell for some objective, with further constraints."""
    constraints = ["memory"]
    if cell.graph == "training":
        constraints.append("colocated by layer")
    if cell.contiguous:
        constraints.append("contiguous")
    name, _, own = EXECUTIONS[cell.execution].partition(" {")
    settings = ", ".join(filter(None, (own.strip(" }"), TRANSFERS[cell.transfers])))
    schedule = name + (f" {{ {settings} }}" if settings else "")
    parts = [GRAPHS[cell.graph], machine(cell.levels, cell.sharing), schedule, SHARING[cell.sharing]]
    rules = "".join(f"    {constraint}\n" for constraint in constraints)
    return "\n".join([*(part for part in parts if part), f"minimize {goal}", "subject to", rules + more])


@dataclass(frozen=True)
class Outcome:
    """Whether a cell works, and if not the message that refuses it."""

    works: bool
    message: str = ""


class Fault(AssertionError):
    """A cell that neither works nor is refused."""


def cells() -> Iterator[Cell]:
    """All of them; those that share a spec, or an enumeration, follow one another.

    One sample has transfers of its own: with ``calls`` through RAM, with ``dataflow`` over links.
    """
    axes = (EXECUTIONS, TRANSFERS, SHARING, LEVELS, GRAPHS, OBJECTIVES, PATHS)
    every = itertools.starmap(Cell, itertools.product(*axes))
    return (cell for cell in every if cell.transfers == "RAM" or cell.execution not in ONE_SAMPLE)


def reference(cell: Cell) -> Objectives:
    """The least objectives in order, over all placements and all that an answer decides beside them."""
    wanted = {"{}": (0,), "peak_memory": (1,), "{} then devices_used": (0, 2)}[cell.objective]
    text = spec_text(cell, f"{cell.time} then peak_memory then devices_used")
    return least([tuple(objectives[k] for k in wanted) for objectives in _enumerated(text)])


@lru_cache(maxsize=200)
def _enumerated(text: str) -> Sequence[Objectives]:
    return enumerated(placedsl.loads(text).problem)


@lru_cache(maxsize=40)
def _changed(text: str) -> dict[str, tuple[Problem, list[float]]]:
    """The changed problems of ``why`` by their words; the least value of each is added when it is asked for."""
    return {change.text: (change.problem, []) for change in changes(placedsl.loads(text).problem)}


def outcome(cell: Cell, told: dict[str, Any] | None = None, *, alone: bool = False) -> Outcome:
    """Walk the path of a cell (or take what was ``told`` of it) and compare it with the enumeration; Fault where it
    neither works nor says why not.

    ``alone``: solvers run in this process, which has to be one that no other solver's library was loaded in.
    """
    told = walk(cell.text(), cell.path, cell.method, alone=alone) if told is None else told
    if "fault" in told:
        raise Fault(f"{cell}: {told['fault']}")
    if "refused" in told:
        if not told["located"]:
            raise Fault(f"{cell}: refused without a place: {told['refused']}")
        return Outcome(False, told["refused"])
    _CHECKS.get(cell.path, _optimal)(cell, told)
    return Outcome(True)


def _optimal(cell: Cell, told: dict[str, Any]) -> None:
    if told["termination"] != "optimal" or told["objectives"] is None:
        raise Fault(f"{cell}: {told['termination']}: {told['message']}")
    if not all(map(_same, told["objectives"], reference(cell))):
        raise Fault(f"{cell}: {told['objectives']}, enumeration {reference(cell)}")


def _searched(cell: Cell, told: dict[str, Any]) -> None:
    """A search finds nothing better than the optimum, and claims no bound above it; it may find nothing."""
    if told["termination"] not in ("ended", "optimal"):
        raise Fault(f"{cell}: {told['termination']}: {told['message']}")
    expected = reference(cell)
    for value, bound, best in zip(told["objectives"] or expected, told["bounds"], expected, strict=True):
        if value < best * (1 - 1e-6):
            raise Fault(f"{cell}: {told['objectives']}, enumeration {expected}")
        if bound is not None and bound > best * (1 + 1e-6):
            raise Fault(f"{cell}: bounds {told['bounds']}, enumeration {expected}")
        if not _same(value, best):
            break  # what follows in the order of importance may be anything
    if told["objectives"] is None and "no placement" not in told["message"]:
        raise Fault(f"{cell}: {told['message']}")


def _timeline(cell: Cell, told: dict[str, Any]) -> None:
    _optimal(cell, told)
    if not cell.objective.startswith("{}"):
        return
    run, expected = told["timeline"], told["objectives"][0]
    measured = [run["latency"]] if cell.execution in ONE_SAMPLE else [run["largest_load"]]
    if cell.execution not in ONE_SAMPLE and run["schedule"] != "gpipe":
        measured.append(run["time_per_sample"])
    if not all(_same(value, expected) for value in measured):
        raise Fault(f"{cell}: the timeline measures {measured}, the evaluator {expected}")


def _why(cell: Cell, told: dict[str, Any]) -> None:
    effects = told["effects"]
    if sum(change.startswith("one more") for change, _, _ in effects) < 2:
        raise Fault(f"{cell}: one more device is missing for some family")
    changed = _changed(spec_text(cell, cell.goal.partition(" then ")[0]))
    for change, value, proven in effects:
        if not proven or change not in changed:
            continue
        problem, known = changed[change]
        if len(problem.machine.devices) ** problem.graph.nodes > 3_200 or cell.sharing == "shared":
            continue
        if not known:
            known.append(least(enumerated(problem))[0])
        if not _same(value, known[0]):
            raise Fault(f"{cell}: {change} gives {value}, enumeration {known[0]}")


def _conflict(cell: Cell, told: dict[str, Any]) -> None:
    if told["members"] != ["never"]:
        raise Fault(f"{cell}: {told['members']}")


def _same(one: float | None, other: float) -> bool:
    return one is not None and math.isclose(one, other, rel_tol=1e-6)


_CHECKS: dict[str, Callable[[Cell, dict[str, Any]], None]] = {
    "search": _searched, "timeline": _timeline, "why": _why, "conflict": _conflict,
}  # fmt: skip
