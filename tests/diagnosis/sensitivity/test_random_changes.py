"""Random problems: what a change is said to bring is what the spec with that change in its text gives.

The changed text is solved by enumeration.  One process of its own for the solver, because two solver libraries do not
go into one process.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys

import pytest
from support.paths import child_environment

import placedsl

pytestmark = pytest.mark.rotates(3)

SEEDS = 60


@pytest.mark.parametrize("solver", ["highs", "cp-sat"])
def test_the_changed_text_gives_what_is_said(solver: str, pytestconfig: pytest.Config) -> None:
    seeds = SEEDS if pytestconfig.getoption("--everything") else SEEDS // 8
    command = [sys.executable, __file__, solver, str(seeds)]
    environment = child_environment()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    devices, memory, rules, better = map(int, done.stdout.splitlines()[-1].removeprefix("confirmed: ").split())
    assert devices >= seeds // 2
    assert memory >= seeds // 4
    assert rules >= seeds // 2
    assert better >= seeds // 4, "too few changes that help"


def changed_text(text: str, change: str) -> str:
    """The spec with a change in its text."""
    more = re.fullmatch(r"one more (\w+)", change)
    if more:
        return re.sub(rf"device {more[1]}\[(\d+)\]", lambda m: f"device {more[1]}[{int(m[1]) + 1}]", text)
    room = re.fullmatch(r".* more on each (\w+), a tenth", change)
    if room:
        line = rf"(device {room[1]}\[\d+\]: \w+ {{ memory = )(\d+) MiB"
        changed, count = re.subn(line, lambda m: f"{m[1]}{int(m[2]) * 1.1!r} MiB", text)
        assert count == 1, (change, text)
        return changed
    name = change.removeprefix("without ")
    kept = [line for line in text.splitlines() if line.strip().partition(":")[0] != name]
    return "\n".join(kept if kept[-1] != "subject to" else kept[:-1]) + "\n"


def confirm(solver: str, last: int) -> tuple[int, int, int, int]:
    """How many changes of devices, of memory and of rules were confirmed, and how many of all helped."""
    from support.brute_force import best
    from support.random_specs import random_spec

    from placedsl.diagnosis.sensitivity.report import why
    from placedsl.planner.request import Request
    from placedsl.planner.solve import solve

    counts = [0, 0, 0, 0]
    for seed in range(last):
        text = random_spec(seed)
        spec = placedsl.loads(text)
        formulations, request = spec.elaborated.checked_formulations, Request(solver, workers=1, time_limit=60.0)
        answer = solve(spec.problem, formulations, request, isolated=False)
        if answer.placement is None or (len(spec.problem.machine.devices) + 1) ** spec.problem.graph.nodes > 20_000:
            continue
        for effect in why(answer, formulations, request, isolated=False).effects:
            changed = changed_text(text, effect.change)
            assert changed != text, (seed, effect.change)
            expected = best(placedsl.loads(changed).problem)
            what = f"seed {seed}: {effect}, by enumeration {expected}\n{changed}"
            if expected is None:
                assert effect.termination == "infeasible", what
                continue
            assert effect.proven, what
            assert math.isclose(effect.value, expected[0], rel_tol=2e-6, abs_tol=1e-15), what
            assert effect.helps == (expected[0] < answer.value * (1 - 1e-6)), what
            counts[
                ("one more" in effect.change, "on each" in effect.change, "without" in effect.change).index(True)
            ] += 1
            counts[3] += effect.helps
    return counts[0], counts[1], counts[2], counts[3]


if __name__ == "__main__":
    print("confirmed:", *confirm(sys.argv[1], int(sys.argv[2])))  # noqa: T201
