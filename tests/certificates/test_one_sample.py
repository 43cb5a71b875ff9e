"""Bounds on latency in fractions: never above the shortest schedule by enumeration, whatever is changed in them."""

from __future__ import annotations

import copy
import itertools
import json
import random
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.certificate_documents import mutated

import placedsl
from placedsl.certificates.checked import RefusedError, check
from placedsl.certificates.checked.checking import VERSION
from placedsl.certificates.searched.one_sample_proofs import strongest
from placedsl.certificates.written import certificate
from placedsl.cli.main import main
from placedsl.report.json.answer_document import document as answer_document

ROUNDING = 1 + Fraction(3, 10**9)


def drawn(seed: int) -> dict[str, Any]:
    """Two to six nodes on devices that run one at a time."""
    rng = random.Random(f"one sample {seed}")
    count = rng.randint(2, 6)
    nodes = [
        {"id": str(v), "time": sorted({rng.choice([0.0, 1.0, 2.0, 0.3, 5.0]) for _ in range(2)})} for v in range(count)
    ]
    edges = [[v, w] for v in range(count) for w in range(v + 1, count) if rng.random() < rng.choice([0.1, 0.4])]
    return {"nodes": nodes, "edges": edges, "one_at_a_time": rng.choice([1, 2, 3])}


def shortest(problem: dict[str, Any]) -> Fraction:
    """The shortest schedule without transfers: nodes in each order, at once on the device that is free first."""
    least = [min(map(Fraction, node["time"])) for node in problem["nodes"]]
    before = {v: [u for u, w in problem["edges"] if w == v] for v in range(len(least))}
    best: Fraction | None = None
    for order in itertools.permutations(range(len(least))):
        finish: dict[int, Fraction] = {}
        free = [Fraction(0)] * problem["one_at_a_time"]
        for v in order:
            if any(u not in finish for u in before[v]):
                break
            d = min(range(len(free)), key=free.__getitem__)
            finish[v] = free[d] = max([free[d], *(finish[u] for u in before[v])]) + least[v]
        else:
            best = max(finish.values()) if best is None else min(best, *[max(finish.values())])
    assert best is not None
    return best


def files(problem: dict[str, Any], proof: dict[str, Any], bound: float) -> tuple[dict[str, Any], dict[str, Any]]:
    answer = {"objective": {"name": "latency", "value": bound * 2 + 1, "bound": bound}}
    answer["placement"] = {node["id"]: "gpu" for node in problem["nodes"]}
    made = {"certificate": VERSION, "objective": "latency", "bound": bound, "problem": problem, "proof": proof}
    return answer, made


@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(5)) for n in range(0, 1000, 50)])
def test_no_bound_exceeds_the_shortest_schedule(first: int) -> None:
    kinds: dict[str, int] = {}
    met = 0
    for seed in range(first, first + 50):
        problem = drawn(seed)
        proof, bound = strongest(problem)
        exact = shortest(problem)
        assert bound <= exact, seed
        met += bound == exact
        held = check(*files(problem, json.loads(json.dumps(proof)), float(bound)))
        assert held.kind == proof["kind"]
        assert held.bound == bound
        kinds[held.kind] = kinds.get(held.kind, 0) + 1
    assert met >= 25
    assert len(kinds) == 2


@pytest.mark.rotates(2)
def test_a_thousand_changes_are_refused() -> None:
    rng, refused, kept = random.Random("changes of one sample"), 0, 0
    given = []
    for seed in range(200):
        problem = drawn(seed)
        proof, bound = strongest(problem)
        if proof["kind"] == "busy" and bound:
            given.append(files(problem, json.loads(json.dumps(proof)), float(bound)))
    while refused < 1000:
        answer, made = mutated(rng, *copy.deepcopy(rng.choice(given)))
        try:
            check(answer, made)
        except RefusedError:
            refused += 1
            continue
        kept += 1
        if len(made["problem"]["nodes"]) > 6 or made["problem"]["one_at_a_time"] is None:
            continue
        claimed = max(Fraction(answer["objective"]["bound"]), Fraction(made["bound"]))
        many = {**made["problem"], "one_at_a_time": min(made["problem"]["one_at_a_time"], 6)}
        assert claimed <= shortest(many) * ROUNDING, (answer, made)
    assert kept < 4000


def spec(devices: str, rest: str) -> str:
    nodes = "".join(f"    node n{v} {{ time = {{accelerator: 2 ms}} }}\n" for v in range(5))
    return f"graph {{\n{nodes}}}\n{devices}\ninterconnect {{ bandwidth = 1 GB/s }}\n{rest}"


def test_devices_that_run_one_node_at_a_time_are_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five nodes of 2 ms on two devices: 5 ms by work, where the optimum is 6 ms."""
    monkeypatch.chdir(tmp_path)
    Path("a.place").write_text(
        spec("device gpu[2]: accelerator", "schedule dataflow\nminimize latency\nsubject to\n    sequential\n"),
        encoding="utf-8",
    )
    assert main(["solve", "a.place", "--quiet", "--json", "answer.json", "--certificate", "proof.json"]) == 4
    said = capsys.readouterr().err
    assert re.search(r"what is written proves 0\.005 s, not the 0\.00(6|599)\d* s of the answer", said)
    assert main(["verify", "answer.json", "proof.json", "--spec", "a.place"]) == 4
    assert "no placement takes less than 0.005 s (busy, in fractions)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("devices", "rest", "busy"),
    [
        ("device gpu[5]: accelerator", "schedule dataflow\nminimize latency\n", None),
        ("device gpu: accelerator", "schedule calls\nminimize latency\n", 1),
        ("device gpu: accelerator\ndevice cpu: host", "schedule calls\nminimize latency\n", None),
    ],
)
def test_hosts_and_devices_without_that_rule_run_several_at_once(devices: str, rest: str, busy: int | None) -> None:
    answer = placedsl.loads(spec(devices, rest)).solve()
    made = json.loads(json.dumps(certificate(answer)))
    assert made["problem"]["one_at_a_time"] == busy
    held = check(json.loads(json.dumps(answer_document(answer))), made)
    assert held.bound <= Fraction(answer.value) * ROUNDING
