"""What the simulated annealing searches share: cooling schedules, their division into slices, and how results are kept.

The three searches (:mod:`.partitions.search`, :mod:`.subgraph_calls.search`, :mod:`.operator_scheduling.search.search`)
have compiled kernels of their own; each kernel takes a :class:`CoolingSchedule`.  A long run is divided into slices, so
that a search reports its progress about once a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from placedsl.tolerances import IMPROVEMENT

Candidate = TypeVar("Candidate")
_Taken_contra = TypeVar("_Taken_contra", contravariant=True)


class CoolingSchedule(NamedTuple):
    """One run of an annealing kernel: ``steps`` proposed moves, the temperature falling geometrically from ``hot`` to
    ``cold``, and the ``seed`` of the kernel's random numbers.

    The unit of the temperatures is that of the kernel's energy: each kernel documents its own.
    """

    steps: int
    hot: float
    cold: float
    seed: int


class SearchState(Protocol[_Taken_contra]):
    """A search in progress: the ``value`` of its best candidate (inf: none is feasible yet)."""

    value: float

    def take(self, candidate: _Taken_contra, /) -> bool:
        """Evaluate a candidate exactly and keep it if it is better; returns whether it was."""


def improves(value: float, best: float) -> bool:
    """Whether ``value`` is less than ``best`` by more than rounding."""
    return value < best * (1.0 - IMPROVEMENT)


def random_seeds(rng: np.random.Generator) -> Iterator[int]:
    """Seeds for kernels, one drawn from ``rng`` for each that is consumed."""
    while True:
        yield int(rng.integers(2**31))


def slices(steps: int, hot: float, cold: float, count: int, seeds: Iterable[int]) -> Iterator[CoolingSchedule]:
    """``count`` schedules of ``steps`` each that together cool from ``hot`` to ``cold``; each consumes one of the
    ``seeds``.
    """
    factor = (cold / hot) ** (1.0 / count)
    stream = iter(seeds)
    for i in range(count):
        start = hot * factor**i
        yield CoolingSchedule(steps, start, start * factor, next(stream))


def anneal_slices(
    search: SearchState[Candidate],
    schedules: Iterable[CoolingSchedule],
    anneal: Callable[[CoolingSchedule], Candidate | None],
) -> Iterator[bool]:
    """Run ``anneal`` for each schedule and offer its result (None: no better candidate) to the search.

    Yields after each slice whether the search's best candidate has improved; nothing is better than a value of 0.
    """
    for schedule in schedules:
        if search.value <= 0.0:
            return
        candidate = anneal(schedule)
        yield candidate is not None and search.take(candidate)
