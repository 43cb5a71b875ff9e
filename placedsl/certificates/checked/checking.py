"""Checking an answer and its certificate, both as JSON data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from placedsl.certificates.checked.boundaries import boundaries
from placedsl.certificates.checked.elementary import simple, streamed, work
from placedsl.certificates.checked.flow import flow
from placedsl.certificates.checked.ideals import ideals
from placedsl.certificates.checked.infeasible import INFEASIBLE
from placedsl.certificates.checked.instance import Instance, instance
from placedsl.certificates.checked.numbers import SAME, RefusedError, number
from placedsl.certificates.checked.one_sample import LATENCY
from placedsl.certificates.checked.placements import placements
from placedsl.certificates.checked.prices import prices
from placedsl.certificates.checked.superblocks import even_share, superblocks

#: The version of the format.
VERSION = 2


@dataclass(frozen=True)
class Checked:
    """What holds: the value of the answer's placement (None: it has none, or the value is not recomputed), the bound,
    and what proves it; and the bound of the answer, where the certificate says that it proves less (None: it proves
    that).  ``infeasible``: there is no placement, and no bound."""

    value: Fraction | None
    bound: Fraction
    kind: str
    unproven: Fraction | None = None
    infeasible: bool = False


def doubling(given: Instance, proof: Mapping[str, Any]) -> Fraction:
    """Half of the devices take at most twice as long: two stages together load no more than both."""
    return proven(given.halved(), proof["half"]) / 2


#: How each kind is checked: the bound that it proves on the largest load.
KINDS: dict[str, Callable[[Instance, Mapping[str, Any]], Fraction]] = {
    "simple": simple, "streamed": streamed, "work": work, "flow": flow, "doubling": doubling,
    "boundaries": boundaries, "superblocks": superblocks, "even share": even_share, "prices": prices, "ideals": ideals,
    "placements": placements,
}  # fmt: skip


def proven(given: Instance, proof: Mapping[str, Any]) -> Fraction:
    """What a proof proves of an instance."""
    kind = proof["kind"]
    if kind not in KINDS:
        raise RefusedError(f"there is no kind '{kind}'")
    return KINDS[kind](given, proof)


def check(answer: Mapping[str, Any], certificate: Mapping[str, Any]) -> Checked:
    """Check an answer and its certificate, both as JSON data; RefusedError with the reason where something is wrong."""
    try:
        return _checked(answer, certificate)
    except (KeyError, TypeError, IndexError, ValueError, AttributeError, OverflowError, RecursionError) as problem:
        raise RefusedError(f"it lacks something, or has something of another kind: {problem}") from None


def _checked(answer: Mapping[str, Any], certificate: Mapping[str, Any]) -> Checked:
    if certificate["certificate"] != VERSION:
        raise RefusedError("a certificate of another version")
    goal, proof, problem = answer["objective"], certificate["proof"], certificate["problem"]
    if goal["name"] != certificate["objective"]:
        raise RefusedError("the answer has another objective")
    if goal["name"] == "latency":
        if proof["kind"] not in LATENCY:
            raise RefusedError(f"a proof of kind '{proof['kind']}' says nothing about latency")
        least = LATENCY[proof["kind"]](problem, proof)
        unproven = _claims(answer, certificate, least)
        if answer["placement"] is not None:
            ids = [node["id"] for node in problem["nodes"]]
            if len(set(ids)) != len(ids) or set(answer["placement"]) != set(ids):
                raise RefusedError("the answer does not place the nodes of the certificate")
            if number(goal["value"], "the value of the answer") < least * (1 - SAME):
                raise RefusedError("the answer says less than what is proven")
        return Checked(None, least, proof["kind"], unproven)
    if goal["name"] != "time_per_sample":
        raise RefusedError("the first objective is neither time_per_sample nor latency")
    given = instance(problem)
    if "infeasible" in certificate:
        return _infeasible(answer, given, proof)
    least = proven(given, proof)
    unproven = _claims(answer, certificate, least)
    value = None
    if answer["placement"] is not None:
        value = given.largest_load(answer["placement"])
        told = number(goal["value"], "the value of the answer")
        if abs(told - value) > SAME * value:
            raise RefusedError(f"the placement takes {float(value)!r}, and the answer says {float(told)!r}")
        if value < least * (1 - SAME):
            raise RefusedError("the placement is better than the bound: one of the two is of another problem")
    return Checked(value, least, proof["kind"], unproven)


def _infeasible(answer: Mapping[str, Any], given: Instance, proof: Mapping[str, Any]) -> Checked:
    """That the answer says so, and that there is no placement."""
    kind = proof["kind"]
    if kind not in INFEASIBLE:
        raise RefusedError(f"a proof of kind '{kind}' does not say that there is no placement")
    INFEASIBLE[kind](given, proof)
    if answer["placement"] is not None or answer["status"]["termination"] != "infeasible":
        raise RefusedError("the answer does not say that there is no placement")
    return Checked(None, Fraction(0), kind, infeasible=True)


def _claims(answer: Mapping[str, Any], certificate: Mapping[str, Any], least: Fraction) -> Fraction | None:
    """Refuse a bound of the answer, or of the certificate, that is above what is proven; but for one of the answer of
    which the certificate says that it proves less, which is returned.

    A claim of doubles may be above the fraction that is proven by their rounding.
    """
    told, unproven = number(answer["objective"]["bound"], "the bound of the answer"), None
    if certificate.get("unproven") is not None:
        unproven = number(certificate["unproven"], "the bound that is not proven")
        if unproven != told:
            raise RefusedError(
                "the answer claims another bound than the one that the certificate says it does not prove"
            )
    for claimed in (number(certificate["bound"], "the bound"), *(() if unproven is not None else (told,))):
        if claimed > least * (1 + SAME):
            raise RefusedError(f"a bound of {float(claimed)!r} is claimed, and {float(least)!r} is proven")
    return unproven
