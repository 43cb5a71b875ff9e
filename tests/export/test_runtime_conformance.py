"""Every built-in exporter for a runtime against one suite.  A new one is given its samples in SAMPLES."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest
from support.onnx_models import chain

import placedsl
from placedsl.diagnostics import InputError, Source
from placedsl.export import registry
from placedsl.export.model import Model
from placedsl.problem.plan import Plan
from placedsl.problem.plan_document import plan_document, plan_from_document

DEVICES = """device gpu[2]: accelerator
device cpu: host
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
"""
LAYERS = """graph {
    node embed { time = 1 ms, memory = 4 MiB, output = 1 MiB, module = "model.embed_tokens" }
    node block0 { time = 2 ms, memory = 8 MiB, output = 1 MiB, module = "model.layers.0" }
    node block1 { time = 2 ms, memory = 8 MiB, output = 1 MiB, module = "model.layers.1" }
    node block2 { time = 2 ms, memory = 8 MiB, output = 1 MiB, module = "model.layers.2" }
    node head { time = 1 ms, memory = 4 MiB, module = "lm_head" }
    embed -> block0 -> block1 -> block2 -> head
}
"""
SPLIT = {"embed": "gpu[1]", "block0": "gpu[1]", "block1": "gpu[2]", "block2": "gpu[2]", "head": "gpu[2]"}
#: A host with work in the middle, and what every one of them says of it.
ON_HOST = SPLIT | {"block2": "cpu"}
#: A chain of operators named like the nodes above, for exporters that cut the model itself.
MODEL = chain(list(SPLIT))


@dataclass(frozen=True)
class Sample:
    """A spec and a placement that the runtime can run, and what it cannot: a placement, and a part of the reason.

    ``latency``: it takes plans of one sample as well; ``model``: it needs the graph's file.
    """

    text: str
    placement: dict[str, str]
    unfit: dict[str, str]
    reason: str
    latency: bool = False
    model: Source | None = None


def _layers(reason: str = "cpu is a host", **others: bool) -> Sample:
    return Sample(LAYERS + DEVICES, SPLIT, ON_HOST, reason, **others)


_ONE = dict.fromkeys(SPLIT, "gpu[1]")
SAMPLES = {
    "vllm": _layers(),
    "sglang": _layers(),
    "tensorrt-llm": _layers(),
    "megatron": _layers(),
    "deepspeed": _layers(),
    "torch-pipelining": _layers(),
    "torchtitan": _layers(),
    "pipedream": _layers(),
    "accelerate": _layers("cpu is a host and computes", latency=True),
    "llama-cpp": Sample(LAYERS + DEVICES, SPLIT | {"embed": "cpu"}, ON_HOST, "the CPU holds the embedding"),
    "onnxruntime": Sample(LAYERS + DEVICES, _ONE | {"embed": "cpu"}, SPLIT, "one execution provider of a kind",
                          latency=True, model=MODEL),
}  # fmt: skip
SAMPLES["onnx-split"] = Sample(LAYERS + DEVICES, SPLIT, SPLIT, "", model=MODEL)

every_exporter = pytest.mark.parametrize("name", sorted(registry.built_in()))


def module(name: str) -> ModuleType:
    return importlib.import_module(registry.built_in()[name])


def plan_of(text: str, placement: dict[str, str]) -> Plan:
    spec = placedsl.loads(text)
    return Plan.of(spec.problem, spec.evaluate(placement))


def test_every_exporter_has_a_sample() -> None:
    assert set(SAMPLES) == set(registry.built_in())


@every_exporter
def test_an_exporter_says_what_it_is_for(name: str) -> None:
    assert module(name).MEANING
    assert f"exportable_to_{name.replace('-', '_')}" == module(name).CONSTRAINT


@every_exporter
def test_files_have_relative_names_and_whole_lines(name: str) -> None:
    sample = SAMPLES[name]
    plan = plan_of(sample.text, sample.placement)
    assert module(name).reasons_against(plan) == []
    files = registry.files(plan, name, model=sample.model)
    assert files
    for file, text in files.items():
        assert not PurePosixPath(file).is_absolute()
        assert ".." not in PurePosixPath(file).parts
        assert isinstance(text, bytes) == file.endswith(".onnx")
        if isinstance(text, str):
            assert text.endswith("\n")
            assert "\r" not in text
    assert registry.files(plan, name, model=sample.model) == files, "the same plan gives the same files"


@every_exporter
def test_a_plan_read_from_an_answer_gives_the_same_files(name: str) -> None:
    sample = SAMPLES[name]
    plan = plan_of(sample.text, sample.placement)
    read = plan_from_document(json.loads(json.dumps(plan_document(plan))))
    assert registry.files(read, name, model=sample.model) == registry.files(plan, name, model=sample.model)


@every_exporter
def test_every_device_of_the_plan_has_a_part_in_the_files(name: str) -> None:
    """Another placement gives other files."""
    sample = SAMPLES[name]
    names = {"gpu[1]": "gpu[2]", "gpu[2]": "gpu[1]"}
    turned = {node: names.get(device, device) for node, device in sample.placement.items()}
    files = [registry.files(plan_of(sample.text, own), name, model=sample.model) for own in (turned, sample.placement)]
    assert files[0] != files[1]


@every_exporter
def test_what_is_written_is_read_back(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name]
    spec = placedsl.loads(sample.text)
    for file, text in registry.files(plan_of(sample.text, sample.placement), name, model=sample.model).items():
        (tmp_path / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert registry.read(tmp_path, name, Model.of(spec.problem)).placement == sample.placement


@every_exporter
def test_what_a_runtime_cannot_run_is_refused_with_reasons(name: str) -> None:
    sample = SAMPLES[name]
    one_sample = sample.text.replace("time_per_sample", "latency")
    cases = [(sample.text, sample.unfit, sample.reason)] * bool(sample.reason)
    cases += [(one_sample, sample.placement, "")] * (not sample.latency)
    for text, placement, reason in cases:
        plan = plan_of(text, placement)
        reasons = module(name).reasons_against(plan)
        assert any(reason in one for one in reasons)
        with pytest.raises(InputError) as caught:
            registry.files(plan, name, model=sample.model)
        assert [d.message for d in caught.value.diagnostics] == [f"not for {name}: {one}" for one in reasons]
        assert f"'exportable_to_{name.replace('-', '_')}' under 'subject to'" in caught.value.diagnostics[-1].hint
    if sample.latency:
        assert registry.files(plan_of(one_sample, sample.placement), name, model=sample.model)


@every_exporter
def test_stages_that_devices_share_are_exported_or_refused(name: str) -> None:
    """Copies of one stage and not of the other: PipeDream alone runs them."""
    sample = SAMPLES[name]
    text = sample.text.replace("minimize", "parallelism { data = 1..2 }\nminimize").replace("gpu[2]", "gpu[3]")
    spec = placedsl.loads(text)
    copies = {"copies": {"gpu[1]": 2, "gpu[2]": 1, "gpu[3]": 0, "cpu": 0}}
    plan = Plan.of(spec.problem, spec.evaluate(SPLIT, copies))
    assert bool(module(name).reasons_against(plan)) == (name != "pipedream")
