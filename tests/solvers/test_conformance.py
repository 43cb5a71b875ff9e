"""Every solver file against brute force, and the child process against what can go wrong with it."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from placedsl.diagnostics import UsageError
from placedsl.lowering.lower import lower
from placedsl.program.program import (
    Implication,
    LinearProgram,
    Maximum,
    Objective,
    Origin,
    Product,
    Program,
    RowBlock,
)
from placedsl.solvers import isolated, registry
from placedsl.solvers.interface import Budget, Outcome
from placedsl.solvers.isolated import run_here, run_isolated
from placedsl.solvers.outcome import heard_by_nobody

INF = np.inf
SOLVERS = ("highs", "cp-sat", "pyomo", "pyomo:cbc", "mip", "cvxpy")
every_solver = pytest.mark.parametrize(
    "solver", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in SOLVERS]
)
streaming = pytest.mark.parametrize(
    "solver", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in ("highs", "cp-sat")]
)
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc")
_POOLS: dict[str, ProcessPoolExecutor] = {}


@pytest.fixture(scope="module", autouse=True)
def _pools():
    """One process a solver: importing a solver takes longer than all its cases, and two do not share a process."""
    yield
    for pool in _POOLS.values():
        pool.shutdown()
    _POOLS.clear()


def solve(solver: str, program: LinearProgram, **budget) -> Outcome:
    if registry.get(solver).available() is None:
        pytest.skip(f"{solver} is not installed")
    if solver not in _POOLS:
        _POOLS[solver] = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    settled = Budget(**{"time_limit": 30.0, "workers": 1, **budget})
    return _POOLS[solver].submit(run_here, solver, program, settled, heard_by_nobody).result(60)


def linear(cost, matrix, low, high, lower_bound, upper_bound, integer, offset=0.0, hint=None) -> LinearProgram:
    matrix = np.asarray(matrix, dtype=float).reshape(len(low), len(cost))
    row, column = np.nonzero(matrix)
    start = np.searchsorted(row, np.arange(len(low) + 1))
    floats = [np.asarray(values, dtype=float) for values in (cost, lower_bound, upper_bound, low, high)]
    return LinearProgram(
        floats[0], offset, floats[1], floats[2], np.asarray(integer, dtype=bool), start, column, matrix[row, column],
        floats[3], floats[4], hint=hint, origins=(Origin("rows"),), origin_start=np.array([0, len(low)]),
    )  # fmt: skip


def dense(program: LinearProgram) -> np.ndarray:
    matrix = np.zeros((program.rows, program.columns))
    matrix[np.repeat(np.arange(program.rows), np.diff(program.start)), program.column] = program.coefficient
    return matrix


def integer_points(program: LinearProgram | Program) -> np.ndarray:
    """All values of the integer columns; the others are nan."""
    ranges = [
        np.arange(low, high + 1) if whole else [np.nan]
        for low, high, whole in zip(program.lower, program.upper, program.integer, strict=True)
    ]
    return np.array(list(itertools.product(*ranges)))


def optimum(program: LinearProgram) -> float:
    """By enumeration; a continuous column costs something and is in rows ``T >= expression`` only."""
    points, matrix = integer_points(program), dense(program)
    for j in np.flatnonzero(~program.integer):
        known = np.delete(np.arange(program.columns), j)
        needs = [np.full(len(points), program.lower[j])]
        for i in np.flatnonzero(matrix[:, j]):
            assert matrix[i, j] < 0
            needs.append((points[:, known] @ matrix[i, known] - program.row_upper[i]) / -matrix[i, j])
        points[:, j] = np.max(needs, axis=0)
    activity = points @ matrix.T
    feasible = ((activity >= program.row_lower - 1e-7) & (activity <= program.row_upper + 1e-7)).all(axis=1)
    values = points[feasible] @ program.cost + program.offset
    return float(values.min(initial=INF))


def expect(program: LinearProgram, found: Outcome, best: float, matrix: np.ndarray | None = None) -> None:
    if best == INF:
        assert found.termination == "infeasible", found
        assert found.incumbent is None
        assert found.objective == INF
        return
    near = 2e-6 * max(1e-3, abs(best))
    assert found.termination == "optimal", found
    assert found.objective == pytest.approx(best, abs=near)
    assert found.bound <= best + near
    assert found.bound >= best - near
    point = found.incumbent
    assert point is not None
    assert (point[program.integer] == np.round(point[program.integer])).all()
    activity = dense(program) @ point
    allowed = 1e-6 * np.maximum(1.0, np.abs(dense(program)) @ np.abs(point))
    assert (activity >= program.row_lower - allowed).all()
    assert (activity <= program.row_upper + allowed).all()


def random_program(seed: int) -> LinearProgram:
    """Integer columns with positive and negative bounds, and rows of all kinds; every third has a maximum column."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(3, 6)), int(rng.integers(1, 4))
    low = rng.integers(-2, 1, n).astype(float)
    high = low + rng.integers(1, 4, n)
    if seed % 2:
        matrix, cost = rng.integers(-5, 6, (m, n)).astype(float), rng.integers(-5, 6, n).astype(float)
    else:
        matrix, cost = np.round(rng.normal(0, 3, (m, n)), 3), rng.normal(0, 3, n)
    inside = matrix @ rng.integers(low, high + 1)
    kind = rng.integers(0, 4, m)
    width = np.round(np.abs(rng.normal(0, 3, m)), 2)
    row_low = np.where(kind == 0, -INF, np.where(kind == 1, inside, inside - width))
    row_high = np.where(kind == 2, INF, np.where(kind == 1, inside, inside + width))
    if seed % 5 == 0:  # Most likely infeasible.
        row_low[0], row_high[0] = inside[0] + 0.3, inside[0] + 0.4
    whole = [True] * n
    if seed % 3 == 0:
        terms = rng.normal(0, 3, (2, n)) * 10.0 ** rng.integers(-5, 5)
        matrix = np.block([[matrix, np.zeros((m, 1))], [terms, -np.ones((2, 1))]])
        row_low, row_high = np.append(row_low, [-INF, -INF]), np.append(row_high, [0.0, 0.0])
        cost = np.append(cost * np.abs(terms).max(), 1.0)
        low, high, whole = np.append(low, -1e9), np.append(high, INF), [*whole, False]
        low[-1] = 0.0
    offset = float(rng.normal(0, 3)) if seed % 4 else 0.0
    return linear(cost, matrix, row_low, row_high, low, high, whole, offset)


