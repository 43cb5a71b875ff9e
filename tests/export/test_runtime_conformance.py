"""Every built-in exporter for a runtime against one suite.  A new one is given its samples in SAMPLES."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import ModuleType

import pytest

import placedsl
from placedsl.diagnostics import InputError
from placedsl.export import registry
from placedsl.problem.plan import Plan
from placedsl.problem.plan_document import plan_document, plan_from_document

DEVICES = """device gpu[2]: accelerator
device cpu: host
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
"""
LAYERS = """graph {
    node embed { time = 1 ms, memory = 4 MiB, output = 1 MiB }
    node block0 { time = 2 ms, memory = 8 MiB, output = 1 MiB, layer = 0 }
    node block1 { time = 2 ms, memory = 8 MiB, output = 1 MiB, layer = 1 }
    node block2 { time = 2 ms, memory = 8 MiB, output = 1 MiB, layer = 2 }
    node head { time = 1 ms, memory = 4 MiB }
    embed -> block0 -> block1 -> block2 -> head
}
"""
SPLIT = {"embed": "gpu[1]", "block0": "gpu[1]", "block1": "gpu[2]", "block2": "gpu[2]", "head": "gpu[2]"}


@dataclass(frozen=True)
class Sample:
    """A spec and a placement that the runtime can run, and what it cannot: a placement, and a part of the reason."""

    text: str
    placement: dict[str, str]
    unfit: dict[str, str]
    reason: str


SAMPLES = {"vllm": Sample(LAYERS + DEVICES, SPLIT, SPLIT | {"block2": "cpu"}, "cpu is a host")}

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


@every_exporter
def test_files_have_relative_names_and_whole_lines(name: str) -> None:
    plan = plan_of(SAMPLES[name].text, SAMPLES[name].placement)
    assert module(name).reasons_against(plan) == []
    files = registry.files(plan, name)
    assert files
    for file, text in files.items():
        assert not PurePosixPath(file).is_absolute()
        assert ".." not in PurePosixPath(file).parts
        assert text.endswith("\n")
        assert "\r" not in text
    assert registry.files(plan, name) == files, "the same plan gives the same files"


@every_exporter
def test_a_plan_read_from_an_answer_gives_the_same_files(name: str) -> None:
    plan = plan_of(SAMPLES[name].text, SAMPLES[name].placement)
    read = plan_from_document(json.loads(json.dumps(plan_document(plan))))
    assert registry.files(read, name) == registry.files(plan, name)


@every_exporter
def test_every_device_of_the_plan_has_a_part_in_the_files(name: str) -> None:
    """Another placement gives other files."""
    sample = SAMPLES[name]
    names = {"gpu[1]": "gpu[2]", "gpu[2]": "gpu[1]"}
    turned = {node: names.get(device, device) for node, device in sample.placement.items()}
    assert registry.files(plan_of(sample.text, turned), name) != registry.files(
        plan_of(sample.text, sample.placement), name
    )


@every_exporter
def test_what_a_runtime_cannot_run_is_refused_with_reasons(name: str) -> None:
    sample = SAMPLES[name]
    one_sample = sample.text.replace("time_per_sample", "latency")
    for text, placement, reason in ((sample.text, sample.unfit, sample.reason), (one_sample, sample.placement, "")):
        plan = plan_of(text, placement)
        reasons = module(name).reasons_against(plan)
        assert any(reason in one for one in reasons)
        with pytest.raises(InputError) as caught:
            registry.files(plan, name)
        assert [d.message for d in caught.value.diagnostics] == [f"not for {name}: {one}" for one in reasons]
