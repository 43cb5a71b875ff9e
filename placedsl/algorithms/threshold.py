"""The least load by asking, of one load after another, whether a pipeline stays within it.

Too low a load leaves few ideals and is soon refuted, which is a proof; a pipeline found lowers what is asked next.  The
last question is always whether there is anything below the best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from placedsl.algorithms.ideal_dp import Limits
from placedsl.graph.graph import Integers

#: Placements that differ by less than this share are equally good.
SAME = 1e-9
#: Once the two sides are this share apart, it is also asked at once whether the best is the best.
_CLOSE = 1e-3


@dataclass(frozen=True, eq=False)
class Group:
    """A pipeline of groups: its largest load and the device of each unit, the first of those that share the stage.

    ``copies``: how many devices share the stage of each such device; they follow it among those of its class.
    """

    value: float
    device: Integers
    copies: Mapping[int, int]

    @property
    def devices(self) -> int:
        """How many devices take part."""
        return sum(self.copies.values())


@dataclass(frozen=True, eq=False)
class Asked:
    """What one load gave: a pipeline or none, and whether that is certain; ideals met and stored, pairs looked at."""

    plan: Group | None
    complete: bool
    too_many: bool = False
    met: int = 0
    stored: int = 0
    pairs: tuple[int, int, int] = (0, 0, 0)


@dataclass(frozen=True, eq=False)
class Found:
    """The best pipeline found: its largest load and the device of each unit (inf and None where there is none).

    ``copies``: how many devices share the stage of each device that ``device`` names; they follow it among those of its
    class.  ``complete``: the value is proven the least, or that no pipeline is allowed.  ``bound``: no load is below it.
    ``fewest``: no pipeline that good has fewer devices.  ``too_many``: more ideals matter than may be stored.
    ``met``, ``stored``: ideals that were met and stored; ``pairs``: stages looked at, of which subsets, evaluated.
    """

    value: float
    device: Integers | None
    complete: bool
    bound: float = 0.0
    fewest: bool = False
    too_many: bool = False
    met: int = 0
    stored: int = 0
    pairs: tuple[int, int, int] = (0, 0, 0)
    copies: Mapping[int, int] = field(default_factory=dict)

    def after(self, asked: Asked) -> Found:
        """This with the effort of one more question."""
        pairs = tuple(a + b for a, b in zip(self.pairs, asked.pairs, strict=True))
        return replace(
            self, met=asked.met or self.met, stored=asked.stored or self.stored, pairs=(pairs[0], pairs[1], pairs[2])
        )

    def better(self, plan: Group) -> Found:
        """This with another pipeline."""
        return replace(self, value=plan.value, device=plan.device, copies=plan.copies)


def descend(
    ask: Callable[[float], Asked], start: Group | None, bound: float, ceiling: float, limits: Limits, *, fewest: bool
) -> Found:
    """The least load for which ``ask`` has a pipeline, from a first one and a proven bound.

    ``ceiling``: a load that any allowed pipeline stays within.
    """
    best = Found(np.inf, None, False, bound)
    if start is not None:
        best = best.better(start)
    crowded = np.inf  # loads from which too many ideals matter
    last = False
    while best.value > best.bound * (1.0 + SAME):
        top = min(best.value, crowded)
        gap = top - best.bound
        last = crowded > best.value and best.device is not None and not last and gap <= _CLOSE * best.value
        if crowded <= best.value and gap <= _CLOSE * best.bound / 4.0:
            return replace(best, too_many=True)
        if last or (best.bound <= 0.0 and np.isfinite(best.value)):
            load, last = best.value * (1.0 - SAME), True
        elif np.isfinite(top):
            load = best.bound + gap / 2.0
        else:
            load = 2.0 * best.bound if 0.0 < 2.0 * best.bound < ceiling else np.inf
        asked = ask(load)
        best = best.after(asked)
        if asked.plan is not None:
            best = best.better(asked.plan)
        elif asked.complete:
            if last or load == np.inf:
                best = replace(best, bound=best.value)
            else:
                best = replace(best, bound=load)
        elif asked.too_many and load > best.bound and not (load == np.inf and best.bound <= 0.0):
            crowded = load
        else:
            return replace(best, too_many=asked.too_many)
        if limits.passed and best.value > best.bound * (1.0 + SAME):
            return best
    best = replace(best, complete=True, bound=best.value)
    return _fewest(ask, best) if fewest and best.device is not None else best


def _fewest(ask: Callable[[float], Asked], best: Found) -> Found:
    """The best, or one that is as good and uses fewer devices."""
    if sum(best.copies.values()) == 1:
        return replace(best, fewest=True)
    asked = ask(best.value * (1.0 + SAME / 10.0))
    best = best.after(asked)
    if asked.plan is not None and asked.plan.devices < sum(best.copies.values()):
        best = replace(best.better(asked.plan), value=best.value)
    return replace(best, fewest=asked.complete)
