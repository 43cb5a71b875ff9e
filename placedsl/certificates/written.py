"""A certificate of an answer: what was solved as plain numbers, and what proves the bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from placedsl.diagnostics import UsageError
from placedsl.planner.answer import Answer
from placedsl.problem.problem import Problem

VERSION = 1


def certificate(answer: Answer) -> dict[str, Any]:
    """The certificate of the first objective's bound; UsageError where what proves it has none."""
    if answer.certificate is None:
        by = answer.bound_by[0] if answer.bound_by and answer.bound_by[0] else "nothing"
        raise UsageError(f"the bound is proven by {by}, which gives no certificate: docs/certificates.md says why")
    reasons = against(answer.problem)
    if reasons:
        raise UsageError(f"there are no certificates for it: {'; '.join(reasons)}")
    return {
        "certificate": VERSION,
        "bound": answer.bound,
        "bound_by": answer.bound_by[0],
        "problem": problem_document(answer.problem),
        "proof": dict(answer.certificate),
    }


def against(problem: Problem) -> list[str]:
    """Why a checker cannot add up the loads of a problem, a clause each."""
    from placedsl.algorithms.partitions.bounds.relaxation import SUPPORTS
    from placedsl.algorithms.supports import costs_by_device, reasons_against

    out = reasons_against(problem, SUPPORTS)
    if problem.machine.clusters:
        out.append("loads of devices in clusters have more parts")
    if not costs_by_device(problem):
        out.append("what a transfer costs depends on both devices")
    if problem.streaming.any:
        out.append("what devices stream is a part of their loads that a checker does not add up")
    if problem.graph.fusion is not None:
        out.append("operators are fused")
    return out


def problem_document(problem: Problem) -> dict[str, Any]:
    """What the largest load is made of: classes of devices, nodes with their times there, tensors and what moving them
    takes there; and which nodes share a device, as units."""
    from placedsl.algorithms.partitions.bounds.relaxation import relaxation

    graph, kinds = problem.graph, problem.interchangeable(clustered=False)
    first = [int(np.flatnonzero(kinds == kind)[0]) for kind in range(int(kinds.max(initial=-1)) + 1)]
    unit = relaxation(problem).unit_of_node
    readers: list[list[int]] = [[] for _ in range(graph.tensors)]
    for node, tensor in zip(graph.edge_target.tolist(), graph.edge_tensor.tolist(), strict=True):
        readers[tensor].append(node)
    return {
        "devices": [
            {"name": device.name, "class": int(kind)}
            for device, kind in zip(problem.machine.devices, kinds.tolist(), strict=True)
        ],
        "memory": [_finite(problem.memory_limits[d]) for d in first],
        "nodes": [
            {
                "id": str(graph.ids[v]), "unit": int(unit[v]), "memory": float(graph.memory[v]),
                "time": [_finite(problem.time[v, d]) for d in first],
            }
            for v in range(graph.nodes)
        ],
        "tensors": [
            {
                "maker": int(graph.tensor_producer[t]), "readers": sorted(set(readers[t])),
                "moving": [float(problem.transfer[t, d]) for d in first],
            }
            for t in range(graph.tensors)
        ],
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def same_problem(document: Mapping[str, Any], problem: Problem) -> bool:
    """Whether a certificate is of this problem."""
    from placedsl.algorithms.colocation import with_implied_colocation

    return bool(document.get("problem") == problem_document(with_implied_colocation(problem)))
