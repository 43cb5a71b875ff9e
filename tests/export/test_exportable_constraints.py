"""``exportable_to_NAME``: what satisfies it can be exported, the best of that is found, and ``--fix`` asks for it."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from support.layered_models import KINDS, layered_model, placement
from support.runtime_rules import LINKED, RULES, TRAINING

import placedsl
from placedsl.cli.main import main
from placedsl.diagnostics import InputError
from placedsl.export import registry
from placedsl.language.elaboration.model_library import constraint_definitions
from placedsl.problem.plan import Plan

pytestmark = pytest.mark.rotates(3)

SEEDS = range(2)
#: Those whose constraint is no stricter than the runtime, where the model is a chain without glue; the others also take
#: devices in turn.
EXACT = ("accelerate", "deepspeed", "llama-cpp", "pipedream", "sglang", "tensorrt-llm", "vllm")
every_runtime = pytest.mark.parametrize("name", sorted(registry.built_in()))


def test_every_runtime_has_a_constraint_of_the_language() -> None:
    known = constraint_definitions()
    for name in registry.built_in():
        rule = registry.constraint(name)
        assert rule == f"exportable_to_{name.replace('-', '_')}"
        assert rule in known


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", sorted(RULES))
def test_what_satisfies_the_constraint_can_be_exported(name: str, seed: int) -> None:
    source = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for _ in range(60):
        training = name in TRAINING and source.random() < 0.4
        model = layered_model(source, training=training, host=source.random() < 0.6,
                              tied=name in LINKED and source.random() < 0.5)  # fmt: skip
        kind = source.choice(KINDS)
        places = placement(source, model, kind)
        spec = placedsl.loads(model.text + f"subject to\n    {registry.constraint(name)}\n")
        evaluation = spec.evaluate(places)
        broken = [violation.rule for violation in evaluation.violations]
        outcomes["broken" if broken else "kept"] += 1
        if not broken:
            assert registry.refused(Plan.of(spec.problem, evaluation), name) == [], (model.text, places)
    assert outcomes["broken"]
    assert outcomes["kept"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", EXACT)
def test_the_best_that_can_be_exported_is_found(name: str, seed: int) -> None:
    """Against every placement of whole units that the exporter does not refuse."""
    source = random.Random(seed)
    nodes = ["embed", *(f"block{k}" for k in range(source.randint(2, 4))), "head"]
    tied = name in LINKED and bool(seed)
    lines = ["graph {"]
    for k, node in enumerate(nodes):
        module = f"model.layers.{k - 1}" if node.startswith("block") else f"model.{node}"
        times = f"accelerator: {source.randint(1, 9)} ms, host: {source.randint(1, 30)} ms"
        lines.append(f'    node {node} {{ time = {{{times}}}, memory = 1 MiB, output = 4 MiB, module = "{module}"')
        lines[-1] += ', tied = "model.embed" }' if tied and node in ("embed", "head") else " }"
    lines += [f"    {' -> '.join(nodes)}", "}", "device gpu[2]: accelerator", "device cpu: host"]
    text = "\n".join([*lines, "interconnect { bandwidth = 16 GiB/s }", "minimize time_per_sample", ""])
    spec = placedsl.loads(text)
    values = []
    for devices in itertools.product(("gpu[1]", "gpu[2]", "cpu"), repeat=len(nodes)):
        evaluation = spec.evaluate(dict(zip(nodes, devices, strict=True)))
        if not registry.refused(Plan.of(spec.problem, evaluation), name):
            values.append(evaluation.objectives[0])
    found = placedsl.loads(f"{text}subject to\n    {registry.constraint(name)}\n").solve(time_limit=60)
    assert found.termination == "optimal", text
    assert found.value == pytest.approx(min(values), rel=1e-6), text
    assert found.export(name)


def test_it_counts_as_what_it_consists_of() -> None:
    """Dynamic programming knows it, and what the spec asks for itself is not asked for twice."""
    model = layered_model(random.Random(5))
    spec = placedsl.loads(model.text + "subject to\n    contiguous\n    exportable_to_vllm\n")
    assert [rule.name for rule in spec.problem.constraints] == [
        "contiguous", "colocated by exportable_run", "exportable_off_hosts"
    ]  # fmt: skip
    found = spec.solve()
    assert (found.method, found.termination) == ("dp", "optimal")


def test_fused_operators_are_of_the_units_of_their_members() -> None:
    model = layered_model(random.Random(7))
    text = (
        model.text.replace("device gpu", "fuse by layer\ndevice gpu", 1) + "subject to\n    exportable_to_deepspeed\n"
    )
    found = placedsl.loads(text).solve()
    assert found.termination == "optimal"
    assert found.export("deepspeed")


PLAN = """graph {
    node embed { time = 1 ms, memory = 1 MiB, output = 1 MiB, module = "model.embed_tokens", parameters = 1 MiB }
    node block0 { time = 8 ms, memory = 1 MiB, output = 1 MiB, module = "model.layers.0", parameters = 1 MiB }
    node block1 { time = 2 ms, memory = 1 MiB, output = 1 MiB, module = "model.layers.1", parameters = 1 MiB }
    node head { time = 1 ms, memory = 1 MiB, module = "lm_head", parameters = 1 MiB }
    embed -> block0 -> block1 -> head
}
device gpu[4]: accelerator { memory = 1 GiB }
interconnect { bandwidth = 100 GiB/s }
parallelism { microbatches = 8, data = 1..3 }
minimize time_per_sample
subject to
    contiguous
