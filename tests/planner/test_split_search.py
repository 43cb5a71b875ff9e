"""The search for splits that need not be contiguous: loads follow moves exactly, and small problems are solved.

What calls CP-SAT runs in processes of its own: two solver libraries do not go into one.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import placedsl
from placedsl.algorithms import local_search
from placedsl.algorithms.neighbourhood import Freed, part_of, some_devices, some_units
from placedsl.algorithms.split import chunks, state_of, units_of, value_of
from placedsl.algorithms.split_kernel import Schedule, anneal, shift
from placedsl.algorithms.split_search import sliced
from placedsl.cost.evaluate import evaluate
from placedsl.problem import Problem

PROBLEMS = 80


def problem_of(seed: int) -> Problem:
    from free_specs import free_spec

    return placedsl.loads(free_spec(seed)).problem


def test_loads_follow_moves_as_the_evaluator_has_them() -> None:
    moves = 0
    for seed in range(PROBLEMS):
        problem = problem_of(seed)
        assert local_search.fits(problem)
        units = units_of(problem)
        rng = np.random.default_rng(seed)
        state = state_of(units.split, chunks(units.split, rng))
        for _ in range(12):
            u, b = int(rng.integers(len(state.device))), int(rng.integers(len(state.load)))
            if b != state.device[u] and np.isfinite(units.split.work[b, u]):
                shift(units.split, state, u, b)
                moves += 1
            found = evaluate(problem, units.placement(state.device).tolist())
            np.testing.assert_allclose(state.load, found.loads, rtol=1e-9, atol=1e-15)
            np.testing.assert_allclose(state.held, found.memory, rtol=1e-12)
    assert moves > 3 * PROBLEMS


def test_a_value_is_that_of_the_evaluator_or_infinite_where_memory_is_exceeded() -> None:
    exceeded = 0
    for seed in range(PROBLEMS):
        problem = problem_of(seed)
        units = units_of(problem)
        device = chunks(units.split, np.random.default_rng(seed))
        found, value = evaluate(problem, units.placement(device).tolist()), value_of(units.split, device)
        exceeded += bool(found.violations)
        if found.violations:
            assert value == np.inf
        else:
            assert value == pytest.approx(found.objectives[0])
    assert 0 < exceeded < PROBLEMS


def test_annealing_keeps_what_it_says() -> None:
    """The value that it returns is that of the split that it leaves, which is feasible."""
    better = 0
    for seed in range(PROBLEMS):
        units = units_of(problem_of(seed))
        start = chunks(units.split)
        state, best = state_of(units.split, start), start.copy()
        undercut = 4.0 * float(state.load.max())
        value = anneal(units.split, state, best, undercut, Schedule(20_000, 0.1, 0.001, 0.02, seed))
        if value < undercut:
            better += 1
            assert value_of(units.split, best) == pytest.approx(value)
        again = state_of(units.split, state.device)
        np.testing.assert_allclose(state.load, again.load, rtol=1e-9, atol=1e-15)
        assert (state.inside == again.inside).all()
    assert better > PROBLEMS // 2


def test_slices_of_a_schedule_cool_as_the_whole() -> None:
    pieces = list(sliced(Schedule(1000, 1.0, 1e-4, 0.01, 7), 4))
    assert [p.steps for p in pieces] == [250] * 4
    assert pieces[0].hot == 1.0
    assert pieces[-1].cold == pytest.approx(1e-4)
    assert all(a.cold == pytest.approx(b.hot) for a, b in itertools.pairwise(pieces))


def test_the_part_that_is_left_prices_every_choice_right() -> None:
    """Fixed loads and crossings together are the loads, whatever the freed units do."""
    compared = 0
    for seed in range(PROBLEMS):
        units = units_of(problem_of(seed))
        split, rng = units.split, np.random.default_rng(seed)
        state = state_of(split, chunks(split, rng))
        for freed in (some_devices(split, state, 2, rng), some_units(split, state, 3, rng)):
            part = part_of(split, state.device, freed)
            for _ in range(4):
                device = state.device.copy()
                for u, choices in part.choices.items():
                    device[u] = choices[int(rng.integers(len(choices)))]
                np.testing.assert_allclose(
                    _priced(split, part, device), state_of(split, device).load, rtol=1e-9, atol=1e-15
                )
                compared += 1
    assert compared == 8 * PROBLEMS


def _priced(split, part, device) -> np.ndarray:
    load = np.array(part.load)
    for u in part.choices:
        load[device[u]] += split.work[device[u], u]
    for crossing in part.crossings:
        here = [device[u] == crossing.device for u in crossing.units]
        some, all_of_it = crossing.inside or any(here), not crossing.outside and all(here)
        load[crossing.device] += crossing.cost * (some and not all_of_it)
    return load


def test_what_is_freed_has_the_bottleneck_in_it() -> None:
    for seed in range(PROBLEMS):
        split = units_of(problem_of(seed)).split
        rng = np.random.default_rng(seed)
        state = state_of(split, chunks(split))
        worst = int(np.argmax(state.load))
        by_device = some_devices(split, state, 2, rng)
        assert by_device.devices[worst]
        assert (by_device.units == by_device.devices[state.device]).all()
        assert some_units(split, state, 2, rng).units.sum() >= 1


def in_a_process(*arguments: object) -> str:
    command = [sys.executable, __file__, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(Path(placedsl.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def test_parts_solved_to_the_end_are_the_best_there_is() -> None:
    """All units freed: the optimum, by brute force."""
    assert in_a_process("parts", 0, PROBLEMS).startswith("parts agree")


@pytest.mark.parametrize("first", [0, pytest.param(60, marks=pytest.mark.everything)])
def test_small_problems_are_solved(first: int) -> None:
    """The optimum nearly always; never a placement that is infeasible, nor a value that is not the evaluator's."""
    solved, problems = map(int, in_a_process("search", first, first + 60).split())
    assert problems == 60
    assert solved >= 57


