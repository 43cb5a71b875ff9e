"""Plans over devices of several classes, against enumeration by the formulas of the paper, in fractions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from support.parallel_plans import Data, drawn, load, occupied, stages_before

from placedsl.algorithms.pipelines.parallel_plans.unlike_devices import best_plan


def drawn_classes(seed: int) -> tuple[list[Data], list[int]]:
    """A problem on two or three classes of devices: times, weights, transfers and memory differ, and some classes lack
    options."""
    rng = random.Random(f"classes {seed}")
    first = drawn(seed)
    number = rng.choice((2, 2, 2, 3))
    counts = [rng.randint(1, 4) for _ in range(number)]
    if rng.random() < 0.2:
        counts[0] = rng.randint(5, 12)
    out = []
    for _ in range(number):
        options = [
            [
                replace(option, time=rng.choice((option.time, rng.randint(0, 12))))
                for option in own
                if rng.random() < 0.9
            ]
            for own in first.options
        ]
        slower = rng.randint(1, 3)
        out.append(
            replace(
                first, options=options, devices=sum(counts), capacity=rng.randint(4, 45), held=0,
                reading={key: slower * cost for key, cost in first.reading.items()},
                writing={key: slower * cost for key, cost in first.writing.items()},
            )
        )  # fmt: skip
    return out, counts


def optimum(classes: Sequence[Data], counts: Sequence[int]) -> Fraction | None:
    """The least largest load of all plans; None where none is feasible."""
    known: dict[tuple[frozenset[int], tuple[int, ...], int], Fraction | None] = {}
    count = len(classes[0].kind)

    def of_stage(data: Data, stage: frozenset[int], degree: int, copies: int, in_flight: int) -> Fraction | None:
        units = sorted(stage)
        ways = product(*([o for o in data.options[data.kind[u]] if o.degree == degree] for u in units))
        return min(
            (
                load(data, stage, degree, copies, dict(zip(units, way, strict=True)))
                for way in ways
                if occupied(way, in_flight, copies) <= data.capacity
            ),
            default=None,
        )

    def rest(behind: frozenset[int], left: tuple[int, ...], together: int) -> Fraction | None:
        if len(behind) == count:
            return Fraction(0)
        key = behind, left, together
        if key not in known:
            best = None
            for stage in stages_before(classes[0], behind):
                for c, data in enumerate(classes):
                    for degree, copies in product(data.degrees, data.copies):
                        if degree * copies > left[c] or together + copies > data.microbatches:
                            continue
                        own = of_stage(data, stage, degree, copies, data.in_flight(copies, together + copies))
                        if own is None or (best is not None and own >= best):
                            continue
                        fewer = tuple(n - degree * copies * (k == c) for k, n in enumerate(left))
                        before = rest(behind | stage, fewer, together + copies)
                        if before is not None and (best is None or max(own, before) < best):
                            best = max(own, before)
            known[key] = best
        return known[key]

    return rest(frozenset(), tuple(counts), 0)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(1200))
def test_plans_over_several_classes_are_optimal(seed: int) -> None:
    confirm(*drawn_classes(seed))


def confirm(classes: Sequence[Data], counts: Sequence[int]) -> None:
    """The search finds the optimum, by a plan that is one."""
    exact = optimum(classes, counts)
    ends = np.cumsum([0, *counts])
    devices = [np.arange(low, high) for low, high in pairwise(ends)]
    found = best_plan([data.instance() for data in classes], devices)
    assert found.complete
    assert (found.plan is None) == (exact is None)
    if found.plan is None or exact is None:
        return
    taken, largest, seen = [0] * len(classes), Fraction(0), set[int]()
    for position, stage in enumerate(found.plan.stages):
        c = int(np.searchsorted(ends, stage.first, side="right")) - 1
        data, units = classes[c], frozenset(stage.nodes.tolist())
        assert stage.first == ends[c] + taken[c]
        taken[c] += stage.copies * stage.degree
        assert not units & seen
        assert all(u in seen or u in units for u, v in data.edges if v in units)
        seen |= units
        together = sum(later.copies for later in found.plan.stages[position:])
        assert stage.in_flight == data.in_flight(stage.copies, together)
        assert together <= data.microbatches
        listed = [option for own in data.options for option in own]
        chosen = {unit: listed[row] for unit, row in stage.option.items()}
        assert chosen.keys() == units
        assert all(option in data.options[data.kind[unit]] for unit, option in chosen.items())
        assert occupied(chosen.values(), stage.in_flight, stage.copies) <= data.capacity
        own_load = load(data, units, stage.degree, stage.copies, chosen)
        assert stage.load == pytest.approx(float(own_load), rel=1e-12, abs=1e-12)
        largest = max(largest, own_load)
    assert all(number <= count for number, count in zip(taken, counts, strict=True))
    assert len(seen) == len(classes[0].kind)
    assert float(largest) == pytest.approx(float(exact), rel=1e-9, abs=1e-12)
    assert found.bound == pytest.approx(float(exact), rel=1e-9, abs=1e-12)
