"""Random small problems: the dynamic program and every solver agree with brute force.

250 of all kinds, 125 whose custom constraints are nested at random, 125 over the whole algebra, and 125 that compare
what placements reach exactly.
Each path has processes of its own, because two solver libraries do not go into one process.
"""

from __future__ import annotations

import functools
import math
import subprocess
import sys

import pytest
from support.paths import child_environment
from support.suites import PATHS

import placedsl

pytestmark = pytest.mark.rotates(3)

PROBLEMS = 250
CHUNK, FEW = 125, 15
#: Seeds from here on are for formulas.
FORMULAS = 1_000_000
#: And from here on for the algebra.
ALGEBRA = 2_000_000
#: And from here on for comparisons.
COMPARISONS = 3_000_000


def cases() -> list[object]:
    """Every path over every kind; by default a few, and formulas and algebra by what is taken without asking."""
    out: list[object] = []
    for path in PATHS:
        for first in (*range(0, PROBLEMS, CHUNK), FORMULAS, ALGEBRA, COMPARISONS):
            if first == 0 or (first >= FORMULAS and path in PATHS[:3]):
                out.append((path, first, FEW))
            out.append(pytest.param(path, first, CHUNK, marks=pytest.mark.everything))
    return out


@pytest.mark.parametrize(("path", "first", "count"), cases())
def test_agrees_with_brute_force(path: str, first: int, count: int) -> None:
    command = [sys.executable, __file__, path, str(first), str(first + count)]
    environment = child_environment()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    problems, by_dynamic_programming = done.stdout.splitlines()[-1].removeprefix("agree: ").split()
    assert int(problems) == count
    if path != "auto":
        assert int(by_dynamic_programming) == 0
    elif first < FORMULAS:
        assert int(by_dynamic_programming) >= count // 5


def test_problems_are_of_every_kind() -> None:
    """What the generator is for does occur, and often."""
    from support.random_specs import random_spec

    texts = [random_spec(seed) for seed in range(500)]
    for word, least in (
        ("backward = true", 100), ("custom0", 100), ("schedule gpipe", 10), ("overlapped", 50), ("duplex", 50),
        ("contiguous", 100), ("convex", 50),
        ("cpu[2]", 50), ("cpu[0]", 50), ("tpu", 20), ("memory = 3 MiB }\n", 50),
    ):  # fmt: skip
        assert sum(word in text for text in texts) >= least, word


def compare(path: str, first: int, last: int) -> tuple[int, int]:
    """How many problems were compared, and how many dynamic programming solved; one that differs ends the process."""
    from support.brute_force import best, best_by_evaluation
    from support.exact_comparisons import exact_comparison
    from support.random_specs import random_algebra, random_formulas, random_spec

    from placedsl.planner.request import Request
    from placedsl.planner.solve import solve

    # Under auto, each solver has a process of its own, as several may be used.
    auto = path == "auto"
    request = Request(workers=1) if auto else Request(path, "program", workers=1)
    run = functools.partial(solve, request=request, isolated=auto)
    by_dynamic_programming = 0
    for seed in range(first, last):
        if seed >= ALGEBRA:
            own = seed >= COMPARISONS
            spec = placedsl.loads(exact_comparison(seed - COMPARISONS) if own else random_algebra(seed - ALGEBRA))
            least = best_by_evaluation(spec.problem)
        else:
            spec = placedsl.loads(random_spec(seed) if seed < FORMULAS else random_formulas(seed - FORMULAS))
            found = best(spec.problem)
            least = None if found is None else (found[0],)
        try:
            answer = run(spec.problem, spec.elaborated.checked_formulations)
        except placedsl.InputError as problem:
            # A row that is false whatever the placement is told as an error in the spec, not as "infeasible".
            if least is not None or "is false whatever the placement" not in str(problem):
                sys.exit(f"seed {seed}: {problem}; brute force {least}")
            continue
        by_dynamic_programming += answer.method == "dp"
        what = f"seed {seed}: {answer.termination} {answer.value} {answer.bound} {answer.message}; brute force {least}"
        if least is None:
            agrees = answer.termination == "infeasible" and answer.placement is None
        else:
            agrees = (
                answer.termination == "optimal"
                and answer.evaluation is not None
                and not answer.evaluation.violations
                and all(
                    math.isclose(got, best, rel_tol=2e-6, abs_tol=1e-12)
                    for got, best in zip(answer.evaluation.objectives, least, strict=False)
                )
                and answer.bound <= least[0] + 1e-9 * abs(least[0])
            )
        if not agrees:
            sys.exit(what)
    return last - first, by_dynamic_programming


if __name__ == "__main__":
    print("agree:", *compare(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))  # noqa: T201
