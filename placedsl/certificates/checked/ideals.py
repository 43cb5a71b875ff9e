"""Contiguous pipelines: no chain of ideals, from nothing to everything, has stages that all load less than T.

The devices of a contiguous placement can be put in a row such that all that comes before a unit is on its device or on
an earlier one.  So what the first of them hold are ideals, sets with all that comes before their units, and stages are
what one has more than the one before.  All chains are followed here, in whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from placedsl.certificates.checked.instance import Instance
from placedsl.certificates.checked.numbers import RefusedError, amount, denominator
from placedsl.certificates.checked.orders import sorted_vertices

#: More stages than this are not looked at.
MOST_STAGES = 2_000_000


def ideals(instance: Instance, proof: Mapping[str, Any]) -> Fraction:
    """T, where every chain has a stage that loads T or more."""
    largest = amount(proof["largest"], "a load")
    if instance.pairs is None:
        raise RefusedError("the placement need not be contiguous")
    if reach_everything(instance.contracted(), largest):
        raise RefusedError("there are stages that load less")
    return largest


def reach_everything(instance: Instance, largest: Fraction) -> bool:
    """Whether some chain of ideals ends with everything whose stages all load less than a limit."""
    return _Chains(instance, largest).reach_everything()


class _Chains:
    """The stages of a pipeline that load less than a limit; units in an order of the pipeline, as bits."""

    def __init__(self, instance: Instance, largest: Fraction) -> None:
        units = instance.units
        self.counts = instance.counts
        order = sorted_vertices(units, instance.order)
        place = {u: k for k, u in enumerate(order)}
        self.before = [0] * units
        for u, v in instance.order:
            self.before[place[v]] |= 1 << place[u]
        self.all = (1 << units) - 1
        classes = range(instance.classes)
        tensors = sorted({units for moving in instance.moving for units in moving}, key=sorted)
        costs = [[instance.moving[c].get(t, Fraction(0)) for c in classes] for t in tensors]
        streams = [one or (Fraction(0), Fraction(0)) for one in instance.streams]
        over = denominator([
            largest, *(w for of in instance.work for w in of if w is not None), *(c for of in costs for c in of),
        ])  # fmt: skip
        bytes_over = denominator([
            *instance.held, *(r for r in instance.room if r is not None), *(room for room, _ in streams),
        ])  # fmt: skip
        self.largest = int(largest * over)
        self.work = [[_whole(instance.work[c][u], over) for c in classes] for u in order]
        #: By class, the units that it does not run, as bits.
        self.nowhere = [sum(1 << k for k, own in enumerate(self.work) if own[c] is None) for c in classes]
        self.touched: list[list[int]] = [[] for _ in range(units)]
        for t, pins in enumerate(tensors):
            for u in pins:
                self.touched[place[u]].append(t)
        self.pins = [len(pins) for pins in tensors]
        self.costs = [[int(cost * over) for cost in own] for own in costs]
        self.held = [int(instance.held[u] * bytes_over) for u in order]
        self.room = [None if room is None else int(room * bytes_over) for room in instance.room]
        #: A byte that is streamed takes so much, in the units of loads.
        self.streams = [(int(room * bytes_over), rate * over / bytes_over) for room, rate in streams]
        self.looked = 0

    def reach_everything(self) -> bool:
        """Whether some chain of stages ends with everything: by ideal, the fewest devices of each class it takes."""
        if not self.all:
            return self.largest > 0
        reached: list[dict[int, set[tuple[int, ...]]]] = [{} for _ in range(len(self.work) + 1)]
        reached[0][0] = {tuple(0 for _ in self.counts)}
        for size in range(len(self.work)):
            for ideal, used in reached[size].items():
                free = [any(state[c] < count for state in used) for c, count in enumerate(self.counts)]
                for stage, fits in self._stages(ideal, free):
                    both = ideal | stage
                    known = reached[both.bit_count()].setdefault(both, set())
                    for c in fits:
                        for state in used:
                            if state[c] < self.counts[c]:
                                _keep(known, (*state[:c], state[c] + 1, *state[c + 1 :]))
                    if both == self.all and known:
                        return True
            reached[size] = {}
        return False

    def _stages(self, ideal: int, free: list[bool]) -> Iterator[tuple[int, list[int]]]:
        """The stages that may follow an ideal, with the classes on which they load less than the limit.

        A stage grows by one unit after the other; once a unit is passed over, it stays out, and all that needs it.
        """
        classes = [c for c, some in enumerate(free) if some]
        work, held, cut = [0] * len(self.counts), 0, [0] * len(self.counts)
        inside: dict[int, int] = {}
        stage = 0
        # (unit to put in, units that are passed over) or, on the way back, what is to be taken out.
        waiting: list[tuple[int, int, bool]] = self._next(ideal, 0, 0)
        while waiting:
            unit, out, added = waiting.pop()
            sign = -1 if added else 1
            stage ^= 1 << unit
            held += sign * self.held[unit]
            for c in classes:
                work[c] += sign * (self.work[unit][c] or 0)
            for t in self.touched[unit]:
                before = inside.get(t, 0)
                inside[t] = before + sign
                change = (0 < inside[t] < self.pins[t]) - (0 < before < self.pins[t])
                if change:
                    for c in classes:
                        cut[c] += change * self.costs[t][c]
            if added:
                continue
            waiting.append((unit, out, True))
            self.looked += 1
            if self.looked > MOST_STAGES:
                raise RefusedError(f"more than {MOST_STAGES:,} stages matter: no certificate of this kind is checked")
            may = [c for c in classes if work[c] < self.largest and self._holds(stage, held, c)]
            if not may:
                continue
            fits = [c for c in may if work[c] + cut[c] + self._streamed(held, c) < self.largest]
            if fits:
                yield stage, fits
            waiting += self._next(ideal, stage, out)

    def _next(self, ideal: int, stage: int, out: int) -> list[tuple[int, int, bool]]:
        """The units that may be put in next, each with those passed over by then."""
        found = []
        have = ideal | stage
        for unit, before in enumerate(self.before):
            bit = 1 << unit
            if not (have | out) & bit and before & have == before:
                found.append((unit, out, False))
                out |= bit
        return found

    def _holds(self, stage: int, held: int, c: int) -> bool:
        room = self.room[c]
        if room is not None and held > room:
            return False
        return not stage & self.nowhere[c]

    def _streamed(self, held: int, c: int) -> Fraction | int:
        room, rate = self.streams[c]
        return max(0, held - room) * rate


def _whole(value: Fraction | None, over: int) -> int | None:
    return None if value is None else int(value * over)


def _keep(known: set[tuple[int, ...]], state: tuple[int, ...]) -> None:
    """Add a state that none takes less than; drop those that take more."""
    if any(all(a <= b for a, b in zip(other, state, strict=True)) for other in known):
        return
    for other in [o for o in known if all(a <= b for a, b in zip(state, o, strict=True))]:
        known.discard(other)
    known.add(state)
