"""Every solver file against brute force.  A new solver is added to SOLVERS in support/suites.py."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from support.apart import Apart, NotReturnedError
from support.programs import INF, dense, expect, global_program, linear, optimum, random_program, split
from support.suites import SOLVERS

from placedsl.budget import Budget
from placedsl.diagnostics import UsageError
from placedsl.ir.program import LinearProgram
from placedsl.lowering.lower import lower
from placedsl.solvers import registry
from placedsl.solvers.interface import Outcome
from placedsl.solvers.isolated import run_here, run_isolated
from placedsl.solvers.outcome import heard_by_nobody
from placedsl.tolerances import SAME_VALUE

every_solver = pytest.mark.parametrize(
    "solver", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in SOLVERS]
)
#: A process a solver: importing a solver takes longer than all its cases, and two do not share a process.
_APART = Apart()


@pytest.fixture(scope="module", autouse=True)
def _processes():
    yield
    _APART.close()


def solve(solver: str, program: LinearProgram, **budget) -> Outcome:
    if registry.get(solver).available() is None:
        pytest.skip(f"{solver} is not installed")
    settled = Budget(**{"time_limit": 30.0, "workers": 1, **budget})
    asked = (run_here, solver, program, settled, heard_by_nobody)
    try:
        return _APART.call(solver, *asked, seconds=60.0)
    except NotReturnedError as ended:
        # CBC does that once in a long while; what it says when it returns is held to the same standard.
        warnings.warn(str(ended), stacklevel=2)
        return _APART.call(solver, *asked, seconds=60.0)


@pytest.mark.sampled(1)
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
def test_whole_numbers_to_the_last_unit(solver: str) -> None:
    """One byte over 16 GiB is too much, and 16 GiB is not."""
    rng = np.random.default_rng(11)
    for over in (0, 1, 0, 1):
        sizes = rng.integers(2**30, 2**34, 5).astype(float)
        taken = np.array([1, 0, 1, 1, 0])
        room = float(sizes @ taken) - over
        program = linear(-sizes * rng.uniform(1, 2, 5), sizes[None, :], [-INF], [room], [0] * 5, [1] * 5, [True] * 5)
        points = np.array(list(itertools.product((0, 1), repeat=5)))
        best = float((points[points @ sizes <= room] @ program.cost).min())
        found = solve(solver, program)
        assert found.termination == "optimal", found
        assert found.objective == pytest.approx(best, rel=1e-6)
        assert found.incumbent is not None
        assert float(sizes @ found.incumbent) <= room


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


@every_solver
def test_time_limit(solver: str) -> None:
    for program in (split(), split(slacks=False)):
        found = solve(solver, program, time_limit=0.5)
        assert found.termination == "time_limit", found
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
    assert left <= 0.2 + SAME_VALUE


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
    """Whatever the data, the bound stays below the optimum over the reals, the value as near as the grid lets it."""
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
        values = ((points @ loads.T) / -np.diag(matrix[:, 8:])).sum(axis=1)
        best, step = float(values.min()), 2.0**-20 * float(values.max())
        found = solve("cp-sat", program)
        assert found.bound <= best * (1 + 1e-12)
        assert found.termination in ("optimal", "error")
        assert found.objective >= best * (1 - 1e-3) - step


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


def test_names() -> None:
    assert [features.name for features, _ in registry.installed()] == list(registry.names())
    with pytest.raises(UsageError, match="did you mean 'highs'"):
        registry.get("higs")
    with pytest.raises(UsageError):
        run_isolated("pyomo:cbcc", random_program(1), Budget(), heard_by_nobody)
    assert registry.get("pyomo:highs").features.name == "pyomo"
