"""Certificates: what is found is accepted, whatever is changed is refused, and the command says which."""

from __future__ import annotations

import copy
import json
import os
import random
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.brute_force import best
from support.like_pipelines import like_pipeline
from support.random_specs import random_spec

import placedsl
from placedsl.algorithms.partitions.bounds.flow import flow_bounds
from placedsl.algorithms.partitions.bounds.relaxation import relaxation
from placedsl.algorithms.simple_bounds import SIMPLE, simple_bound
from placedsl.certificates.checked import RefusedError, check
from placedsl.certificates.written import certificate, same_problem
from placedsl.cli.main import main
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.answer import Answer
from placedsl.report.json.answer_document import document


def drawn(seed: int) -> str:
    """Pipelines of like devices, and machines of several kinds with hosts."""
    if seed % 2:
        return like_pipeline(seed)
    text = re.sub(r"    custom\d.*\n|schedule \w+\n", "", random_spec(seed))
    return text.replace("subject to\n", "") if text.endswith("subject to\n") else text


def answers(seed: int) -> list[tuple[Answer, placedsl.Spec]]:
    """The best placement with the simple bound, and with the best minimum cut, where it proves something."""
    spec = placedsl.loads(drawn(seed))
    problem, found = spec.problem, best(spec.problem)
    if found is None:
        return []
    evaluation = evaluate(problem, found[1].tolist())
    placed = Answer(
        problem, "time_limit", "", tuple(found[1].tolist()), evaluation, (simple_bound(problem),), "program", "highs",
        0, {"total": 1.0}, {}, (), (SIMPLE,), {"kind": "simple"},
    )  # fmt: skip
    out = [(placed, spec)]
    for bound in flow_bounds(relaxation(problem), str, -1.0, lambda: float("inf"), lambda: False, 60.0):
        out.append((replace(placed, bounds=(bound.value,), bound_by=(bound.by,), certificate=bound.certificate), spec))
    return out


def written(answer: Answer) -> tuple[dict[str, Any], dict[str, Any]]:
    """Answer and certificate, as read from their files."""
    return json.loads(json.dumps(document(answer))), json.loads(json.dumps(certificate(answer)))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(300))
def test_what_is_found_is_accepted(seed: int) -> None:
    for answer, spec in answers(seed):
        told, proof = written(answer)
        found = check(told, proof)
        assert found.value is not None
        assert float(found.value) == pytest.approx(answer.value, rel=1e-9, abs=1e-15)
        assert found.bound >= Fraction(answer.bound) * (1 - Fraction(1, 10**9))
        assert found.bound <= found.value * (1 + Fraction(1, 10**9))
        assert same_problem(proof, spec.problem)


