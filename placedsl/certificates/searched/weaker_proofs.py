"""The strongest proof of a lower bound, where the bound itself has none that is found in time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from placedsl.certificates.checked.checking import proven
from placedsl.certificates.checked.instance import Instance, instance
from placedsl.certificates.checked.numbers import RefusedError
from placedsl.certificates.searched.no_proof import NoProofError
from placedsl.certificates.searched.price_search import prices
from placedsl.certificates.searched.proofs import completed, elementary
from placedsl.problem.problem import Problem

#: The share of the time for a certificate that is kept for one of a lower bound.
WEAKER_SHARE = 0.4
#: By how much less than the bound is asked for, relatively, one after the other.
_LESS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
#: Kinds of which less can be asked for, with trees or rounds that are smaller then.
_BY_DEGREES = ("prices", "superblocks", "even share", "placements", "boundaries", "doubling")
#: Most seconds of looking for a minimum cut; where prices are to be found first, how far below the bound.
_FLOW_SECONDS, _PRICED_BELOW = 5.0, 0.01


def weaker_proof(
    problem: Problem, document: Mapping[str, Any], bound: float, begun: Mapping[str, Any] | None, seconds: float
) -> tuple[dict[str, Any], float] | None:
    """The strongest proof found within about so many seconds, and the bound that it proves, below ``bound``; None:
    none proves more than 0."""
    deadline = time.monotonic() + seconds
    given = instance(document)
    best: tuple[dict[str, Any], float] | None = None
    for one in _quick(problem, given, bound):
        try:
            found = _below(proven(given, one))
        except RefusedError:
            continue
        if found > (0.0 if best is None else best[1]):
            best = dict(one), found
    first = begun if begun is not None and begun["kind"] in _BY_DEGREES else None
    if first is None:
        first = prices(problem, bound * (1.0 - _PRICED_BELOW), (deadline - time.monotonic()) / 2)
    if first is None:
        return best
    for less in _LESS:
        asked, left = bound * (1.0 - less), deadline - time.monotonic()
        if best is not None and asked <= best[1]:
            continue
        if left <= 0.0:
            break
        try:
            best = completed(given, first, asked, left), asked
        except NoProofError:
            break
    return best


def _quick(problem: Problem, given: Instance, bound: float) -> Iterator[Mapping[str, Any]]:
    """Proofs that need no search for cases."""
    from placedsl.algorithms.partitions.bounds.flow import flow_bounds
    from placedsl.algorithms.partitions.bounds.relaxation import relaxation

    relaxed = relaxation(problem)
    yield from elementary(relaxed, given)
    ended = time.monotonic() + _FLOW_SECONDS
    for cut in flow_bounds(relaxed, str, 0.0, lambda: bound, lambda: time.monotonic() > ended, _FLOW_SECONDS):
        if cut.certificate is not None:
            yield cut.certificate


def _below(value: Fraction) -> float:
    """A double that is not above a fraction."""
    out = float(value)
    return out if Fraction(out) <= value else math.nextafter(out, -math.inf)
