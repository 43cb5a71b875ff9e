"""Rules of a spec sorted out: what they are about decides how a program over paths takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from placedsl.algorithms.pipelines.path_program.inequalities import Conditional, Inequalities, Written, written
from placedsl.algorithms.pipelines.path_program.rule_columns import GroundRule, StageColumns
from placedsl.algorithms.pipelines.path_program.rule_families import Sought, take_families, take_joint
from placedsl.algorithms.pipelines.path_program.stage_rules import UNCONDITIONAL, General, Local, StageRules
from placedsl.arrays import Integers
from placedsl.tolerances import EVALUATION

#: Most devices that a general rule may tell apart.
_MOST_NAMED = 16


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
    root = {c: c for c in range(rule.first, rule.first + rule.columns)}

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


def _renamed(part: Written, feature: Callable[[int], int]) -> Written:
    """The same over other columns."""

    def rows(one: Inequalities) -> Inequalities:
        column = np.array([feature(c) for c in one.column.tolist()], dtype=np.int64)
        return Inequalities(one.start, column, one.coefficient, one.upper)

    literals = tuple(tuple((feature(c), value) for c, value in row) for row in part.conditional.literals)
    products = tuple((feature(a), feature(b), feature(c)) for a, b, c in part.products)
    return Written(rows(part.always), Conditional(rows(part.conditional.body), literals), products)


def _rows(out: StageRules, rule: GroundRule, rows: Inequalities, classes: Integers, memory: float) -> bool:
    """Rows over columns of devices alone."""
    layout, lengths = out.columns, np.diff(rows.start)
    filled = np.flatnonzero(lengths > 0)
    if (rows.upper[lengths == 0] < -EVALUATION * _largest(rule)).any():
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
    families: dict[tuple[object, ...], Sought] = {}
    several = rows.take(np.flatnonzero((high >= 0) & (low < high)))
    for i in range(several.count):
        take_joint(out, rule, several, i, classes, memory, families)
    return take_families(out, rule, families, classes)


def _largest(rule: GroundRule) -> float:
    """The largest number in a rule: what is left where numbers cancel is rounding of them."""
    sides = [side for block in rule.rows for side in (block.coefficient, block.lower, block.upper)]
    every = np.concatenate(sides or [np.zeros(0)])
    return float(np.abs(every[np.isfinite(every)]).max(initial=0.0))


def _local(out: StageRules, rule: GroundRule, rows: Inequalities, device: int) -> None:
    """Rows about one device."""
    layout = out.columns
    column = np.where(rows.column == layout.time, layout.features, rows.column // layout.devices)
    own = Inequalities(rows.start, column, rows.coefficient, rows.upper)
    part = Written(own, UNCONDITIONAL, ())
    out.local.setdefault(device, []).append(Local(rule.name, part, rule.used_only))
