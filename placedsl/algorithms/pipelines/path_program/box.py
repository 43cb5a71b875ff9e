"""A part of the search space: between which numbers the time per sample lies, and what families of rules compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.pipelines.path_program.instance import PathInstance
from placedsl.algorithms.pipelines.path_program.rule_columns import NUMBERS
from placedsl.algorithms.pipelines.path_program.stage_filters import StageNumbers, allowed
from placedsl.algorithms.pipelines.path_program.stage_rules import Family, Joint
from placedsl.algorithms.pipelines.path_program.stage_table import StageTable
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.tolerances import EVALUATION

#: Rows about more units than this are no reason to divide by where these are; nor into more boxes.
_FEW_UNITS = 4
_MOST_SIDES = 16


@dataclass(frozen=True)
class FamilyRange:
    """Of a family: the largest ``first`` of its devices, the common part, and whether all its devices are in use
    (None: either)."""

    first: tuple[float, float] = (-np.inf, np.inf)
    common: tuple[float, float] = (-np.inf, np.inf)
    all_used: bool | None = None


@dataclass(frozen=True)
class Box:
    """The time per sample is above ``low`` and at most ``high``; a range for each family of rules.

    ``sides``   units with the device classes that they may be on
    """

    low: float
    high: float
    families: tuple[FamilyRange, ...]
    sides: tuple[tuple[int, frozenset[int]], ...] = ()

    def with_side(self, unit: int, kinds: frozenset[int]) -> Box:
        """The same where a unit is on one of some classes."""
        return replace(self, sides=(*self.sides, (unit, kinds)))

    def with_family(self, k: int, part: FamilyRange) -> Box:
        """The same with another range."""
        return replace(self, families=(*self.families[:k], part, *self.families[k + 1 :]))


@dataclass(frozen=True, eq=False)
class FamilyNumbers:
    """A family over the stages of a table: S numbers (nan: not of these devices), and its classes.

    ``tied``   the largest ``first`` is so many times the time per sample (0: it is not)
    """

    family: Family
    first: Floats
    second: Floats
    common: Floats
    kinds: frozenset[int]
    devices: int
    tied: float


class StageChoice:
    """Which stages of a table a box leaves open."""

    def __init__(self, instance: PathInstance, table: StageTable) -> None:
        self.instance, self.table = instance, table
        rules, classes = instance.rules, instance.classes
        self.local = [rules.local.get(int(members[0]), []) for members in classes.devices]
        self.of_kind = [np.flatnonzero(table.kind == c) for c in range(len(classes.counts))]
        time = rules.columns.features
        self.timed = [
            [one for one in local if (one.written.always.column == time).any()
             or (one.written.conditional.body.column == time).any()]
            for local in self.local
        ]  # fmt: skip
        self.open = np.ones(table.count, dtype=bool)
        anything = (0.0, np.inf)
        for rows, local in zip(self.of_kind, self.local, strict=True):
            if local and len(rows):
                self.open[rows] = allowed(StageNumbers(table, rows), local, anything)
        self.families = [self._family(one) for one in rules.families]
        self.joint = [self.values(row) for row in rules.joint]
        self._held: dict[int, Booleans] = {}

    def values(self, row: Joint) -> Floats:
        """What each stage adds to a joint row."""
        out = np.zeros(self.table.count)
        for rows, members in zip(self.of_kind, self.instance.classes.devices, strict=True):
            of = row.of_device.get(int(members[0]))
            if of is not None and len(rows):
                out[rows] = StageNumbers(self.table, rows).values(of)
        return out

    def _family(self, one: Family) -> FamilyNumbers:
        instance, table = self.instance, self.table
        firsts = frozenset(c for kind in one.firsts for c in instance.members.get(kind, ()))
        seconds = frozenset(c for kind in one.seconds for c in instance.members.get(kind, ()))
        first, second = np.full(table.count, np.nan), np.full(table.count, np.nan)
        for kinds, feature, into in ((firsts, one.first, first), (seconds, one.second, second)):
            for c in kinds:
                rows = self.of_kind[c]
                if feature is not None and len(rows):
                    into[rows] = StageNumbers(table, rows).values(feature)
        common = np.zeros(table.count) if one.common is None else self.values(one.common)
        both = firsts | seconds
        load = instance.rules.columns.units + NUMBERS.index("load")
        positions, factor = one.first
        tied = 0.0
        if one.second is not None and len(firsts) == len(instance.classes.counts) and positions.tolist() == [load]:
            tied = max(float(factor[0]), 0.0)
        devices = sum(instance.classes.counts[c] for c in both)
        return FamilyNumbers(one, first, second, common, both, devices, tied)

    def within(self, box: Box) -> Booleans:
        """The stages that are open in a box."""
        out = self.open & (self.table.load <= box.high)
        for rows, timed in zip(self.of_kind, self.timed, strict=True):
            if timed:
                chosen = rows[out[rows]]
                if len(chosen):
                    out[chosen] = allowed(StageNumbers(self.table, chosen), timed, (box.low, box.high))
        for unit, kinds in box.sides:
            out &= ~self._holds(unit) | np.isin(self.table.kind, list(kinds))
        for one, part in zip(self.families, ranges(self.families, box), strict=True):
            out &= _family_allows(one, part, common_low(one, part, box))
        return out

    def _holds(self, unit: int) -> Booleans:
        """Which stages have a unit."""
        if unit not in self._held:
            self._held[unit] = StageNumbers(self.table, np.arange(self.table.count)).feature(unit) > 0.5
        return self._held[unit]

    def sides(self) -> tuple[tuple[int, tuple[frozenset[int], ...]], ...]:
        """Units that joint rows name with few others, and the groups of classes that these rows tell apart.

        Mixtures of placements blur such rows most: which group a unit is on is decided first.
        """
        rules, classes = self.instance.rules, self.instance.classes
        of_unit: dict[int, list[dict[int, float]]] = {}
        for row in rules.joint:
            entries = [
                (unit, d, value)
                for d, (features, values) in row.of_device.items()
                for unit, value in zip(features.tolist(), values.tolist(), strict=True)
            ]
            units = {unit for unit, _, _ in entries}
            if len(units) > _FEW_UNITS or max(units) >= rules.columns.units:
                continue
            for unit in units:
                of_unit.setdefault(unit, []).append({d: value for u, d, value in entries if u == unit})
        out, leaves = list[tuple[int, tuple[frozenset[int], ...]]](), 1
        for unit, rows in of_unit.items():
            groups: dict[tuple[float, ...], set[int]] = {}
            for c, members in enumerate(classes.devices):
                groups.setdefault(tuple(row.get(int(members[0]), 0.0) for row in rows), set()).add(c)
            leaves *= len(groups)
            if leaves > _MOST_SIDES:
                break
            parts = [frozenset(group) for group in groups.values()]
            if not out:  # of groups that can change places one is enough
                parts = [
                    g for k, g in enumerate(parts) if not any(exchangeable(self.instance, h, g) for h in parts[:k])
                ]
            out.append((unit, tuple(parts)))
        return tuple(out)

    def must_use(self, box: Box) -> list[bool]:
        """For each class whether a device without a stage breaks a rule."""
        empty = StageNumbers(self.table, None)
        out = []
        for local in self.local:
            bound = [one for one in local if not one.used_only]
            out.append(bool(bound) and not bool(allowed(empty, bound, (box.low, box.high))[0]))
        for one, part in zip(self.families, ranges(self.families, box), strict=True):
            top = one.family.upper + slack(one, one.family.upper)
            idle = not one.family.used_only and one.family.second is None and common_low(one, part, box) > top
            if idle or part.all_used:
                for c in one.kinds:
                    out[c] = True
        return out


def ranges(families: Sequence[FamilyNumbers], box: Box) -> list[FamilyRange]:
    """The ranges of a box, where some follow from the time per sample."""
    out = []
    for one, part in zip(families, box.families, strict=True):
        low, high = part.first
        tied = (max(low, one.tied * box.low), min(high, one.tied * box.high)) if one.tied else (low, high)
        out.append(replace(part, first=tied))
    return out


def common_low(one: FamilyNumbers, part: FamilyRange, box: Box) -> float:
    """The least value of the common part, the time per sample included."""
    shared = one.family.common
    if shared is None:
        return 0.0
    low = part.common[0] if shared.of_device else 0.0
    return low + (shared.time * (box.low if shared.time > 0.0 else box.high) if shared.time else 0.0)


def _family_allows(one: FamilyNumbers, part: FamilyRange, low: float) -> Booleans:
    """The stages that may be there within a range."""
    family = one.family
    out = np.ones(len(one.first), dtype=bool)
    with np.errstate(invalid="ignore"):
        top = family.upper + slack(one, family.upper)
        if family.second is None:
            return out & ~(one.first + low > top)
        largest = part.first[0]
        out &= ~(one.first > part.first[1] + slack(one, part.first[1]))
        out &= ~((one.second + largest + low > top) & ~(one.first >= largest - slack(one, largest)))
        if part.all_used is False and family.firsts == family.seconds:
            out &= ~(one.first + low > top) & ~(one.second + low > top)
    return out


def slack(one: FamilyNumbers, value: float) -> float:
    """The rounding of a comparison."""
    size = float(np.nanmax(np.abs(one.first), initial=0.0)) + float(np.nanmax(np.abs(one.second), initial=0.0))
    return 2.0 * EVALUATION * (size + (abs(value) if np.isfinite(value) else 0.0))


def broken(
    families: Sequence[FamilyNumbers], box: Box, path: Integers, value: float
) -> tuple[int, FamilyRange, FamilyRange] | tuple[int, float, None] | None:
    """The first family that a path does not satisfy: its position and two ranges that divide the box's, each without
    the path; or a time per sample that divides it.  None where it satisfies all."""
    for k, (one, part) in enumerate(zip(families, ranges(families, box), strict=True)):
        family = one.family
        time = 0.0 if family.common is None else family.common.time * value
        common = float(one.common[path].sum())
        upper = family.upper - common - time
        edge = upper + slack(one, upper)
        first, second = one.first[path], one.second[path]
        there, other = np.flatnonzero(~np.isnan(first)), np.flatnonzero(~np.isnan(second))
        in_use = len(np.union1d(there, other))
        idle = not family.used_only and in_use < one.devices
        worst, at = -np.inf, (-1, -1)
        if family.second is None:
            worst = max(first[there].max(initial=-np.inf), 0.0 if idle else -np.inf)
        else:
            for i in there.tolist():
                for j in other.tolist():
                    if i != j and first[i] + second[j] > worst:
                        worst, at = float(first[i] + second[j]), (i, j)
            if idle and max(first[there].max(initial=0.0), second[other].max(initial=0.0)) > edge >= worst:
                if part.all_used is None:
                    return k, replace(part, all_used=True), replace(part, all_used=False)
                worst = max(first[there].max(initial=0.0), second[other].max(initial=0.0))
        if worst <= edge:
            continue
        return (k, *_divided(one, part, upper, common, worst, first, second, at))
    return None


def _divided(
    one: FamilyNumbers, part: FamilyRange, upper: float, common: float, worst: float, first: Floats, second: Floats,
    at: tuple[int, int],
) -> tuple[FamilyRange, FamilyRange] | tuple[float, None]:  # fmt: skip
    """Two ranges in place of one; a time per sample where that is what is divided."""
    over = worst - upper
    shared = one.family.common is not None and bool(one.family.common.of_device)
    if shared and common - over / 2.0 > part.common[0]:
        middle = common - over / 2.0
        return replace(part, common=(part.common[0], middle)), replace(part, common=(middle, part.common[1]))
    if one.family.second is None or at[0] < 0:
        return np.nan, None
    largest = float(np.nanmax(first))
    middle = (max(part.first[0], upper - float(second[at[1]])) + largest) / 2.0
    if not part.first[0] < middle < largest:
        return np.nan, None
    if one.tied:
        return middle / one.tied, None
    return replace(part, first=(part.first[0], middle)), replace(part, first=(middle, part.first[1]))


def exchangeable(instance: PathInstance, one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether the rules stay the same where two groups of classes change places, each class with one that is alike."""
    classes, rules = instance.classes, instance.rules
    if rules.beyond or rules.general:
        return False  # what these rules tell apart is not known here
    base = {c: kind for kind, members in instance.members.items() for c in members}

    def asked(c: int) -> tuple[object, ...]:
        local = rules.local.get(int(classes.devices[c][0]), ())
        return base[c], classes.counts[c], tuple(sorted(part.signature for part in local))

    pairs = list(zip(sorted(one, key=asked), sorted(other, key=asked), strict=False))
    if len(one) != len(other) or any(asked(a) != asked(b) for a, b in pairs) or one & other:
        return False
    if len({asked(a) for a, _ in pairs}) < len(pairs):
        return False  # more than one way to pair them
    moved = dict(pairs) | {b: a for a, b in pairs}
    rows = [*rules.joint, *(family.common for family in rules.families if family.common is not None)]

    def told(row: Joint, where: dict[int, int]) -> tuple[object, ...]:
        of = ((c, row.of_device.get(int(m[0]))) for c, m in enumerate(classes.devices))
        parts = sorted((where.get(c, c), f[0].tobytes(), f[1].tobytes()) for c, f in of if f is not None)
        return tuple(parts), row.time, row.upper

    return sorted(told(row, {}) for row in rows) == sorted(told(row, moved) for row in rows)
