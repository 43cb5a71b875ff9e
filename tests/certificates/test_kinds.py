"""Every kind of proof: what is found is accepted, and proves no more than what enumeration says; what is changed is
refused, unless what it claims is so."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from support.apart import Apart
from support.certificate_documents import least, loads, longest_path, mutated, text, true
from support.one_sample import random_calls, random_dataflow
from support.tiny_graphs import loads as loads_of_blocks
from support.tiny_graphs import optimum, superblocks, tiny_graph

import placedsl
from placedsl.algorithms.partitions.bounds.flow import flow_bounds
from placedsl.algorithms.partitions.bounds.relaxation import relaxation
from placedsl.algorithms.partitions.bounds.work import work_bound
from placedsl.certificates.checked import RefusedError, check, sets
from placedsl.certificates.checked.checking import KINDS, VERSION, proven
from placedsl.certificates.checked.instance import instance
from placedsl.certificates.searched.no_proof import NoProofError
from placedsl.certificates.searched.one_sample_proofs import latency_proof
from placedsl.certificates.searched.proofs import completed, load_proof
from placedsl.certificates.searched.weaker_proofs import weaker_proof
from placedsl.certificates.written import certificate, problem_document
from placedsl.problem.problem import Problem
from placedsl.report.json.answer_document import document as answer_document

pytestmark = pytest.mark.xdist_group("certificates")

#: Of the optimum, what each kind is asked to prove, until it does.
SHARES = (1.0, 0.999, 0.9, 0.75, 0.5, 0.3, 0.1)
KINDS_OF_SETS = [kind for kind in KINDS if kind != "prices"]
SAME = Fraction(1, 10**9)


@cache
def small(seed: int) -> tuple[dict[str, Any], Fraction, list[int]] | None:
    """The document of a small problem, its optimum, and a placement that has it; None where there is none."""
    problem = placedsl.loads(text(seed)).problem
    document = json.loads(json.dumps(problem_document(problem)))
    reached = least(document)
    if reached is None or reached == 0:
        return None
    rng = random.Random(seed)
    units = sorted({node["unit"] for node in document["nodes"]})
    while True:
        chosen = {u: rng.randrange(len(document["devices"])) for u in units}
        placement = [chosen[node["unit"]] for node in document["nodes"]]
        value = loads(document, tuple(placement))
        if value is not None and (value == reached or rng.random() < 0.01):
            return document, reached, placement


def begun(kind: str, problem: Problem, document: dict[str, Any]) -> list[dict[str, Any]]:
    """How proofs of a kind begin."""
    given = instance(document)
    stages = sum(given.counts)
    if kind == "flow":
        found = flow_bounds(relaxation(problem), str, -1.0, lambda: float("inf"), lambda: False, 60.0)
        return [dict(one.certificate) for one in found if one.certificate is not None][-1:]
    if kind == "work":
        found = work_bound(relaxation(problem)).certificate
        return [dict(found)] if found is not None and found["kind"] == "work" else []
    if kind == "doubling":
        half = {"kind": "superblocks", "stages": [1] * (-(-stages // 2))}
        return [{"kind": kind, "half": half}, {"kind": kind, "half": {"kind": "simple"}}]
    if kind == "superblocks":
        two = [stages // 2, stages - stages // 2]
        return [{"kind": kind, "stages": sizes} for sizes in ([1] * stages, [*filter(None, two)], [stages])]
    return [{"kind": kind}]


def proofs(kind: str, seed: int) -> Iterator[tuple[dict[str, Any], float]]:
    """Proofs of a kind for a small problem, each with what it proves as a double."""
    known = small(seed)
    if known is None:
        return
    document, reached, _ = known
    given = instance(document)
    for one in begun(kind, placedsl.loads(text(seed)).problem, document):
        yield from _strongest(given, one, float(reached))


def _strongest(given: Any, one: dict[str, Any], reached: float) -> Iterator[tuple[dict[str, Any], float]]:
    for share in SHARES:
        try:
            found = json.loads(json.dumps(completed(given, one, reached * share, 30.0)))
        except NoProofError:
            continue
        yield found, reached * share
        return


def files(seed: int, proof: dict[str, Any], bound: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """What an answer and a certificate say."""
    known = small(seed)
    assert known is not None
    document, _, placement = known
    value = loads(document, tuple(placement))
    assert value is not None
    names = [device["name"] for device in document["devices"]]
    answer = {
        "objective": {"name": "time_per_sample", "value": float(value), "bound": bound},
        "placement": {node["id"]: names[d] for node, d in zip(document["nodes"], placement, strict=True)},
    }
    made = {"certificate": VERSION, "objective": "time_per_sample", "bound": bound, "problem": document, "proof": proof}
    return answer, made


def priced(seeds: list[int]) -> list[tuple[int, dict[str, Any], float]]:
    """Prices for small problems, near their optimum or below; in a process of its own, which loads HiGHS."""
    from placedsl.algorithms.partitions.bounds.partition import prices_at

    out = []
    listed = sets.MOST_LISTED
    for seed in seeds:
        known = small(seed)
        if known is None:
            continue
        sets.MOST_LISTED = listed if seed % 2 else 0  # what sets are worth is then shown by a tree of cases
        document, reached, _ = known
        relaxed = relaxation(placedsl.loads(text(seed)).problem)
        for share in SHARES:
            found = prices_at(relaxed, float(reached) * share * (1.0 - 1e-8), lambda: False)
            if found is None:
                continue
            try:
                proof = completed(instance(document), found, float(reached) * share, 30.0)
            except NoProofError:
                continue
            out.append((seed, json.loads(json.dumps(proof)), float(reached) * share))
            break
    return out


def found(kind: str, seeds: list[int]) -> list[tuple[int, dict[str, Any], float]]:
    """Proofs of a kind for small problems."""
    if kind != "prices":
        return [(seed, *one) for seed in seeds for one in proofs(kind, seed)]
    process = Apart()
    try:
        answer: list[tuple[int, dict[str, Any], float]] = process.call("prices", priced, seeds)
        return answer
    finally:
        process.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(5)) for n in range(0, 300, 30)])
def test_what_is_found_is_accepted_and_is_no_more_than_the_optimum(kind: str, first: int) -> None:
    exact = {"ideals": 0, "placements": 0}
    for seed, proof, bound in found(kind, list(range(first, first + 30))):
        known = small(seed)
        assert known is not None
        document, reached, _ = known
        answer, made = files(seed, proof, bound)
        held = check(answer, made)
        assert held.kind == kind
        assert bound * (1 - SAME) <= held.bound <= reached * (1 + SAME), seed
        if kind in exact and (kind == "placements" or document["order"] is not None):
            # These kinds are the whole problem, unless a row of devices is asked for that a program does not know.
            exact[kind] += 1
            assert held.bound >= reached * (1 - SAME) or kind == "placements", seed
    if kind in exact:
        assert exact[kind] >= 3


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", [*KINDS, "path"])
@pytest.mark.parametrize("first", range(0, 120, 30))
def test_a_thousand_changes_are_refused(kind: str, first: int) -> None:
    """So many changes of each kind in all; what is accepted still is what it claims to be, by enumeration."""
    rng, refused, kept = random.Random(f"changes of {kind} from {first}"), 0, 0
    seeds = range(first, first + 30)
    given = paths(seeds) if kind == "path" else [files(*one) for one in found(kind, list(seeds))]
    assert len(given) >= 4
    while refused < 250:
        answer, made = mutated(rng, *rng.choice(given))
        try:
            check(answer, made)
        except RefusedError:
            refused += 1
            continue
        kept += 1
        assert true(answer, made), (kind, answer, made)
    assert kept < 250  # most changes are wrong


def paths(seeds: range) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Answers and certificates of latencies."""
    out = []
    for seed in seeds:
        problem = placedsl.loads(random_calls(seed) if seed % 2 else random_dataflow(seed)).problem
        document = json.loads(json.dumps(problem_document(problem)))
        bound = float(longest_path(document))
        if not bound:
            continue
        document["one_at_a_time"] = None
        proof = latency_proof(document, bound)
        answer = {
            "objective": {"name": "latency", "value": bound * 1.5, "bound": bound},
            "placement": {node["id"]: "gpu" for node in document["nodes"]},
        }
        made = {"certificate": VERSION, "objective": "latency", "bound": bound, "problem": document, "proof": proof}
        check(answer, made)
        out.append((answer, made))
    return out


