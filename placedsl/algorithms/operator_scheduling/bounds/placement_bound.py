"""A lower bound on the latency of a small instance by CP-SAT over placements alone, without times.

What is left of each device and each shared resource is the one-machine relaxation: the latency is at least the work of
any set of tasks, what is before the first and what is after the last of them.  Heads and tails are those that domain
reduction leaves.  There are no intervals, so that the search decides where nodes are, and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.domain_reduction import ReducedDomains, reduce_domains
from placedsl.algorithms.operator_scheduling.exact_cp_sat import grid, longest_path, on_grid, placement
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.algorithms.operator_scheduling.one_machine_rows import Task, followed, one_machine_rows
from placedsl.solvers.cp_sat_parameters import reproducible


def placement_bound(instance: SchedulingInstance, low: float, upper: float, *, effort: float, seed: int) -> float:
    """A latency in [``low``, ``upper``] seconds that no schedule undercuts; ``low`` is proven.

    ``effort`` is CP-SAT's deterministic time.
    """
    from ortools.sat.python import cp_model

    if not low < upper < np.inf:
        return low
    unit = grid(instance, upper)
    horizon = int(np.floor(upper / unit))
    domains = reduce_domains(on_grid(instance, unit), float(horizon), rounding=0.0)
    if domains is None:
        return upper
    model: Any = cp_model.CpModel()
    on = placement(cp_model, model, domains.instance)
    least = min(max(int(np.floor(low / unit)), longest_path(domains)), horizon)
    latency = model.new_int_var(least, horizon, "")
    tasks: dict[int, list[Task]] = {}
    _nodes(domains, on, tasks)
    for t in range(len(domains.instance.producer)):
        _transfers(model, domains, t, on, tasks)
    for on_machine in tasks.values():
        one_machine_rows(model, on_machine, latency, least)
    model.minimize(latency)
    solver: Any = cp_model.CpSolver()
    reproducible(solver.parameters, seed, effort, intervals=False)
    if solver.solve(model) == cp_model.INFEASIBLE:
        return upper
    return min(max(low, float(np.ceil(solver.best_objective_bound - 1e-6)) * unit), upper)


def _nodes(domains: ReducedDomains, on: list[dict[int, Any]], tasks: dict[int, list[Task]]) -> None:
    """The nodes that a device may run."""
    if not domains.instance.sequential:
        return
    for v, literals in enumerate(on):
        for d, x in literals.items():
            task = Task(int(domains.heads[v, d]), int(domains.instance.time[v, d]), [(int(domains.tails[v, d]), x)])
            tasks.setdefault(d, []).append(task)


def _transfers(
    model: Any, domains: ReducedDomains, t: int, on: list[dict[int, Any]], tasks: dict[int, list[Task]]
) -> None:  # fmt: skip
    """The transfers of tensor ``t``."""
    instance = domains.instance
    u = int(instance.producer[t])
    readers = instance.reader[instance.reader_start[t] : instance.reader_start[t + 1]]
    for b in range(instance.devices):
        here = [(int(instance.time[w, b] + domains.tails[w, b]), on[w][b]) for w in readers.tolist() if b in on[w]]
        for a, x in on[u].items():
            if a == b or not here:
                continue
            if not np.isfinite(instance.given[t, a, b]):
                for _, reads in here:
                    model.add_bool_or(~x, ~reads)
                continue
            length, pair = int(instance.given[t, a, b]), a * instance.devices + b
            shared = instance.resource[instance.resource_start[pair] : instance.resource_start[pair + 1]].tolist()
            if not shared or not length:
                continue
            follows = followed(model, x, here)
            for r in shared:
                task = Task(int(domains.heads[u, a] + instance.time[u, a]), length, follows)
                tasks.setdefault(instance.devices + r, []).append(task)
