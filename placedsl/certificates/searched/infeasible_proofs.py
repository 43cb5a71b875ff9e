"""Proofs that there is no placement, from quick to slow."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from placedsl.certificates.checked.infeasible import INFEASIBLE, beyond_all, joined
from placedsl.certificates.checked.instance import Instance, instance
from placedsl.certificates.checked.numbers import RefusedError
from placedsl.certificates.checked.placements import placement_program
from placedsl.certificates.searched.case_trees import case_tree
from placedsl.certificates.searched.no_proof import NoProofError


def infeasible_proof(document: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """The proof that no placement keeps units together, in memory, on devices that run them and, if that is asked for,
    in order; NoProofError with the reasons where none is found in about so many seconds."""
    given, deadline, reasons = instance(document), time.monotonic() + seconds, []
    for one in _begun(given):
        try:
            proof = dict(one)
            if proof["kind"] == "placements":
                left = max(0.1, deadline - time.monotonic())
                proof["cases"] = case_tree(placement_program(given), beyond_all(given), left)
            INFEASIBLE[proof["kind"]](given, proof)
        except (RefusedError, NoProofError) as reason:
            reasons.append(f"{one['kind']}: {reason}")
        else:
            return proof
    raise NoProofError("; ".join(reasons))


def _begun(given: Instance) -> Iterator[Mapping[str, Any]]:
    yield {"kind": "no room", "price": _prices(joined(given))}
    if given.pairs is not None:
        yield {"kind": "ideals"}
    yield {"kind": "placements"}


def _prices(given: Instance) -> list[float]:
    """Prices of a byte by class, at most 1, at which units cost more than all memory is worth, if there are some."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    classes, units = given.classes, given.units
    limited = [room is not None for room in given.room]
    row: list[int] = []
    column: list[int] = []
    value: list[float] = []
    rows = 0
    all_memory = [n * (room or 0) for n, room in zip(given.counts, given.room, strict=True)]
    scale = max(*all_memory, *given.held, 0) or Fraction(1)
    for u, held in enumerate(given.held):
        # What a unit costs is no more than its bytes at the price of any class that runs it.
        for c, of in enumerate(given.work):
            if of[u] is not None:
                row += [rows, rows]
                column += [classes + u, c]
                value += [1.0, -float(held / scale)]
                rows += 1
    if not rows:
        return [0.0] * classes
    matrix = csr_array((value, (row, column)), shape=(rows, classes + units))
    bounds = [(0.0, 1.0 if some else 0.0) for some in limited] + [(0.0, None)] * units
    cost = np.array([float(worth / scale) for worth in all_memory] + [-1.0] * units)
    found = linprog(cost, A_ub=matrix, b_ub=np.zeros(rows), bounds=bounds, method="highs")
    if found.status != 0:
        return [1.0 if some else 0.0 for some in limited]
    return [float(min(max(q, 0.0), 1.0)) for q in found.x[:classes]]
