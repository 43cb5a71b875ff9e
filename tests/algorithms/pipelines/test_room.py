"""Whether pipelines have room for operators without time, against enumeration of what may leave and of placements."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from support.brute_force import confirm_dynamic_program, least_time
from support.free_operators import text_with_dear_tensors

import placedsl
from placedsl.algorithms.pipelines import room
from placedsl.algorithms.pipelines.room_kernel import least_cost


@pytest.mark.parametrize("seed", range(300))
def test_the_least_cost_of_what_leaves(seed: int) -> None:
    """Against all subsets; costs and sizes of unlike magnitudes, equal ones, and none."""
    rng = random.Random(seed)
    count = rng.randint(0, 9)
    memory = np.array([rng.choice([1.0, 3.0, rng.uniform(0.1, 9), 1e6 * rng.random()]) for _ in range(count)])
    cost = np.array([rng.choice([0.0, 1.0, rng.random(), 1e-7 * rng.random()]) for _ in range(count)])
    order = np.argsort(cost / memory, kind="stable")
    cost, memory = cost[order], memory[order]
    need = rng.choice([rng.uniform(0, 1.1), 1.0]) * float(memory.sum()) + 1e-9
    most = rng.choice([math.inf, rng.uniform(0, 1) * float(cost.sum())])
    choices = [np.array(one, dtype=bool) for one in itertools.product((False, True), repeat=count)]
    enough = [float(cost[one].sum()) for one in choices if memory[one].sum() >= need]
    least = min(enough, default=math.inf)
    taken = np.zeros(count, dtype=bool)
    found = least_cost(cost, memory, need, most, taken)
    if least > most or math.isinf(least):
        assert found == math.inf
    else:
        assert found == pytest.approx(least, rel=1e-8, abs=1e-15)
        assert memory[taken].sum() >= need * (1 - 1e-12)
        assert cost[taken].sum() == pytest.approx(least, rel=1e-8, abs=1e-15)


def costly(limit: int) -> str:
    """Two operators whose tensor is dear, and four that read it and occupy much: two of these go elsewhere."""
    nodes = "".join(f"    node x{i} {{ time = 0 ms, memory = 100 MiB }}\n    a -> x{i}\n" for i in range(4))
    return (
        "graph {\n    node a { time = 3 ms, memory = 100 MiB, output = 8 MiB }\n"
        "    node b { time = 3 ms, memory = 100 MiB, output = 1 KiB }\n"
        f"    node c {{ time = 6 ms, memory = 100 MiB }}\n    a -> b -> c\n{nodes}}}\n"
        f"device gpu[2]: accelerator {{ memory = {limit} MiB }}\ninterconnect {{ bandwidth = 1 GiB/s }}\n"
        "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n"
    )


@pytest.mark.parametrize("limit", [450, 620])
def test_a_device_pays_for_what_leaves_it(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No operator is counted in full: room alone proves the value, asked near the bound and below the value."""
    problem = placedsl.loads(costly(limit)).problem
    asked = watched(monkeypatch)
    confirm_dynamic_program(problem, least_time(problem))
    assert [answer.device is None for answer in asked] == ([True, True] if limit == 450 else [])


def watched(monkeypatch: pytest.MonkeyPatch) -> list[room.RoomResult]:
    """What is answered from here on."""
    asked = list[room.RoomResult]()
    whole = room.with_room

    def with_room(*arguments: object) -> room.RoomResult:
        answer = whole(*arguments)  # type: ignore[arg-type]
        asked.append(answer)
        return answer

    monkeypatch.setattr(room, "with_room", with_room)
    return asked


@pytest.mark.sampled(2)
@pytest.mark.parametrize("block", range(40))
def test_random_problems(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least value and its proof; the question is answered in some of the problems, and both ways."""
    asked = watched(monkeypatch)
    for seed in range(25 * block, 25 * block + 25):
        problem = placedsl.loads(text_with_dear_tensors(seed)).problem
        confirm_dynamic_program(problem, least_time(problem))
    assert {answer.device is None for answer in asked if answer.known} == {False, True}
