"""Certificates as plain data: what they claim by enumeration, written from the pages alone, and changes at random.

Nothing here is placedsl's: loads are worked out anew from the numbers of the document, placement by placement.
"""

from __future__ import annotations

import copy
import itertools
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

Data = dict[str, Any]


def loads(problem: Data, placement: tuple[int, ...]) -> Fraction | None:
    """The largest load of a placement (a device position for each node); None where it is none."""
    devices, nodes = problem["devices"], problem["nodes"]
    out = Fraction(0)
    of_unit: dict[int, int] = {}
    for node, d in zip(nodes, placement, strict=True):
        if of_unit.setdefault(node["unit"], d) != d:
            return None
    for d, device in enumerate(devices):
        here = {v for v, p in enumerate(placement) if p == d}
        if not here:
            continue
        c = device["class"]
        times = [nodes[v]["time"][c] for v in here]
        held = sum(Fraction(nodes[v]["memory"]) for v in here)
        limit = problem["memory"][c]
        if None in times or (limit is not None and held > Fraction(limit) * (1 + Fraction(1, 10**9))):
            return None
        own = sum(map(Fraction, times), Fraction(0))
        for tensor in problem["tensors"]:
            touching = {tensor["maker"], *tensor["readers"]}
            if touching & here and touching - here:
                own += Fraction(tensor["moving"][c])
        streams = problem["streams"][c]
        if streams is not None:
            own += max(Fraction(0), held - Fraction(streams["room"])) * Fraction(streams["per_byte"])
        out = max(out, own)
    if problem["order"] is not None and _cycle({(placement[v], placement[w]) for v, w in problem["order"]}):
        return None
    return out


def _cycle(arcs: set[tuple[int, int]]) -> bool:
    """Whether arcs between different devices close a cycle."""
    left = {(a, b) for a, b in arcs if a != b}
    while left:
        starts = {a for a, _ in left}
        ends = {b for _, b in left}
        rest = {(a, b) for a, b in left if a in ends and b in starts}
        if rest == left:
            return True
        left = rest
    return False


def least(problem: Data) -> Fraction | None:
    """The least largest load over all placements; None: there is no placement."""
    units = sorted({node["unit"] for node in problem["nodes"]})
    found: Fraction | None = None
    for chosen in itertools.product(range(len(problem["devices"])), repeat=len(units)):
        of_unit = dict(zip(units, chosen, strict=True))
        value = loads(problem, tuple(of_unit[node["unit"]] for node in problem["nodes"]))
        if value is not None and (found is None or value < found):
            found = value
    return found


def longest_path(problem: Data) -> Fraction:
    """The largest sum of least times along edges, over all paths."""
    after: dict[int, list[int]] = {}
    for v, w in problem["edges"]:
        after.setdefault(v, []).append(w)

    def from_(v: int) -> Fraction:
        own = min(map(Fraction, problem["nodes"][v]["time"]))
        return own + max((from_(w) for w in after.get(v, [])), default=Fraction(0))

    return max((from_(v) for v in range(len(problem["nodes"]))), default=Fraction(0))


def true(answer: Data, certificate: Data) -> bool:
    """Whether what an answer and a certificate claim together is so, whatever the proof is."""
    rounding = 1 + Fraction(3, 10**9)
    goal, problem = answer["objective"], certificate["problem"]
    claimed = max(Fraction(goal["bound"]), Fraction(certificate["bound"]))
    if goal["name"] == "latency":
        return claimed <= longest_path(problem) * rounding
    names = {device["name"]: d for d, device in enumerate(problem["devices"])}
    placement = tuple(names[answer["placement"][node["id"]]] for node in problem["nodes"])
    value, reached = loads(problem, placement), least(problem)
    if value is None or reached is None or abs(value - Fraction(goal["value"])) > value * (rounding - 1):
        return False
    return claimed <= reached * rounding


def places(part: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all parts of JSON data."""
    inside = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in inside:
        yield (*place, key)
        yield from places(value, (*place, key))


def mutated(rng: random.Random, answer: Data, certificate: Data) -> tuple[Data, Data]:
    """One change of what is claimed, of the problem, or, mostly, of the proof."""
    answer, certificate = copy.deepcopy(answer), copy.deepcopy(certificate)
    kind = rng.random()
    if kind < 0.25:
        _raise(rng, answer, certificate)
    elif kind < 0.3:
        _change(rng, answer, ("placement", rng.choice(list(answer["placement"]))))
    elif kind < 0.45:
        _change(rng, certificate, rng.choice(list(places(certificate["problem"], ("problem",)))))
    else:
        _change(rng, certificate, rng.choice(list(places(certificate["proof"], ("proof",)))))
    return answer, certificate


def _raise(rng: random.Random, answer: Data, certificate: Data) -> None:
    """Claim more than what is proven: by little or much, in one place or both; a proof's own limit goes with it."""
    more = 1 + 10 ** rng.uniform(-6, 1)
    goal, proof = answer["objective"], certificate["proof"]
    chosen = rng.randint(1, 3)
    if chosen & 1:
        goal["bound"] = goal["bound"] * more + 1e-12
    if chosen & 2:
        certificate["bound"] = certificate["bound"] * more + 1e-12
    if "largest" in proof and rng.random() < 0.7:
        proof["largest"] *= more
    if rng.random() < 0.2:
        goal["value"] = goal["value"] * more + 1e-12


def _change(rng: random.Random, document: Data, place: tuple[Any, ...]) -> None:
    """Another number, another kind of thing, or nothing at a place of a document."""
    at: Any = document
    for key in place[:-1]:
        at = at[key]
    key, old = place[-1], at[place[-1]]
    if rng.random() < 0.15:
        del at[key]
        return
    if isinstance(at, list) and rng.random() < 0.15:
        other = rng.randrange(len(at))
        at[key], at[other] = at[other], at[key]
        return
    if isinstance(old, bool) or not isinstance(old, int | float):
        at[key] = rng.choice([None, 0, "x", [], {}, [old], copy.deepcopy(old)])
        if isinstance(old, list) and old and rng.random() < 0.5:
            at[key] = [*old, copy.deepcopy(rng.choice(old))]
        return
    if isinstance(old, int):
        at[key] = rng.choice([old + 1, old - 1, old + rng.randint(2, 9), 0, -1, 0.5, None, "1", True, 10**30])
    else:
        at[key] = rng.choice(
            [old * (1 + 10 ** rng.uniform(-7, 1)), old * (1 - 10 ** rng.uniform(-7, 0)), -old, 0.0, 1e300, old / 3,
             math.inf, math.nan, None, "1"]
        )  # fmt: skip


def text(spec_seed: int) -> str:
    """A spec of few placements: pipelines of like devices, machines of several kinds, and devices that stream."""
    from support.like_pipelines import like_pipeline
    from support.random_specs import random_spec
    from support.streaming_specs import streaming_spec

    if spec_seed % 3 == 0:
        return like_pipeline(spec_seed)
    if spec_seed % 3 == 1:
        return streaming_spec(spec_seed)
    lines = [line for line in random_spec(spec_seed).splitlines() if "custom" not in line and "schedule" not in line]
    return "\n".join(lines[:-1] if lines[-1] == "subject to" else lines) + "\n"
