"""Which of a spec's rules a single stage satisfies or not, which are rows over all stages, and which compare devices.

    local     about one device: a stage of it is allowed or not
    joint     a sum over devices: a row of the program
    family    the same for every device, or pair of devices, of a class, beside a sum over all devices: ``f(d) + g(e) +
              common <= upper``; devices of the class stay interchangeable
    general   over several devices and 0/1 columns of the rule's own: kept as it is, the devices told apart
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.pipelines.path_program.inequalities import (
    Conditional,
    Inequalities,
    Written,
    stacked,
    written,
)
from placedsl.algorithms.pipelines.path_program.rule_columns import GroundRule, StageColumns
from placedsl.arrays import Floats, Integers

#: A number of a stage by feature: positions and coefficients.
Feature = tuple[Integers, Floats]
#: Most devices that a general rule may tell apart.
_MOST_NAMED = 16


@dataclass(frozen=True, eq=False)
class Local:
    """Rows over the features of one device, and a coefficient of the time per sample; ``logic``: what they depend on.

    ``rows``   columns are features, or ``features`` (the time), or beyond it 0/1 columns of the rule's own
    """

    rule: str
    written: Written
    used_only: bool = False

    @property
    def signature(self) -> bytes:
        """Equal for devices of which the same is asked."""
        return _signature(self.written) + bytes((self.used_only,))


@dataclass(frozen=True, eq=False)
class Joint:
    """``sum over devices of a number of their stages + time * time per sample <= upper``."""

    rule: str
    of_device: dict[int, Feature]
    time: float
    upper: float


@dataclass(frozen=True, eq=False)
class Family:
    """``first(d) + second(e) + common <= upper`` for d of ``firsts`` and e of ``seconds`` (device classes), d != e.

    ``second``   None: of single devices
    ``common``   a joint row without a side, or None
    ``used_only``  it holds of devices in use alone
    """

    rule: str
    first: Feature
    firsts: frozenset[int]
    second: Feature | None
    seconds: frozenset[int]
    common: Joint | None
    upper: float
    used_only: bool


@dataclass(frozen=True, eq=False)
class General:
    """A rule over several devices with 0/1 columns of its own, over the columns of ``StageColumns`` and those."""

    rule: str
    written: Written
    first: int
    binary: np.ndarray
    devices: tuple[int, ...]


@dataclass(eq=False)
class StageRules:
    """All rules of a spec; ``beyond`` names those that are left out, ``impossible`` those that nothing satisfies."""

    columns: StageColumns
    local: dict[int, list[Local]] = field(default_factory=dict)
    joint: list[Joint] = field(default_factory=list)
    families: list[Family] = field(default_factory=list)
    general: list[General] = field(default_factory=list)
    beyond: list[str] = field(default_factory=list)
    impossible: list[str] = field(default_factory=list)
    most_time: float = np.inf


def sorted_out(
    layout: StageColumns, ground: Iterable[GroundRule], beyond: list[str], classes: Integers, memory: float
) -> StageRules:
    """The rules by what they are about; ``classes`` of interchangeable devices, ``memory`` of all units together."""
    out = StageRules(layout, beyond=list(beyond))
    for rule in ground:
        if rule.impossible:
            out.impossible.append(rule.name)
            continue
        whole = written(rule)
        if whole is None or not _take(out, rule, whole, classes, memory):
            out.beyond.append(rule.name)
    return out


def _take(out: StageRules, rule: GroundRule, whole: Written, classes: Integers, memory: float) -> bool:
    """Sort out one rule; False if it is left out."""
    layout = out.columns
    own = np.flatnonzero(np.ones(rule.columns, dtype=bool)) + rule.first
    root = {int(c): int(c) for c in own}

    def find(column: int) -> int:
        while root[column] != column:
            root[column] = root[root[column]]
            column = root[column]
        return column

    groups: list[list[int]] = []  # own columns that stand together
    always, depending = whole.always, whole.conditional
    for i in range(always.count):
        groups.append([c for c in always.entries(i)[0].tolist() if c >= layout.count])
    for i in range(depending.body.count):
        literal = [c for c, _ in depending.literals[i] if c >= layout.count]
        groups.append(literal + [c for c in depending.body.entries(i)[0].tolist() if c >= layout.count])
    groups += [[c for c in triple if c >= layout.count] for triple in whole.products]
    for group in groups:
        for column in group[1:]:
            root[find(column)] = find(group[0])
    keys = [find(group[0]) if group else -1 for group in groups]
    plain = [i for i in range(always.count) if keys[i] < 0]
    rows: dict[int, list[int]] = {}
    for i, key in enumerate(keys):
        if key >= 0:
            rows.setdefault(key, []).append(i)
        elif i >= always.count:
            rows[-2 - i] = [i]  # conditional on columns of devices alone
    for members in rows.values():
        if not _component(out, rule, whole, members):
            return False
    return _rows(out, rule, always.take(np.array(plain, dtype=np.int64)), classes, memory)


def _component(out: StageRules, rule: GroundRule, whole: Written, members: list[int]) -> bool:
    """Rows that stand together by columns of the rule's own: about one device, or general."""
    layout, count = out.columns, whole.always.count
    both = count + whole.conditional.body.count
    always = whole.always.take(np.array([i for i in members if i < count], dtype=np.int64))
    kept = np.array([i - count for i in members if count <= i < both], dtype=np.int64)
    body, literals = whole.conditional.body.take(kept), tuple(whole.conditional.literals[i] for i in kept.tolist())
    products = tuple(whole.products[i - both] for i in members if i >= both)
    part = Written(always, Conditional(body, literals), products)
    named = _columns_of(part)
    of_devices = named[named < layout.time]
    devices = np.unique(of_devices % layout.devices)
    if len(devices) > 1 or not len(devices):
        if rule.used_only or layout.time in named or len(devices) > _MOST_NAMED or not len(devices):
            return False
        binary = np.concatenate((np.zeros(layout.count, dtype=bool), np.zeros(rule.first - layout.count, dtype=bool),
                                 rule.binary))  # fmt: skip
        out.general.append(General(rule.name, part, rule.first, binary, tuple(devices.tolist())))
        return True
    # By features, so that what is asked of like devices looks alike.
    own = np.unique(named[named >= layout.count])
    number = {int(c): layout.features + 1 + k for k, c in enumerate(own.tolist())}
    number[layout.time] = layout.features

    def feature(column: int) -> int:
        return number[column] if column >= layout.time else column // layout.devices

    out.local.setdefault(int(devices[0]), []).append(Local(rule.name, _renamed(part, feature), rule.used_only))
    return True


