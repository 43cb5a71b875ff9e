"""Formulations that a spec states or extends, and objectives that tell devices apart: nothing is cut off by them."""

from __future__ import annotations

import pytest

from placedsl import InputError, loads
from placedsl.planner.answer import Answer
from placedsl.report.explanation.elaborated_spec import elaborated

pytestmark = pytest.mark.rotates(2)

PAIR = """graph {
    node a { time = 5 ms, memory = 1 GiB, output = 1 MiB, layer = 1 }
    node b { time = 1 ms, memory = 1 GiB, output = 1 MiB, layer = 2 }
    a -> b
}
device gpu[2]: accelerator { memory = 1 GiB }
interconnect { bandwidth = 1 GiB/s }
"""
OWN = """formulation own {
    var x[v in nodes, d in devices]: binary
    var crosses[t in tensors, d in devices] in 0..1
    var longest: time
    provides v on d = x[v, d]
    provides memory(d) = sum(v in nodes: v.memory * x[v, d])
    provides load(d) = sum(v in nodes: v.time[d] * x[v, d]) + sum(t in tensors: t.transfer[d] * crosses[t, d])
    provides time_per_sample = longest
    subject to
        once: forall v in nodes: sum(d in devices: x[v, d]) == 1
        into: forall (t, v) in reads, d in devices: crosses[t, d] >= x[v, d] - x[t.producer, d]
        away: forall (t, v) in reads, d in devices: crosses[t, d] >= x[t.producer, d] - x[v, d]
        largest: forall d in devices: longest >= load(d)
}
"""
GOAL = "minimize time_per_sample\nsubject to\n    memory\n"
CROSSING = 1 / 1024  # seconds for 1 MiB


def solved(text: str, solver: str = "highs") -> Answer:
    answer = loads(text).solve(solver=solver, method="program")
    assert answer.termination == "optimal", answer.message
    return answer


def test_a_row_over_a_quantity_brings_in_what_the_quantity_rests_on() -> None:
    """Nothing else in the spec speaks of loads."""
    assert solved(PAIR + OWN + GOAL).value == pytest.approx(0.005 + CROSSING)
    extended = PAIR + "extend max_load {\n    subject to\n        light: forall d in devices: load(d) <= 6 ms\n}\n"
    assert solved(extended.replace("time = 1 ms", "time = 2 ms") + "minimize devices_used\n").value == 2


def test_a_tight_row_brings_in_its_variables() -> None:
    row = "all: forall t in tensors, d in devices: used[d] <= crosses[t, d] + 1"
    tight = f"extend max_load {{\n    tight used\n        {row}\n}}\n"
    assert solved(PAIR + tight + "minimize devices_used\nsubject to\n    memory\n").value == 2


@pytest.mark.parametrize("said", ['v.name == "a"', "v.layer == 1", 'v.id == "a"'])
def test_a_row_of_a_formulation_may_name_a_node(said: str) -> None:
    """Also where nodes that must share a device would be contracted."""
    row = f"extend max_load {{\n    subject to\n        first: forall v in nodes where {said}: x[v, gpu[2]] == 1\n}}\n"
    for rule in ("", "    contiguous\n", "    colocated by layer\n"):
        answer = solved(PAIR + row + GOAL + rule)
        assert answer.device_of() == {"a": "gpu[2]", "b": "gpu[1]"}
        assert answer.value == pytest.approx(0.005 + CROSSING)


@pytest.mark.parametrize("solver", ["highs", "cp-sat"])
@pytest.mark.parametrize(
    ("goal", "value"),
    [
        ("2 * load(gpu[1]) + load(gpu[2])", 0.007 + 3 * CROSSING),
        ("load(gpu[1]) + 2 * load(gpu[2])", 0.007 + 3 * CROSSING),
        ("sum(i in 1..2: i * load(gpu[i]))", 0.007 + 3 * CROSSING),
        ("sum(d in devices: d.number * load(d))", 0.007 + 3 * CROSSING),
        ("sum(d in devices: weight[d] * load(d))", 0.007 + 3 * CROSSING),
    ],
)
def test_an_objective_that_tells_like_devices_apart(goal: str, value: float, solver: str) -> None:
    """The devices of a pipeline are taken in the order of their numbers only where that costs nothing."""
    weights = "param weight[d in devices] = {gpu[1]: 2, gpu[2]: 1}\n"
    text = f"{PAIR}{weights}minimize {goal}\nsubject to\n    memory\n    contiguous\n"
    assert solved(text, solver).value == pytest.approx(value)


def test_a_second_objective_that_tells_like_devices_apart() -> None:
    for second in ("load(gpu[1])", "load(gpu[2])"):
        answer = loads(PAIR + GOAL.replace("sample", f"sample then {second}") + "    contiguous\n").solve()
        assert answer.evaluation is not None
        assert answer.termination == "optimal"
        assert answer.evaluation.objectives == pytest.approx((0.005 + CROSSING, 0.001 + CROSSING))


def test_families_that_are_alike_but_for_their_price() -> None:
    text = PAIR.replace(
        "device gpu[2]: accelerator { memory = 1 GiB }",
        "device dear: accelerator { memory = 1 GiB, price = 3 USD/h }\n"
        "device cheap: accelerator { memory = 1 GiB, price = 1 USD/h }",
    )
    goal = "minimize sum(d in devices: d.price * load(d))\nsubject to\n    memory\n    contiguous\n"
    answer = solved(text + goal)
    assert answer.device_of() == {"a": "cheap", "b": "dear"}
    assert solved(text.replace("device dear", "device last").replace("dear", "last") + goal).value == answer.value


def test_a_parameter_of_an_unusual_dimension_is_printed_and_read_again() -> None:
    text = f"param rate = 100 / 1 s\n{PAIR}{GOAL}    often: rate * time_per_sample <= 1\n"
    shown = elaborated(loads(text).elaborated)
    assert "param rate = 100 / (1 s)" in shown
    assert loads(shown).elaborated.parameters["rate"] == loads(text).elaborated.parameters["rate"]


def test_a_quantity_without_a_value_is_told_where_the_spec_asks_for_it() -> None:
    text = (
        "graph { node a { time = {host: 4 ms}, memory = 2 GiB } }\ndevice cpu: host\n"
        "minimize time_per_sample then devices_used then peak_memory\n"
    )
    with pytest.raises(InputError) as refused:
        loads(text).solve()
    (told,) = refused.value.diagnostics
    assert told.span is not None
    assert (told.span.line, told.span.column, told.span.length) == (3, 49, len("peak_memory"))
    assert told.message == "'peak_memory' has no value here: the max of nothing has no value"
    assert told.hint.startswith("models/quantities.place, line ")
