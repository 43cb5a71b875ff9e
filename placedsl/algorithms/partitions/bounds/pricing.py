"""The largest value of the units on one device at given prices of the units: upper bounds, and sets that attain it.

The value of a set is the sum of the prices of its units; its load must not exceed ``largest`` seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.partitions.bounds.pricing_kernel import (
    Envelopes,
    Labels,
    concave_envelopes,
    decompose,
    label_setting,
)
from placedsl.algorithms.partitions.bounds.state_graph_kernel import StateGraph
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.tolerances import LIMIT_SLACK

#: What rounding may add to a value that is found, as a share of it.
ROUNDING = 1e-12
#: The largest number of labels of one search.
MOST_LABELS = 6_000_000


@dataclass(eq=False)
class Pricing:
    """The pricing problem of one device class, with the memory that it works in.

    ``effort`` counts the vertices and labels made, for the caller to read and reset.
    """

    graph: StateGraph
    effort: int = 0
    _envelopes: Envelopes = field(init=False)
    _labels: Labels | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        states = len(self.graph.before)
        self._envelopes = _envelopes(64 * states + 1000, states)

    def relaxed(self, price: Floats, largest: float) -> tuple[float, Floats]:
        """An upper bound on the value at prices ``price`` (u), and the shares (u) of the units in the sets that attain
        it.
        """
        graph = self.graph
        while not concave_envelopes(graph, price[graph.order], largest * (1 + LIMIT_SLACK), self._envelopes):
            self._envelopes = _envelopes(2 * len(self._envelopes.load), len(graph.before))
        vertices = int(self._envelopes.end[0])
        self.effort += vertices
        shares = np.empty(len(graph.order))
        shares[graph.order] = decompose(graph, self._envelopes)
        return float(self._envelopes.value[vertices - 1]), shares

    def best_priced_set(
        self, price: Floats, largest: float, threshold: float, keep: int, most: int
    ) -> tuple[float, list[tuple[Booleans, float]], bool]:
        """The best sets by label setting with about ``keep`` labels per state.

        Returns an upper bound on the value; up to ``most`` sets (u flags) worth more than ``threshold``, with their
        loads; and whether following more labels could not improve the bound.
        """
        bound, _ = self.relaxed(price, largest)
        if bound <= threshold:
            return bound, [], True
        graph = self.graph
        if self._labels is None:
            self._labels = _labels(MOST_LABELS, len(graph.before))
        labels, count = self._labels, -1
        while count < 0:
            count = label_setting(
                graph, self._envelopes, labels, price[graph.order], largest * (1 + LIMIT_SLACK), threshold, keep
            )
            self.effort += count if count >= 0 else MOST_LABELS
            keep = max(1, keep // 3)
        first, end = (int(x) for x in labels.start[-2:])
        best = max(float(labels.value[first:end].max(initial=threshold)), threshold)
        most_value = max(float((labels.value[first:end] + labels.slack[first:end]).max(initial=best)), best)
        better = [label for label in range(end - 1, first - 1, -1)[:most] if labels.value[label] > threshold]
        sets = [(self._members(labels, label), float(labels.load[label])) for label in better]
        return min(most_value, bound), sets, most_value <= best * (1.0 + ROUNDING)

    def _members(self, labels: Labels, label: int) -> Booleans:
        """u flags: the units in the set of a label of the last layer."""
        order = self.graph.order
        members = np.zeros(len(order), dtype=np.bool_)
        for unit in order[::-1].tolist():
            members[unit] = labels.taken[label]
            label = int(labels.parent[label])
        return members


def _integers(size: int) -> Integers:
    return np.zeros(size, dtype=np.int64)


def _envelopes(vertices: int, states: int) -> Envelopes:
    """Space for so many vertices."""
    return Envelopes(
        load=np.zeros(vertices), value=np.zeros(vertices), move=_integers(vertices), child=_integers(vertices),
        second_move=_integers(vertices), second_child=_integers(vertices), share=np.zeros(vertices),
        begin=_integers(states), end=_integers(states),
    )  # fmt: skip


def _labels(size: int, states: int) -> Labels:
    """Space for so many labels; untouched parts of it take no memory."""
    return Labels(
        load=np.empty(size), value=np.empty(size), slack=np.empty(size), parent=np.empty(size, dtype=np.int64),
        taken=np.empty(size, dtype=np.bool_), start=_integers(states + 1),
    )  # fmt: skip