def _columns_of(part: Written) -> Integers:
    literals = [c for row in part.conditional.literals for c, _ in row]
    products = [c for triple in part.products for c in triple]
    return np.concatenate((part.always.column, part.conditional.body.column, np.array(literals + products, dtype=int)))


def _renamed(part: Written, feature) -> Written:  # type: ignore[no-untyped-def]
    def rows(one: Inequalities) -> Inequalities:
        column = np.array([feature(c) for c in one.column.tolist()], dtype=np.int64)
        return Inequalities(one.start, column, one.coefficient, one.upper)

    literals = tuple(tuple((feature(c), value) for c, value in row) for row in part.conditional.literals)
    products = tuple((feature(a), feature(b), feature(c)) for a, b, c in part.products)
    return Written(rows(part.always), Conditional(rows(part.conditional.body), literals), products)


def _signature(part: Written) -> bytes:
    arrays = [array for one in (part.always, part.conditional.body)
              for array in (one.start, one.column, one.coefficient, one.upper)]  # fmt: skip
    return b"|".join(a.tobytes() for a in arrays) + repr((part.conditional.literals, part.products)).encode()


def _rows(out: StageRules, rule: GroundRule, rows: Inequalities, classes: Integers, memory: float) -> bool:
    """Rows over columns of devices alone."""
    layout, lengths = out.columns, np.diff(rows.start)
    filled = np.flatnonzero(lengths > 0)
    if (rows.upper[lengths == 0] < -1e-9).any():
        out.impossible.append(rule.name)
    rows = rows.take(filled)
    row = rows.row_of_entry()
    device = np.where(rows.column == layout.time, -1, rows.column % layout.devices)
    low = np.full(rows.count, layout.devices)
    np.minimum.at(low, row[device >= 0], device[device >= 0])
    high = np.full(rows.count, -1)
    np.maximum.at(high, row, device)
    for i in np.flatnonzero(high < 0).tolist():  # the time per sample alone
        _, coefficient = rows.entries(i)
        if coefficient[0] < 0.0:
            return False
        out.most_time = min(out.most_time, float(rows.upper[i]) / float(coefficient[0]))
    single = (high >= 0) & (low == high)
    for d in np.unique(high[single]).tolist():
        _local(out, rule, rows.take(np.flatnonzero(single & (high == d))), d)
    families: dict[tuple[object, ...], _Sought] = {}
    several = rows.take(np.flatnonzero((high >= 0) & (low < high)))
    for i in range(several.count):
        _joint(out, rule, several, i, classes, memory, families)
    return _families(out, rule, families, classes)