@pytest.mark.parametrize("seed", range(30))
def test_no_proof_is_found_of_what_is_not_so(seed: int) -> None:
    """Of a millionth above the optimum nothing is proven, whichever kind is asked."""
    known = small(seed)
    if known is None:
        return
    document, reached, _ = known
    problem = placedsl.loads(text(seed)).problem
    for kind in KINDS_OF_SETS:
        for one in begun(kind, problem, document):
            with pytest.raises(NoProofError):
                completed(instance(document), one, float(reached) * (1 + 1e-6), 30.0)


@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(4)) for n in range(0, 200, 20)])
def test_optima_are_proven_whatever_found_them(first: int) -> None:
    """Nothing is told of how the optimum was proven: of contiguous pipelines, with streaming or not, it always is."""
    contiguous = shown = 0
    for seed in range(first, first + 20):
        known = small(seed)
        if known is None:
            continue
        document, reached, _ = known
        problem = placedsl.loads(text(seed)).problem
        try:
            proof = load_proof(problem, document, float(reached), None, 20.0)
        except NoProofError:
            assert document["order"] is None, seed
            continue
        assert check(*files(seed, json.loads(json.dumps(proof)), float(reached))).bound <= reached * (1 + SAME)
        shown += 1
        contiguous += document["order"] is not None
    assert shown >= contiguous >= 3


