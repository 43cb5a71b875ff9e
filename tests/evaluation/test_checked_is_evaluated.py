"""What ``check`` accepts is solved, and evaluated to the same."""

from __future__ import annotations

import pytest

from placedsl import InputError, loads
from placedsl.api.spec import Spec
from placedsl.diagnostics import Diagnostic
from placedsl.language.checking.schedule_vocabulary import with_execution
from placedsl.language.checking.vocabulary import TRUTH, vocabulary

SPEC = """
graph {
    node a { time = 1 s, memory = 1 GiB, output = 1 GB }
    node b { time = 1 s, memory = 2 GiB, output = 1 GB }
    a -> b
}
cluster pod[2] {
    device gpu[2]: accelerator
    interconnect { bandwidth = 10 GB/s }
}
interconnect { bandwidth = 1 GB/s }
"""
GOALS = {"pipedream": "time_per_sample", "gpipe": "time_per_sample", "calls": "latency", "dataflow": "latency"}
SETS = {"node": "nodes", "device": "devices", "cluster": "clusters", "tensor": "tensors"}


def formulas(schedule: str) -> list[str]:
    """Each quantity of a schedule as a number, weighted by an attribute, and as a condition."""
    text = f"{SPEC}schedule {schedule}\nminimize {GOALS[schedule]}\n"
    problem = loads(text).problem
    words = with_execution(vocabulary(problem.graph, problem.machine, {}, {}), problem.execution)
    out = []
    for name, quantity in words.quantities.items():
        if (schedule == "gpipe") != name.endswith("ward_load") and "ward_load" in name:
            continue
        slots = [f"x{i}" for i in range(len(quantity.arguments))]
        called = f"({slots[0]} on {slots[1]})" if name == "on" else f"{name}({', '.join(slots)})" if slots else name
        bound = ", ".join(f"{x} in {SETS[sort]}" for x, sort in zip(slots, quantity.arguments, strict=True))
        out.append(f"sum({bound}: 2 * {called}) >= 0" if bound else f"2 * {called} >= 0")
        if quantity.arguments[:1] == ("node",):
            out.append(f"sum({bound}: x0.memory / 1 GiB * {called}) >= 0")
        if quantity.type == TRUTH:
            out += [f"count({bound}: {called}) >= 1", f"forall {bound}: {called} or not {called}"]
    return [text + f"subject to\n    rule: {formula}\n" for formula in out]


def check(spec: Spec) -> tuple[Diagnostic, ...]:
    """What ``check`` says against a spec."""
    try:
        spec.check()
    except InputError as found:
        return tuple(found.diagnostics)
    return ()


@pytest.mark.parametrize("schedule", GOALS)
def test_every_quantity_as_a_number_and_as_a_condition(schedule: str) -> None:
    for text in formulas(schedule):
        spec = loads(text)
        refused = check(spec)
        assert refused or spec.evaluate((0, 1)).feasible, text
        assert not refused or "is not provided under this objective and schedule" in refused[0].message
        assert all(diagnostic.span is not None for diagnostic in refused)


def test_memory_within_a_cluster() -> None:
    """Both nodes have 3 GiB; each cluster takes 2."""
    text = SPEC + "minimize time_per_sample\nsubject to\n    "
    text += "rule: forall p in pod: sum(v in nodes: v.memory * inside(v, p)) <= 2 GiB\n"
    answer = loads(text).solve()
    assert answer.placement is not None
    assert {place // 2 for place in answer.placement} == {0, 1}
    assert answer.value == pytest.approx(2)


@pytest.mark.parametrize(
    "zero",
    [
        "0 * d.memory",
        "d.memory * 0",
        "0 * (d.memory + memory(d))",
        "count(v in {a}: v.id == v.name and v on d) * (0 * d.memory)",
    ],
)
def test_zero_times_a_memory_without_limit_is_zero(zero: str) -> None:
    """No device of the spec has a limit."""
    text = f"{SPEC}minimize time_per_sample\nsubject to\n    rule: forall d in devices: {zero} %s 1 GiB\n"
    held, broken = loads(text % "<="), loads(text % ">=")
    assert held.evaluate((0, 0)).feasible
    assert held.solve(method="program").placement is not None
    assert not broken.evaluate((0, 0)).feasible
    with pytest.raises(InputError, match="is false whatever the placement"):
        broken.solve(method="program")
