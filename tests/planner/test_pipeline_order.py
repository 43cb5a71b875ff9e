"""Devices that are alike have their nodes in the order of the pipeline, unless something tells the devices apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from placedsl import loads
from placedsl.planner.incumbent import Incumbent
from placedsl.planner.pipeline_order import in_pipeline_order

CHAIN = """
graph {
    node a { time = {accelerator: 4 ms}, output = 1 KiB }
    node b { time = {accelerator: 5 ms}, output = 1 KiB }
    node c { time = {accelerator: 6 ms}, output = 1 KiB }
    a -> b
    b -> c
}
"""
TWO_KINDS = (
    CHAIN
    + """
device fast[2]: accelerator { memory = 16 GiB }
device slow[2]: accelerator { memory = 8 GiB }
interconnect { bandwidth = 16 GB/s }
minimize time_per_sample
subject to contiguous
"""
)


@pytest.mark.parametrize("placement", list(itertools.permutations(range(4), 3)))
def test_within_a_class_only(placement: tuple[int, ...]) -> None:
    told = in_pipeline_order(loads(TWO_KINDS).problem, np.array(placement))
    assert [d // 2 for d in told] == [d // 2 for d in placement]
    for first in (0, 2):
        mine = [d for d in told.tolist() if d // 2 == first // 2]
        assert mine == list(range(first, first + len(mine)))


def rearranged(spec: str, placement: list[int]) -> list[int]:
    best = Incumbent(loads(spec).problem, None, 0.0)
    assert best.offer(np.array(placement))
    value = best.value
    best.rearrange(in_pipeline_order)
    assert best.value == value
    assert best.placement is not None
    assert best.evaluation is not None
    assert [best.placement[v] for nodes in best.evaluation.nodes for v in nodes] == [
        d for d, nodes in enumerate(best.evaluation.nodes) for _ in nodes
    ]
    return best.placement.tolist()


def test_what_a_rule_says_of_one_device_stays() -> None:
    assert rearranged(TWO_KINDS, [1, 0, 3]) == [0, 1, 2]
    assert rearranged(TWO_KINDS + "    end: c on slow[2]\n", [1, 0, 3]) == [1, 0, 3]
    assert rearranged(TWO_KINDS + "    end: a on fast[2]\n", [1, 0, 3]) == [1, 0, 3]


def test_a_price_of_one_device_stays() -> None:
    goal = TWO_KINDS.replace("minimize time_per_sample", "minimize time_per_sample then load(fast[1])")
    assert rearranged(goal, [1, 3, 2]) == [1, 3, 2]  # fast[1] has nothing, which is least


def test_a_given_placement_keeps_its_devices() -> None:
    spec = loads(TWO_KINDS.replace("device slow[2]: accelerator { memory = 8 GiB }\n", ""))
    assert spec.solve().placement == (0, 0, 1)
    assert spec.solve(start=([1, 1, 0], {})).placement == (1, 1, 0)


def test_stages_with_copies_stay() -> None:
    spec = TWO_KINDS.replace("minimize", "parallelism { microbatches = 16, data = 1..4 }\nminimize")
    problem = loads(spec).problem
    assert in_pipeline_order(problem, np.array([1, 0, 3])).tolist() == [1, 0, 3]


def test_what_a_row_of_a_formulation_says_stays() -> None:
    """No evaluation knows of such rows."""
    row = (
        'extend max_load {\n    subject to\n        first: forall v in nodes where v.id == "a": x[v, fast[2]] == 1\n}\n'
    )
    spec = loads(TWO_KINDS + row)
    assert in_pipeline_order(spec.problem, np.array([1, 0, 3])).tolist() == [1, 0, 3]
    answer = spec.solve()
    assert answer.device_of()["a"] == "fast[2]"
