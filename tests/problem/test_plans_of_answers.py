"""The plan of an answer, read back for evaluation: it is what counts, and what does not fit together is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

import placedsl
from placedsl.diagnostics import InputError, Source
from placedsl.evaluation.evaluate import evaluate
from placedsl.evaluation.evaluation import Evaluation
from placedsl.problem.placement_files import read, read_values
from placedsl.problem.plan import Plan
from placedsl.problem.plan_document import plan_document

SPEC = """graph {
    node a { time = 2 ms, memory = 200 MiB, stash = 16 MiB, output = 1 MiB }
    node b { time = 10 ms, memory = 400 MiB, stash = 100 MiB, output = 1 MiB
        option slow { time = 13 ms, stash = 10 MiB }
    }
    node c { time = 10 ms, memory = 400 MiB, stash = 100 MiB, output = 1 MiB
        option slow { time = 13 ms, stash = 10 MiB }
    }
    node e { time = 4 ms, memory = 200 MiB, stash = 40 MiB }
    a -> b -> c -> e
}
device gpu[4]: accelerator { memory = 1 GiB }
interconnect { bandwidth = 16 GiB/s }
parallelism { microbatches = 8, data = {1, 2}, exchange = batch }
minimize time_per_sample
subject to
    memory
    contiguous
"""
Document = dict[str, Any]


@pytest.fixture(scope="module")
def spec() -> placedsl.Spec:
    return placedsl.loads(SPEC)


@pytest.fixture(scope="module")
def answer(spec: placedsl.Spec) -> Document:
    """Two stages of two copies: a and b on gpu[1], c and e on gpu[3]."""
    best = spec.solve(workers=1)
    assert best.placement is not None
    devices = [device.name for device in spec.problem.machine.devices]
    placement = {str(v): devices[d] for v, d in zip(spec.problem.graph.ids, best.placement, strict=True)}
    assert placement == {"a": "gpu[1]", "b": "gpu[1]", "c": "gpu[3]", "e": "gpu[3]"}
    return {"placement": placement, "plan": plan_document(best.plan)}


def evaluated(spec: placedsl.Spec, document: Document) -> Evaluation:
    source = Source("answer.json", json.dumps(document, indent=1))
    return evaluate(spec.problem, read(spec.problem, source), read_values(spec.problem, source))


def test_the_plan_alone_is_enough(spec: placedsl.Spec, answer: Document) -> None:
    whole = evaluated(spec, answer)
    assert not whole.violations
    assert evaluated(spec, {"plan": answer["plan"]}).objectives == whole.objectives


def test_what_is_changed_in_the_plan_counts(spec: placedsl.Spec, answer: Document) -> None:
    """b in the second stage, which has no room for it; where it takes less, it has."""
    first, second = deepcopy(answer["plan"]["stages"])
    second["nodes"].insert(0, first["nodes"].pop())
    plan = {**answer["plan"], "stages": [first, second]}
    assert [violation.rule for violation in evaluated(spec, {"plan": plan}).violations] == ["memory"]
    slow = deepcopy(answer["plan"])
    slow["stages"][0]["options"] = {"b": "slow"}
    assert evaluated(spec, {"plan": slow}).loads[0] > evaluated(spec, answer).loads[0]


def test_a_node_in_no_stage_is_not_placed(spec: placedsl.Spec, answer: Document) -> None:
    plan = {**answer["plan"], "stages": answer["plan"]["stages"][:1]}
    assert "assigned" in [violation.rule for violation in evaluated(spec, {"plan": plan}).violations]


def _stages(change: Callable[[list[Document]], object]) -> Callable[[Document], object]:
    return lambda document: change(document["plan"]["stages"])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda d: d["placement"].update(b="gpu[3]"),
            "'placement' has 'b' on gpu[3], and 'plan' in stage 1, on gpu[1]",
        ),
        (_stages(lambda s: s.clear()), "'placement' has 'a' on gpu[1], and 'plan' in no stage"),
        (_stages(lambda s: s[0]["nodes"].pop()), "'placement' has 'b' on gpu[1], and 'plan' in no stage"),
        (_stages(lambda s: s[0]["devices"].reverse()), "and 'plan' in stage 1, on gpu[2]"),
        (_stages(lambda s: s.append(s[1])), "'stages[2].stage' is 2, which a stage before it has"),
        (_stages(lambda s: s[1]["nodes"].append(s[0]["nodes"][0])), "has 'a', which is in stage 1 already"),
        (_stages(lambda s: s[1].update(devices=s[0]["devices"])), "is 'gpu[1]', on which stage 1 is"),
        (_stages(lambda s: s[0].update(data=1)), "'stages[0].devices' names 2, with data = 1 and tensor = 1"),
        (_stages(lambda s: s[0].update(devices=["gpu[1]", "gpu[1]"])), "'stages[0].devices' names 1, with data = 2"),
        (_stages(lambda s: s[0].update(options={"c": "slow"})), "is of 'c', which is no node of this stage"),
        (_stages(lambda s: s[0].update(options={"b": "x"})), "node 'b' has no option 'x' for 1 device\n"),
        (_stages(lambda s: s[0].update(options={"b": "x"})), 'known here: "", slow'),
    ],
)
def test_what_does_not_fit_together_is_told(
    change: Callable[[Document], object], told: str, spec: placedsl.Spec, answer: Document
) -> None:
    wrong = deepcopy(answer)
    change(wrong)
    with pytest.raises(InputError) as found:
        evaluated(spec, wrong)
    assert told in "\n".join(d.render() for d in found.value.diagnostics)
    assert all(d.span is not None for d in found.value.diagnostics)


def test_values_that_no_plan_has_are_violations(spec: placedsl.Spec) -> None:
    """No copies of a stage that holds nodes; an option of another node, or of none."""
    whole = dict.fromkeys("abce", "gpu[1]")
    for values in ({"copies": {"gpu[1]": 0}}, {"option": {"a": 1}}, {"option": {"a": 77}}):
        found = spec.evaluate(whole, variables=values)
        assert found.violations
        assert Plan.of(spec.problem, found).stages
