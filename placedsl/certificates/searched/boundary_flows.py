"""What crosses the boundaries of stages: flows of units and tensors, by the numbers that the checker gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from placedsl.algorithms.partitions.bounds.boundaries import Along, flows_at
from placedsl.algorithms.partitions.bounds.superblock_program import Pipeline
from placedsl.algorithms.units import Hyperedges
from placedsl.certificates.checked.boundaries import tensors
from placedsl.certificates.checked.instance import Instance
from placedsl.certificates.checked.numbers import RefusedError
from placedsl.certificates.checked.superblocks import alike
from placedsl.certificates.searched.no_proof import NoProofError


def boundary_proof(given: Instance, largest: float, over: Callable[[], bool]) -> dict[str, Any]:
    """The proof that no stages all load so much or less; NoProofError where there is none, or it is over."""
    if given.pairs is None:
        raise NoProofError("the placement need not be contiguous")
    try:
        found = flows_at(_pipeline(given.contracted()), largest, over)
    except RefusedError as problem:
        raise NoProofError(str(problem)) from None
    if found is None:
        raise NoProofError("there is no time for its flows" if over() else "its flows do not reach the bound")
    return {
        "kind": "boundaries",
        "largest": largest,
        "moved": {
            side: [{"times": one.times, "scale": one.scale, "tensors": _by_tensor(one)} for one in flows]
            for side, flows in (("first", found.first), ("last", found.last))
        },
        "rounds": [
            [
                {"boundary": one.boundary, "scale": one.scale, "tensors": _by_tensor(one), "order": _in_order(one)}
                for one in flows
            ]
            for flows in found.rounds
        ],
    }


def _pipeline(given: Instance) -> Pipeline:
    """The same in doubles, with units and tensors by the checker's numbers."""
    work, (pins, cost) = alike(given), tensors(given)
    order = np.array(given.order, dtype=np.int64).reshape(-1, 2)
    edges = Hyperedges(tuple(tuple(sorted(units)) for units in pins), np.array(list(map(float, cost)), dtype=float))
    return Pipeline(
        np.array(list(map(float, work))), edges, order[:, 0].copy(), order[:, 1].copy(), np.array(given.unit),
        given.counts[0],
    )  # fmt: skip


def _by_tensor(flow: Along) -> list[list[Any]]:
    """By tensor the units out of which, or less than 0, into which it flows."""
    out: dict[int, list[list[int]]] = {}
    for e, *along in _rows(flow.tensor, flow.unit, flow.amount):
        out.setdefault(e, []).append(along)
    return [[e, along] for e, along in sorted(out.items())]


def _in_order(flow: Along) -> list[list[int]]:
    """Units, one before each of them, and how much flows from the first to the second."""
    return [list(one) for one in _rows(flow.later, flow.earlier, flow.back)]


def _rows(*columns: Any) -> Iterable[tuple[int, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)
