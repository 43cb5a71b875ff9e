"""Plans over clusters whose copies share samples: against enumeration, and where they come to what is known."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.paths import ROOT
from support.piper_levels import drawn_levels, optimum, plans
from support.plan_rules import drawn_rules

import placedsl
from placedsl import Answer, InputError, UsageError
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from placedsl.problem.plan_decisions import plan_decisions
from placedsl.problem.plan_document import plan_document, plan_from_document


@pytest.mark.sampled(8)
@pytest.mark.parametrize("first", range(0, 640, 20))
def test_the_best_plan(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 20):
        asked, levels = drawn_levels(seed)
        (tmp_path / "w.json").write_text(json.dumps(asked.workload), encoding="utf-8")
        spec = placedsl.loads(levels.spec(asked, "w.json"), tmp_path)
        found = solve(spec.problem, spec.elaborated.checked_formulations, Request(workers=1), isolated=False)
        best = optimum(asked, levels)
        if best is None:
            assert found.termination == "infeasible", seed
            continue
        assert found.termination == "optimal", f"seed {seed}: {found.message}"
        assert found.evaluation is not None
        assert found.value == pytest.approx(float(best), rel=1e-9), seed
        assert found.bound == pytest.approx(float(best), rel=1e-9), seed
        check_devices(found, levels.size)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("first", range(0, 800, 20))
def test_the_best_plan_under_rules(first: int, tmp_path: Path) -> None:
    """Proven where the search knows the rules; where it does not, nothing above the optimum is claimed."""
    proven = 0
    for seed in range(first, first + 20):
        asked, levels = drawn_levels(seed)
        rules = drawn_rules(asked, random.Random(seed))
        (tmp_path / "w.json").write_text(json.dumps(asked.workload), encoding="utf-8")
        text = levels.spec(asked, "w.json") + "".join(f"    rule{k}: {rule.text}\n" for k, rule in enumerate(rules))
        spec = placedsl.loads(text, tmp_path)
        request = Request(method="dp", workers=1)
        found = solve(spec.problem, spec.elaborated.checked_formulations, request, isolated=False)
        kept = [plan for plan in plans(asked, levels) if all(rule.holds(plan) for rule in rules)]
        told = f"seed {seed}: {[rule.text for rule in rules]}: {found.termination}, {found.message}"
        if not kept:
            assert found.placement is None, told
            proven += found.termination == "infeasible"
            continue
        best = min(float(max(stage.load for stage in plan)) for plan in kept)
        assert found.termination in ("optimal", "ended"), told
        assert found.bound <= best * (1 + 1e-9), told
        if found.termination == "optimal":
            proven += 1
            assert found.value == pytest.approx(best, rel=1e-9), told
    assert proven >= 10


def check_devices(found: Answer, size: tuple[int, ...]) -> None:
    """Stages share no device; what a cluster holds stands in each of its copies at the same places."""
    machine = found.problem.machine
    held: set[str] = set()
    for stage in found.plan.stages:
        devices = [machine.positions[name] for name in stage.devices]
        assert held.isdisjoint(stage.devices)
        held.update(stage.devices)
        assert len(devices) == stage.parallelism["data"] * stage.parallelism["tensor"]
        assert stage.across is not None
        clusters = {d // size[0] for d in devices}
        assert len(clusters) == math.prod(stage.across.values())
        assert len({tuple(sorted(d % size[0] for d in devices if d // size[0] == c)) for c in clusters}) == 1
    again = plan_from_document(plan_document(found.plan))
    decided = plan_decisions(found.problem, again)
    assert found.evaluation is not None
    assert found.placement is not None
    repeated = evaluate(found.problem, found.placement, decided)
    assert repeated.objectives == found.evaluation.objectives
    assert not repeated.violations


MACHINE = """
cluster rack[2] {
    cluster server[2] {
        device gpu[2]: accelerator { memory = 24 GiB }
        interconnect { bandwidth = 16 GiB/s }
    }
    interconnect { bandwidth = 12 GiB/s }
}
interconnect { bandwidth = 4 GiB/s }
"""
SERVERS = """
cluster server[2] {
    device gpu[2]: accelerator { memory = 24 GiB }
    interconnect { bandwidth = 16 GiB/s }
}
interconnect { bandwidth = 4 GiB/s }
"""
FLAT = "device gpu[8]: accelerator { memory = 24 GiB }\ninterconnect { bandwidth = 16 GiB/s }\n"
HEAD = 'graph from "blocks.json"\n'
REST = """parallelism { microbatches = 16, data = divisors(microbatches), exchange = batch, across = server }
minimize time_per_sample
subject to
    memory
    contiguous
