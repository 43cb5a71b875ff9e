"""What the parts of a plan may still be while rules are branched on, and what the rules leave of it.

A domain is an interval per column of the rules, and the options that each node may still take.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.pipelines.parallel_plans.spec_rules import SpecRules
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.problem.execution import OptionCosts
from placedsl.tolerances import EVALUATION, INTEGER_BOUND

#: Rounds of propagation at most; rows that creep are left to the search.
_ROUNDS = 200
#: Larger than anything that a plan has.
_ENDLESS = 1e30


@dataclass(frozen=True, eq=False)
class Domain:
    """``low``, ``high``: C, per column of the rules; ``options``: o, those that their nodes may take."""

    low: Floats
    high: Floats
    options: Booleans

    def at_least(self, column: int, value: float) -> Domain:
        """With a larger lower end."""
        low = self.low.copy()
        low[column] = max(low[column], value)
        return replace(self, low=low)

    def at_most(self, column: int, value: float) -> Domain:
        """With a smaller upper end."""
        high = self.high.copy()
        high[column] = min(high[column], value)
        return replace(self, high=high)


class Propagation:
    """Narrows domains by the rules, by the options that there are, and by the numbers of copies that are allowed."""

    def __init__(self, rules: SpecRules, costs: OptionCosts, copies: tuple[int, ...]) -> None:
        self.rules, self.costs = rules, costs
        self.allowed = np.array(copies, dtype=float)
        label = {name: k for k, name in enumerate(costs.labels)}
        self.label = np.array([label[name] for name in costs.name], dtype=np.int64)
        columns = rules.columns
        self.tensor, self.data, self.takes = columns.of("tensor"), columns.of("data"), columns.of("takes")
        self.nodes = len(self.tensor)

    def narrowed(self, domain: Domain) -> Domain | None:
        """What is left of a domain; None if nothing is."""
        for _ in range(_ROUNDS):
            known = self._by_options(domain)
            known = None if known is None else self._by_rules(known)
            if known is None:
                return None
            if (known.low == domain.low).all() and (known.high == domain.high).all():
                return known
            domain = known
        return domain

    def _by_options(self, domain: Domain) -> Domain | None:
        """Degrees and names by the options that are left, and the other way round."""
        node, degree = self.costs.node, self.costs.degree
        low, high, options = domain.low.copy(), domain.high.copy(), domain.options
        while True:
            taken = self.takes[node, self.label]
            fits = (degree >= low[self.tensor[node]]) & (degree <= high[self.tensor[node]]) & (high[taken] > 0.5)
            sure = np.zeros(self.nodes, dtype=np.int64)  # options that a node is known to take, by name
            np.add.at(sure, np.nonzero(low[self.takes] > 0.5)[0], 1)
            fits &= (sure[node] == 0) | (low[taken] > 0.5)
            left = options & fits
            if not np.bincount(node[left], minlength=self.nodes).all() or (sure > 1).any():
                return None
            least, most = np.full(self.nodes, np.inf), np.zeros(self.nodes)
            np.minimum.at(least, node[left], degree[left])
            np.maximum.at(most, node[left], degree[left])
            some = np.zeros(self.takes.shape, dtype=bool)
            some[node[left], self.label[left]] = True
            alone = some & (some.sum(axis=1, keepdims=True) == 1)
            low[self.tensor] = np.maximum(low[self.tensor], least)
            high[self.tensor] = np.minimum(high[self.tensor], most)
            high[self.takes] = np.where(some, high[self.takes], 0.0)
            low[self.takes] = np.where(alone, 1.0, low[self.takes])
            same, options = bool((left == options).all()), left
            if same:
                break
        copies_low = np.searchsorted(self.allowed, low[self.data] - INTEGER_BOUND)
        copies_high = np.searchsorted(self.allowed, high[self.data] + INTEGER_BOUND, side="right") - 1
        if (copies_low > copies_high).any():
            return None
        low[self.data], high[self.data] = self.allowed[copies_low], self.allowed[copies_high]
        return Domain(low, high, options)

    def _by_rules(self, domain: Domain) -> Domain | None:
        """One pass over all rows."""
        rules = self.rules
        low, high = domain.low.copy(), domain.high.copy()
        sides = (np.maximum(low, -_ENDLESS), np.minimum(high, _ENDLESS))
        active = self._active(low, high)
        for sign, limit in ((1.0, rules.upper), (-1.0, -rules.lower)):
            coefficient = sign * rules.coefficient
            least = np.where(coefficient > 0.0, sides[0][rules.column], sides[1][rules.column]) * coefficient
            activity = np.bincount(rules.row, least, minlength=rules.rows)
            scale = np.bincount(rules.row, np.abs(least), minlength=rules.rows) + np.where(
                np.isfinite(limit), np.abs(limit), 0.0
            )
            slack = EVALUATION * scale
            broken = (activity > limit + slack) | (rules.strict & (activity >= limit - slack))
            if (broken & active).any():
                return None
            self._deny(low, high, broken)
            # What the other columns of a row leave for each.
            entries = np.flatnonzero(active[rules.row] & np.isfinite(limit[rules.row]) & (scale[rules.row] < _ENDLESS))
            row, column, factor = rules.row[entries], rules.column[entries], coefficient[entries]
            room = (limit[row] - (activity[row] - least[entries]) + slack[row]) / factor
            whole = rules.integer[column]
            above, below = factor > 0.0, factor < 0.0
            np.minimum.at(high, column[above], np.where(whole, np.floor(room + INTEGER_BOUND), room)[above])
            np.maximum.at(low, column[below], np.where(whole, np.ceil(room - INTEGER_BOUND), room)[below])
        if (low > high + EVALUATION * np.maximum(1.0, np.abs(low))).any():
            return None
        return replace(domain, low=low, high=high)

    def _active(self, low: Floats, high: Floats) -> Booleans:
        """The rows that are known to hold."""
        rules = self.rules
        literal = np.maximum(rules.literal, 0)
        known = np.where(rules.wanted, low[literal] > 0.5, high[literal] < 0.5)
        out: Booleans = (rules.literal < 0) | known
        return out

    def _deny(self, low: Floats, high: Floats, broken: Booleans) -> None:
        """What a row depends on is not so where the row cannot hold."""
        rules = self.rules
        rows = np.flatnonzero(broken & (rules.literal >= 0))
        wanted = rules.wanted[rows]
        high[rules.literal[rows[wanted]]] = np.minimum(high[rules.literal[rows[wanted]]], 0.0)
        low[rules.literal[rows[~wanted]]] = np.maximum(low[rules.literal[rows[~wanted]]], 1.0)


def broken_rows(rules: SpecRules, point: Floats) -> Integers:
    """The rows that a plan breaks; ``point`` has the value of each column of a quantity, and then of the others."""
    value = np.bincount(rules.row, rules.coefficient * point[rules.column], minlength=rules.rows)
    scale = np.bincount(rules.row, np.abs(rules.coefficient * point[rules.column]), minlength=rules.rows)
    slack = EVALUATION * scale
    over, under = value > rules.upper + slack, value < rules.lower - slack
    over |= rules.strict & (value >= rules.upper - slack)
    under |= rules.strict & (value <= rules.lower + slack)
    literal = np.maximum(rules.literal, 0)
    holds = (rules.literal < 0) | ((point[literal] > 0.5) == rules.wanted)
    out: Integers = np.flatnonzero((over | under) & holds)
    return out


def with_literals(rules: SpecRules, point: Floats) -> Floats:
    """A point with the columns that stand for whether rows hold."""
    own = rules.columns.count
    out = np.concatenate((point, np.ones(len(rules.low) - own)))
    first = np.flatnonzero((rules.literal >= own) & rules.wanted)
    broken = np.intersect1d(broken_rows(rules, out), first)
    out[rules.literal[broken]] = 0.0
    return out
