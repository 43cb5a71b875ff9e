"""An element without a value for an attribute satisfies no comparison of it, wherever the comparison stands."""

from __future__ import annotations

import pytest

from placedsl import loads

SPEC = """
graph {{
    node a {{ time = 1 s, grp = "x", twin = "x", depth = 1 }}
    node b {{ time = 1 s, grp = "y", twin = "x", depth = 2 }}
    node c {{ time = 1 s }}
    node d {{ time = 1 s }}
}}
device gpu[2]: accelerator
minimize time_per_sample
subject to
    yes: forall v in nodes: {condition} => v on gpu[1]
    no:  forall v in nodes: not ({condition}) => v on gpu[2]
"""
#: A condition of a node, and the nodes that satisfy it.
CASES = [
    ('v.grp == "x"', "a"),
    ('v.grp != "x"', "b"),
    ('not (v.grp == "x")', "bcd"),
    ('not (v.grp != "x")', "acd"),
    ("v.grp == v.twin", "a"),
    ("v.grp != v.twin", "b"),
    ('v.grp ~ "*"', "ab"),
    ('not (v.grp ~ "x*")', "bcd"),
    ("v.depth == 1", "a"),
    ("v.depth != 1", "b"),
    ("v.depth <= 5", "ab"),
    ("not (v.depth > 1)", "acd"),
    ('v in (nodes where grp != "x")', "b"),
    ("(sum(w in nodes where w.grp == v.grp: 1) >= 1)", "ab"),
    ("(sum(w in nodes where w.grp != v.grp: 1) >= 1)", "ab"),
    ("count(w in nodes: w.depth == v.depth) >= 1", "ab"),
    ('(if v.grp != "x" then 1 else 0) == 1', "b"),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("condition", "expected"), CASES, ids=[case for case, _ in CASES])
def test_no_comparison_holds_of_what_is_absent(condition: str, expected: str) -> None:
    """The program and the evaluator agree on what satisfies a condition of data."""
    spec = loads(SPEC.format(condition=condition))
    placement = tuple(0 if name in expected else 1 for name in "abcd")
    assert spec.evaluate(placement).feasible
    answer = spec.solve(method="program")
    assert answer.placement == placement
