"""Certificates of what crosses the boundaries of stages: all that the bound proves has one, and larger graphs have."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.tiny_graphs import TinyGraph, long_graph, optimum

import placedsl
from placedsl.algorithms.partitions.bounds.boundaries import boundary_bounds
from placedsl.algorithms.partitions.bounds.superblock_program import pipeline_of
from placedsl.certificates.checked import RefusedError
from placedsl.certificates.checked.checking import proven
from placedsl.certificates.checked.instance import Instance, instance
from placedsl.certificates.searched.no_proof import NoProofError
from placedsl.certificates.searched.proofs import completed
from placedsl.certificates.written import problem_document
from placedsl.problem.problem import Problem

SAME = Fraction(1, 10**9)


def best_bound(problem: Problem, upper: float = np.inf) -> float | None:
    """What the bound proves; None where it is nothing beside the simple one."""
    pipeline = pipeline_of(problem)
    assert pipeline is not None
    found = [one.value for one in boundary_bounds(pipeline, pipeline.simple, lambda: upper, lambda: False)]
    return found[-1] if found else None


def written(problem: Problem) -> Instance:
    """As a certificate has it."""
    return instance(json.loads(json.dumps(problem_document(problem))))


def exact(given: Instance, value: float) -> dict[str, Any]:
    """The proof of a value, as a file has it."""
    found: dict[str, Any] = json.loads(json.dumps(completed(given, {"kind": "boundaries"}, value, 60.0)))
    return found


@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(15)) for n in range(0, 300, 10)])
def test_what_the_bound_proves_is_shown_in_fractions(first: int) -> None:
    shown = 0
    for seed in range(first, first + 10):
        graph = long_graph(seed)
        problem, least = placedsl.loads(graph.spec()).problem, optimum(graph)
        value = best_bound(problem, least)
        if value is None:
            continue
        given = written(problem)
        held = proven(given, exact(given, value))
        assert Fraction(value) <= held * (1 + SAME), seed
        assert held <= Fraction(least) * (1 + SAME), seed
        shown += 1
        with pytest.raises(NoProofError):
            exact(given, least * (1 + 1e-6))
    assert shown >= 4


def chain(units: int, devices: int) -> TinyGraph:
    """Blocks of a network one after the other: two branches each, and a tensor past every block."""
    work, size, readers = [], [], []
    for v in range(units):
        work.append(1.0 + (v * 7919 % 13) / 4)
        size.append((1.0 + v * 104729 % 7) / 4)
        readers.append(tuple(w for w in ((v + 1, v + 2, v + 4) if v % 4 == 0 else (v + 1,)) if w < units))
    return TinyGraph(tuple(work), tuple(size), tuple(readers), devices)


def test_larger_graphs_have_one() -> None:
    problem = placedsl.loads(chain(600, 12).spec()).problem
    value = best_bound(problem)
    assert value is not None
    given = written(problem)
    proof = exact(given, value)
    assert proven(given, proof) >= Fraction(value) * (1 - SAME)
    # Work that is moved along the order, and flows of which more is said than a tensor costs, show nothing.
    for change in (lambda e: e[1][0].__setitem__(1, e[1][0][1] + 1), lambda e: e.__setitem__(0, 10**6)):
        wrong = json.loads(json.dumps(proof))
        change(wrong["rounds"][-1][0]["tensors"][0])
        with pytest.raises(RefusedError):
            proven(given, wrong)


def test_without_an_order_or_of_unlike_devices_there_is_none() -> None:
    for text in (
        chain(8, 2).spec(""),
        chain(8, 2).spec().replace("device tpu[2]: accelerator", "device tpu: accelerator\ndevice cpu: host"),
    ):
        given = written(placedsl.loads(text.replace("{accelerator:", "{accelerator: 1 s, host:")).problem)
        with pytest.raises(NoProofError):
            exact(given, 1.0)