@every_solver
@pytest.mark.parametrize("block", range(4))
def test_random_programs(solver: str, block: int) -> None:
    unread = 0
    for seed in range(15 * block, 15 * block + 15):
        program = random_program(seed)
        found = solve(solver, program)
        if solver == "pyomo:cbc" and "pyomo cannot read" in found.message:
            # Known of this pair, seldom, and said so.
            assert found.termination == "error"
            assert found.incumbent is None
            unread += 1
            continue
        expect(program, found, optimum(program))
    assert unread <= 2


@every_solver
def test_small_and_large_units(solver: str) -> None:
    """Loads of microseconds and of terabytes are solved as exactly as loads around one."""
    rng = np.random.default_rng(7)
    for unit in (1e-7, 1.0, 1e9):
        work = rng.uniform(0.5, 3.0, 6) * unit
        place = np.kron(np.ones((1, 2)), np.eye(6))
        loads = np.kron(np.eye(2), work[None, :])
        matrix = np.block([[place, np.zeros((6, 1))], [loads, -np.ones((2, 1))]])
        program = linear(
            [0] * 12 + [1], matrix, [1] * 6 + [-INF] * 2, [1] * 6 + [0] * 2, [0] * 13, [1] * 12 + [INF],
            [True] * 12 + [False],
        )  # fmt: skip
        subsets = np.array(list(itertools.product((0, 1), repeat=6)))
        best = float(np.maximum(subsets @ work, (1 - subsets) @ work).min())
        found = solve(solver, program)
        assert found.termination == "optimal"
        assert found.objective == pytest.approx(best, rel=1e-6)
        assert best * (1 - 1e-6) <= found.bound <= best * (1 + 1e-9)


