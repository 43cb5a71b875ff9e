"""Rows over several devices: those that tell devices of a class apart, alike for each of them, and the others."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.pipelines.path_program.inequalities import Inequalities, Written
from placedsl.algorithms.pipelines.path_program.rule_columns import GroundRule, StageColumns
from placedsl.algorithms.pipelines.path_program.stage_rules import (
    UNCONDITIONAL,
    Family,
    Feature,
    Joint,
    Local,
    StageRules,
)
from placedsl.arrays import Floats, Integers
from placedsl.tolerances import EVALUATION


@dataclass(eq=False)
class Sought:
    """A family as far as its rows have been met."""

    first: tuple[int, Feature]
    second: tuple[int, Feature] | None
    common: Joint | None
    upper: float
    met: set[tuple[int, ...]] = field(default_factory=set)
    rows: list[Joint] = field(default_factory=list)


def take_joint(
    out: StageRules, rule: GroundRule, rows: Inequalities, i: int, classes: Integers, memory: float,
    families: dict[tuple[object, ...], Sought],
) -> None:  # fmt: skip
    """One row over several devices."""
    layout = out.columns
    column, coefficient = rows.entries(i)
    time = float(coefficient[column == layout.time].sum())
    inside = column < layout.time
    column, coefficient, upper = column[inside], coefficient[inside], float(rows.upper[i])
    feature, device = column // layout.devices, column % layout.devices
    size = abs(upper)  # of the numbers that the limit is what is left of
    if len(np.unique(device)) * 2 > layout.devices:
        feature, device, coefficient, usual = _less_constants(layout, feature, device, coefficient, memory)
        upper, size = upper - float(usual.sum()), size + float(np.abs(usual).sum())
    of_device: dict[int, Feature] = {}
    for d in np.unique(device).tolist():
        own = device == d
        of_device[d] = feature[own], coefficient[own]
    if not of_device:
        if upper < -EVALUATION * size and not time:
            out.impossible.append(rule.name)
        elif time > 0.0:
            out.most_time = min(out.most_time, (upper + EVALUATION * size) / time)
        elif time < 0.0:
            out.beyond.append(rule.name)
        return
    joint = Joint(rule.name, of_device, time, upper)
    if len(of_device) == 1 and not rule.used_only:
        d = next(iter(of_device))
        features, values = of_device[d]
        more = ([layout.features], [time]) if time else ([], [])
        both = np.append(features, more[0]).astype(np.int64), np.append(values, more[1])
        part = Inequalities(np.array([0, len(both[0])]), *both, np.array([upper]))
        out.local.setdefault(d, []).append(Local(rule.name, Written(part, UNCONDITIONAL, ())))
        return
    # Of devices in use alone: one that is not in use must not count as one with a sum of 0.
    special, common = (sorted(of_device), {}) if rule.used_only else _apart(of_device, classes)
    if not special:
        out.joint.append(joint)
        return
    if 1 <= len(special) <= 2:
        parts = sorted((*_bytes(of_device.get(d, _NOTHING)), int(classes[d]), d) for d in special)
        shared = Joint(rule.name, common, time, 0.0) if common or time else None
        key = (tuple(p[:3] for p in parts), _by_class(common, classes), time, upper)
        members = tuple(p[3] for p in parts)
        sought = families.get(key)
        if sought is None:
            ends = [(int(classes[d]), of_device.get(d, _NOTHING)) for d in members]
            ends = [(c, _less(f, common.get(d, _NOTHING))) for (c, f), d in zip(ends, members, strict=True)]
            sought = Sought(ends[0], ends[1] if len(ends) > 1 else None, shared, upper)
            families[key] = sought
        alike = len(parts) == 2 and parts[0][:3] == parts[1][:3]
        sought.met.add(tuple(sorted(members)) if alike else members)
        sought.rows.append(joint)
        return
    if rule.used_only:
        out.beyond.append(rule.name)
    else:
        out.joint.append(joint)


_NOTHING: Feature = (np.zeros(0, dtype=np.int64), np.zeros(0))


def _bytes(feature: Feature) -> tuple[bytes, bytes]:
    return feature[0].tobytes(), feature[1].tobytes()


def _less(feature: Feature, other: Feature) -> Feature:
    """The difference of two numbers of a stage."""
    both, back = np.unique(np.concatenate((feature[0], other[0])), return_inverse=True)
    value = np.bincount(back, np.concatenate((feature[1], -other[1])), minlength=len(both))
    kept = np.abs(value) > 1e-12 * np.abs(value).max(initial=0.0)
    return both[kept].astype(np.int64), value[kept]


def _by_class(common: dict[int, Feature], classes: Integers) -> tuple[object, ...]:
    return tuple(sorted({(int(classes[d]), *_bytes(f)) for d, f in common.items()}))


def _apart(of_device: dict[int, Feature], classes: Integers) -> tuple[list[int], dict[int, Feature]]:
    """The devices that a row tells apart from others of their class, and what it says of all others (of all devices of
    their classes)."""
    special, common = list[int](), dict[int, Feature]()
    for kind in np.unique(classes[np.fromiter(of_device, dtype=np.int64)]).tolist():
        members = np.flatnonzero(classes == kind).tolist()
        known: dict[tuple[bytes, bytes], list[int]] = {}
        for d in members:
            known.setdefault(_bytes(of_device.get(d, _NOTHING)), []).append(d)
        most = max(known.values(), key=len)
        if 2 * len(most) <= len(members):
            most = []  # none is what is usual
        special += [d for d in members if d not in most]
        usual = of_device.get(most[0], _NOTHING) if most else _NOTHING
        if len(usual[0]):
            common |= dict.fromkeys(members, usual)
    return special, common


def _less_constants(
    layout: StageColumns, feature: Integers, device: Integers, coefficient: Floats, memory: float
) -> tuple[Integers, Integers, Floats, Floats]:
    """A row less multiples of what is the same for every placement, and these: each unit is on one device, all memory
    is used."""
    known, back = np.unique(feature, return_inverse=True)
    dense = np.zeros((len(known), layout.devices))
    np.add.at(dense, (back, device), coefficient)
    middle = np.sort(dense, axis=1)[:, layout.devices // 2]
    often = (dense == middle[:, None]).sum(axis=1) * 2 > layout.devices
    total = np.where(known < layout.units, 1.0, np.where(known == layout.units + 1, memory, 0.0))
    usual = np.where(often & (total > 0.0), middle, 0.0)
    left = dense - usual[:, None]
    at, d = np.nonzero(left)
    return known[at], d, left[at, d], usual * total


def take_families(
    out: StageRules, rule: GroundRule, families: dict[tuple[object, ...], Sought], classes: Integers
) -> bool:
    """What is the same for all devices, or all pairs, stays so; else the devices are told apart."""
    found: dict[tuple[object, ...], list[tuple[Sought, int, int]]] = {}
    for key, sought in families.items():
        # Of a class of two it is not seen which of them the row is about: the one that it says something of.
        if sought.second is not None and sought.second[0] == sought.first[0]:
            told = [k for k, end in enumerate((sought.first, sought.second)) if len(end[1][0])]
            if len(told) == 1:
                sought.met = {(members[told[0]],) for members in sought.met}
                sought.first, sought.second = (sought.first, sought.second)[told[0]], None
        first, second = sought.first, sought.second
        sizes = [int((classes == first[0]).sum())]
        expected = sizes[0]
        if second is not None:
            sizes.append(int((classes == second[0]).sum()))
            same = first[0] == second[0]
            alike = same and _bytes(first[1]) == _bytes(second[1])
            expected = sizes[0] * (sizes[1] - same) // (2 if alike else 1)
        if len(sought.met) < expected:
            if rule.used_only:
                return False
            out.joint += sought.rows
            continue
        ends = (first[1], _NOTHING if second is None else second[1])
        like = (*_bytes(ends[0]), *_bytes(ends[1]), second is None, *key[1:])
        found.setdefault(like, []).append((sought, first[0], -1 if second is None else second[0]))
    for members in found.values():
        sought = members[0][0]
        firsts, seconds = ({m[1] for m in members}, {m[2] for m in members})
        whole = len(members) == len(firsts) * len(seconds)
        groups = [(frozenset(firsts), frozenset(seconds))] if whole else [
            (frozenset((m[1],)), frozenset((m[2],))) for m in members
        ]  # fmt: skip
        for one, other in groups:
            out.families.append(Family(
                rule.name, sought.first[1], one, None if sought.second is None else sought.second[1],
                frozenset() if sought.second is None else other, sought.common, sought.upper, rule.used_only,
            ))  # fmt: skip
    return True