def numbers(part: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all numbers within JSON data."""
    if isinstance(part, dict):
        return [p for key, value in part.items() for p in numbers(value, (*place, key))]
    if isinstance(part, list):
        return [p for key, value in enumerate(part) for p in numbers(value, (*place, key))]
    return [place] if isinstance(part, int | float) and not isinstance(part, bool) else []


def changed(part: Any, place: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    """The same data with another number at a place."""
    out = copy.deepcopy(part)
    at = out
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = change(at[place[-1]])
    return out


def mutated(
    rng: random.Random, told: dict[str, Any], proof: dict[str, Any], proven: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One thing that is no longer so: of the claims, of the problem, or of the proof."""
    kind = rng.random()
    if kind < 0.1:
        return changed(told, ("objective", "value"), lambda x: x * 1.001 + 1e-6), proof
    if kind < 0.2:
        return changed(told, ("objective", "bound"), lambda _: proven * 1.001 + 1e-6), proof
    if kind < 0.3:
        return told, changed(proof, ("bound",), lambda _: proven * 1.001 + 1e-6)
    if kind < 0.5:
        return told, changed(proof, rng.choice(numbers(proof["problem"], ("problem",))), lambda x: x + 1)
    if kind < 0.6:
        key = rng.choice([key for key in proof if key != "bound_by"])
        return told, {name: value for name, value in proof.items() if name != key}
    flows = proof["proof"].get("flows")
    if not flows:
        return told, {**proof, "proof": {"kind": rng.choice(("flow", "unknown", 3, None))}}
    # A unit of flow more or less anywhere is not conserved; but for the source, from which it may come.
    source = proof["proof"]["unit"]
    places = []
    for c, one in enumerate(flows):
        places += [("proof", "flows", c, "sink", i, 1) for i, arc in enumerate(one["sink"]) if arc[0] != source]
        for t, tensor in enumerate(one["tensors"]):
            places += [("proof", "flows", c, "tensors", t, side, i, 1) for side in ("out", "into")
                       for i, _ in enumerate(tensor[side])]  # fmt: skip
    places = places or [("proof", "flows", 0, "scale")]
    place = rng.choice(places)
    if place[-1] == "scale":
        return told, changed(proof, place, lambda x: x * 0.5)
    return told, changed(proof, place, lambda x: x + rng.choice((-1, 1, 0.5)))


def test_whatever_is_changed_is_refused() -> None:
    """A thousand changes, each of one number or part."""
    rng, refused, asked = random.Random(0), 0, 0
    for seed in range(200):
        for answer, spec in answers(seed):
            if answer.value == 0.0:
                continue
            told, proof = written(answer)
            proven = float(check(told, proof).bound)
            for _ in range(4):
                other, document_of = mutated(rng, told, proof, proven)
                asked += 1
                try:
                    found = check(other, document_of)
                except RefusedError:
                    refused += 1
                    continue
                # What still holds is of another problem.
                assert not same_problem(document_of, spec.problem), (seed, found)
                refused += 1
    assert asked >= 1000
    assert refused == asked


def test_the_command_verifies_and_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = "\n".join(f"    node v{k} {{ time = {{accelerator: 1 ms}}, output = 64 MiB }}" for k in range(9))
    edges = "\n".join(f"    v{k} -> v8" for k in range(8))
    Path("hub.place").write_text(
        f"graph {{\n{nodes}\n{edges}\n}}\ndevice gpu[4]: accelerator\ninterconnect {{ bandwidth = 1 GiB/s }}\n"
        "minimize time_per_sample\n",
        encoding="utf-8",
    )
    spec = placedsl.load("hub.place")
    answer = spec.solve(method="greedy")
    bound = list(flow_bounds(relaxation(spec.problem), str, -1.0, lambda: 1.0, lambda: False, 9.0))[-1]
    proven = replace(answer, bounds=(bound.value,), bound_by=(bound.by,), certificate=bound.certificate)
    Path("answer.json").write_text(json.dumps(document(proven)), encoding="utf-8")
    Path("proof.json").write_text(json.dumps(certificate(proven)), encoding="utf-8")
    assert main(["verify", "answer.json", "proof.json", "--spec", "hub.place"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"takes 0\.00900\d* s, and none takes less than 0\.00899999\d* s \(flow, in fractions\)", said)
    wrong = json.loads(Path("proof.json").read_text(encoding="utf-8"))
    wrong["problem"]["nodes"][0]["time"] = [0.002]
    Path("wrong.json").write_text(json.dumps(wrong), encoding="utf-8")
    assert main(["verify", "answer.json", "wrong.json", "--spec", "hub.place"]) == 1
    assert "wrong.json: refused: " in capsys.readouterr().err
    for name, text in (("none.json", None), ("text.json", "{"), ("list.json", "[]")):
        if text is not None:
            Path(name).write_text(text, encoding="utf-8")
        assert main(["verify", "answer.json", name]) == 1
        assert name in capsys.readouterr().err


def test_solve_writes_what_proves_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a method without a bound of its own it is the simple one; of dynamic programming the ideals."""
    monkeypatch.chdir(tmp_path)
    Path("a.place").write_text(like_pipeline(2).replace("memory = 1 MiB", "memory = 0 MiB"), encoding="utf-8")
    asked = ["solve", "a.place", "--quiet", "--json", "answer.json", "--certificate", "proof.json"]
    assert main([*asked, "--method", "slicegraph"]) in (0, 4)
    assert json.loads(Path("answer.json").read_text(encoding="utf-8"))["objective"]["bound_by"] == SIMPLE
    capsys.readouterr()
    assert main(["verify", "answer.json", "proof.json", "--spec", "a.place"]) == 0
    assert "(simple, in fractions)" in capsys.readouterr().out
    Path("a.place").write_text(like_pipeline(3), encoding="utf-8")
    assert main([*asked, "--method", "dp"]) == 0
    told = json.loads(Path("answer.json").read_text(encoding="utf-8"))["objective"]
    assert told["bound_by"] == "dynamic programming over ideals"
    capsys.readouterr()
    assert main(["verify", "answer.json", "proof.json", "--spec", "a.place"]) == 0
    assert "(ideals, in fractions); gap 0.00%" in capsys.readouterr().out


SAMPLE = """graph {
    node a { time = {accelerator: 3 ms}, memory = 2 MiB, output = 1 MiB }
    node b { time = {accelerator: 4 ms}, memory = 2 MiB, output = 2 MiB }
    a -> b
}
device gpu[2]: accelerator { memory = 3 MiB }
interconnect { bandwidth = 1 GiB/s }
"""


def test_what_has_no_certificate_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer is there, with exit code 4 though it is optimal; nothing is written, and the reason is on stderr."""
    monkeypatch.chdir(tmp_path)
    asked = ["--quiet", "--json", "answer.json", "--certificate", "proof.json"]
    for goal, reason in (
        ("schedule calls\nminimize latency\nsubject to\n    memory\n", "the longest path takes 0.007"),
        ("minimize peak_memory\n", "it minimises time_per_sample, not peak_memory"),
        ("schedule gpipe\nminimize time_per_sample\n", "it knows schedule pipedream, not gpipe"),
    ):
        Path("a.place").write_text(SAMPLE + goal, encoding="utf-8")
        Path("proof.json").write_text("of an earlier run", encoding="utf-8")
        assert main(["solve", "a.place", *asked]) == 4
        assert json.loads(Path("answer.json").read_text(encoding="utf-8"))["status"]["termination"] == "optimal"
        said = capsys.readouterr().err
        assert "--certificate proof.json: nothing is written: " in said
        assert reason in said
        assert not Path("proof.json").exists()


def test_the_certificate_of_an_earlier_run_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is removed before the search begins, where it is a file or a link to one; nothing else is."""
    monkeypatch.chdir(tmp_path)
    proof, good = Path("proof.json"), SAMPLE + "minimize time_per_sample\n"
    Path("a.place").write_text(good + "subject to\n    memory\n    fit: memory(gpu[1]) <= 0 B\n", encoding="utf-8")
    proof.write_text("of an earlier run", encoding="utf-8")
    asked = ["solve", "a.place", "--quiet", "--certificate"]
    # What is refused before anything is searched leaves files as they are.
    assert main([*asked, "proof.json", "--picture", "a.txt"]) == 2
    assert main([*asked, "a.place"]) == 2
    assert "--certificate a.place: this is what is read" in capsys.readouterr().err
    assert proof.exists()
    assert Path("a.place").exists()
    assert main([*asked, "proof.json"]) == 3
    assert "there is no placement" in capsys.readouterr().err
    assert not proof.exists()
    Path("a.place").write_text(SAMPLE + "minimize peak_memory\n", encoding="utf-8")
    proof.write_text("of an earlier run", encoding="utf-8")
    Path("link.json").symlink_to(proof)
    assert main([*asked, "link.json"]) == 4
    assert not proof.exists()
    Path("a.place").write_text(good, encoding="utf-8")
    assert main([*asked, "link.json"]) == 0
    assert json.loads(proof.read_text(encoding="utf-8"))["certificate"]
    assert main([*asked, os.devnull]) == 0


def test_the_longest_path_is_a_certificate_of_latency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.place").write_text(SAMPLE + "schedule dataflow\nminimize latency\n", encoding="utf-8")
    asked = ["solve", "a.place", "--quiet", "--json", "answer.json", "--certificate", "proof.json"]
    assert main(asked) == 0
    capsys.readouterr()
    assert main(["verify", "answer.json", "proof.json", "--spec", "a.place"]) == 0
    assert "none takes less" not in (said := capsys.readouterr().out)
    assert "no placement takes less than 0.007 s (path, in fractions); what the placement takes is not recomp" in said


ODD = [
    ("schedule duplex\n", "it knows schedule pipedream"),
    ("schedule gpipe\n", "it knows schedule pipedream"),
    ("parallelism { data = 1..2 }\n", "devices that share a stage"),
]


@pytest.mark.parametrize(("execution", "reason"), ODD)
def test_what_a_checker_cannot_add_up_has_no_certificate(execution: str, reason: str) -> None:
    """The simple bound holds there too, but loads are made of more than a certificate tells."""
    text = "graph {\n    node a { time = {accelerator: 3 ms}, output = 1 MiB }\n"
    text += "    node b { time = {accelerator: 3 ms} }\n    a -> b\n}\n"
    text += "device gpu[2]: accelerator\ninterconnect { bandwidth = 1 GiB/s }\n"
    answer = placedsl.loads(text + execution + "minimize time_per_sample\n").solve(
        method="single" if "par" in execution else None
    )
    proof = replace(answer, bounds=(0.003,), bound_by=(SIMPLE,), certificate={"kind": "simple"})
    with pytest.raises(placedsl.UsageError, match=reason):
        certificate(proof)


def test_clusters_and_fused_operators_have_none() -> None:
    graph = 'graph {\n    node a { time = {accelerator: 3 ms}, type = "matmul", output = 1 MiB }\n'
    graph += '    node b { time = {accelerator: 3 ms}, type = "relu" }\n    a -> b\n}\n'
    inside = "cluster server[2] {\n    device gpu[2]: accelerator\n    interconnect { bandwidth = 2 GiB/s }\n}\n"
    plain = "device gpu[2]: accelerator\n"
    rest = "interconnect { bandwidth = 1 GiB/s }\nminimize time_per_sample\n"
    for text, reason in ((graph + inside + rest, "clusters"), (graph + "fuse matmul + relu\n" + plain + rest, "fused")):
        answer = placedsl.loads(text).solve()
        proof = replace(answer, bound_by=(SIMPLE,), certificate={"kind": "simple"})
        with pytest.raises(placedsl.UsageError, match=reason):
            certificate(proof)


def test_nodes_that_constraints_keep_together_are_one_unit() -> None:
    """The planner joins them, and so does the comparison with the spec."""
    text = "graph {\n" + "".join(f"    node n{k} {{ time = {{accelerator: {k + 1} ms}} }}\n" for k in range(4))
    text += (
        "}\ndevice gpu[2]: accelerator\ninterconnect { bandwidth = 1 GiB/s }\nminimize time_per_sample\nsubject to\n"
    )
    text += "    both: forall d in devices: (n0 on d) == (n3 on d)\n"
    spec = placedsl.loads(text)
    answer = spec.solve(method="greedy")
    told, proof = written(replace(answer, bound_by=(SIMPLE,), certificate={"kind": "simple"}))
    assert check(told, proof).kind == "simple"
    assert same_problem(proof, spec.problem)
    assert len({node["unit"] for node in proof["problem"]["nodes"]}) == 3


@pytest.mark.parametrize("reserve", ["1 kB", "peak"])
def test_what_is_streamed_is_added_up_and_the_peak_of_activations_is_not(reserve: str) -> None:
    nodes = "".join(f"    node n{v} {{ time = {{accelerator: {v + 1} ms}}, memory = 1.5 MB }}\n" for v in range(3))
    problem = placedsl.loads(
        f"graph {{\n{nodes}    n0 -> n1\n}}\n"
        f"device gpu[2]: accelerator {{ memory = 2 MB, streams = 1 GB/s, reserve = {reserve} }}\n"
        "interconnect { bandwidth = 1 GB/s }\nminimize time_per_sample\n"
    ).problem
    evaluation = evaluate(problem, [0] * problem.graph.nodes)
    answer = Answer(
        problem, "time_limit", "", (0,) * problem.graph.nodes, evaluation, (simple_bound(problem),), "program", "highs",
        0, {"total": 1.0}, {}, (), (SIMPLE,), {"kind": "simple"},
    )  # fmt: skip
    if reserve == "peak":
        with pytest.raises(placedsl.UsageError, match="the peak of activations"):
            certificate(answer)
        return
    found = check(*written(answer))
    assert found.value is not None
    assert float(found.value) == pytest.approx(answer.value, rel=1e-9)
    assert float(found.value) == pytest.approx(6e-3 + (4.5e6 - 2e6 + 1e3) / 1e9)
