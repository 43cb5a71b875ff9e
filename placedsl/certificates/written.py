"""A certificate of an answer: what was solved as plain numbers, and what proves the bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from placedsl.certificates.checked.checking import VERSION
from placedsl.certificates.searched.no_proof import NoProofError
from placedsl.certificates.searched.proofs import SECONDS, latency_proof, load_proof
from placedsl.diagnostics import UsageError
from placedsl.planner.answer import Answer
from placedsl.problem.expressions import Provided
from placedsl.problem.problem import Problem


def certificate(answer: Answer, seconds: float = SECONDS) -> dict[str, Any]:
    """The certificate of the first objective's bound; UsageError with the reason where there is none, or where none is
    found within about so many seconds."""
    reasons = against(answer.problem)
    if reasons:
        raise UsageError(f"there are no certificates for it: {'; '.join(reasons)}")
    if answer.termination == "infeasible":
        raise UsageError("there is no placement, and there are no certificates of that")
    by = answer.bound_by[0] if answer.bound_by and answer.bound_by[0] else ""
    if not by or not np.isfinite(answer.bound):
        raise UsageError("no bound is proven that a certificate could show")
    problem = problem_document(answer.problem)
    prove = latency_proof if _minimised(answer.problem) == "latency" else load_proof
    try:
        proof = prove(answer.problem, problem, answer.bound, answer.certificate, seconds)
    except NoProofError as reason:
        raise UsageError(
            f"the bound is proven by {by}, and no certificate of it was found: {reason}; "
            "docs/certificates.md says what has one"
        ) from None
    return {
        "certificate": VERSION, "objective": answer.problem.objectives[0].name, "bound": answer.bound, "bound_by": by,
        "problem": problem, "proof": proof,
    }  # fmt: skip


def _minimised(problem: Problem) -> str:
    """The quantity that is the first objective, if it is one."""
    body = problem.objectives[0].body
    return body.name if isinstance(body, Provided) else ""


def against(problem: Problem) -> list[str]:
    """Why a checker cannot add up the loads of a problem, a clause each."""
    from placedsl.algorithms.partitions.bounds.relaxation import SUPPORTS
    from placedsl.algorithms.supports import costs_by_device, reasons_against

    fused = ["operators are fused"] if problem.graph.fusion is not None else []
    if _minimised(problem) == "latency" and problem.execution.one_sample:
        return fused
    out = reasons_against(problem, SUPPORTS)
    if problem.machine.clusters:
        out.append("loads of devices in clusters have more parts")
    if not costs_by_device(problem):
        out.append("what a transfer costs depends on both devices")
    if problem.execution.streams == "peak":
        out.append("a checker does not add up the peak of activations")
    return out + fused


def problem_document(problem: Problem) -> dict[str, Any]:
    """What the first objective is made of, as far as a checker looks at it."""
    return _latency(problem) if _minimised(problem) == "latency" else _largest_load(problem)


def _latency(problem: Problem) -> dict[str, Any]:
    """Nodes with their times on devices (each time once), and which reads what which makes."""
    graph = problem.graph
    edges = zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)
    return {
        "nodes": [
            {"id": str(graph.ids[v]), "time": sorted({float(t) for t in problem.time[v] if np.isfinite(t)})}
            for v in range(graph.nodes)
        ],
        "edges": [list(pair) for pair in sorted(set(edges))],
    }


def _largest_load(problem: Problem) -> dict[str, Any]:
    """Classes of devices, nodes with their times there, tensors and what moving them takes there; which nodes share a
    device, as units; and along which pairs of nodes a pipeline goes forward."""
    from placedsl.algorithms.partitions.bounds.relaxation import relaxation

    graph, kinds, streaming = problem.graph, problem.interchangeable(clustered=False), problem.streaming
    first = [int(np.flatnonzero(kinds == kind)[0]) for kind in range(int(kinds.max(initial=-1)) + 1)]
    unit = relaxation(problem).unit_of_node
    readers: list[list[int]] = [[] for _ in range(graph.tensors)]
    for node, tensor in zip(graph.edge_target.tolist(), graph.edge_tensor.tolist(), strict=True):
        readers[tensor].append(node)
    pairs = zip(problem.precedence_source.tolist(), problem.precedence_target.tolist(), strict=True)
    return {
        "devices": [
            {"name": device.name, "class": int(kind)}
            for device, kind in zip(problem.machine.devices, kinds.tolist(), strict=True)
        ],
        "memory": [_finite(problem.memory_limits[d]) for d in first],
        "streams": [
            {"room": float(streaming.room[d]), "per_byte": float(streaming.per_byte[d])}
            if streaming.per_byte[d] > 0.0 else None
            for d in first
        ],
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
        "order": None if problem.constraint("contiguous") is None else [list(pair) for pair in sorted(set(pairs))],
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def same_problem(document: Mapping[str, Any], problem: Problem) -> bool:
    """Whether a certificate is of this problem."""
    from placedsl.algorithms.exclusion import with_implied

    return bool(document.get("problem") == problem_document(with_implied(problem)))
