"""Rows of a comparison grounded a few at a time: the same program as all at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import placedsl
from placedsl.arrays import Integers
from placedsl.grounding import constraints
from placedsl.grounding.build import build
from placedsl.grounding.frames import Frame
from placedsl.lowering.lower import lower
from placedsl.problem.formulation import choose

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


#: Each pair in order, times what the last binder ranges over; a first binder of one, and one that is crossed alone.
CROSSED = """
graph {
    node a { time = 1 ms, output = 1 MiB }
    node b { time = 2 ms, output = 1 MiB }
    node c { time = 3 ms }
    a -> b -> c
}
device gpu[4]: accelerator
device cpu: host
interconnect { bandwidth = 1 GiB/s }
var z[u in nodes, v in nodes, d in devices, e in gpu] in 0..1
minimize time_per_sample
subject to
    before: forall u in nodes, v in nodes where u != v, d in devices, e in gpu: z[u, v, d, e] >= (u on d) - (v on e)
    one: forall h in hosts, v in nodes, e in gpu: z[v, v, h, e] <= (v on e)
    none: forall u in nodes where u.time[gpu[1]] > 5 ms, e in gpu: (u on e) == 0
"""


@pytest.mark.parametrize("most", [1, 3, 7])
@pytest.mark.parametrize("name", ["kv-cache", "balanced-loads", "at-most-k", "inline", "crossed"])
def test_the_program_is_the_same(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = placedsl.loads(CROSSED) if name == "crossed" else placedsl.load(EXAMPLES / f"{name}.place")
    formulation = choose(spec.problem, spec.elaborated.checked_formulations())
    whole = lower(build(spec.problem, formulation).program).program
    monkeypatch.setattr(constraints, "_MANY", most)
    parts = lower(build(spec.problem, formulation).program).program
    assert all(len(v) <= most for origin in parts.origins if origin.name == "before" for v in origin.indices.values())
    assert len(parts.origins) > len(whole.origins)
    for field in ("cost", "lower", "upper", "integer", "start", "column", "coefficient", "row_lower", "row_upper"):
        np.testing.assert_array_equal(getattr(parts, field), getattr(whole, field))
    rows = range(len(whole.row_lower))
    assert [parts.row_name(r) for r in rows] == [whole.row_name(r) for r in rows]


@pytest.mark.parametrize(("outer", "inner"), [(0, 3), (3, 0), (1, 1), (1, 4), (4, 1), (3, 5)])
def test_crossed_frames(outer: int, inner: int) -> None:
    """Every combination once, by the outer frame, whether or not memory is shared."""
    left, right = Frame(outer, {"u": np.arange(outer) + 7}, {"u": "node"}), _frame_of(np.arange(inner)[::-1])
    both = left.times(right)
    assert both.size == outer * inner
    assert both.sorts == {"u": "node", "d": "device"}
    pairs = list(zip(both.slots["u"].tolist(), both.slots["d"].tolist(), strict=True))
    assert pairs == [(u + 7, d) for u in range(outer) for d in reversed(range(inner))]


def _frame_of(values: Integers) -> Frame:
    return Frame(len(values), {"d": values}, {"d": "device"})