@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(4)) for n in range(0, 60, 6)])
def test_where_trees_are_too_large_less_is_proven(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a bound whose tree would have too many cases, as of one that is beyond the optimum."""
    shown = 0
    for seed in range(first, first + 6):
        known = small(seed)
        if known is None or len({device["class"] for device in known[0]["devices"]}) > 1:
            continue
        document, reached, _ = known
        stages = [1] * len(document["devices"])
        problem = placedsl.loads(text(seed)).problem
        for cases, above in ((5, 1.0), (12_000, 1.5)):
            monkeypatch.setattr("placedsl.certificates.searched.case_trees.MOST_CASES", cases)
            claimed = float(reached) * above
            found = weaker_proof(problem, document, claimed, {"kind": "superblocks", "stages": stages}, 20.0)
            assert found is not None
            proof, bound = found
            assert bound <= claimed
            if bound >= claimed * (1 - 1e-9):  # a sum proves it
                continue
            answer, made = files(seed, json.loads(json.dumps(proof)), bound)
            answer["objective"]["bound"] = claimed
            with pytest.raises(RefusedError, match="is claimed"):
                check(answer, made)
            made["unproven"] = claimed
            held = check(answer, made)
            assert held.unproven == Fraction(claimed)
            assert bound * (1 - SAME) <= held.bound <= reached * (1 + SAME)
            answer["objective"]["bound"] = claimed * (1 + 1e-6)
            with pytest.raises(RefusedError, match="another bound"):
                check(answer, made)
            shown += 1
    assert shown >= 2


@pytest.mark.parametrize("seed", [pytest.param(n, marks=pytest.mark.sampled(3)) for n in range(24)])
def test_the_answers_of_auto_have_certificates(seed: int) -> None:
    """Of tiny graphs auto finds the optimum by enumeration, and a certificate shows it; with an order and without."""
    graph = tiny_graph(seed)
    ordered = seed % 2 == 0
    answer = placedsl.loads(graph.spec("contiguous" if ordered else "")).solve()
    least_load = optimum(graph, ordered=ordered)
    assert answer.value == pytest.approx(least_load, rel=1e-9, abs=1e-12)
    if not least_load:
        return
    held = check(json.loads(json.dumps(answer_document(answer))), json.loads(json.dumps(certificate(answer))))
    assert held.value is not None
    assert answer.bound * (1 - 1e-9) <= held.bound <= Fraction(least_load) * (1 + SAME)


def test_loads_of_segments_are_those_of_the_definition() -> None:
    """All segments of an order, of a thousand random graphs, as the checker adds them up and by the definition."""
    for seed in range(1000):
        graph = tiny_graph(seed)
        if seed % 10 == 0:
            problem = placedsl.loads(graph.spec()).problem
            given = instance(json.loads(json.dumps(problem_document(problem))))
        else:
            given = instance(_document(graph))
        count = len(graph.work)
        for first in range(count):
            for last in range(first, count):
                block = np.array([[0 if first <= v <= last else 1 for v in range(count)]])
                expected = float(loads_of_blocks(graph, block, 2)[0, 0])
                assert float(given.load(range(first, last + 1), 0)) == pytest.approx(expected, rel=1e-12, abs=1e-300)


def _document(graph: Any) -> dict[str, Any]:
    """A tiny graph as a certificate tells it."""
    return {
        "devices": [{"name": f"d{d}", "class": 0} for d in range(graph.blocks)], "memory": [None], "streams": [None],
        "nodes": [{"id": str(v), "unit": v, "memory": 0.0, "time": [w]} for v, w in enumerate(graph.work)],
        "tensors": [
            {"maker": u, "readers": list(own), "moving": [graph.size[u]]} for u, own in enumerate(graph.readers) if own
        ],
        "order": [[u, v] for u, own in enumerate(graph.readers) for v in own],
    }  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("first", range(0, 300, 10))
def test_superblocks_are_what_enumeration_says(first: int) -> None:
    """The value of superblocks of any sizes is proven, and nothing above it: so are guesses at the bottleneck."""
    for seed in range(first, first + 10):
        graph = tiny_graph(seed)
        given, k = instance(_document(graph)), graph.blocks
        for b in range(k):
            sizes = [size for size in (b, 1, k - b - 1) if size]
            value = superblocks(graph, tuple(sizes))
            one = {"kind": "superblocks", "stages": sizes}
            if value:
                assert proven(given, completed(given, one, value, 30.0)) <= Fraction(value) * (1 + SAME)
                with pytest.raises(NoProofError):
                    completed(given, one, value * (1 + 1e-6), 30.0)
