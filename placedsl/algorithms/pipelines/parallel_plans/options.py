"""Options of units as the kernels take them, and what a question about them comes to."""

from __future__ import annotations

from typing import NamedTuple

from placedsl.arrays import Floats, Integers

#: Answers: no, yes, not decided, no whatever the memory, and not looked at yet.
NO, YES, GIVEN_UP, TOO_SLOW, UNKNOWN = 0, 1, 2, 3, 4


class OptionTable(NamedTuple):
    """Options by degree g and kind c: those of (g, c) are ``start[g * kinds + c]:start[g * kinds + c + 1]``.

    ``time``, ``weights``  seconds;  ``stash``, ``memory``  bytes
    """

    kinds: int
    start: Integers
    time: Floats
    weights: Floats
    stash: Floats
    memory: Floats


class Demand(NamedTuple):
    """What the options of a stage must satisfy.

    ``active``     the kinds of units that there are;  ``units``  c how many of each
    ``g``          the position of its degree;  ``in_flight``  samples in flight on a copy
    ``exchange``   how often weights are sent per sample
    ``room``, ``capacity``   seconds and bytes
    """

    active: Integers
    units: Integers
    g: int
    in_flight: int
    exchange: float
    room: float
    capacity: float


class KeptSwaps(NamedTuple):
    """Swaps of all kinds by degree and samples in flight: row ``degree * per_degree + samples``; ``swaps``: how many,
    -1 where they are not known yet.  ``base``: g x c quickest options (-1: none), one for any number of samples.
    Those with ``swap_`` as in :class:`Workspace`, with one row each.

    ``saving``   how many kinds can save bytes;  ``by_bytes``, ``bytes``  c of them, and the most that a unit saves,
                 largest first;  ``by_time``, ``times``  c of them, and the least time that saving anything takes,
                 smallest first
    """

    per_degree: int
    swaps: Integers
    base: Integers
    swap_kind: Integers
    swap_option: Integers
    swap_bytes: Floats
    swap_time: Floats
    swap_ratio: Floats
    saving: Integers
    by_bytes: Integers
    bytes: Floats
    by_time: Integers
    times: Floats


class Workspace(NamedTuple):
    """Room for one question.  c kinds, i swaps (from one option of a kind to the next smaller one on its hull).

    ``base``  c: the quickest option of each kind
    ``swap_kind``, ``swap_option``, ``swap_bytes``, ``swap_time``, ``swap_ratio``  i
    """

    base: Integers
    swap_kind: Integers
    swap_option: Integers
    swap_bytes: Floats
    swap_time: Floats
    swap_ratio: Floats
