"""Constraints and objectives over plans on devices of two kinds, against enumeration; numbers of devices required."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from support.piper_workloads import drawn
from support.plan_rules import COMPARE, Rule, devices, drawn_goals, drawn_rules, optimum
from support.unlike_plan_rules import drawn_kind_rules, drawn_kinds, optimum_of_kinds

import placedsl
from placedsl.algorithms.pipelines.parallel_plans import unlike_devices

#: Optima of BERT-32 on 8 GiB, exchange per batch of 1,920, with so many devices in all; where fewer of them are
#: required than give the free optimum, that is the optimum of so many devices.
BERT = {
    (64, "devices_used == 64"): 0.02020055029447873, (64, "devices_used == 63"): 0.02057943961029053,
    (64, "devices_used == 33"): 0.04035989023558299,
    (64, "devices_used == 63 and stages_used <= 2"): 0.033515047800421714,
    (512, "devices_used == 509 and stages_used <= 3"): 0.004007590277353922,
    (512, "devices_used == 511 and stages_used <= 2"): None,
}  # fmt: skip
SPEC = """
graph from "{file}" {{ time_unit = 1 s }}
device gpu[{devices}]: accelerator {{ memory = 8 GiB }}
interconnect {{ bandwidth = 25 GiB/s }}
parallelism {{ microbatches = 1920, data = divisors(microbatches), exchange = batch, weights_traffic = 4 }}
minimize time_per_sample
subject to
    memory
    contiguous
    rule: {rule}
"""


def agrees(answer: placedsl.Answer, exact: tuple[object, ...] | None, seed: int) -> None:
    """Values and bounds of the best plan, or that there is none, proven by the search."""
    assert answer.method == "dp", f"seed {seed}"
    if exact is None:
        assert answer.termination == "infeasible", f"seed {seed}"
        return
    assert answer.termination == "optimal", f"seed {seed}"
    assert answer.evaluation is not None
    expected = tuple(map(float, exact))  # type: ignore[arg-type]
    assert answer.evaluation.objectives == pytest.approx(expected, rel=1e-9), f"seed {seed}"
    assert answer.bounds == pytest.approx(expected, rel=1e-9), f"seed {seed}"


@pytest.mark.sampled(15)
@pytest.mark.parametrize("first", range(20000, 21200, 20))
def test_kinds_agree_with_enumeration(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 20):
        kinds, rng = drawn_kinds(seed), random.Random(seed)
        rules, goals = drawn_kind_rules(kinds, rng), drawn_goals(rng)
        (tmp_path / "w.json").write_text(json.dumps(kinds.graph), encoding="utf-8")
        answer = placedsl.loads(kinds.spec(goals, rules), tmp_path).solve(workers=1)
        agrees(answer, optimum_of_kinds(kinds, rules, goals), seed)


@pytest.mark.sampled(15)
@pytest.mark.parametrize("first", range(30000, 31200, 20))
def test_numbers_of_devices_agree_with_enumeration(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 20):
        asked, rng = drawn(seed, 3), random.Random(seed)
        number, op = rng.randint(1, asked.devices), rng.choice(("==", ">="))
        compare = COMPARE[op]
        exactly = Rule(f"devices_used {op} {number}", lambda plan, n=number, c=compare: c(devices(plan), n))  # type: ignore[misc]
        rules, goals = [exactly, *drawn_rules(asked, rng)[: rng.randint(0, 2)]], drawn_goals(rng)
        (tmp_path / "w.json").write_text(json.dumps(asked.workload), encoding="utf-8")
        text = asked.spec("w.json").replace("minimize time_per_sample", "minimize " + " then ".join(goals))
        text += "".join(f"    c{k}: {rule.text}\n" for k, rule in enumerate(rules))
        agrees(placedsl.loads(text, tmp_path).solve(workers=1), optimum(asked, rules, goals), seed)


@pytest.mark.workloads
@pytest.mark.sampled(2)
@pytest.mark.parametrize(("devices", "rule"), BERT)
def test_published_workload_with_so_many_devices(workloads: Path, devices: int, rule: str) -> None:
    file, value = workloads / "piper" / "bert32a100.json", BERT[devices, rule]
    answer = placedsl.loads(SPEC.format(file=file, devices=devices, rule=rule)).solve(workers=1)
    if value is None:
        assert answer.termination == "infeasible"
    else:
        assert (answer.value, answer.bound) == pytest.approx((value, value), rel=1e-9)


@pytest.mark.workloads
def test_states_that_are_too_many_end_with_a_bound(workloads: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best plan of any number of devices is a bound of those that have so many."""
    monkeypatch.setattr(unlike_devices, "_MOST_BYTES", 1_000)
    file, rule = workloads / "piper" / "bert32a100.json", "devices_used == 63 and stages_used <= 2"
    answer = placedsl.loads(SPEC.format(file=file, devices=64, rule=rule)).solve(method="dp")
    assert answer.termination == "ended"
    assert "room for so many states" in answer.message
    assert 0.0306 < answer.bound <= BERT[64, rule]  # type: ignore[operator]
