"""Every placement of a small problem, by plain enumeration: the reference for everything that solves."""

from __future__ import annotations

import itertools
import math

import numpy as np

from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem


def placements(problem: Problem) -> np.ndarray:
    """All of them, one a row."""
    devices = range(len(problem.machine.devices))
    return np.array(list(itertools.product(devices, repeat=problem.graph.nodes)), dtype=np.int64)


def passes(problem: Problem, every: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Time of the nodes ``which`` on each device, with what accelerators move in those passes."""
    graph = problem.graph
    count = len(problem.machine.devices)
    out = np.zeros((len(every), count))
    for v in np.flatnonzero(which):
        for d in range(count):
            out[:, d] += np.where(every[:, v] == d, problem.time[v, d] if np.isfinite(problem.time[v, d]) else 0.0, 0.0)
    for t in range(graph.tensors):
        producer = graph.tensor_producer[t]
        readers = graph.edge_target[graph.edge_tensor == t]
        for d in range(count):
            if problem.machine.devices[d].kind == "host":
                continue
            made = every[:, producer] == d
            read = np.zeros(len(every), dtype=bool)
            outside = np.zeros(len(every), dtype=bool)
            for v in readers:
                read |= (every[:, v] == d) & which[v]
                outside |= every[:, v] != d
            paid = (~made & read) | (made & outside & which[producer])
            out[:, d] += np.where(paid, problem.transfer[t, d], 0.0)
    return out


def loads(problem: Problem, every: np.ndarray) -> np.ndarray:
    """The load of each device in each placement, one thing after another."""
    return passes(problem, every, np.ones(problem.graph.nodes, dtype=bool))


def beside(problem: Problem, every: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Computation, transfers in and transfers out of each device in each placement."""
    computing, read, written = (np.zeros((len(every), len(problem.machine.devices))) for _ in range(3))
    for d, device in enumerate(problem.machine.devices):
        for v in range(problem.graph.nodes):
            computing[:, d] += np.where((every[:, v] == d) & np.isfinite(problem.time[v, d]), problem.time[v, d], 0.0)
        for t in range(problem.graph.tensors if device.kind == "accelerator" else 0):
            home = every[:, problem.graph.tensor_producer[t]]
            readers = every[:, problem.graph.edge_target[problem.graph.edge_tensor == t]]
            read[:, d] += problem.transfer[t, d] * ((home != d) & (readers == d).any(axis=1))
            written[:, d] += problem.transfer[t, d] * ((home == d) & (readers != d).any(axis=1))
    return np.nan_to_num(computing), read, written


def time_per_sample(problem: Problem, every: np.ndarray) -> np.ndarray:
    """The first objective in each placement."""
    if problem.execution.name in ("overlapped", "duplex"):
        computing, read, written = beside(problem, every)
        moving = read + written if problem.execution.name == "overlapped" else np.maximum(read, written)
        return np.maximum(computing, moving).max(axis=1)
    if problem.execution.name == "pipedream":
        return loads(problem, every).max(axis=1)
    forward = passes(problem, every, ~problem.graph.backward)
    backward = passes(problem, every, problem.graph.backward)
    return forward.max(axis=1) + backward.max(axis=1)


def shared_out(problem: Problem, every: np.ndarray, whole: np.ndarray) -> float:
    """The least largest load over all ways to share out the devices of a class; ``whole``: loads without copies."""
    replication = problem.execution.data_parallelism
    assert replication is not None
    weights = np.zeros_like(whole)
    for d in range(whole.shape[1]):
        weights[:, d] = (every == d) @ replication.synchronisation[:, d]
    kinds = problem.interchangeable()
    best = math.inf
    for row, placed in enumerate(every):
        used = sorted(set(placed.tolist()))
        for copies in itertools.product(replication.degrees, repeat=len(used)):
            taken: dict[int, int] = {}
            for d, r in zip(used, copies, strict=True):
                taken[kinds[d]] = taken.get(kinds[d], 0) + r
            if any(number > np.count_nonzero(kinds == kind) for kind, number in taken.items()):
                continue
            value = 0.0
            for d, r in zip(used, copies, strict=True):
                share, sent = whole[row, d] / r, weights[row, d] * (r - 1) / r
                value = max(value, share + sent if problem.execution.name == "pipedream" else max(share, sent))
            best = min(best, value)
    return best


def allowed(problem: Problem, every: np.ndarray) -> np.ndarray:
    """Which placements satisfy support and the built-in constraints."""
    graph = problem.graph
    count = len(problem.machine.devices)
    supported = np.isfinite(problem.time)
    good = np.ones(len(every), dtype=bool)
    for v in range(graph.nodes):
        good &= supported[v][every[:, v]]
    for rule in problem.constraints:
        if rule.built_in == "memory":
            for d in range(count):
                good &= ((every == d) * graph.memory).sum(axis=1) <= problem.machine.devices[d].memory * (1 + 1e-12)
        elif rule.built_in == "colocated":
            labels = problem.groups[rule.by]
            for group in np.unique(labels):
                members = every[:, labels == group]
                good &= (members == members[:, :1]).all(axis=1)
        elif rule.built_in == "contiguous":
            good &= _ordered(every, problem.precedence_source, problem.precedence_target, count)
        elif rule.built_in == "convex":
            for part in (False, True):
                inside = graph.backward == part
                good &= _convex(every, inside, graph.edge_source, graph.edge_target, count)
    return good


def _ordered(every: np.ndarray, before: np.ndarray, after: np.ndarray, count: int) -> np.ndarray:
    """No device reaches itself over pairs that change device."""
    reach = np.zeros((len(every), count, count), dtype=bool)
    rows = np.arange(len(every))
    for u, v in zip(before, after, strict=True):
        a, b = every[:, u], every[:, v]
        reach[rows, a, b] |= a != b
    for _ in range(count):
        reach |= (reach[:, :, :, None] & reach[:, None, :, :]).any(axis=2)
    return ~reach[:, np.arange(count), np.arange(count)].any(axis=1)


def _convex(every: np.ndarray, inside: np.ndarray, source: np.ndarray, target: np.ndarray, count: int) -> np.ndarray:
    """For each device, no path among the ``inside`` nodes leaves it and comes back."""
    n = every.shape[1]
    path = np.zeros((n, n), dtype=bool)
    for u, v in zip(source, target, strict=True):
        path[u, v] = inside[u] and inside[v]
    for _ in range(n):
        path |= (path[:, :, None] & path[None, :, :]).any(axis=1)
    good = np.ones(len(every), dtype=bool)
    for u, w, v in itertools.product(range(n), repeat=3):
        if path[u, w] and path[w, v]:
            good &= ~((every[:, u] == every[:, v]) & (every[:, u] != every[:, w]))
    return good


def best_by_evaluation(problem: Problem) -> tuple[float, ...] | None:
    """The least objectives, in order, over all placements and all values of the spec's own integer variables.

    Everything is asked of the evaluator, which shares no code with what grounds and solves.
    """
    keys: list[tuple[str, tuple[int, ...]]] = []
    choices: list[range] = []
    for name, variable in problem.variables.items():
        domain = [range(len(problem.machine.devices)) if sort == "device" else range(1, 3) for sort in variable.sorts]
        for key in itertools.product(*domain):
            keys.append((name, key))
            choices.append(range(int(variable.low), int(variable.high) + 1))
    best_so_far: tuple[float, ...] | None = None
    supported = np.isfinite(problem.time)
    for row in placements(problem):
        if not supported[np.arange(len(row)), row].all():
            continue
        for chosen in itertools.product(*choices):
            values: dict[str, dict[tuple[int, ...], float]] = {name: {} for name in problem.variables}
            for (name, key), value in zip(keys, chosen, strict=True):
                values[name][key] = float(value)
            found = evaluate(problem, row.tolist(), values)
            if not found.violations and (best_so_far is None or _better(found.objectives, best_so_far)):
                best_so_far = found.objectives
    return best_so_far


def _better(left: tuple[float, ...], right: tuple[float, ...]) -> bool:
    """In order of importance; what differs by rounding is the same."""
    for a, b in zip(left, right, strict=True):
        if abs(a - b) > 1e-9 * max(abs(a), abs(b)) + 1e-15:
            return a < b
    return False


def best(problem: Problem) -> tuple[float, np.ndarray] | None:
    """The least first objective over all feasible placements, and one placement that has it."""
    every = placements(problem)
    every = every[allowed(problem, every)]
    if not len(every):
        return None
    values = time_per_sample(problem, every)
    custom = [r for r in problem.constraints if not r.built_in]
    for i in np.argsort(values, kind="stable"):
        if not custom or not evaluate(problem, every[i].tolist()).violations:
            return float(values[i]), every[i]
    return None


def least_time(problem: Problem) -> float:
    """The least time per sample of all placements that the rules allow; inf where there are none."""
    every = placements(problem)
    return float(time_per_sample(problem, every)[allowed(problem, every)].min(initial=np.inf))


def confirm_dynamic_program(problem: Problem, least: float) -> None:
    """It finds a pipeline of the least value (inf: none) and no bound above it; the evaluator says the same of it."""
    found = contiguous.solve(problem)
    assert found.complete
    if least == math.inf:
        assert found.placement is None
        return
    assert found.placement is not None
    evaluation = evaluate(problem, found.placement.tolist(), found.values)
    assert evaluation.violations == ()
    assert math.isclose(found.value, least, rel_tol=1e-9)
    assert found.bound <= least * (1.0 + 1e-9)
    assert math.isclose(evaluation.objectives[0], least, rel_tol=1e-9)
