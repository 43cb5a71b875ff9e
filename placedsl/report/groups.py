"""Which devices share the samples of a stage."""

from __future__ import annotations

from placedsl.cost.evaluate import Evaluation
from placedsl.problem import Problem


def leaders(problem: Problem, evaluation: Evaluation) -> dict[int, int]:
    """The first device of its group for each device that holds a copy of another's nodes.

    The evaluation says how many devices share a stage; devices of a class are alike, so the next free ones do.
    """
    if problem.replication is None:
        return {}
    kinds = problem.interchangeable().tolist()
    copies = evaluation.values.get("copies", {})
    free: dict[int, list[int]] = {}
    for device, kind in enumerate(kinds):
        if not evaluation.nodes[device]:
            free.setdefault(kind, []).append(device)
    out: dict[int, int] = {}
    for (leader,), given in copies.items():
        number = given
        while number >= 2 and free.get(kinds[leader]):
            out[free[kinds[leader]].pop(0)] = leader
            number -= 1
    return out
