"""Source: Pipeline.  Target: linear rows over "at or before" columns.

``reached[c, d]`` says that class c (nodes that always move together) sits in set d or in one before
it; ``reached - member`` then says that it sits before.  Both are ideals of the precedence pairs, which
is Fact 5.2 of Tarnawski et al. 2020 (a contiguous set is the difference of two ideals), and of two sets
one comes entirely first.  Sets that are alike take the order of their numbers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placedsl.ir.program import Origin, Pipeline
from placedsl.lowering.context import LoweringContext, Note


def lower(constraint: Pipeline, context: LoweringContext) -> None:
    """Add the rows."""
    filled = np.asarray((constraint.members >= 0).any(axis=1), dtype=np.bool_)
    if not filled.any():
        return
    constraint = replace(constraint, members=constraint.members[filled], alike=constraint.alike[filled],
                         origin=constraint.origin.take(filled))  # fmt: skip
    member, first, back = np.unique(constraint.members, axis=1, return_index=True, return_inverse=True)
    sets, classes = member.shape
    before, after = back[constraint.before], back[constraint.after]
    pairs = np.unique(np.stack((before, after))[:, before != after], axis=1)
    before, after = pairs
    origin = Origin(constraint.origin.name, constraint.origin.span)
    name = context.of_members(constraint.origin, "reached", first)
    reached = context.add_columns(sets * classes, 0, 1, context.integral, name).reshape(sets, classes)
    context.add_rows(origin, [(reached.ravel(), 1.0), (member.ravel(), -1.0)], 0.0, np.inf)
    u, v = reached[:, before].ravel(), reached[:, after].ravel()
    x, y = member[:, before].ravel(), member[:, after].ravel()
    context.add_rows(origin, [(u, 1.0), (v, -1.0)], 0.0, np.inf)
    context.add_rows(origin, [(u, 1.0), (x, -1.0), (v, -1.0), (y, 1.0)], 0.0, np.inf)

    def entirely_first(d: int, e: int) -> None:
        context.add_rows(origin, [(reached[e], 1.0), (member[e], -1.0), (reached[d], -1.0)], 0.0, np.inf)

    def first_if(d: int, e: int, column: int, when: bool) -> None:
        switch = np.full(classes, column)
        terms = [(reached[e], 1.0), (member[e], -1.0), (reached[d], -1.0), (switch, -1.0 if when else 1.0)]
        context.add_rows(origin, terms, -1.0 if when else 0.0, np.inf)  # type: ignore[arg-type]

    last_of: dict[int, int] = {}
    for d in range(sets):
        kind = int(constraint.alike[d])
        if kind >= 0 and kind in last_of:
            entirely_first(last_of[kind], d)
        last_of[kind] = d
    alike = constraint.alike
    unlike = [(d, e) for d in range(sets) for e in range(d + 1, sets) if alike[d] < 0 or alike[d] != alike[e]]
    switches = context.add_columns(len(unlike), 0, 1, True, _order(constraint.origin, unlike))
    for (d, e), switch in zip(unlike, switches.tolist(), strict=True):
        first_if(d, e, switch, True)
        first_if(e, d, switch, False)
    context.notes.append(Note(constraint.origin.name, "pipeline to ideals", sets, 1.0, span=constraint.origin.span))


def _order(origin: Origin, pairs: list[tuple[int, int]]) -> Origin:
    """The name of columns that say which of two sets comes first."""
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    named = [(f"{k} {end}", k, v[ends[:, i]]) for k, v in origin.indices.items() for i, end in enumerate(("a", "b"))]
    labels = {name: origin.labels[k] for name, k, _ in named}
    return Origin(f"{origin.name}_order", origin.span, {name: v for name, _, v in named}, labels)