def _local(out: StageRules, rule: GroundRule, rows: Inequalities, device: int) -> None:
    """Rows about one device."""
    layout = out.columns
    column = np.where(rows.column == layout.time, layout.features, rows.column // layout.devices)
    own = Inequalities(rows.start, column, rows.coefficient, rows.upper)
    part = Written(own, _UNCONDITIONAL, ())
    out.local.setdefault(device, []).append(Local(rule.name, part, rule.used_only))


_UNCONDITIONAL = Conditional(stacked(()), ())


@dataclass(eq=False)
class _Sought:
    """A family as far as its rows have been met."""

    first: tuple[int, Feature]
    second: tuple[int, Feature] | None
    common: Joint | None
    upper: float
    met: set[tuple[int, ...]] = field(default_factory=set)
    rows: list[Joint] = field(default_factory=list)


def _joint(
    out: StageRules, rule: GroundRule, rows: Inequalities, i: int, classes: Integers, memory: float,
    families: dict[tuple[object, ...], _Sought],
) -> None:  # fmt: skip
    """One row over several devices."""
    layout = out.columns
    column, coefficient = rows.entries(i)
    time = float(coefficient[column == layout.time].sum())
    inside = column < layout.time
    column, coefficient, upper = column[inside], coefficient[inside], float(rows.upper[i])
    feature, device = column // layout.devices, column % layout.devices
    if len(np.unique(device)) * 2 > layout.devices:
        feature, device, coefficient, upper = _less_constants(layout, feature, device, coefficient, upper, memory)
    of_device: dict[int, Feature] = {}
    for d in np.unique(device).tolist():
        own = device == d
        of_device[d] = feature[own], coefficient[own]
    if not of_device:
        if upper < -1e-9 and not time:
            out.impossible.append(rule.name)
        elif time > 0.0:
            out.most_time = min(out.most_time, upper / time)
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
        out.local.setdefault(d, []).append(Local(rule.name, Written(part, _UNCONDITIONAL, ())))
        return
    special, common = _apart(of_device, classes)
    if not special and not rule.used_only:
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
            sought = _Sought(ends[0], ends[1] if len(ends) > 1 else None, shared, upper)
            families[key] = sought
        alike = len(parts) == 2 and parts[0][:3] == parts[1][:3]
        sought.met.add(tuple(sorted(members)) if alike else members)
        sought.rows.append(joint)
        return
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
    layout: StageColumns, feature: Integers, device: Integers, coefficient: Floats, upper: float, memory: float
) -> tuple[Integers, Integers, Floats, float]:
    """A row less multiples of what is the same for every placement: each unit is on one device, all memory is used."""
    known, back = np.unique(feature, return_inverse=True)
    dense = np.zeros((len(known), layout.devices))
    np.add.at(dense, (back, device), coefficient)
    middle = np.sort(dense, axis=1)[:, layout.devices // 2]
    often = (dense == middle[:, None]).sum(axis=1) * 2 > layout.devices
    total = np.where(known < layout.units, 1.0, np.where(known == layout.units + 1, memory, 0.0))
    usual = np.where(often & (total > 0.0), middle, 0.0)
    upper -= float((usual * total).sum())
    left = dense - usual[:, None]
    at, d = np.nonzero(left)
    return known[at], d, left[at, d], upper


def _families(
    out: StageRules, rule: GroundRule, families: dict[tuple[object, ...], _Sought], classes: Integers
) -> bool:
    """What is the same for all devices, or all pairs, stays so; else the devices are told apart."""
    found: dict[tuple[object, ...], list[tuple[_Sought, int, int]]] = {}
    for key, sought in families.items():
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
