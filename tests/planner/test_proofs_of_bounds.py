"""What an answer says of its bound is what proves that bound, and not one that was dropped."""

from __future__ import annotations

import placedsl
from placedsl.planner.incumbent import Incumbent

TEXT = """
graph { node a { time = {accelerator: 3 ms} } }
device gpu[2]: accelerator
interconnect { bandwidth = 1 GiB/s }
minimize time_per_sample then devices_used
"""


def test_a_claim_that_is_dropped_takes_its_proof_along() -> None:
    best = Incumbent(placedsl.loads(TEXT).problem, None, 0.0)
    assert best.proof().by == ""
    best.bound(0.001, by="the simple bound", certificate={"kind": "simple"})
    best.bound(0.002, by="a solver", claimed=True)
    assert (best.bounds[0], best.proof().by, best.proof().certificate) == (0.002, "a solver", None)
    best.disclaim()
    assert (best.bounds[0], best.proof().by, best.proof().certificate) == (
        0.001,
        "the simple bound",
        {"kind": "simple"},
    )
    best.bound(0.0005, by="something weaker")
    assert best.proof().by == "the simple bound"
    best.bound(1.0, 1, by="some device is used")
    assert [best.proof(k).by for k in range(2)] == ["the simple bound", "some device is used"]


def test_answers_say_what_proves_each_bound() -> None:
    answer = placedsl.loads(TEXT).solve()
    assert len(answer.bound_by) == 2
    assert all(answer.bound_by)
