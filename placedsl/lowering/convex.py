"""Source: Convex.  Target: linear rows, equations (11) to (13) of Tarnawski et al. 2020, Lemma 4.1."""

from __future__ import annotations

import numpy as np

from placedsl.ir.program import Convex, Origin
from placedsl.lowering.context import LoweringContext, Note


def lower(constraint: Convex, context: LoweringContext) -> None:
    """Add the rows: ``above`` lies over the membership and does not grow along an edge."""
    sets, nodes = constraint.members.shape
    used = np.unique(np.concatenate((constraint.before, constraint.after)))
    position = np.full(nodes, -1)
    position[used] = np.arange(len(used))
    origin = Origin(constraint.origin.name, constraint.origin.span)
    name = context.of_members(constraint.origin, "above", used)
    above = context.add_columns(sets * len(used), 0, 1, context.integral, name).reshape(sets, len(used))
    member = constraint.members[:, used]
    u, v = position[constraint.before], position[constraint.after]
    z_u, z_v = above[:, u].ravel(), above[:, v].ravel()
    x_u, x_v = member[:, u].ravel(), member[:, v].ravel()
    context.add_rows(origin, [(above.ravel(), 1.0), (member.ravel(), -1.0)], 0.0, np.inf)
    if len(u):
        context.add_rows(origin, [(z_u, 1.0), (z_v, -1.0)], 0.0, np.inf)
        context.add_rows(origin, [(z_v, 1.0), (x_v, -1.0), (x_u, 1.0)], -np.inf, 1.0)
    context.notes.append(Note(constraint.origin.name, "convex to rows (11)-(13)", sets, span=constraint.origin.span))
