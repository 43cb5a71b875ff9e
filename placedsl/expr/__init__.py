"""Expressions of the language, built in Python: they print as ``.place`` text and mean what that text means.

``forall(load(d) <= 1.1 * load(e) for d in gpu for e in gpu)`` is
``forall d in gpu, e in gpu: load(d) <= 1.1 * load(e)``.  The generator runs once, with names in the place of elements.
A str stands for itself wherever an expression may: ``"16 GiB"``, ``"2 * load(gpu[1])"``; a text value of the language
is ``text("conv")``.  Nothing is checked here but what Python itself would silently get wrong; names, types and units
are the business of the language.
"""

from __future__ import annotations

from typing import Any

from placedsl.expr.sets import Element, Family, Quantified, Set, ranged
from placedsl.expr.terms import (
    ATOM,
    COMPARISON,
    IMPLIES,
    LOOSE,
    OR,
    SUM,
    ExpressionError,
    Term,
    as_condition,
    named,
    term,
    text,
)

__all__ = [
    "Element", "Family", "Set", "Term", "accelerators", "backward", "backward_load", "communication", "convex",
    "count", "devices", "devices_used", "edges", "forall", "forward", "forward_load", "hosts", "if_then_else",
    "largest", "listed", "load", "memory", "no_overlap", "nodes", "partition", "peak_memory", "quantity", "readers",
    "reads", "smallest", "tensors", "text", "time_per_sample", "total", "traffic",
]  # fmt: skip


def forall(generator: Any) -> Term:
    """``forall …: condition``: ``forall(load(d) <= "9 ms" for d in gpu)``."""
    binders, body = ranged(generator, "forall")
    return Quantified(LOOSE, "forall ", binders, as_condition("forall", body), "", True)


def total(generator: Any) -> Term:
    """``sum(…: number)``: ``total(v.memory * v.on(d) for v in nodes)``; a condition counts as 0 or 1."""
    binders, body = ranged(generator, "total")
    return Quantified(ATOM, "sum(", binders, term(body), ")", False)


def count(of: Any) -> Term:
    """``count(…: condition)`` of a generator: how many satisfy it; of a set: how many there are."""
    if isinstance(of, Set) and of.narrowed:
        # With a variable: a bare attribute could be hidden by a parameter of that name.
        of = (True for u, v in of) if of.pairs else (True for v in of)
    if isinstance(of, Set):
        return Term(ATOM, "count(", (of, LOOSE), ")")
    binders, body = ranged(of, "count")
    return Quantified(ATOM, "count(", binders, as_condition("count", body), ")", False)


def largest(*of: Any) -> Term:
    """``max`` of a generator, or of its arguments."""
    return _extreme("max", "largest", of)


def smallest(*of: Any) -> Term:
    """``min`` of a generator, or of its arguments."""
    return _extreme("min", "smallest", of)


def no_overlap(generator: Any) -> Term:
    """``no_overlap(…: there => start..finish)``: ``no_overlap((v.on(d), start(v), finish(v)) for v in nodes)``.

    Intervals are (start, finish), or (whether it is there, start, finish).
    """
    binders, body = ranged(generator, "no_overlap")
    if not isinstance(body, tuple) or len(body) not in (2, 3):
        raise ExpressionError(f"no_overlap takes (start, finish) or (there, start, finish), this is {body!r}")
    interval = Term(COMPARISON, (term(body[-2]), SUM), "..", (term(body[-1]), SUM))
    if len(body) == 3:
        interval = Term(IMPLIES, (as_condition("no_overlap", body[0]), OR), " => ", (interval, IMPLIES))
    return Quantified(ATOM, "no_overlap(", binders, interval, ")", True)


def _extreme(operator: str, what: str, of: tuple[Any, ...]) -> Term:
    if len(of) == 1:
        binders, body = ranged(of[0], what)
        return Quantified(ATOM, f"{operator}(", binders, term(body), ")", False)
    return _number(operator, *of)


def convex(generator: Any) -> Term:
    """``convex({v in nodes: condition})``: no path leaves the set of these nodes and comes back."""
    binders, body = ranged(generator, "convex")
    return Quantified(ATOM, "convex({", binders, as_condition("convex", body), "})", True)


def if_then_else(condition: Any, then: Any, otherwise: Any) -> Term:
    """``if condition then … else …``: numbers; the condition is on data."""
    parts = (as_condition("if", condition), LOOSE), (term(then), LOOSE), (term(otherwise), LOOSE)
    return Term(LOOSE, "if ", parts[0], " then ", parts[1], " else ", parts[2])


def quantity(name: str, *arguments: Any) -> Term:
    """``name(a, b)``, or ``name`` without arguments: any quantity of the vocabulary."""
    return _call(name, arguments, None) if arguments else named(name)


def _number(name: str, *arguments: Any) -> Term:
    """A quantity that is a number for sure, and no condition."""
    return _call(name, arguments, False)


def _call(name: str, arguments: tuple[Any, ...], condition: bool | None) -> Term:
    parts: list[Any] = [f"{name}("]
    for i, argument in enumerate(arguments):
        parts += [", "] * (i > 0) + [(term(argument), LOOSE)]
    return Term(ATOM, *parts, ")", condition=condition)


def load(device: Any) -> Term:
    """Busy time of a device for one sample."""
    return _number("load", device)


def forward_load(device: Any) -> Term:
    """Busy time of a device in a forward pass (schedule gpipe)."""
    return _number("forward_load", device)


def backward_load(device: Any) -> Term:
    """Busy time of a device in a backward pass (schedule gpipe)."""
    return _number("backward_load", device)


def memory(device: Any) -> Term:
    """Bytes that a device's nodes occupy."""
    return _number("memory", device)


def traffic(source: Any, target: Any) -> Term:
    """Size of the tensors that are made on the first device and read on the second."""
    return _number("traffic", source, target)


def readers(tensor: Any) -> Set:
    """The nodes that read a tensor."""
    return Set(Term(ATOM, "readers(", (term(tensor), LOOSE), ")"))


def partition(attribute: str, of: Set | None = None) -> Set:
    """Groups of nodes with one value of an attribute: ``for group in partition("layer") for v in group``."""
    source = nodes if of is None else of
    return Set(Term(ATOM, "partition(", (source, LOOSE), f", {attribute})"))


def listed(*elements: Any) -> Set:
    """``{a, b}``: elements one by one."""
    parts: list[Any] = ["{"]
    for i, one in enumerate(elements):
        parts += [", "] * (i > 0) + [(term(one), LOOSE)]
    return Set(Term(ATOM, *parts, "}"))


nodes, forward, backward = Set("nodes"), Set("forward"), Set("backward")
devices, accelerators, hosts = Set("devices"), Set("accelerators"), Set("hosts")
tensors, edges, reads = Set("tensors"), Set("edges", pairs=True), Set("reads", pairs=True)
time_per_sample, devices_used = named("time_per_sample"), named("devices_used")
communication, peak_memory = named("communication"), named("peak_memory")
