"""Certificates that there is no placement: where enumeration finds none, and nowhere else; changes are refused."""

from __future__ import annotations

import copy
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.certificate_documents import least, mutated, places, text

import placedsl
from placedsl.certificates.checked import RefusedError, check
from placedsl.certificates.checked.checking import VERSION
from placedsl.certificates.searched.infeasible_proofs import infeasible_proof
from placedsl.certificates.searched.no_proof import NoProofError
from placedsl.certificates.written import problem_document
from placedsl.cli.main import main

FACTORS = (1.0, 0.7, 0.5, 0.3, 0.1)


@cache
def tight(seed: int) -> list[dict[str, Any]]:
    """The documents of a small problem with less and less memory; some nodes are larger than before."""
    document = json.loads(json.dumps(problem_document(placedsl.loads(text(seed)).problem)))
    rng = random.Random(f"tight {seed}")
    for node in document["nodes"]:
        node["memory"] = float(rng.choice([0, 1, 2, 3, 5])) * 2.0**20
    whole = sum(node["memory"] for node in document["nodes"])
    out = []
    for factor in FACTORS:
        other = copy.deepcopy(document)
        devices = len(other["devices"])
        some = [whole / devices * factor * rng.choice([1.0, 1.5]) for _ in other["memory"]]
        other["memory"] = [None if streams else room for room, streams in zip(some, other["streams"], strict=True)]
        out.append(other)
    return out


def files(document: dict[str, Any], proof: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    answer = {
        "objective": {"name": "time_per_sample", "value": None, "bound": None}, "placement": None,
        "status": {"termination": "infeasible"},
    }  # fmt: skip
    made = {
        "certificate": VERSION, "objective": "time_per_sample", "infeasible": True, "problem": document, "proof": proof,
    }  # fmt: skip
    return answer, made


def shown(seeds: range) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Answers and certificates of all documents of which one is found."""
    out = []
    for seed in seeds:
        for document in tight(seed):
            try:
                proof = json.loads(json.dumps(infeasible_proof(document, 20.0)))
            except NoProofError:
                continue
            out.append(files(document, proof))
    return out


@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(6)) for n in range(0, 240, 12)])
def test_it_is_shown_where_enumeration_finds_no_placement_and_nowhere_else(first: int) -> None:
    kinds: dict[str, int] = {}
    for seed in range(first, first + 12):
        for document in tight(seed):
            exists = least(document) is not None
            try:
                proof = json.loads(json.dumps(infeasible_proof(document, 20.0)))
            except NoProofError:
                # A row of devices that the order asks for is known to no program; but ideals are.
                assert exists or document["order"] is None, seed
                continue
            assert not exists, seed
            found = check(*files(document, proof))
            assert found.infeasible
            assert found.kind == proof["kind"]
            kinds[found.kind] = kinds.get(found.kind, 0) + 1
    assert kinds["no room"] >= 3


@pytest.mark.rotates(3)
@pytest.mark.rotates(2)
def test_a_thousand_changes_are_refused() -> None:
    """What is accepted after a change still is of a problem without a placement."""
    rng, refused, kept = random.Random("changes of what is infeasible"), 0, 0
    given = shown(range(12))
    assert len(given) >= 8
    while refused < 1000:
        answer, made = rng.choice(given)
        answer, made = copy.deepcopy(answer), copy.deepcopy(made)
        if rng.random() < 0.3:
            for node in made["problem"]["nodes"]:
                node["memory"] *= rng.choice([0.0, 0.1, 0.5])
        elif rng.random() < 0.2:
            answer["placement"] = {
                node["id"]: made["problem"]["devices"][0]["name"] for node in made["problem"]["nodes"]
            }
        else:
            made = changed(rng, made)
        try:
            check(answer, made)
        except RefusedError:
            refused += 1
            continue
        kept += 1
        assert answer["placement"] is None
        assert least(made["problem"]) is None, made
    assert kept < 20_000


def changed(rng: random.Random, made: dict[str, Any]) -> dict[str, Any]:
    """Another number, or nothing, at a place of the problem or of the proof."""
    where = rng.choice(["problem", "proof", "proof"])
    placed = list(places(made[where], (where,)))
    answer = {"objective": {"bound": 0.0, "value": 0.0}, "placement": {"a": "b"}}
    if not placed:
        return made
    _, out = mutated(rng, answer, {**made, "bound": 0.0})
    return out


def test_the_command_writes_and_verifies_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = "".join(f"    node n{v} {{ time = {{accelerator: 1 ms}}, memory = 2 MiB }}\n" for v in range(3))
    spec = f"graph {{\n{nodes}}}\ndevice gpu[2]: accelerator {{ memory = ROOM MiB }}\n"
    spec += "interconnect { bandwidth = 1 GiB/s }\nminimize time_per_sample\nsubject to\n    memory\n"
    asked = ["solve", "a.place", "--quiet", "--json", "answer.json", "--certificate", "proof.json"]
    for room, kind in (("1", "no room"), ("3", "placements")):
        Path("a.place").write_text(spec.replace("ROOM", room), encoding="utf-8")
        assert main(asked) == 3
        assert "certificate" not in capsys.readouterr().err
        assert main(["verify", "answer.json", "proof.json", "--spec", "a.place"]) == 0
        assert f"verified: there is no placement ({kind}, in fractions)" in capsys.readouterr().out
    Path("a.place").write_text(spec.replace("ROOM", "4"), encoding="utf-8")
    assert main(["verify", "answer.json", "proof.json", "--spec", "a.place"]) == 1
