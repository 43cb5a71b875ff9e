"""A genetic algorithm over priorities: a biased random-key one (Goncalves and Resende 2011), as MTPP uses.

The share of the best that stays, that of new ones, and the bias are not in the paper: a fifth, three twentieths, 0.7.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placedsl.arrays import Floats

_ELITE, _NEW, _BIAS = 0.2, 0.15, 0.7


def evolve(
    fitness: Callable[[Floats], Floats], genes: int, population: int, generations: int, rng: np.random.Generator,
    over: Callable[[], bool],
) -> Floats:  # fmt: skip
    """The best keys (u, in 0 to 1) of so many generations; ``fitness`` of p x u keys, the less the better."""
    keys = rng.random((population, genes))
    values = fitness(keys)
    elite, new = max(1, round(_ELITE * population)), round(_NEW * population)
    for _ in range(generations - 1):
        if over():
            break
        order = np.argsort(values, kind="stable")
        keys, values = keys[order], values[order]
        children = population - elite - new
        one = keys[rng.integers(elite, size=children)]
        other = keys[rng.integers(elite, population, size=children)] if elite < population else one
        fresh = np.concatenate((np.where(rng.random((children, genes)) < _BIAS, one, other), rng.random((new, genes))))
        keys[elite:], values[elite:] = fresh, fitness(fresh)
    best: Floats = keys[int(np.argmin(values))]
    return best
