"""The proof of a bound: what found it tells how it begins, and what is missing is searched for here.

Every proof is checked before it is given: what the checker refuses is not written.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from placedsl.certificates.checked.checking import KINDS, proven
from placedsl.certificates.checked.instance import Instance, instance
from placedsl.certificates.checked.numbers import SAME, RefusedError
from placedsl.certificates.checked.placements import placement_program
from placedsl.certificates.checked.prices import given as given_prices
from placedsl.certificates.checked.sets import TooManySetsError, none_worth_more
from placedsl.certificates.checked.superblocks import share_program, superblock_program, worth_program
from placedsl.certificates.searched.boundary_flows import boundary_proof
from placedsl.certificates.searched.case_trees import case_tree
from placedsl.certificates.searched.no_proof import NoProofError
from placedsl.certificates.searched.price_search import prices
from placedsl.problem.problem import Problem

if TYPE_CHECKING:
    from placedsl.algorithms.partitions.bounds.relaxation import Relaxation

#: Seconds that are spent on a certificate.
SECONDS = 60.0
#: What is proven is this much less than what is claimed, of the rounding that the checker allows.
_LESS = SAME / 2
#: More columns than this make no tree that is looked for where something else has proven the bound.
_MOST_COLUMNS = 3_000
#: How far below the bound prices are searched for, relatively: well above what rounds.
_NEAR = 1e-8
#: The share of the time in which the proof is searched for that what found the bound has begun.
_OWN_SHARE = 0.8
#: Most seconds of looking for a minimum cut.
_FLOW_SECONDS = 10.0


def completed(instance: Instance, begun: Mapping[str, Any], bound: float, seconds: float) -> dict[str, Any]:
    """A proof with the trees of cases that it lacks; NoProofError where there are none within the time."""
    proof, target = dict(begun), Fraction(bound) * (1 - _LESS)
    deadline = time.monotonic() + seconds

    def left() -> float:
        return max(0.1, deadline - time.monotonic())

    try:
        if proof["kind"] == "superblocks" and "cases" not in proof:
            proof["cases"] = case_tree(superblock_program(instance, proof["stages"])[0], target, left())
        elif proof["kind"] == "even share" and "cases" not in proof:
            proof["cases"] = case_tree(share_program(instance), target, left())
        elif proof["kind"] == "placements" and "cases" not in proof:
            proof["cases"] = case_tree(placement_program(instance), target, left())
        elif proof["kind"] == "prices" and "worth" not in proof:
            proof["largest"] = _below(target)
            proof["worth"] = _worth(instance, proof, left)
            proof.pop("value", None)
        elif proof["kind"] == "boundaries" and "rounds" not in proof:
            proof = boundary_proof(instance, _below(target), lambda: time.monotonic() > deadline)
        elif proof["kind"] == "ideals" and "largest" not in proof:
            proof["largest"] = _below(target)
        elif proof["kind"] == "doubling":
            proof["half"] = completed(instance.halved(), proof["half"], 2.0 * bound, left())
        if proof["kind"] not in KINDS:
            raise NoProofError(f"there are no certificates of kind '{proof['kind']}'")
        found = proven(instance, proof)
    except RefusedError as problem:
        raise NoProofError(str(problem)) from None
    if Fraction(bound) > found * (1 + SAME):
        raise NoProofError(f"what can be shown in fractions is {float(found)!r}")
    return proof


def _worth(instance: Instance, proof: Mapping[str, Any], left: Callable[[], float]) -> list[Any]:
    """By class what says that sets are worth at most an equal share of what all units are: that all sets are looked at,
    where they are few enough, or a tree."""
    price, memory, of_class = given_prices(instance, proof)
    counts = instance.counts
    rest = sum(price, Fraction(0)) - sum((n * q for n, q in zip(counts, memory, strict=True)), Fraction(0))
    allowed = _allowed(proof, rest, instance)
    out: list[Any] = []
    for c in range(instance.classes):
        largest, value = Fraction(proof["largest"]), _below(allowed[c])
        try:
            none_worth_more(instance.work[c], instance.moving[c], of_class[c], largest, Fraction(value))
            out.append({"sets": value})
            continue
        except TooManySetsError:
            program = worth_program(instance, c, of_class[c], largest)
        out.append(case_tree(program, -allowed[c], left()))
    return out


def _allowed(proof: Mapping[str, Any], rest: Fraction, instance: Instance) -> list[Fraction]:
    """What sets of each class may be worth, so that all devices together are worth a little less than the rest."""
    if rest <= 0:
        raise NoProofError("the prices say nothing")
    # What found the prices says what sets are worth; the rest is shared out, so that each has some room.
    known = [max(Fraction(0), Fraction(value)) for value in proof.get("value", [0.0] * instance.classes)]
    whole = sum((n * v for n, v in zip(instance.counts, known, strict=True)), Fraction(0))
    return [v + (rest - whole) / sum(instance.counts) * Fraction(99, 100) for v in known]


def _below(value: Fraction) -> float:
    """A double that is not above a fraction."""
    out = float(value)
    return out if Fraction(out) <= value else math.nextafter(out, -math.inf)


def load_proof(
    problem: Problem, document: Mapping[str, Any], bound: float, begun: Mapping[str, Any] | None, seconds: float
) -> dict[str, Any]:
    """The proof of a bound on the largest load: how it was found, or else whatever shows as much.

    ``document``: the problem as the checker reads it;  ``begun``: how the proof begins, if what found it tells.
    """
    deadline = time.monotonic() + seconds
    given = instance(document)
    reasons: dict[str, str] = {}

    def attempt(first: Mapping[str, Any], share: float) -> dict[str, Any] | None:
        left = (deadline - time.monotonic()) * share
        if left <= 0.0:
            reasons.setdefault(str(first["kind"]), f"{first['kind']}: there is no time for it")
            return None
        try:
            return completed(given, first, bound, left)
        except NoProofError as reason:
            reasons.setdefault(str(first["kind"]), f"{first['kind']}: {reason}")
            return None

    if begun is not None and (found := attempt(begun, _OWN_SHARE)) is not None:
        return found
    for other in _others(problem, given, bound):
        if (begun is None or other != begun) and (found := attempt(other, 0.5)) is not None:
            return found
    devices = sum(given.counts)
    small = (given.units + max(map(len, given.moving), default=0)) * devices <= _MOST_COLUMNS
    if small and (found := attempt({"kind": "placements"}, 0.3)) is not None:
        return found
    # The search takes loads for within a limit that are above it by rounding, and the checker does not.
    priced = None
    if begun is None or begun["kind"] != "prices":
        priced = prices(problem, bound * (1.0 - _NEAR), (deadline - time.monotonic()) / 2)
    if priced is not None and (found := attempt(priced, 1.0)) is not None:
        return found
    own, others = reasons.pop(str((begun or {}).get("kind")), ""), ", ".join(reasons)
    raise NoProofError(f"{own}; nor of kind {others}" if own else f"none of kind {others}")


def elementary(relaxed: Relaxation, given: Instance) -> Iterator[Mapping[str, Any]]:
    """Proofs by sums alone."""
    from placedsl.algorithms.partitions.bounds.work import work_bound

    yield {"kind": "simple"}
    if any(one is not None for one in given.streams):
        yield {"kind": "streamed"}
    work = work_bound(relaxed)
    if work.certificate is not None and work.certificate["kind"] == "work":
        yield work.certificate


def _others(problem: Problem, given: Instance, bound: float) -> Iterator[Mapping[str, Any]]:
    """Proofs of other kinds, from quick to slow."""
    from placedsl.algorithms.partitions.bounds.flow import flow_bounds
    from placedsl.algorithms.partitions.bounds.relaxation import relaxation

    relaxed = relaxation(problem)
    yield from elementary(relaxed, given)
    if given.pairs is not None:
        yield {"kind": "ideals"}
    enough = bound * (1.0 - float(SAME))
    for cut in flow_bounds(relaxed, str, enough, lambda: bound, lambda: False, _FLOW_SECONDS):
        if cut.certificate is not None:
            yield cut.certificate
    if given.classes == 1 and given.pairs is not None:
        yield {"kind": "boundaries"}
    if given.classes == 1:
        units, tensors, stages = given.units, len(given.moving[0]), given.counts[0]
        if units + tensors <= _MOST_COLUMNS:
            yield {"kind": "even share"}
        for number in sorted({2, stages} if stages > 2 else {stages}):
            if units * (number - 1) + tensors * number <= _MOST_COLUMNS:
                yield {"kind": "superblocks", "stages": _even(stages, number)}


def _even(stages: int, blocks: int) -> list[int]:
    return [stages // blocks + (k < stages % blocks) for k in range(blocks)]
