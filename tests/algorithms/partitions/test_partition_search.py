"""The search for splits that need not be contiguous: loads follow moves exactly, and small problems are solved.

What calls CP-SAT runs in processes of its own: two solver libraries do not go into one.
"""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
from support.paths import child_environment

import placedsl
from placedsl.algorithms.annealing import CoolingSchedule, slices
from placedsl.algorithms.partitions import short_annealing as local_search
from placedsl.algorithms.partitions.annealing_kernel import anneal
from placedsl.algorithms.partitions.instance import even_segments, partition_units, state_of, value_of
from placedsl.algorithms.partitions.load_kernel import move_unit
from placedsl.algorithms.partitions.neighbourhoods import FreeUnits, free_devices, free_region, subproblem_of
from placedsl.algorithms.supports import reasons_against
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem

pytestmark = pytest.mark.rotates(2)

PROBLEMS = 80


def problem_of(seed: int) -> Problem:
    from support.free_specs import free_spec

    return placedsl.loads(free_spec(seed)).problem


def test_loads_follow_moves_as_the_evaluator_has_them() -> None:
    moves = 0
    for seed in range(PROBLEMS):
        problem = problem_of(seed)
        assert not reasons_against(problem, local_search.SUPPORTS)
        units = partition_units(problem)
        rng = np.random.default_rng(seed)
        state = state_of(units.instance, even_segments(units.instance, rng))
        for _ in range(12):
            u, b = int(rng.integers(len(state.device))), int(rng.integers(len(state.load)))
            if b != state.device[u] and np.isfinite(units.instance.work[b, u]):
                move_unit(units.instance, state, u, b)
                moves += 1
            found = evaluate(problem, units.placement(state.device).tolist())
            np.testing.assert_allclose(state.load, found.loads, rtol=1e-9, atol=1e-15)
            np.testing.assert_allclose(state.memory_used, found.memory, rtol=1e-12)
    assert moves > 3 * PROBLEMS


def test_a_value_is_that_of_the_evaluator_or_infinite_where_memory_is_exceeded() -> None:
    exceeded = 0
    for seed in range(PROBLEMS):
        problem = problem_of(seed)
        units = partition_units(problem)
        device = even_segments(units.instance, np.random.default_rng(seed))
        found, value = evaluate(problem, units.placement(device).tolist()), value_of(units.instance, device)
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
        units = partition_units(problem_of(seed))
        start = even_segments(units.instance)
        state, best = state_of(units.instance, start), start.copy()
        undercut = 4.0 * float(state.load.max())
        value = anneal(units.instance, state, best, undercut, 0.02, CoolingSchedule(20_000, 0.1, 0.001, seed))
        if value < undercut:
            better += 1
            assert value_of(units.instance, best) == pytest.approx(value)
        again = state_of(units.instance, state.device)
        np.testing.assert_allclose(state.load, again.load, rtol=1e-9, atol=1e-15)
        assert (state.pins_on_device == again.pins_on_device).all()
    assert better > PROBLEMS // 2


def test_slices_of_a_schedule_cool_as_the_whole() -> None:
    pieces = list(slices(250, 1.0, 1e-4, 4, range(4)))
    assert [p.steps for p in pieces] == [250] * 4
    assert [p.seed for p in pieces] == [0, 1, 2, 3]
    assert pieces[0].hot == 1.0
    assert pieces[-1].cold == pytest.approx(1e-4)
    assert all(a.cold == pytest.approx(b.hot) for a, b in itertools.pairwise(pieces))


def test_the_part_that_is_left_prices_every_choice_right() -> None:
    """Fixed loads and crossings together are the loads, whatever the freed units do."""
    compared = 0
    for seed in range(PROBLEMS):
        units = partition_units(problem_of(seed))
        instance, rng = units.instance, np.random.default_rng(seed)
        state = state_of(instance, even_segments(instance, rng))
        for free in (free_devices(instance, state, 2, rng), free_region(instance, state, 3, rng)):
            subproblem = subproblem_of(instance, state.device, free)
            for _ in range(4):
                device = state.device.copy()
                for u, choices in subproblem.choices.items():
                    device[u] = choices[int(rng.integers(len(choices)))]
                np.testing.assert_allclose(
                    _priced(instance, subproblem, device), state_of(instance, device).load, rtol=1e-9, atol=1e-15
                )
                compared += 1
    assert compared == 8 * PROBLEMS


def _priced(instance, subproblem, device) -> np.ndarray:
    load = np.array(subproblem.load)
    for u in subproblem.choices:
        load[device[u]] += instance.work[device[u], u]
    for cut in subproblem.undecided_cuts:
        here = [device[u] == cut.device for u in cut.units]
        some, all_of_it = cut.inside or any(here), not cut.outside and all(here)
        load[cut.device] += cut.cost * (some and not all_of_it)
    return load


def test_what_is_freed_has_the_bottleneck_in_it() -> None:
    for seed in range(PROBLEMS):
        instance = partition_units(problem_of(seed)).instance
        rng = np.random.default_rng(seed)
        state = state_of(instance, even_segments(instance))
        worst = int(np.argmax(state.load))
        by_device = free_devices(instance, state, 2, rng)
        assert by_device.devices[worst]
        assert (by_device.units == by_device.devices[state.device]).all()
        assert free_region(instance, state, 2, rng).units.sum() >= 1


def in_a_process(*arguments: object) -> str:
    command = [sys.executable, __file__, *map(str, arguments)]
    environment = child_environment()
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
    from support.brute_force import best

    from placedsl.algorithms.partitions.cp_sat_neighbourhood import solve_neighbourhood

    compared = 0
    for seed in range(first, last):
        problem = problem_of(seed)
        units, least = partition_units(problem), best(problem)
        instance = units.instance
        everything = FreeUnits(np.ones(len(instance.memory), dtype=bool), np.ones(len(instance.capacity), dtype=bool))
        start = even_segments(units.instance)
        top = max(float(state_of(units.instance, start).load.max()), least[0] if least else 0.0)
        if top <= 0.0:
            continue
        device, final = solve_neighbourhood(units.instance, start, top, everything, 100.0, 0)
        assert final, seed
        assert (device is None) == (least is None), seed
        if least is not None and device is not None:
            assert abs(value_of(units.instance, device) - least[0]) <= 1e-6 * least[0], seed
            compared += 1
    assert compared > (last - first) // 2
    return f"parts agree: {compared}"


def _searches(first: int, last: int) -> str:
    from support.brute_force import best

    from placedsl.algorithms.partitions.search import run, search_from

    solved = 0
    for seed in range(first, last):
        problem = problem_of(seed)
        units, least = partition_units(problem), best(problem)
        search = search_from(units.instance, None, seed)
        for number, _ in enumerate(run(search)):
            if number == 12:
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
    from placedsl.algorithms.partitions.search import run, search_from

    units = partition_units(problem_of(3))
    search = search_from(units.instance, None, seed)
    said = [f"{search.value:.17g}"]
    for number, _ in enumerate(run(search)):
        said.append("".join(map(str, search.best)))
        if number == 20:
            break
    return " ".join([*said, f"{search.value:.12g}"])


if __name__ == "__main__":
    runs = {"parts": _parts, "search": _searches, "sequence": _sequence}
    print(runs[sys.argv[1]](*map(int, sys.argv[2:])))  # noqa: T201