def test_one_seed_gives_one_sequence() -> None:
    first, again, other = (in_a_process("sequence", seed) for seed in (1, 1, 2))
    assert first == again
    assert first.split()[-1] == other.split()[-1], "the same value in the end"


def _parts(first: int, last: int) -> str:
    from brute_force import best

    from placedsl.algorithms.part_cp_sat import solve_part

    compared = 0
    for seed in range(first, last):
        problem = problem_of(seed)
        units, least = units_of(problem), best(problem)
        everything = Freed(np.ones(len(units.split.memory), dtype=bool), np.ones(len(units.split.capacity), dtype=bool))
        start = chunks(units.split)
        top = max(float(state_of(units.split, start).load.max()), least[0] if least else 0.0)
        if top <= 0.0:
            continue
        device, final = solve_part(units.split, start, top, everything, 100.0, 0)
        assert final, seed
        assert (device is None) == (least is None), seed
        if least is not None and device is not None:
            assert abs(value_of(units.split, device) - least[0]) <= 1e-6 * least[0], seed
            compared += 1
    assert compared > (last - first) // 2
    return f"parts agree: {compared}"


def _searches(first: int, last: int) -> str:
    from brute_force import best

    from placedsl.algorithms.split_search import begin, run

    solved = 0
    for seed in range(first, last):
        problem = problem_of(seed)
        units, least = units_of(problem), best(problem)
        search = begin(units.split, None, seed)
        for slices, _ in enumerate(run(search)):
            if slices == 12:
                break
        if np.isfinite(search.value):
            found = evaluate(problem, units.placement(search.best).tolist())
            assert not found.violations, seed
            assert abs(found.objectives[0] - search.value) <= 1e-9 * search.value, seed
            assert least is not None, seed
            assert search.value >= least[0] * (1 - 1e-9), seed
        solved += (least is None) == np.isinf(search.value) and (least is None or search.value <= least[0] * (1 + 1e-9))
    return f"{solved} {last - first}"


def _sequence(seed: int) -> str:
    from placedsl.algorithms.split_search import begin, run

    units = units_of(problem_of(3))
    search = begin(units.split, None, seed)
    said = [f"{search.value:.17g}"]
    for slices, _ in enumerate(run(search)):
        said.append("".join(map(str, search.best)))
        if slices == 20:
            break
    return " ".join([*said, f"{search.value:.12g}"])


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    runs = {"parts": _parts, "search": _searches, "sequence": _sequence}
    print(runs[sys.argv[1]](*map(int, sys.argv[2:])))  # noqa: T201