@every_solver
def test_shapes(solver: str) -> None:
    """No rows, no columns, rows without terms, nothing to minimise."""
    box = {"lower_bound": [0, 0], "upper_bound": [3, 3], "integer": [1, 1]}
    no_rows = linear([1, -1], np.zeros((0, 2)), [], [], **box)
    assert solve(solver, no_rows).objective == -3
    empty = linear([1, -1], np.zeros((1, 2)), [1], [2], **box)
    assert solve(solver, empty).termination == "infeasible"
    mixed = linear([1, 1], [[1, 1], [0, 0]], [1, 1], [INF, 2], **box)
    assert solve(solver, mixed).termination == "infeasible"
    harmless = linear([1, 1], [[1, 1], [0, 0]], [1, -1], [INF, 2], **box)
    assert solve(solver, harmless).objective == 1
    nothing = linear([0, 0], [[1, 1]], [2], [2], **box, offset=7.0)
    expect(nothing, solve(solver, nothing), 7.0)
    no_columns = linear([], np.zeros((1, 0)), [-1], [1], [], [], [], 4.0)
    assert solve(solver, no_columns).objective == 4.0
    assert solve(solver, linear([], np.zeros((1, 0)), [1], [1], [], [], [])).termination == "infeasible"
    relaxed = linear([1, 2, -1.5], [[1, 1, 0], [0, 1, 1]], [1, -INF], [INF, 1.5], [0] * 3, [3] * 3, [0] * 3, 5.0)
    assert solve(solver, relaxed).objective == pytest.approx(3.75)


@every_solver
def test_infeasible_and_unbounded(solver: str) -> None:
    odd = linear([1, 1], [[2, 2]], [3], [3], [0, 0], [3, 3], [1, 1])
    found = solve(solver, odd)
    assert found.termination == "infeasible"
    assert found.incumbent is None
    assert found.objective == INF
    ray = linear([-1, 0.5], [[1, -1]], [-INF], [1], [0, 0], [INF, INF], [1, 1])
    found = solve(solver, ray)
    if solver == "cp-sat":
        # Integers of 64 bits cannot be without bounds: it says so, and claims nothing.
        assert found.termination == "error"
        assert "column 0" in found.message
    else:
        assert found.termination == "unbounded"
    assert found.incumbent is None
    assert found.bound == -INF
    both = linear([-1, 0.5, 0, 0], [[1, -1, 0, 0], [0, 0, 2, 2]], [-INF, 3], [1, 3], [0] * 4, [INF, INF, 3, 3], [1] * 4)
    assert solve(solver, both).termination == ("error" if solver == "cp-sat" else "infeasible")


def split(columns: int = 45, rows: int = 5, slacks: bool = True) -> LinearProgram:
    """A market split problem: small, and far beyond any solver's few seconds."""
    rng = np.random.default_rng(3)
    data = rng.integers(0, 100, (rows, columns)).astype(float)
    half = np.floor(data.sum(axis=1) / 2)
    if not slacks:
        return linear([0] * columns, data, half, half, [0] * columns, [1] * columns, [1] * columns)
    matrix = np.hstack((data, np.eye(rows), -np.eye(rows)))
    size = columns + 2 * rows
    return linear(
        [0] * columns + [1] * 2 * rows, matrix, half, half, [0] * size, [1] * columns + [5000] * 2 * rows, [1] * size
    )


@every_solver
def test_time_limit(solver: str) -> None:
    for program in (split(), split(slacks=False)):
        found = solve(solver, program, time_limit=0.5)
        assert found.termination == "time_limit", found
        assert found.seconds < 5
        if found.incumbent is None:
            assert found.objective == INF
        else:
            assert np.abs(dense(program) @ found.incumbent - program.row_lower).max() < 1e-5
            assert found.bound <= found.objective
    assert found.incumbent is None


@every_solver
def test_gap(solver: str) -> None:
    """A wide gap ends the run early, and is not called optimal unless nothing was left."""
    rng = np.random.default_rng(5)
    weight = rng.uniform(1, 9, (3, 40))
    program = linear(-rng.uniform(1, 9, 40), weight, [-INF] * 3, weight.sum(axis=1) / 3, [0] * 40, [1] * 40, [1] * 40)
    found = solve(solver, program, gap=0.2)
    left = (found.objective - found.bound) / abs(found.objective)
    assert found.termination == ("optimal" if left <= 1e-6 else "gap_reached")
    assert left <= 0.2


@every_solver
def test_hint(solver: str) -> None:
    """A starting point, in full, in part, or wrong, changes nothing but the way."""
    for seed in (1, 4, 7):
        program = random_program(seed)
        best = optimum(program)
        full = solve(solver, program).incumbent
        part = np.where(np.arange(program.columns) % 2, np.nan, program.upper)
        for hint in (full, part, program.lower):
            hinted = replace(program, hint=hint)
            expect(hinted, solve(solver, hinted), best)


