"""The baseline "pipedream": PipeDream's optimiser as Tarnawski et al. 2020 (section 6) used it, without replication.

It is defined for paths, so branchings are contracted first: where a graph branches and joins again (a biconnected
component of it, edges without their direction), all nodes but the last become one.  Units that remain unordered are put
in a topological order.  The best cut of that path into stages is then found exactly, by the dynamic program over
ideals, for the ideals of a path are its prefixes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placedsl.algorithms.baselines.supported_problems import THROUGHPUT
from placedsl.algorithms.colocation import with_colocation
from placedsl.algorithms.interface import NothingFoundError, Progress
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.algorithms.supports import reasons_against
from placedsl.arrays import Integers
from placedsl.budget import Budget
from placedsl.graph.contraction import Quotient
from placedsl.graph.order import renumbered, topological
from placedsl.problem.problem import Problem

#: The name of the constraint that contracts branchings; it cannot be the name of a graph's attribute.
_BRANCHING = "branching of the graph"


SUPPORTS = replace(THROUGHPUT, constraints=contiguous.SUPPORTS.constraints)


def fits(problem: Problem) -> Sequence[str]:
    """Why it does not apply, in the user's words."""
    return reasons_against(problem, SUPPORTS)


def solve(problem: Problem, budget: Budget, progress: Progress) -> tuple[Sequence[int] | None, float]:
    """The best cut of the path; without a bound, for the graph may have better splits."""
    problem = replace(
        problem, execution=problem.execution.alone(),
        variables={n: v for n, v in problem.variables.items() if n != "copies"},
    )  # fmt: skip
    deadline = None if budget.time_limit is None else time.monotonic() + budget.time_limit
    found = contiguous.solve(as_path(problem), deadline=deadline, stop=lambda: progress(None, -np.inf))
    if found.placement is None and found.complete:
        raise NothingFoundError(
            "no cut of the path into stages satisfies the memory limits and what the devices support"
        )
    return None if found.placement is None else found.placement.tolist(), -np.inf


def as_path(problem: Problem) -> Problem:
    """The same problem with branchings contracted, and the rest in one order."""
    quotient, _ = contiguous.pipeline_of(problem)
    labels = branchings(quotient)[quotient.unit_of_node]
    held = with_colocation(problem, labels, _BRANCHING)
    path, _ = contiguous.pipeline_of(held)
    order = topological(path.units, path.before, path.after)
    assert order is not None  # cycles are contracted
    first = np.unique(path.unit_of_node, return_index=True)[1][order]
    return replace(
        held,
        precedence_source=np.concatenate((held.precedence_source, first[:-1])),
        precedence_target=np.concatenate((held.precedence_target, first[1:])),
    )


def branchings(quotient: Quotient) -> Integers:
    """u labels: units of one branching share theirs.

    Units without work whose tensors cost nothing to move are ignored, as PipeDream ignores inputs: a mask that every
    layer reads makes no branching.
    """
    import networkx as nx

    moved = np.zeros(quotient.units)
    np.add.at(
        moved, quotient.pin_unit, np.repeat(quotient.transfer.max(axis=0, initial=0.0), np.diff(quotient.pin_start))
    )
    work = np.where(np.isfinite(quotient.work), quotient.work, 0.0).max(axis=0, initial=0.0)
    counted = (work > 0.0) | (moved > 0.0)
    graph = nx.Graph()
    tails: dict[tuple[int, int], set[int]] = {}
    for u, v in zip(quotient.before.tolist(), quotient.after.tolist(), strict=True):
        if counted[u] and counted[v]:
            graph.add_edge(u, v)
            tails.setdefault((min(u, v), max(u, v)), set()).add(u)
    together = nx.Graph()
    together.add_nodes_from(range(quotient.units))
    for component in nx.biconnected_component_edges(graph):
        members = sorted(set().union(*(tails[min(e), max(e)] for e in component)))
        nx.add_path(together, members)
    labels = np.empty(quotient.units, dtype=np.int64)
    for number, members in enumerate(nx.connected_components(together)):
        labels[list(members)] = number
    return renumbered(labels)
