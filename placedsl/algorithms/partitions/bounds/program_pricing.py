"""The most valuable set where tensors are too entangled for a layered graph: annealing finds sets, a program proves.

The program has a 0/1 column for each unit and a column for each tensor that is cut; order is left out, for any set is
allowed.  It is asked for a set worth more than what a proof allows, and has nothing to say once there is none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from placedsl.algorithms.partitions.bounds.relaxation import DeviceClass
from placedsl.algorithms.partitions.bounds.set_annealing_kernel import Tensors, anneal_set, load_of
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.budget import Budget
from placedsl.graph.order import csr
from placedsl.ir.linear_rows import LinearRows
from placedsl.ir.program import LinearProgram
from placedsl.solvers.registry import get
from placedsl.tolerances import LIMIT_SLACK

#: Runs of annealing in one question and steps of each per unit, at first and before a program is asked; and how dear
#: load beyond the limit is, in terms of what a second within it is worth.
_FIRST, _THOROUGH, _DEAR = (8, 200), (16, 800), (1.15, 3.0, 1.3, 1.8)
#: Seconds of a program at first, by the effort that is asked for.
_SECONDS = 4.0
#: What a second of a program counts as effort.
_EFFORT_A_SECOND = 1e6


class ProgramPricing:
    """The pricing problem of one device class; ``effort`` counts what was done, for the caller to read and reset."""

    def __init__(self, device: DeviceClass, over: Callable[[], bool]) -> None:
        self.device, self.over = device, over
        self.effort = 0
        pins = [np.array(own, dtype=np.int64) for own in device.edges.pins]
        lengths = np.array([len(own) for own in pins], dtype=np.int64)
        self.pin: Integers = np.concatenate([*pins, np.zeros(0, dtype=np.int64)])
        self.edge = np.repeat(np.arange(len(lengths)), lengths)
        start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))
        touch_start, touched = csr(self.pin, self.edge, len(device.work))
        self.tensors = Tensors(device.work, device.edges.cost, touch_start, touched, start, self.pin)
        self._rng = np.random.default_rng(0)
        self._known: list[Booleans] = []

    def relaxed(self, price: Floats, largest: float) -> tuple[float, Floats]:
        """An upper bound on the value, and shares of units that attain it; here of units without tensors."""
        order = np.argsort(-np.where(self.device.work > 0.0, price / np.maximum(self.device.work, 1e-300), np.inf))
        shares, left = np.zeros(len(price)), largest * (1.0 + LIMIT_SLACK)
        for u in order.tolist():
            if price[u] <= 0.0 or not np.isfinite(self.device.work[u]):
                continue
            shares[u] = 1.0 if self.device.work[u] <= left else left / self.device.work[u]
            left -= shares[u] * self.device.work[u]
            if left <= 0.0:
                break
        return float((price * shares).sum()), shares

    def best_priced_set(
        self, price: Floats, largest: float, threshold: float, keep: int, most: int
    ) -> tuple[float, list[tuple[Booleans, float]], bool]:
        """As of :class:`~placedsl.algorithms.partitions.bounds.pricing.Pricing`; ``keep`` is the effort of a proof."""
        bound, _ = self.relaxed(price, largest)
        if bound <= threshold:
            return bound, [], True
        for runs, steps in (_FIRST, _THOROUGH):
            found = self._annealed(price, largest, threshold, most, runs, steps)
            if found:
                return bound, found, True
        began = time.monotonic()
        proven, members, final = self._program(price, largest, threshold, _SECONDS * max(1, keep // 30))
        self.effort += int(_EFFORT_A_SECOND * (time.monotonic() - began))
        if members is not None:
            self._known.append(members)
            return min(bound, proven), [(members, float(load_of(self.tensors, members)))], final
        return min(bound, proven), [], final

    def _annealed(
        self, price: Floats, largest: float, threshold: float, most: int, runs: int, steps: int
    ) -> list[tuple[Booleans, float]]:
        """Sets worth more than ``threshold``, the best first."""
        units, limit = len(price), largest * (1.0 - 1e-9)
        worth = max(threshold, 1e-300) / limit
        found: dict[bytes, tuple[float, Booleans]] = {}
        for run in range(runs):
            inside = np.zeros(units, dtype=np.bool_)
            if self._known and run % 2:
                inside = self._known[int(self._rng.integers(len(self._known)))].copy()
            best = np.zeros(units, dtype=np.bool_)
            seed = int(self._rng.integers(2**31))
            value = anneal_set(
                self.tensors, price, limit, _DEAR[run // 2 % len(_DEAR)] * worth, steps * units, seed, inside, best
            )
            self.effort += steps * units // 10
            if value > threshold:
                found[best.tobytes()] = (value, best)
        best_first = sorted(found.values(), key=lambda one: -one[0])[:most]
        sets = [(own, float(load_of(self.tensors, own))) for _, own in best_first]
        sets = [(own, load) for own, load in sets if load <= largest]
        self._known = [*self._known, *(own for own, _ in sets)][-50:]
        return sets

    def _program(
        self, price: Floats, largest: float, threshold: float, seconds: float
    ) -> tuple[float, Booleans | None, bool]:
        """A bound on the value, a set that is worth more than ``threshold`` (None: none was found), and whether the
        bound is final."""
        program = self._stated(price, largest, threshold)
        scale = max(float(np.abs(price).max()), 1e-300)

        def progress(point: Floats | None, _value: float, _bound: float) -> bool:
            return point is not None or self.over()

        outcome = get("highs").run(program, Budget(seconds, 0.0, 1), progress)
        if outcome.termination == "infeasible":
            return threshold, None, True
        units = len(price)
        if outcome.incumbent is not None:
            members = np.rint(outcome.incumbent[:units]).astype(np.bool_)
            if load_of(self.tensors, members) <= largest and float(price[members].sum()) > threshold:
                return np.inf, members, True
        return -outcome.bound * scale * (1.0 + 1e-6) + 1e-9 * scale * units, None, False

    def _stated(self, price: Floats, largest: float, threshold: float) -> LinearProgram:
        """The least of the negative prices over sets within the load that are worth more than ``threshold``."""
        units, edges = len(price), len(self.device.edges.cost)
        scale = max(float(np.abs(price).max()), 1e-300)
        work = np.where(np.isfinite(self.device.work), self.device.work, 0.0) / largest
        rows = LinearRows()
        column = np.arange(units + edges)
        coefficient = np.concatenate((work, self.device.edges.cost / largest))
        rows.at_most(np.zeros(units + edges, dtype=np.int64), column, coefficient, np.array([1.0 + LIMIT_SLACK]))
        worth = np.concatenate((price / scale, np.zeros(edges)))
        rows.at_most(np.zeros(units, dtype=np.int64), np.arange(units), -worth[:units], np.array([-threshold / scale]))
        first = self.tensors.pin_start[:-1][self.edge]
        other = np.arange(len(self.pin)) != first
        maker, reader, cut = self.pin[first[other]], self.pin[other], units + self.edge[other]
        index, ones = np.arange(len(reader)), np.ones(len(reader))
        for sign in (1.0, -1.0):
            rows.at_most(
                np.concatenate((index,) * 3), np.concatenate((reader, maker, cut)),
                np.concatenate((sign * ones, -sign * ones, -ones)), np.zeros(len(reader)),
            )  # fmt: skip
        program = rows.program(-worth)
        upper = np.ones(units + edges)
        upper[:units] = np.isfinite(self.device.work)
        integer = np.arange(units + edges) < units
        return replace(program, upper=upper, integer=integer)
