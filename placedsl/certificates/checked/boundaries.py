"""What crosses the boundaries of stages, for contiguous placements on like devices: no stages all load T or less.

Let there be such stages, and let I[b] be the units of the first b of k of them: all that comes before a unit of I[b] is
in I[b].  What is known of them, round by round, in seconds:

first[b], last[b]              what the first b stages, and the others, pay for tensors at least
whole_first[b], whole_last[b]  that part of it which is paid for tensors that boundary b does not cut
elsewhere[b]                   what all stages pay for tensors that boundary b does not cut

1.  work(I[b]) <= b T - first[b], and the work beyond b is at most (k - b) T - last[b].  A unit is outside I[b] where it
    and all before it work more than that.
2.  Let work be moved along tensors, no more than c times its cost along each: w' = w - out + in >= 0.  Then
    w'(I[b]) <= work(I[b]) + c cut(I[b]) <= b T - whole_first[b] + (c - 1) cut(I[b]), for one of the first b stages
    pays each tensor that b cuts.  It is paid twice in all: cut(I[b]) <= (k T - all work - elsewhere[b]) / 2.
3.  A flow from units inside I[b] to units outside it, along tensors and from units to those before them, is no more
    than what it takes of the tensors that b cuts.  Over all boundaries no more than twice its cost flows along a
    tensor, so that all flows together, F[1] + … + F[k - 1], are paid, and half of F[1] + … + F[b] by the first b
    stages; they pay the whole of a flow whose tensors have all units in I[b].
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from placedsl.certificates.checked.instance import Instance
from placedsl.certificates.checked.numbers import RefusedError, amount, denominator, position
from placedsl.certificates.checked.orders import sorted_vertices
from placedsl.certificates.checked.superblocks import alike

#: More units than this that come before units, beside those before the unit directly before, are not counted.
MOST_BEFORE = 20_000_000
_NONE = Fraction(0)


def boundaries(instance: Instance, proof: Mapping[str, Any]) -> Fraction:
    """T, where no stages all load T or less."""
    largest = amount(proof["largest"], "a load")
    if instance.pairs is None:
        raise RefusedError("the placement need not be contiguous")
    known = _Known(instance.contracted(), largest, proof["moved"])
    for flows in proof["rounds"]:
        if known.contradict(flows):
            return largest
    if known.contradict([]):
        return largest
    raise RefusedError("nothing says that there are no stages within the load")


class _Known:
    """What is known of the boundaries 0 … k of stages that load ``largest`` or less."""

    def __init__(self, instance: Instance, largest: Fraction, moved: Mapping[str, Any]) -> None:
        self.work, self.devices, self.largest = alike(instance), instance.counts[0], largest
        self.all = sum(self.work, _NONE)
        self.pins, self.cost = tensors(instance)
        self.comes_before = set(instance.order)
        order = sorted_vertices(instance.units, instance.order)
        ahead: list[list[int]] = [[] for _ in self.work]
        back: list[list[int]] = [[] for _ in self.work]
        for u, v in instance.order:
            ahead[v].append(u)
            back[u].append(v)
        #: By flow of work (the first: none), c and in whole numbers the work of each unit and all before, or after, it.
        self.until = self._accounts(order, ahead, moved["first"])
        self.beyond = self._accounts(order[::-1], back, moved["last"])
        none = [_NONE] * (self.devices + 1)
        self.first, self.last, self.whole_first, self.whole_last, self.elsewhere = (list(none) for _ in range(5))

    def _accounts(
        self, order: Sequence[int], earlier: Sequence[Sequence[int]], moved: Sequence[Mapping[str, Any]]
    ) -> list[tuple[Fraction, int, list[int]]]:
        """Of each flow of work: c, what one second is, and what each unit and all before it work after it."""
        times, works = [_NONE], [list(self.work)]
        for flow in moved:
            by = amount(flow["times"], "a number of times")
            taken, net = self._taken(flow)
            now = [own + net.get(u, 0) for u, own in enumerate(self.work)]
            if any(used > by * self.cost[e] for e, used in taken.items()):
                raise RefusedError("more work is moved along a tensor than that many times its cost")
            if any(w < 0 for w in now):
                raise RefusedError("more work is moved from a unit than it has")
            times.append(by)
            works.append(now)
        overs = [denominator(own) for own in works]
        whole = [[int(w * over) for w in own] for own, over in zip(works, overs, strict=True)]
        sums = _work_before(order, earlier, whole)
        return list(zip(times, overs, sums, strict=True))

    def _taken(
        self, flow: Mapping[str, Any], order: Sequence[Any] = ()
    ) -> tuple[dict[int, Fraction], dict[int, Fraction]]:  # fmt: skip
        """What flows along each tensor, and how much more enters each unit than leaves it, with a flow from units to
        those before them."""
        scale = amount(flow["scale"], "a scale")
        if not scale:
            raise RefusedError("a scale of 0")
        out: dict[int, Fraction] = {}
        net: dict[int, int] = {}
        for e, along in flow["tensors"]:
            position(e, len(self.pins), "a tensor")
            if e in out or sum([_whole(a) for _, a in along]) != 0 or any(u not in self.pins[e] for u, _ in along):
                raise RefusedError("a tensor twice, units that do not touch it, or more that leaves it than enters")
            for u, a in along:
                net[u] = net.get(u, 0) - a
            out[e] = Fraction(sum(a for _, a in along if a > 0)) / scale
        for v, u, a in order:
            if (u, v) not in self.comes_before or _whole(a) < 0:
                raise RefusedError("a flow from a unit to one that does not come before it")
            net[v] = net.get(v, 0) - a
            net[u] = net.get(u, 0) + a
        return out, {u: Fraction(a) / scale for u, a in net.items() if a}

    def contradict(self, flows: Sequence[Mapping[str, Any]]) -> bool:
        """Whether there are no such stages, with one more round of flows."""
        stage, k, largest = range(self.devices + 1), self.devices, self.largest
        room = [b * largest - self.first[b] for b in stage]
        left = [(k - b) * largest - self.last[b] for b in stage]
        if any(room[b] + left[b] < self.all for b in stage):
            return True
        before, after = self._sides(room, left)
        if any(b <= a for a, b in zip(after, before, strict=True)):
            return True
        crossing = self._crossing(flows, before, after)
        return k * largest < self.all + sum(crossing, _NONE)

    def _sides(self, room: Sequence[Fraction], left: Sequence[Fraction]) -> tuple[list[int], list[int]]:
        """The first boundary that each unit is before in any case, and the last one that it is after."""
        k, largest = self.devices, self.largest
        cut = [max(_NONE, k * largest - self.all - paid) / 2 for paid in self.elsewhere]
        before, after = [k] * len(self.work), [0] * len(self.work)
        for times, over, works in self.until:
            most = list(room)
            if times:
                most = [b * largest - self.whole_first[b] + max(_NONE, times - 1) * cut[b] for b in range(k + 1)]
                most[0] = _NONE
            least = _least_from(most, over)
            for u, own in enumerate(works):
                after[u] = max(after[u], bisect_left(least, own) - 1)
        for times, over, works in self.beyond:
            most = list(left)
            if times:
                most = [(k - b) * largest - self.whole_last[b] + max(_NONE, times - 1) * cut[b] for b in range(k + 1)]
                most[k] = _NONE
            least = _least_from(most[::-1], over)
            for u, own in enumerate(works):
                before[u] = min(before[u], k + 1 - bisect_left(least, own))
        return before, after

    def _crossing(
        self, flows: Sequence[Mapping[str, Any]], before: Sequence[int], after: Sequence[int]
    ) -> list[Fraction]:
        """What crosses each boundary; what stages pay for tensors is noted."""
        k = self.devices
        crossing, taken = [_NONE] * (k + 1), [_NONE] * len(self.pins)
        # Tensors of a boundary have all units in the first ``ends`` stages, and none in the first ``begins``.
        ends, begins, seen = [0] * (k + 1), [k] * (k + 1), set[int]()
        for flow in flows:
            b = position(flow["boundary"], k, "a boundary")
            if not b or b in seen:
                raise RefusedError("a boundary twice, or none")
            seen.add(b)
            used_of, net = self._taken(flow, flow["order"])
            for e, used in used_of.items():
                taken[e] += used
                ends[b] = max(ends[b], *(before[u] for u in self.pins[e]))
                begins[b] = min(begins[b], *(after[u] for u in self.pins[e]))
            for u, more in net.items():
                if before[u] <= b:
                    crossing[b] -= more
                elif after[u] < b:
                    raise RefusedError("a flow from or to a unit of which it is not known which side it is on")
        if any(used > 2 * cost for used, cost in zip(taken, self.cost, strict=True)):
            raise RefusedError("more flows along a tensor than what two stages pay for it")
        self._pay(crossing, ends, begins)
        return crossing

    def _pay(self, crossing: Sequence[Fraction], ends: Sequence[int], begins: Sequence[int]) -> None:
        """Note what stages pay for tensors that boundaries cut, where that is more than what was known."""
        some = [c for c in range(self.devices + 1) if crossing[c] > 0]
        for b in range(self.devices + 1):
            ended = {c for c in some if ends[c] <= b}
            begun = {c for c in some if begins[c] >= b}
            for known, paid in (
                (self.first, sum((crossing[c] / (1 if c in ended else 2) for c in some if c <= b), _NONE)),
                (self.last, sum((crossing[c] / (1 if c in begun else 2) for c in some if c >= b), _NONE)),
                (self.whole_first, sum((crossing[c] for c in ended), _NONE)),
                (self.whole_last, sum((crossing[c] for c in begun), _NONE)),
                (self.elsewhere, sum((crossing[c] for c in ended | begun), _NONE)),
            ):
                known[b] = max(known[b], paid)


def tensors(instance: Instance) -> tuple[list[frozenset[int]], list[Fraction]]:
    """The units that touch each tensor, and what a stage pays that cuts it; in the order of their numbers."""
    found = sorted(instance.moving[0].items(), key=lambda one: sorted(one[0]))
    return [pins for pins, _ in found], [cost for _, cost in found]


def _whole(value: object) -> int:
    if type(value) is not int:
        raise RefusedError("a flow that is no whole number")
    return value


def _least_from(most: Sequence[Fraction], over: int) -> list[int]:
    """The least of each and all that follow it, rounded down to multiples of one over ``over``."""
    out = [int(one * over // 1) for one in most]
    for b in range(len(out) - 2, -1, -1):
        out[b] = min(out[b], out[b + 1])
    return out


def _work_before(
    order: Sequence[int], earlier: Sequence[Sequence[int]], works: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Of each account, the work of each unit and all before it."""
    needed = [0] * len(order)
    for own in earlier:
        for u in own:
            needed[u] += 1
    out = [[0] * len(order) for _ in works]
    masks: dict[int, int] = {}
    counted = 0
    for k, v in enumerate(order):
        before = [masks[u] for u in earlier[v]]
        every = 1 << k
        for mask in before:
            every |= mask
        # Most units have little before them that is not before one of those directly before them.
        nearest = max(zip((m.bit_count() for m in before), earlier[v], strict=True), default=(0, -1))[1]
        rest = every & ~masks[nearest] if nearest >= 0 else every
        counted += rest.bit_count()
        if counted > MOST_BEFORE:
            raise RefusedError("too many units come before others")
        extra = [order[i] for i in _bits(rest)]
        for row, work in zip(out, works, strict=True):
            row[v] = (row[nearest] if nearest >= 0 else 0) + sum(work[u] for u in extra)
        for u in earlier[v]:
            needed[u] -= 1
            if not needed[u]:
                del masks[u]
        if needed[v]:
            masks[v] = every
    return out


def _bits(mask: int) -> Iterator[int]:
    """The places of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