"""


def blocks(text: str) -> placedsl.Spec:
    return placedsl.loads(HEAD + text, ROOT / "docs" / "language")


def test_one_cluster_is_a_machine_without() -> None:
    flat = blocks(FLAT + REST.replace(", across = server", "")).solve()
    one = blocks("cluster server[1] {\n" + FLAT + "}\ninterconnect { bandwidth = 1 GiB/s }\n" + REST).solve()
    assert (one.termination, one.value) == ("optimal", pytest.approx(flat.value, rel=1e-9))


def test_three_levels_by_hand() -> None:
    """Two racks with a stage each, of two servers that share the samples, over two devices each."""
    found = blocks(MACHINE + REST).solve()
    assert found.termination == "optimal"
    check_devices(found, (2, 2, 2))
    first, second = found.plan.stages
    assert (first.across, second.across) == ({"server": 2, "rack": 1}, {"server": 2, "rack": 1})
    # 55.8125 ms on a device, halved; between the racks 64 MiB take 15.625 ms, shared by nothing.
    assert found.value == pytest.approx(0.0558125 / 2)
    # The weights, 2 GiB of two devices, cross the link between servers: half of 4 GiB / 12 GiB/s, by 16 samples.
    assert found.value > (1 / 16) * 0.5 * (2 / 12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MACHINE + REST.replace("server", "servr"), "did you mean 'server'"),
        (MACHINE + REST.replace("= server", "= rack"), "across = server; the clusters around it share samples as well"),
        (FLAT + REST, "as in cluster server"),
        (
            MACHINE.replace("gpu[2]", "gpu[1]") + REST.replace("across", "tensor = {1, 2}, across"),
            "a copy of 2 devices lies within one 'server', which has 1 device",
        ),
        (MACHINE + "device tpu: accelerator\n" + REST, "'tpu' is in none of 'server'"),
        (
            MACHINE.replace("cluster rack[2] {", "cluster rack[1] {\n    device cpu: accelerator") + REST,
            "'rack[1].cpu' is in none of 'server'",
        ),
        (MACHINE.rpartition("interconnect")[0] + REST, "nothing says how fast 'rack' exchanges data with others"),
    ],
)
def test_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        blocks(text).check()
    assert message in "\n".join(d.render() for d in caught.value.diagnostics)


def test_rules_that_the_search_does_not_know() -> None:
    """The plan that it found is the answer where it keeps to them; otherwise a program decides."""
    few = blocks(MACHINE + REST + "    few: stages_used <= 1\n")
    searched = few.solve(method="dp")
    assert searched.termination == "ended"
    assert "few" in searched.message
    assert searched.bound == pytest.approx(0.0558125 / 2)
    assert few.solve().termination == "infeasible"
    kept = blocks(MACHINE + REST + "    few: stages_used <= 2\n").solve()
    assert (kept.termination, kept.value) == ("optimal", pytest.approx(0.0558125 / 2))
    other = blocks(MACHINE + REST + "    later: stage(block2) >= 2\n    small: devices_used <= 6\n").solve()
    assert (other.termination, other.value) == ("optimal", pytest.approx(0.03990625))
    check_devices(other, (2, 2, 2))


def test_evaluation_refuses_what_is_no_plan() -> None:
    """Too many clusters, copies that clusters do not share, stages of a cluster with another between them."""
    spec = blocks(MACHINE + REST)
    found = spec.solve()
    assert found.evaluation is not None
    assert found.placement is not None
    values = found.evaluation.values

    def rules(placement: Sequence[int], **changed: dict[tuple[int, ...], float]) -> set[str]:
        return {v.rule for v in evaluate(spec.problem, placement, {**values, **changed}).violations}

    rack, server = ({c for (c,) in values["cluster_copies"] if spec.problem.machine.clusters[c].family == name}
                    for name in ("rack", "server"))  # fmt: skip
    copies = dict(values["cluster_copies"].items())
    assert rules(found.placement) == set()
    assert "across" in rules(found.placement, cluster_copies={**copies, (min(rack),): 2.0})
    assert "across" in rules(found.placement, cluster_copies={**copies, (min(server),): 3.0})
    assert "across" in rules(found.placement, cluster_copies={**copies, (min(server),): 1.5})
    mixed = [found.placement[k] for k in (0, 2, 1, 3)]
    assert "across" in rules(mixed) or "contiguous" in rules(mixed)


def test_stages_of_a_cluster_run_in_as_many() -> None:
    """What a plan file says of a cluster it says once."""
    found = blocks(MACHINE + REST).solve()
    document = plan_document(found.plan)
    first, second = document["stages"]
    devices = first["devices"]
    for stage, device in ((first, devices[0]), (second, devices[1])):
        stage.update(devices=[device], data=1, tensor=1)
        stage.pop("options", None)
    second["across"] = {**first["across"], "server": 1}
    with pytest.raises(InputError, match=r"two stages of 'rack\[1\].server\[1\]' run in 2 and in 1 of 'server'"):
        plan_decisions(found.problem, plan_from_document(document))


def test_a_further_objective_is_named_once() -> None:
    found = blocks(MACHINE + REST.replace("time_per_sample", "time_per_sample then devices_used")).solve(method="dp")
    assert found.message.count("then devices_used") == 1


def test_where_the_search_does_not_apply_a_program_decides() -> None:
    spec = blocks(SERVERS + REST.replace("    contiguous\n", ""))
    assert spec.solve().value == pytest.approx(blocks(SERVERS + REST).solve().value)
    with pytest.raises(UsageError, match="it requires the 'contiguous' constraint"):
        spec.solve(method="dp")
    assert "row runs_as_its_cluster  shared_clusters.place" in spec.explain()
    least = blocks(SERVERS + REST.replace("minimize time_per_sample", "minimize devices_used")).solve()
    assert (least.termination, least.value) == ("optimal", 2.0)


def test_what_is_said_of_a_program_that_is_too_large() -> None:
    many = SERVERS.replace("server[2]", "server[64]").replace("gpu[2]", "gpu[8]")
    spec = blocks(many + REST.replace("microbatches = 16", "microbatches = 1920") + "    few: stages_used <= 3\n")
    spec.check()
    text = spec.explain()
    assert "not stated: it has" in text
    assert spec.explanation().program is None
