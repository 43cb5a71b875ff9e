"""Small instances of operator scheduling solved by CP-SAT: optional intervals on devices and on shared resources.

Times are whole numbers of a grid.  Times off the grid are rounded down, so that the bound holds for the true times, and
the schedule found is evaluated again by the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.domain_reduction import (
    ReducedDomains,
    reduce_domains,
    with_explicit_transfers,
)
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, supported, unit_memory
from placedsl.algorithms.operator_scheduling.one_machine_rows import Task, followed, one_machine_rows
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, schedule_of, sequence_of
from placedsl.solvers.cp_sat_parameters import reproducible

#: The largest latency in steps of the grid.
_GRID = 4_000_000
#: Steps of a memory limit: so fine that the sum of all rounding lies within the evaluator's tolerance.
_MEMORY_GRID = 2.0**40


@dataclass(frozen=True)
class ExactResult:
    """The best sequence found (None: none), a proven lower bound on the latency in seconds (inf: infeasible), and
    whether the search is complete.
    """

    sequence: OperatorSequence | None
    bound: float
    final: bool


def solve_exactly(
    instance: SchedulingInstance,
    hint: OperatorSequence | None,
    upper: float,
    *,
    effort: float,
    seed: int,
    target: float = 0.0,
    one_machine: bool = False,
) -> ExactResult:
    """Search for a schedule whose latency is at most ``upper`` seconds (finite; for instance that of the hint).

    ``effort`` is CP-SAT's deterministic time; the search ends at latency ``target``.  With
    ``one_machine`` the model has the rows of the one-machine relaxation, which pay where the work and the transfers
    decide rather than the paths.
    """
    from ortools.sat.python import cp_model

    unit = grid(instance, upper)
    horizon = int(np.ceil(upper / unit + 1e-9))
    # On the grid all sums are exact: domain reduction removes nothing that a schedule on the grid uses.
    domains = reduce_domains(on_grid(instance, unit), float(horizon), rounding=0.0)
    if domains is None:
        return ExactResult(None, np.inf, True)
    true_instance, instance = instance, domains.instance
    model: Any = cp_model.CpModel()
    on = placement(cp_model, model, instance)
    least = min(max(int(np.floor(target / unit)), longest_path(domains)), horizon)
    latency = model.new_int_var(least, horizon, "")
    busy: dict[int, list[tuple[Any, Task]]] = {}
    length = {(v, d): int(instance.time[v, d]) for v in range(instance.nodes) for d in on[v]}
    begins = []
    for v, literals in enumerate(on):
        early = {d: int(domains.heads[v, d]) for d in literals}
        follows = {d: length[v, d] + int(domains.tails[v, d]) for d in literals}
        begins.append(model.new_int_var(min(early.values()), horizon - min(follows.values()), ""))
        if len(set(early.values())) > 1:
            model.add(begins[v] >= sum(early[d] * x for d, x in literals.items()))
        model.add(begins[v] + sum(follows[d] * x for d, x in literals.items()) <= latency)
        if instance.sequential:
            for d, x in literals.items():
                if length[v, d]:
                    interval = model.new_optional_fixed_size_interval_var(begins[v], length[v, d], x, "")
                    task = Task(early[d], length[v, d], [(int(domains.tails[v, d]), x)])
                    busy.setdefault(d, []).append((interval, task))
    leaves: dict[tuple[int, int], tuple[Any, list[Any]]] = {}
    for t in range(len(instance.producer)):
        _transfers(model, domains, t, on, begins, length, horizon, busy, leaves, one_machine)
    for items in busy.values():
        model.add_no_overlap([interval for interval, _ in items])
        if one_machine:
            one_machine_rows(model, [task for _, task in items], latency, least)
        elif len(items) > 1:
            model.add(sum(task.length * task.follows[-1][1] for _, task in items) <= latency)
    model.minimize(latency)
    if hint is not None:
        _hint(model, true_instance, hint, on, begins, unit)
    solver: Any = cp_model.CpSolver()
    reproducible(solver.parameters, seed, effort, intervals=True)
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return ExactResult(None, np.inf, True)
    bound = max(0.0, np.ceil(solver.best_objective_bound - 1e-6)) * unit
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return ExactResult(None, bound, False)
    device = np.array([next(d for d, x in literals.items() if solver.boolean_value(x)) for literals in on])
    start = np.array([solver.value(s) for s in begins])
    sent = np.full((len(instance.producer), instance.devices), np.inf)
    for (t, b), (departure, moves) in leaves.items():
        if any(solver.boolean_value(literal) for literal in moves):
            sent[t, b] = solver.value(departure)
    sequence = sequence_of(true_instance, device, start.astype(float), sent)
    return ExactResult(sequence, bound, status == cp_model.OPTIMAL)


def longest_path(domains: ReducedDomains) -> int:
    """The longest path with each node on its best device, in steps."""
    through = domains.heads + domains.instance.time + domains.tails
    return int(np.nan_to_num(through, nan=np.inf).min(axis=1).max(initial=0.0))


def _hint(
    model: Any,
    instance: SchedulingInstance,
    hint: OperatorSequence,
    on: list[dict[int, Any]],
    begins: list[Any],
    unit: float,
) -> None:
    """Give the devices and the times of a schedule to CP-SAT as a hint."""
    _, times = schedule_of(instance, hint)
    hinted = set()
    for v, literals in enumerate(on):
        for d, x in literals.items():
            if x.index not in hinted:
                hinted.add(x.index)
                model.add_hint(x, int(hint.device[v] == d))
    for v, begin in enumerate(begins):
        model.add_hint(begin, _whole(float(times.begun[v]), unit))


def grid(instance: SchedulingInstance, upper: float) -> float:
    """The length of a step in seconds: a power of ten that all times are multiples of, else a small share of
    ``upper``.
    """
    times = [instance.time[np.isfinite(instance.time)], instance.given[np.isfinite(instance.given)]]
    if not len(instance.given):
        moved = (instance.fixed + instance.per_size * instance.size[:, None, None]).ravel()
        times.append(moved[np.isfinite(moved)])
    every = np.concatenate([t.ravel() for t in times])
    for power in range(9):
        unit = 10.0**-power
        if upper / unit > 100 * _GRID:
            break
        if (np.abs(every / unit - np.round(every / unit)) <= 1e-9 * (1.0 + every / unit)).all():
            return unit
    return upper / _GRID if upper > 0.0 else 1.0


def _whole(time: float, unit: float) -> int:
    """A time in steps, rounded down; times on the grid but for rounding stay."""
    return int(np.floor(time / unit * (1.0 + 1e-12) + 1e-7))


def on_grid(instance: SchedulingInstance, unit: float) -> SchedulingInstance:
    """All times and transfers as whole numbers of steps (rounded down), inf where there are none."""
    out = with_explicit_transfers(instance)
    for times in (out.time, out.given):
        finite = np.isfinite(times)
        times[finite] = np.floor(times[finite] / unit * (1.0 + 1e-12) + 1e-7)
    return out


def placement(cp_model: Any, model: Any, instance: SchedulingInstance) -> list[dict[int, Any]]:
    """A literal for each node and each device that it may be on; colocation and memory."""
    able, size = supported(instance), unit_memory(instance)
    units: list[dict[int, Any]] = []
    for u in range(len(size)):
        devices = np.flatnonzero(able[u]).tolist()
        literals = {d: model.new_bool_var("") for d in devices}
        model.add_exactly_one(literals.values())
        units.append(literals)
    for d in range(instance.devices):
        here = [(literals[d], float(size[u])) for u, literals in enumerate(units) if d in literals and size[u] > 0.0]
        if np.isfinite(instance.memory_limit[d]) and sum(amount for _, amount in here) > instance.memory_limit[d]:
            grain = _MEMORY_GRID / max(float(instance.memory_limit[d]), 1e-300)
            weights = [min(int(np.floor(amount * grain)), 2 * int(_MEMORY_GRID)) for _, amount in here]
            literals_here = [x for x, _ in here]
            model.add(
                cp_model.LinearExpr.weighted_sum(literals_here, weights)
                <= int(np.ceil(float(instance.memory_limit[d]) * grain))
            )
    return [units[u] for u in instance.unit.tolist()]


def _transfers(
    model: Any, domains: ReducedDomains, t: int, on: list[dict[int, Any]], begins: list[Any],
    length: dict[tuple[int, int], int], horizon: int, busy: dict[int, list[tuple[Any, Task]]],
    leaves: dict[tuple[int, int], tuple[Any, list[Any]]], one_machine: bool,
) -> None:  # fmt: skip
    """Add the transfers of tensor ``t``: readers wait for them, and each occupies its resources (``busy``)."""
    instance = domains.instance
    u = int(instance.producer[t])
    readers = instance.reader[instance.reader_start[t] : instance.reader_start[t + 1]].tolist()
    end = begins[u] + sum(length[u, a] * x for a, x in on[u].items())
    for w in readers:
        model.add(begins[w] >= end)
    for b in sorted({d for w in readers for d in on[w]}):
        here = [w for w in readers if b in on[w]]
        departure = None
        for a, x in on[u].items():
            if a == b:
                continue
            time = float(instance.given[t, a, b])
            if not np.isfinite(time):
                for w in here:
                    model.add_bool_or(~x, ~on[w][b])
                continue
            duration = int(time)
            if duration == 0:
                continue
            pair = a * instance.devices + b
            shared = instance.resource[instance.resource_start[pair] : instance.resource_start[pair + 1]].tolist()
            if not shared:
                for w in here:
                    model.add(begins[w] >= begins[u] + length[u, a] + duration).only_enforce_if(x, on[w][b])
                continue
            if departure is None:
                departure = model.new_int_var(0, horizon, "")
                leaves[t, b] = (departure, [])
            tails = [int(instance.time[w, b] + domains.tails[w, b]) if one_machine else 0 for w in here]
            follows = followed(model, x, [(tail, on[w][b]) for tail, w in zip(tails, here, strict=True)])
            moves = follows[-1][1]
            leaves[t, b][1].append(moves)
            model.add_implication(moves, x)
            model.add_bool_or(~moves, *(on[w][b] for w in here))
            for w in here:
                model.add(begins[w] >= departure + duration).only_enforce_if(moves, on[w][b])
            model.add(departure >= begins[u] + length[u, a]).only_enforce_if(moves)
            interval = model.new_optional_fixed_size_interval_var(departure, duration, moves, "")
            task = Task(int(domains.heads[u, a]) + length[u, a], duration, follows)
            for r in shared:
                busy.setdefault(instance.devices + r, []).append((interval, task))
