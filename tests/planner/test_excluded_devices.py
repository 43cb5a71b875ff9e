"""Constraints that devices hold nothing: what the searches make of them, against all placements by the evaluator."""

from __future__ import annotations

import itertools
import random

import pytest

import placedsl
from placedsl.algorithms.exclusion import with_implied_exclusion

pytestmark = pytest.mark.rotates(3)

SEEDS = range(6)
DEVICES = ("gpu[1]", "gpu[2]", "slow[1]", "cpu")
RULES = {
    "forall v in nodes, d in hosts: not (v on d)": {"cpu"},
    "forall d in {slow[1], cpu}, v in nodes: not (v on d)": {"slow[1]", "cpu"},
    "forall v in nodes: forall d in devices where d.kind == \"host\" or d.name == \"gpu[2]\": not (v on d)":
        {"gpu[2]", "cpu"},
    "forall v in nodes where v.memory > 0 GiB, d in hosts: not (v on d)": set(),
}  # fmt: skip


def text_of(source: random.Random, rule: str, extra: str) -> tuple[str, list[str]]:
    nodes = [f"n{k}" for k in range(source.randint(3, 5))]
    lines = ["graph {"]
    for node in nodes:
        times = f"gpu: {source.randint(1, 9)} ms, slow: {source.randint(4, 20)} ms, host: {source.randint(1, 30)} ms"
        lines.append(f"    node {node} {{ time = {{{times}}}, memory = {source.randint(0, 3)} GiB, output = 8 MiB }}")
    pairs = list(itertools.combinations(nodes, 2))
    edges = [pair for pair in pairs if source.random() < 0.5] or [pairs[0]]
    lines += [f"    {u} -> {v}" for u, v in edges]
    lines += ["}", "device gpu[2]: accelerator { memory = 8 GiB }", "device slow[1]: accelerator { memory = 8 GiB }"]
    lines += ["device cpu: host", "interconnect { bandwidth = 16 GiB/s }", extra, "subject to", "    memory"]
    return "\n".join([*lines, f"    off: {rule}"]) + "\n", nodes


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("extra", ["minimize time_per_sample", "schedule gpipe\nminimize time_per_sample",
                                   "schedule calls\nminimize latency"])  # fmt: skip
def test_the_optimum_is_that_of_all_placements(extra: str, seed: int) -> None:
    source = random.Random(seed)
    rule = source.choice(list(RULES))
    text, nodes = text_of(source, rule, extra)
    if "latency" not in extra and source.random() < 0.6:
        text += "    contiguous\n"
    spec = placedsl.loads(text)
    found = spec.solve(time_limit=60)
    values = []
    for devices in itertools.product(DEVICES, repeat=len(nodes)):
        evaluation = spec.evaluate(dict(zip(nodes, devices, strict=True)))
        if not evaluation.violations:
            values.append(evaluation.objectives[0])
    if not values:
        assert found.termination == "infeasible", text
        return
    assert found.termination == "optimal", text
    least = min(values)
    assert found.bound <= least * (1 + 1e-6), text
    if "calls" in extra:  # an accelerator may be called once only where nothing says which call a node is in
        assert found.value <= least * (1 + 1e-6), text
    else:
        assert found.value == pytest.approx(least, rel=1e-6), text
    assert not {found.device_of()[node] for node in nodes} & RULES[rule], text


def test_only_whole_devices_are_known_to_hold_nothing() -> None:
    for rule, devices in RULES.items():
        text, _ = text_of(random.Random(1), rule, "minimize time_per_sample")
        problem = placedsl.loads(text).problem
        known = with_implied_exclusion(problem)
        names = [device.name for device in problem.machine.devices]
        excluded = {name for d, name in enumerate(names) if not (known.time[:, d] < float("inf")).any()}
        assert excluded == devices
        assert [one.excludes for one in known.constraints] == [False, bool(devices)]


def test_dynamic_programming_knows_them() -> None:
    rule = next(iter(RULES))
    text, _ = text_of(random.Random(2), rule, "minimize time_per_sample")
    found = placedsl.loads(text + "    contiguous\n").solve()
    assert found.method == "dp"
    assert found.termination == "optimal"
