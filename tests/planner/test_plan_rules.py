"""Constraints and objectives over plans: against enumeration, and optima of a published workload under rules."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from support.piper_workloads import Asked, drawn
from support.plan_rules import drawn_goals, drawn_rules, optimum

import placedsl

RECOMPUTED = '"activation recomp"'
SAME = "forall v in nodes, w in nodes: {0}(v) == {0}(w)"
#: Optima of BERT-32 on 8 GiB, exchange per batch of 1,920, by rule: on 64 and on 512 devices.  That of equal copies on
#: 64 was also enumerated in fractions.
BERT = {
    "forall v in nodes: tensor(v) <= 2": (0.02020055029, 0.002561127846),
    "forall v in nodes: tensor(v) == 2": (0.02712737688, 0.003445017740),
    "forall v in nodes: tensor(v) == 4": (0.0335200390, 0.004244918866),
    "stages_used <= 1": (0.03804879665, 0.004807396233),
    "stages_used <= 2": (0.03069954599, 0.003907387716),
    "stages_used <= 3": (0.02605970280, 0.003323579731),
    "stages_used == 4": (0.02325130132, 0.003002570157),
    "stages_used <= 6": (0.02079206718200445, 0.002659106830),
    SAME.format("data"): (0.02079206718200445, 0.002659106830),
    SAME.format("tensor"): (0.02020055029, 0.002561127846),
}  # fmt: skip
SPEC = """
graph from "{file}" {{ time_unit = 1 s }}
device gpu[{devices}]: accelerator {{ memory = {gib} GiB }}
interconnect {{ bandwidth = 25 GiB/s }}
parallelism {{ microbatches = {batch}, data = divisors(microbatches), exchange = batch, weights_traffic = 4 }}
minimize {goals}
subject to
    memory
    contiguous
    rule: {rule}
"""


@pytest.mark.sampled(10)
@pytest.mark.parametrize("first", range(0, 2400, 20))
def test_agrees_with_enumeration(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 20):
        asked, rng = drawn(seed), random.Random(seed + 1)
        if len(asked.workload["nodes"]) > 3 and seed % 4:  # enumeration takes a second
            continue
        agrees(asked, rng, seed, tmp_path)


def test_a_half_whose_bound_is_one_below_what_is_known(tmp_path: Path) -> None:
    """Fewer stages are fewer by one at least: a half with that very bound is looked at."""
    agrees(drawn(262), random.Random(263), 262, tmp_path)


def agrees(asked: Asked, rng: random.Random, seed: int, folder: Path) -> None:
    """The answer is the optimum of enumeration, with its proof."""
    rules, goals = drawn_rules(asked, rng), drawn_goals(rng)
    (folder / "w.json").write_text(json.dumps(asked.workload), encoding="utf-8")
    text = asked.spec("w.json").replace("minimize time_per_sample", "minimize " + " then ".join(goals))
    text += "".join(f"    c{k}: {rule.text}\n" for k, rule in enumerate(rules))
    answer, exact = placedsl.loads(text, folder).solve(workers=1), optimum(asked, rules, goals)
    if exact is None:
        assert answer.termination == "infeasible", f"seed {seed}"
    else:
        assert answer.termination == "optimal", f"seed {seed}"
        assert answer.evaluation is not None
        expected = tuple(map(float, exact))
        assert answer.evaluation.objectives == pytest.approx(expected, rel=1e-9), f"seed {seed}"
        assert answer.bounds == pytest.approx(expected, rel=1e-9), f"seed {seed}"


@pytest.mark.workloads
@pytest.mark.sampled(4)
@pytest.mark.parametrize("rule", BERT)
def test_published_workload_under_rules(workloads: Path, rule: str) -> None:
    for devices, value in zip((64, 512), BERT[rule], strict=True):
        file = workloads / "piper" / "bert32a100.json"
        text = SPEC.format(file=file, devices=devices, gib=8, batch=1920, goals="time_per_sample", rule=rule)
        answer = placedsl.loads(text).solve(workers=1, time_limit=20)
        assert answer.termination == "optimal"
        assert (answer.value, answer.bound) == pytest.approx((value, value), rel=1e-9)


@pytest.mark.workloads
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("devices", "gib", "batch", "rule", "value"),
    [
        (64, 2, 1920, "forall v in nodes: tensor(v) <= 1", 0.04430598678),
        (64, 2, 1920, "stages_used == 8", 0.05366921384),
        (64, 2, 1920, "stages_used <= 3", None),
        (2048, 8, 512, "stages_used <= 3", 0.001221279945),
        (2048, 8, 512, "forall v in nodes: tensor(v) <= 2", 0.001938618267),
    ],
)
def test_other_machines(workloads: Path, devices: int, gib: int, batch: int, rule: str, value: float | None) -> None:
    file = workloads / "piper" / "bert32a100.json"
    text = SPEC.format(file=file, devices=devices, gib=gib, batch=batch, goals="time_per_sample", rule=rule)
    answer = placedsl.loads(text).solve(workers=1)
    if value is None:
        assert answer.termination == "infeasible"
    else:
        assert (answer.value, answer.bound) == pytest.approx((value, value), rel=1e-9)


@pytest.mark.workloads
def test_fewest_devices_for_a_rate(workloads: Path) -> None:
    """One device less does not do."""
    file = workloads / "piper" / "bert32a100.json"

    def fewest(rule: str) -> placedsl.Answer:
        goals = "devices_used then time_per_sample"
        return placedsl.loads(SPEC.format(file=file, devices=64, gib=8, batch=1920, goals=goals, rule=rule)).solve()

    answer = fewest("time_per_sample <= 30 ms")
    assert answer.termination == "optimal"
    devices = round(answer.value)
    text = SPEC.format(
        file=file, devices=devices - 1, gib=8, batch=1920, goals="time_per_sample", rule="devices_used >= 1"
    )
    assert placedsl.loads(text).solve().value > 0.03
    assert fewest(f"time_per_sample <= 30 ms and devices_used <= {devices - 1}").termination == "infeasible"