def global_program() -> tuple[Program, float]:
    """Two binaries, an integer; a product, a maximum (exact) of it and a condition on it, and their optimum."""
    a, b, n, product, most = range(5)
    spot = Origin("it")

    def ints(*values: int) -> np.ndarray:
        return np.array(values, dtype=np.int64)

    rows = RowBlock(spot, ints(0, 0), ints(a, b), np.array([1.0, 1.0]), np.array([1.0]), np.array([INF]))
    held = RowBlock(
        spot, ints(0, 1, 1), ints(n, n, b), np.array([1.0, 1.0, 0.5]), np.array([2.0, -INF]), np.array([INF, 2.6])
    )
    condition = Implication(spot, ints(0, 1), ints(a, b), np.array([True, False]), held)
    times = Product(spot, ints(product), ints(b), ints(n))
    # most = max(1.5 n - 2.25, 4 - product, 0.5)
    largest = Maximum(
        spot, ints(most), ints(0, 0, 0), np.array([-2.25, 4.0, 0.5]), ints(0, 1), ints(n, product),
        np.array([1.5, -1.0]), True,
    )  # fmt: skip
    cost = np.array([0.25, 0.1, -0.3, 0.0, -1.0])
    goal = Objective("goal", np.arange(5), cost, 1.0)
    bounds = np.array([0.0, 0, 0, -INF, -INF]), np.array([1.0, 1, 4, INF, INF])
    program = Program(
        *bounds, np.array([True, True, True, False, False]), {}, (rows,), (times, largest, condition), (goal,)
    )
    values = []
    for x, y, k in itertools.product((0, 1), (0, 1), range(5)):
        if x + y >= 1 and not (x and k < 2) and not (not y and k > 2.6):
            z = max(1.5 * k - 2.25, 4 - y * k, 0.5)
            values.append(cost @ (x, y, k, y * k, z) + 1.0)
    return program, min(values)


@every_solver
def test_global_constraints(solver: str) -> None:
    """Taken natively or lowered, they mean the same; both signs, so that the maximum is pushed either way."""
    program, best = global_program()
    features = registry.get(solver).features
    lowered = lower(program, native=features.native, integral=features.integers_only).program
    assert len(lowered.native) == sum(type(c).__name__ in features.native for c in program.constraints)
    found = solve(solver, lowered)
    assert found.termination == "optimal", found
    assert found.objective == pytest.approx(best, abs=1e-6)
    assert best - 1e-5 <= found.bound <= best + 1e-6


@pytest.mark.xdist_group("cp-sat")
def test_cp_sat_bound_is_proven() -> None:
    """Whatever the data, the bound stays below the optimum over the reals."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        spread = 10.0 ** rng.uniform(-6, 6, 8)
        loads = rng.lognormal(0, 2, (2, 8)) * spread
        matrix = np.hstack((loads, -np.diag(10.0 ** rng.uniform(-2, 2, 2))))
        pick = np.append(np.ones(8), [0, 0])
        program = linear(
            [0] * 8 + [1, 1], np.vstack((matrix, pick)), [-INF, -INF, 3], [0, 0, INF], [0] * 10, [1] * 8 + [INF] * 2,
            [True] * 8 + [False] * 2,
        )  # fmt: skip
        points = np.array([p for p in itertools.product((0, 1), repeat=8) if sum(p) >= 3])
        best = float(((points @ loads.T) / -np.diag(matrix[:, 8:])).sum(axis=1).min())
        found = solve("cp-sat", program)
        assert found.bound <= best * (1 + 1e-12)
        assert found.termination in ("optimal", "error")
        assert found.objective >= best * (1 - 1e-3)


@every_solver
def test_isolated(solver: str) -> None:
    program = random_program(3)
    if registry.get(solver).available() is None:
        pytest.skip(f"{solver} is not installed")
    heard = []
    found = run_isolated(solver, program, Budget(30.0), lambda *news: bool(heard.append(news)))
    expect(program, found, optimum(program))
    assert found.version
    if registry.get(solver).features.streams_incumbents:
        assert any(point is not None for point, _, _ in heard)


class Child:
    """Keeps the child that :mod:`isolated` starts, so that a test can do it harm."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        start = subprocess.Popen

        def started(*arguments, **options):
            self.process = start(*arguments, **options)
            return self.process

        monkeypatch.setattr(isolated.subprocess, "Popen", started)

    def signals(self, number: int):
        """A progress function that sends the child this signal at the first incumbent."""

        def heard(point, objective, bound):
            if point is not None:
                os.kill(self.process.pid, number)
            return False

        return heard

    def gone(self) -> bool:
        return self.process.poll() is not None


