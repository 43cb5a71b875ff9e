"""What the baselines of Tarnawski et al. 2020 (section 6) share: what they look at, and the units that they move."""

from __future__ import annotations

import numpy as np

from placedsl.expressions import Provided
from placedsl.graph.contraction import Quotient, contract
from placedsl.graph.graph import Floats
from placedsl.problem import Problem


def undecided(problem: Problem) -> list[str]:
    """Why a placement alone, whatever it is, answers nothing here: what else the spec leaves open."""
    against = [f"it gives no value to the variable {name}" for name in problem.variables]
    if problem.own_formulations:
        against.append("it does not look at formulations, and the spec has its own")
    return against


def beyond_throughput(problem: Problem, known: tuple[str, ...]) -> list[str]:
    """Why it is not the throughput of a pipeline under the built-in rules ``known``, in the user's words."""
    goal = problem.objectives[0]
    against = undecided(problem)
    if not (isinstance(goal.body, Provided) and goal.body.name == "time_per_sample"):
        against.append(f"it minimises time_per_sample, not {goal.name}")
    if problem.schedule != "pipedream":
        against.append(f"it knows schedule pipedream, not {problem.schedule}")
    for rule in problem.rules:
        if rule.built_in in ("contiguous", "convex") and rule.built_in not in known:
            against.append(f"its pieces are hardly ever contiguous, and the spec asks for '{rule.name}'")
        elif rule.built_in not in known:
            against.append(f"it does not look at {rule.name}")
    return against


def units_of(problem: Problem, *, in_order: bool = False) -> Quotient:
    """The graph with what must share a device as one unit, and a row of work and transfer times for each device.

    ``in_order``: contiguity is asked for, so that nodes on a cycle of the precedence pairs are one unit as well.
    """
    graph = problem.graph
    return contract(
        memory=graph.memory, work=problem.time.T, groups=problem.colocation_groups(),
        before=problem.before if in_order else None, after=problem.after if in_order else None,
        tensor_producer=graph.tensor_producer, read_tensor=graph.edge_tensor, read_node=graph.edge_target,
        transfer=problem.transfer.T,
    )  # fmt: skip


def room(problem: Problem) -> Floats:
    """Bytes that each device has for nodes (inf where the spec asks for no memory limit)."""
    limited = problem.rule("memory") is not None
    return problem.device_memory if limited else np.full(len(problem.machine.devices), np.inf)


def first_of_each_kind(problem: Problem, among: np.ndarray) -> list[int]:
    """One device of each class of like devices, of the devices ``among`` (flags)."""
    classes = problem.interchangeable()
    return [i for i in np.flatnonzero(among).tolist() if not (among[:i] & (classes[:i] == classes[i])).any()]


def named(problem: Problem, unit: int, quotient: Quotient) -> str:
    """A unit in words: its first node, and how many share a device with it."""
    members = np.flatnonzero(quotient.unit_of_node == unit)
    more = f" and the {len(members) - 1} that share a device with it" if len(members) > 1 else ""
    return f"'{problem.graph.ids[int(members[0])]}'{more}"
