"""Proofs of bounds on latency: the longest path, and the work of all devices between what comes before and after."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from placedsl.certificates.checked.numbers import SAME, RefusedError
from placedsl.certificates.checked.one_sample import LATENCY, around, graph
from placedsl.certificates.searched.no_proof import NoProofError

#: So many heads and tails of nodes are looked at, as the first and last of those that are counted.
_MOMENTS = 200


def latency_proof(document: Mapping[str, Any], bound: float) -> dict[str, Any]:
    """The proof of a bound; NoProofError where the strongest that there is proves less."""
    proof, found = strongest(document)
    if Fraction(bound) > found * (1 + SAME):
        what = "the longest path takes" if proof["kind"] == "path" else "the work of all devices takes"
        raise NoProofError(f"{what} {float(found)!r} s, and other bounds on latency have none")
    return proof


def strongest(document: Mapping[str, Any]) -> tuple[dict[str, Any], Fraction]:
    """The strongest proof that there is, and what it proves; NoProofError where there is no graph."""
    try:
        least, edges, order = graph(document)
    except RefusedError as problem:
        raise NoProofError(str(problem)) from None
    head, tail = around(least, edges, order)
    proofs = [_longest(least, edges, tail)]
    devices = document["one_at_a_time"]
    if devices is not None and least:
        least_times, heads, tails = (np.array(list(map(float, own))) for own in (least, head, tail))
        proofs.append(_busiest(least_times, heads, tails, devices))
    return max(((proof, LATENCY[proof["kind"]](document, proof)) for proof in proofs), key=lambda one: one[1])


def _longest(least: list[Fraction], edges: set[tuple[int, int]], tail: list[Fraction]) -> dict[str, Any]:
    """The longest path."""
    ahead: dict[int, list[int]] = {}
    for v, w in edges:
        ahead.setdefault(v, []).append(w)
    along: list[int] = []
    following = list(range(len(least)))
    while following:
        v = max(following, key=lambda w: least[w] + tail[w])
        along.append(v)
        following = ahead.get(v, [])
    return {"kind": "path", "nodes": along}


def _busiest(least: Any, head: Any, tail: Any, devices: int) -> dict[str, Any]:
    """The nodes with a head and a tail of at least so much for which that and their work take longest."""
    best, chosen = -1.0, np.ones(len(least), dtype=bool)
    for begin in _some(head):
        for end in _some(tail):
            inside = (head >= begin) & (tail >= end)
            if inside.any() and begin + least[inside].sum() / devices + end > best:
                best, chosen = begin + least[inside].sum() / devices + end, inside
    return {"kind": "busy", "nodes": np.flatnonzero(chosen).tolist()}


def _some(values: Any) -> Any:
    every = np.unique(values)
    return every if len(every) <= _MOMENTS else every[np.linspace(0, len(every) - 1, _MOMENTS).astype(int)]