@on_linux
@streaming
@pytest.mark.parametrize(("number", "words"), [(signal.SIGKILL, "memory"), (signal.SIGSEGV, "SIGSEGV")])
def test_killed_worker(solver: str, number: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The incumbent survives the child that found it."""
    child = Child(monkeypatch)
    found = run_isolated(solver, split(), Budget(20.0, workers=1), child.signals(number))
    assert found.termination == "error"
    assert words in found.message
    assert "--solver" in found.message
    assert found.incumbent is not None
    assert found.objective < INF


@on_linux
def test_hanging_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that does not come back is ended a little after the limit."""
    child = Child(monkeypatch)
    monkeypatch.setattr(isolated, "LIMIT_GRACE", 0.5)
    found = run_isolated("highs", split(), Budget(1.5, workers=1), child.signals(signal.SIGSTOP))
    assert found.termination == "time_limit"
    assert found.incumbent is not None
    assert found.seconds < 5
    assert child.gone()


@streaming
def test_stopped_by_progress(solver: str) -> None:
    found = run_isolated(solver, split(), Budget(20.0, workers=1), lambda point, *_: point is not None)
    assert found.termination == "interrupted"
    assert found.incumbent is not None
    assert found.seconds < 8


def test_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends the run, not what it has found."""
    child = Child(monkeypatch)

    def heard(point, objective, bound):
        if point is not None:
            raise KeyboardInterrupt
        return False

    found = run_isolated("highs", split(), Budget(20.0, workers=1), heard)
    assert found.termination == "interrupted"
    assert found.incumbent is not None
    assert child.gone()


def test_progress_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in the caller's function is the caller's, and leaves no child behind."""
    child = Child(monkeypatch)

    def heard(point, objective, bound):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_isolated("highs", split(), Budget(20.0, workers=1), heard)
    assert child.gone()


@on_linux
def test_child_of_a_dead_parent() -> None:
    """The child goes when its parent is killed."""
    root = Path(isolated.__file__).parents[2]
    code = (
        "from tests_conformance import split; from placedsl.solvers.isolated import run_isolated\n"
        "from placedsl.solvers.interface import Budget\n"
        "run_isolated('highs', split(), Budget(60.0, workers=1), lambda point, *_: print(1, flush=True))"
    ).replace("tests_conformance", Path(__file__).stem)
    paths = os.pathsep.join((str(root), str(Path(__file__).parent)))
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths}
    )
    assert parent.stdout is not None
    parent.stdout.readline()
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    assert children
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 5
    while any(_running(child) for child in children) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(_running(child) for child in children)


def _running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_missing_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placedsl.solvers.highs.installed_version", lambda package: None)
    found = run_isolated("highs", random_program(1), Budget(), heard_by_nobody)
    assert found.termination == "error"
    assert "pip install highspy" in found.message
    assert found.incumbent is None


def test_names() -> None:
    assert set(SOLVERS) <= set(registry.names())
    assert [features.name for features, _ in registry.installed()] == list(registry.names())
    with pytest.raises(UsageError, match="did you mean 'highs'"):
        registry.get("higs")
    with pytest.raises(UsageError):
        run_isolated("pyomo:cbcc", random_program(1), Budget(), heard_by_nobody)
    assert registry.get("pyomo:highs").features.name == "pyomo"


def test_nothing_is_imported() -> None:
    """Listing the solvers loads none of them."""
    code = (
        "import sys; from placedsl.solvers.registry import installed; installed()\n"
        "print([m for m in ('highspy', 'ortools', 'pyomo', 'mip', 'cvxpy', 'scipy', 'cbcbox') if m in sys.modules])"
    )
    root = str(Path(isolated.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": root}
    )
    assert done.stdout.strip() == "[]"
