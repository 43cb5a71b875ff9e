"""What is exported is the placement, by each runtime's own rules; what is no such placement is refused."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from support.layered_models import KINDS, LayeredModel, layered_model, placement
from support.runtime_rules import LINKED, RULES, TRAINING

import placedsl
from placedsl.export import registry
from placedsl.export.model import Model
from placedsl.problem.plan import Plan

pytestmark = pytest.mark.rotates(3)

SEEDS = range(2)
#: What is always on the CPU where the spec has no host.
_HIDDEN = "model.embed_tokens"


def number(device: str) -> int | str:
    return "host" if device == "cpu" else int(device.removeprefix("gpu[").removesuffix("]")) - 1


def wanted(model: LayeredModel, places: dict[str, str]) -> dict[str, set[int | str]]:
    out: dict[str, set[int | str]] = {}
    for node in model.nodes:
        if node.unit:
            out.setdefault(node.unit, set()).add(number(places[node.id]))
    return out


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", sorted(RULES))
def test_a_runtime_makes_the_placement_of_what_is_written(name: str, seed: int, tmp_path: Path) -> None:
    """Random models and placements: a file is written only where the runtime's rules give the placement back, and so
    does reading it back; a placement of a kind that the runtime is made for is never refused."""
    source = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for case in range(120):
        training = name in TRAINING and source.random() < 0.4
        model = layered_model(source, training=training, host=source.random() < 0.6, tied=_tied(name, source))
        kind = source.choice(KINDS)
        places = placement(source, model, kind)
        spec = placedsl.loads(model.text)
        plan = Plan.of(spec.problem, spec.evaluate(places))
        reasons = registry.refused(plan, name)
        outcomes[f"{kind} {'refused' if reasons else 'written'}"] += 1
        if reasons:
            assert all(isinstance(reason, str) and reason for reason in reasons)
            assert not _must_be_taken(name, model, places, kind), (seed, case, reasons, model.text, places)
            continue
        files = registry.files(plan, name)
        expected = wanted(model, places)
        if name == "llama-cpp" and not model.host:
            expected[_HIDDEN] = {"host"}
        told = (seed, case, model.text, places, files)
        assert {unit: {where} for unit, where in RULES[name](files, model).items()} == expected, told
        folder = tmp_path / f"{case}"
        folder.mkdir()
        for file, content in files.items():
            (folder / file).write_text(str(content), encoding="utf-8")
        split = registry.read(folder, name, Model.of(spec.problem))
        back = {node.id: split.placement[node.id] for node in model.nodes if node.unit}
        assert back == {node.id: places[node.id] for node in model.nodes if node.unit}, told
        assert set(split.placement) == set(places), told
    assert any(outcome.endswith("written") for outcome in outcomes), outcomes
    assert any(outcome.endswith("refused") for outcome in outcomes), outcomes


def _tied(name: str, source: random.Random) -> bool:
    return name in LINKED and source.random() < 0.4


def _must_be_taken(name: str, model: LayeredModel, places: dict[str, str], kind: str) -> bool:
    """Whether the placement is of the kind that every runtime but llama.cpp takes: runs of whole units on accelerators,
    each with a layer, embedding with the first and norm and head with the last."""
    by_unit = wanted(model, places)
    if (
        model.tied
        or kind != "runs"
        or "host" in {where for own in by_unit.values() for where in own}
        or name == "llama-cpp"
    ):
        return False
    order = [next(iter(by_unit[unit])) for unit in model.units]
    runs = [where for k, where in enumerate(order) if k == 0 or order[k - 1] != where]
    layers = {next(iter(by_unit[f"model.layers.{k}"])) for k in range(model.layers)}
    return len(runs) == len(set(runs)) and set(runs) <= layers and "cpu" not in places.values()
