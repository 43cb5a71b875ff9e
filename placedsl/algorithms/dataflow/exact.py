"""A small problem of schedule dataflow solved by CP-SAT: optional intervals on devices and on what transfers share.

Times are whole numbers of a grid; where the data do not lie on it they are rounded down, so that the bound holds
for the
true times, and the schedule found is timed anew by the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from placedsl.algorithms.dataflow.arrays import Flow, supported, unit_memory
from placedsl.algorithms.dataflow.kernel import Order, order_of, schedule
from placedsl.algorithms.dataflow.narrowing import narrowed, with_table

#: The latency is at most so many steps of the grid.
_GRID = 4_000_000
#: So fine that what rounding adds up to lies within the evaluator's tolerance.
_MEMORY_GRID = 2.0**40


@dataclass(frozen=True)
class Solved:
    """The best schedule found (None: none), a proven lower bound on the latency (inf: nothing is feasible), and whether
    it is the last word."""

    order: Order | None
    bound: float
    final: bool


def solve_exactly(
    flow: Flow,
    hint: Order | None,
    upper: float,
    *,
    effort: float,
    seed: int,
    target: float = 0.0,
) -> Solved:
    """Look for a schedule whose latency is at most ``upper`` (finite, that of the hint say).

    ``effort`` is CP-SAT's deterministic time; below ``target`` nothing better is looked for.
    """
    from ortools.sat.python import cp_model

    unit = grid(flow, upper)
    horizon = int(np.ceil(upper / unit + 1e-9))
    # On the grid all sums are exact: what narrowing takes away, no schedule on the grid has.
    narrow = narrowed(_on_grid(flow, unit), float(horizon), rounding=0.0)
    if narrow is None:
        return Solved(None, np.inf, True)
    true_flow, flow = flow, narrow.flow
    model: Any = cp_model.CpModel()
    on = _placement(cp_model, model, flow)
    latency = model.new_int_var(min(int(np.floor(target / unit)), horizon), horizon, "")
    busy: dict[int, list[Any]] = {}
    length = {(v, d): int(flow.time[v, d]) for v in range(flow.nodes) for d in on[v]}
    begins = []
    for v, literals in enumerate(on):
        early = {d: int(narrow.early[v, d]) for d in literals}
        follows = {d: length[v, d] + int(narrow.late[v, d]) for d in literals}
        begins.append(model.new_int_var(min(early.values()), horizon - min(follows.values()), ""))
        if len(set(early.values())) > 1:
            model.add(begins[v] >= sum(early[d] * x for d, x in literals.items()))
        model.add(begins[v] + sum(follows[d] * x for d, x in literals.items()) <= latency)
        if flow.sequential:
            for d, x in literals.items():
                if length[v, d]:
                    interval = model.new_optional_fixed_size_interval_var(begins[v], length[v, d], x, "")
                    busy.setdefault(d, []).append((interval, x, length[v, d]))
    leaves: dict[tuple[int, int], tuple[Any, list[Any]]] = {}
    for t in range(len(flow.producer)):
        _transfers(model, flow, t, on, begins, length, horizon, busy, leaves)
    for items in busy.values():
        model.add_no_overlap([interval for interval, _, _ in items])
        if len(items) > 1:
            model.add(sum(size * x for _, x, size in items) <= latency)
    model.minimize(latency)
    if hint is not None:
        _hint(model, true_flow, hint, on, begins, unit)
    solver: Any = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers, parameters.random_seed = 1, seed % 2**31
    parameters.max_deterministic_time = effort
    # See solvers/cp_sat.py: this presolve step is wrong in 9.15.
    parameters.presolve_inclusion_work_limit = 0
    # So is probing: tests/algorithms/test_dataflow_exact.py has a block for which it "proves" what is not so.
    parameters.cp_model_probing_level = 0
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return Solved(None, np.inf, True)
    bound = max(0.0, np.ceil(solver.best_objective_bound - 1e-6)) * unit
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Solved(None, bound, False)
    device = np.array([next(d for d, x in literals.items() if solver.boolean_value(x)) for literals in on])
    start = np.array([solver.value(s) for s in begins])
    sent = np.full((len(flow.producer), flow.devices), np.inf)
    for (t, b), (departure, moves) in leaves.items():
        if any(solver.boolean_value(literal) for literal in moves):
            sent[t, b] = solver.value(departure)
    order = order_of(true_flow, device, start.astype(float), sent)
    return Solved(order, bound, status == cp_model.OPTIMAL)


def _hint(model: Any, flow: Flow, hint: Order, on: list[dict[int, Any]], begins: list[Any], unit: float) -> None:
    """The devices and the times of a schedule, where CP-SAT may look first."""
    _, times = schedule(flow, hint)
    told = set()
    for v, literals in enumerate(on):
        for d, x in literals.items():
            if x.index not in told:
                told.add(x.index)
                model.add_hint(x, int(hint.device[v] == d))
    for v, begin in enumerate(begins):
        model.add_hint(begin, _whole(float(times.begun[v]), unit))


def grid(flow: Flow, upper: float) -> float:
    """The length of a step: a power of ten of which all times are multiples, else a small share of ``upper``."""
    times = [flow.time[np.isfinite(flow.time)], flow.given[np.isfinite(flow.given)]]
    if not len(flow.given):
        moved = (flow.fixed + flow.per_size * flow.size[:, None, None]).ravel()
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
    """A time in steps, rounded down; what is on the grid but for rounding stays."""
    return int(np.floor(time / unit * (1.0 + 1e-12) + 1e-7))


def _on_grid(flow: Flow, unit: float) -> Flow:
    """All times and moves as whole numbers of steps (rounded down), inf where there are none."""
    out = with_table(flow)
    for times in (out.time, out.given):
        finite = np.isfinite(times)
        times[finite] = np.floor(times[finite] / unit * (1.0 + 1e-12) + 1e-7)
    return out


def _placement(cp_model: Any, model: Any, flow: Flow) -> list[dict[int, Any]]:
    """A literal for each node and each device that it may be on; colocation and memory."""
    able, size = supported(flow), unit_memory(flow)
    units: list[dict[int, Any]] = []
    for u in range(len(size)):
        devices = np.flatnonzero(able[u]).tolist()
        literals = {d: model.new_bool_var("") for d in devices}
        model.add_exactly_one(literals.values())
        units.append(literals)
    for d in range(flow.devices):
        here = [(literals[d], float(size[u])) for u, literals in enumerate(units) if d in literals and size[u] > 0.0]
        if np.isfinite(flow.room[d]) and sum(amount for _, amount in here) > flow.room[d]:
            grain = _MEMORY_GRID / max(float(flow.room[d]), 1e-300)
            weights = [min(int(np.floor(amount * grain)), 2 * int(_MEMORY_GRID)) for _, amount in here]
            literals_here = [x for x, _ in here]
            model.add(
                cp_model.LinearExpr.weighted_sum(literals_here, weights) <= int(np.ceil(float(flow.room[d]) * grain))
            )
    return [units[u] for u in flow.unit.tolist()]


def _transfers(
    model: Any, flow: Flow, t: int, on: list[dict[int, Any]], begins: list[Any], length: dict[tuple[int, int], int],
    horizon: int, busy: dict[int, list[Any]], leaves: dict[tuple[int, int], tuple[Any, list[Any]]],
) -> None:  # fmt: skip
    u = int(flow.producer[t])
    readers = flow.reader[flow.reader_start[t] : flow.reader_start[t + 1]].tolist()
    end = begins[u] + sum(length[u, a] * x for a, x in on[u].items())
    for w in readers:
        model.add(begins[w] >= end)
    for b in sorted({d for w in readers for d in on[w]}):
        here = [w for w in readers if b in on[w]]
        departure = None
        for a, x in on[u].items():
            if a == b:
                continue
            time = float(flow.given[t, a, b])
            if not np.isfinite(time):
                for w in here:
                    model.add_bool_or(~x, ~on[w][b])
                continue
            duration = int(time)
            if duration == 0:
                continue
            pair = a * flow.devices + b
            shared = flow.resource[flow.resource_start[pair] : flow.resource_start[pair + 1]].tolist()
            if not shared:
                for w in here:
                    model.add(begins[w] >= begins[u] + length[u, a] + duration).only_enforce_if(x, on[w][b])
                continue
            if departure is None:
                departure = model.new_int_var(0, horizon, "")
                leaves[t, b] = (departure, [])
            moves = model.new_bool_var("")
            leaves[t, b][1].append(moves)
            model.add_implication(moves, x)
            model.add_bool_or(~moves, *(on[w][b] for w in here))
            for w in here:
                model.add_bool_or(moves, ~x, ~on[w][b])
                model.add(begins[w] >= departure + duration).only_enforce_if(moves, on[w][b])
            model.add(departure >= begins[u] + length[u, a]).only_enforce_if(moves)
            interval = model.new_optional_fixed_size_interval_var(departure, duration, moves, "")
            for r in shared:
                busy.setdefault(flow.devices + r, []).append((interval, moves, duration))
