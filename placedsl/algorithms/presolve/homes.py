"""Where units whose memory is left out are at home, and what their home's device pays while they are elsewhere.

A unit is at home with a unit that stays where a placement has it: the last one before it, or the first one after it
where nothing before it stays.  It is on the device of its home, or on one after it (before it, in the second case).
docs/presolve.md has the costs and their proof.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.presolve.free_units import FreeUnits
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.graph.order import csr, topological
from placedsl.records import dataclass


@dataclass(frozen=True, eq=False)
class Homes:
    """Units that count no memory, in g groups: once one of a group has left its home, the others leave for nothing.

    ``unit``    g: a unit of the home;  ``group``  u: the group of each unit (-1: none)
    ``memory``  g: what the group occupies
    ``cost``    g x D seconds that the home's device pays, in its one load, while one of the group is elsewhere
    ``later``   g: they are on a later device then; else on an earlier one
    ``group_of_reader``, ``reader``  pairs: where the unit ``reader`` is on another device, that is paid already
    """

    unit: Integers
    group: Integers
    memory: Floats
    cost: Floats
    later: Booleans
    group_of_reader: Integers
    reader: Integers


def nearest(units: FreeUnits, stays: Booleans, wanted: Booleans) -> Integers:
    """2 x u: for each unit that is ``wanted`` the last one before it that stays, and the first one after it (-1: none).

    Of several the one that comes last, and first, in some order of all units.
    """
    order = topological(units.units, units.before, units.after)
    assert order is not None, "units are on no cycle"
    turn = np.empty(units.units, dtype=np.int64)
    turn[order] = np.arange(units.units)
    out = np.full((2, units.units), -1, dtype=np.int64)
    for side, (near, far) in enumerate(((units.after, units.before), (units.before, units.after))):
        start, around = csr(near, far, units.units)
        for v in np.flatnonzero(wanted).tolist():
            met, waiting, best = {v}, [v], -1
            while waiting:
                u = waiting.pop()
                for w in around[start[u] : start[u + 1]].tolist():
                    if w in met:
                        continue
                    met.add(w)
                    if not stays[w]:
                        waiting.append(w)
                    elif best < 0 or (turn[w] > turn[best]) == (side == 0):
                        best = w
            out[side, v] = best
    return out


def homes(units: FreeUnits, near: Integers, stays: Booleans, root: Integers, out: Booleans) -> Homes:
    """The homes of the units that ``near`` (as :func:`nearest` has it) says something of, and that occupy something.

    ``root``, ``out``: u, the unit that each is part of in the relaxation, and those that it leaves out.
    """
    tensors = units.tensors
    reads: dict[int, list[int]] = {}
    makes: dict[int, list[int]] = {}
    for i, one in enumerate(tensors):
        makes.setdefault(one.producer, []).append(i)
        for u in one.readers - {one.producer}:
            reads.setdefault(u, []).append(i)
    made_for_others = {u for u, own in makes.items() if any(tensors[i].readers - {u} for i in own)}

    def lone(i: int) -> bool:
        """Whatever reads a tensor and does not stay makes nothing that anything reads."""
        return not any(units.free[u] and not stays[u] and u in made_for_others for u in tensors[i].readers)

    groups: dict[tuple[int, int], list[int]] = {}
    cost: dict[tuple[int, int], Floats] = {}
    nothing = np.zeros(units.supported.shape[1])
    for v in np.flatnonzero(((near >= 0).any(axis=0)) & (units.memory > 0.0)).tolist():
        home, after = near[:, v].tolist()
        key, own = (home, -1), nothing
        if home >= 0:
            paid = [i for i in reads.get(v, ()) if tensors[i].producer == home and tensors[i].making >= 0 and lone(i)]
            if paid:
                most = max(paid, key=lambda i: float(tensors[i].cost.max()))
                key, own = (home, most), tensors[most].cost
        else:
            home = after
            made = [i for i in makes.get(v, ()) if tensors[i].readers - {v}]
            held = bool(out[v]) or root[v] == root[home]
            sole = all(tensors[i].readers - {v} == {home} and tensors[i].reading >= 0 for i in made)
            key = (home, -2 - v)
            if not reads.get(v) and held and sole:
                own = np.sum([tensors[i].cost for i in made], axis=0) if made else nothing
        groups.setdefault(key, []).append(v)
        cost[key] = own
    keys = list(groups)
    readers = [
        (g, u)
        for g, (home, i) in enumerate(keys)
        if i >= 0
        for u in sorted(tensors[i].readers - {home})
        if not out[u] and root[u] != root[home]
    ]
    group = np.full(units.units, -1, dtype=np.int64)
    for g, key in enumerate(keys):
        group[groups[key]] = g
    return Homes(
        np.array([home for home, _ in keys], dtype=np.int64), group,
        np.array([units.memory[groups[key]].sum() for key in keys]),
        np.array([cost[key] for key in keys]).reshape(len(keys), len(nothing)),
        np.array([i >= -1 for _, i in keys], dtype=bool),
        np.array([g for g, _ in readers], dtype=np.int64), np.array([u for _, u in readers], dtype=np.int64),
    )  # fmt: skip