"""


def test_copies_and_degrees_are_asked_for_where_the_spec_decides_them() -> None:
    names = [rule.name for rule in placedsl.loads(PLAN + "    exportable_to_vllm\n").problem.constraints]
    assert "exportable_alike" in names
    free, same = placedsl.loads(PLAN).solve(), placedsl.loads(PLAN + "    exportable_to_vllm\n").solve()
    copies = {stage.parallelism["data"] for stage in free.plan.stages}
    assert len(copies) > 1, "the best plan has unlike stages, or this test shows nothing"
    with pytest.raises(InputError, match="all have as many here"):
        free.export("vllm")
    assert same.termination == "optimal"
    assert same.value >= free.value
    assert len({stage.parallelism["data"] for stage in same.plan.stages}) == 1
    assert same.export("vllm")


def test_rules_about_layers_need_layers() -> None:
    text = PLAN.replace('module = "model.layers.', 'module = "part').replace("block", "part")
    with pytest.raises(InputError, match="is about layers, and the graph says of no node which layer"):
        placedsl.loads(text + "    exportable_to_vllm\n")
    assert placedsl.loads(text + "    exportable_to_deepspeed\n")


#: A plain spec whose best placement no runtime but onnx-split takes: a layer on two devices, and a host with work.
PLAIN = """graph {
    node embed { time = {accelerator: 3 ms, host: 3 ms}, memory = 1 MiB, output = 1 MiB, module = "model.embed_tokens" }
    node a0 { time = {accelerator: 3 ms, host: 9 ms}, memory = 1 MiB, output = 1 MiB, module = "model.layers.0.a" }
    node b0 { time = {accelerator: 3 ms, host: 9 ms}, memory = 1 MiB, output = 1 MiB, module = "model.layers.0.b" }
    node a1 { time = {accelerator: 3 ms, host: 9 ms}, memory = 1 MiB, output = 1 MiB, module = "model.layers.1.a" }
    node head { time = {accelerator: 3 ms, host: 9 ms}, memory = 1 MiB, module = "lm_head" }
    embed -> a0 -> b0 -> a1 -> head
}
device gpu[3]: accelerator
device cpu: host
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
"""
SPLIT = {"embed": "cpu", "a0": "gpu[1]", "b0": "gpu[2]", "a1": "gpu[3]", "head": "gpu[3]"}


@pytest.mark.parametrize("name", sorted(RULES))
def test_fix_adds_the_constraint_and_tells_what_it_costs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, answer, out = tmp_path / "plain.place", tmp_path / "split.json", tmp_path / "out"
    spec.write_text(PLAIN, encoding="utf-8")
    answer.write_text(json.dumps(SPLIT), encoding="utf-8")
    command = ["export", str(spec), str(answer), "--to", name, "-o", str(out)]
    assert main(command) == 1
    refused = capsys.readouterr().err
    assert f"not for {name}: " in refused
    assert f"'{registry.constraint(name)}' under 'subject to' asks for such placements" in refused
    assert not out.exists()
    fixed = tmp_path / "fixed.json"
    assert main([*command, "--fix", "--json", str(fixed)]) == 0
    told = capsys.readouterr().err
    assert f"added to the spec: subject to {registry.constraint(name)}" in told
    assert "time_per_sample: " in told
    assert "before" in told
    assert "proven optimal" in told
    assert sorted(file.name for file in out.iterdir()) == sorted(registry.files(
        Plan.of((loaded := placedsl.load(spec)).problem, loaded.evaluate(json.loads(fixed.read_text())["placement"])),
        name,
    ))  # fmt: skip
    assert main(["evaluate", str(spec), str(out), "--from", name]) == 0


def test_fix_tells_where_no_placement_can_be_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, answer = tmp_path / "plain.place", tmp_path / "split.json"
    spec.write_text(PLAIN + "subject to\n    there: embed on cpu\n", encoding="utf-8")
    answer.write_text(json.dumps(SPLIT), encoding="utf-8")
    command = ["export", str(spec), str(answer), "--to", "vllm", "--fix", "-o", str(tmp_path / "out")]
    assert main(command) == 3
    assert "infeasible: no placement satisfies it" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
