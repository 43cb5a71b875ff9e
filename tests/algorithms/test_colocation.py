"""Constraints that only say that nodes share a device are known to everything that knows ``colocated by``."""

from __future__ import annotations

import itertools
import random

import pytest

from placedsl import loads
from placedsl.algorithms.colocation import with_implied_colocation

pytestmark = pytest.mark.rotates(2)

SPEC = """
graph {
    node a { time = {accelerator: 4 ms, host: 9 ms},  memory = 2 GiB, output = 8 MiB, g = 1 }
    node b { time = {accelerator: 6 ms, host: 30 ms}, memory = 3 GiB, output = 8 MiB, g = 2 }
    node c { time = {accelerator: 5 ms, host: 25 ms}, memory = 1 GiB, output = 8 MiB, g = 1 }
    node d { time = {accelerator: 2 ms, host: 8 ms},  memory = 1 GiB, g = 3 }
    a -> b -> c -> d
    a -> d
}
device gpu[2]: accelerator { memory = 6 GiB }
device cpu: host
interconnect { bandwidth = 16 GiB/s }
set ends = {a, c}
constraint beside(v in nodes, w in nodes) = forall d in devices: (v on d) <=> (w on d)
minimize time_per_sample
subject to
    memory
    contiguous
"""
SAME = [
    "colocated by g",
    "together({a, c})",
    "together(ends)",
    "together(nodes where g == 1)",
    "beside(a, c)",
    "rule: forall v in nodes, w in nodes, d in devices where v.g == w.g: (v on d) == (w on d)",
    "rule: forall d in devices: ((a on d) == (c on d)) and (forall v in ends: (v on d) == (a on d))",
]
OTHER = [
    "rule: forall d in gpu: (a on d) == (c on d)",
    "rule: forall d in devices where d.number == 1: (a on d) == (c on d)",
    "rule: forall d in devices: (a on d) => (c on d)",
    "rule: (a on gpu[1]) == (c on gpu[1])",
    "rule: (forall d in devices: (a on d) == (c on d)) or b on cpu",
    "rule: forall d in devices: (a on d) == (c on d) and load(d) <= 1 s",
]


@pytest.mark.parametrize("method", ["dp", "program"])
@pytest.mark.parametrize("rule", SAME)
def test_what_is_equivalent_to_colocation_is_known_to_all_paths(rule: str, method: str) -> None:
    answer = loads(SPEC + f"    {rule}\n").solve(method=method)
    expected = loads(SPEC + f"    {SAME[0]}\n").solve(method="program")
    assert answer.termination == "optimal"
    assert answer.value == pytest.approx(expected.value)
    assert answer.placement is not None
    assert answer.placement[0] == answer.placement[2]


@pytest.mark.parametrize("rule", OTHER)
def test_what_says_less_or_more_is_left_a_formula(rule: str) -> None:
    problem = loads(SPEC + f"    {rule}\n").problem
    assert with_implied_colocation(problem) is problem


@pytest.mark.parametrize("seed", range(10))
def test_the_groups_are_those_of_the_formula(seed: int) -> None:
    """A placement satisfies the formula just if nodes of one label share a device."""
    draw = random.Random(seed)
    sets = ["{" + ", ".join(draw.sample("abcd", draw.randint(1, 3))) + "}" for _ in range(2)]
    problem = loads(
        SPEC.split("subject to", maxsplit=1)[0] + "subject to\n" + "".join(f"    together({s})\n" for s in sets)
    ).problem
    known = with_implied_colocation(problem)
    spec = loads(
        SPEC.split("subject to", maxsplit=1)[0] + "subject to\n" + "".join(f"    together({s})\n" for s in sets)
    )
    for place in itertools.product(range(3), repeat=4):
        shares = all(
            len({place[v] for v in range(4) if labels[v] == label}) == 1
            for labels in known.colocation_groups()
            for label in set(labels.tolist())
        )
        assert spec.evaluate(place).feasible == shares
