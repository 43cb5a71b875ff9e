"""Compiled: what is known of stages that have the same numbers of units of each kind, wherever they lie.

A network that repeats its layers has few such stages among its pairs of ideals.  Whether their options fit depends on
the degree, the copies, the samples in flight and the seconds that there are: the fewest seconds that were enough and
the most that were not are kept, from one question to the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.pipelines.parallel_plans.options import NO, TOO_SLOW, UNKNOWN, YES
from placedsl.arrays import Floats, Integers, Integers32

#: Room for so many stages for each ideal, and in all; a stage takes the place of one that has the same.
_PER_IDEAL, _MOST = 64, 1 << 16
#: Numbers of units are digits of a mark as long as that stays below this; or else marks are sums of random numbers,
#: which stay exact integers: at most 2^22 units of less than 2^40 each.
_LARGEST_MARK, _RANDOM_MARK = 1 << 62, 1 << 40
#: Columns of seconds.
ENOUGH, SHORT, NEVER = 0, 1, 2


class LikeStages(NamedTuple):
    """p places, K ideals.

    ``mark``    K: a number for the units in an ideal; equal units make equal differences, and, if it ``tells`` them
                apart, no others do
    ``stage``   p x 4: the mark of the stage that is kept; its degree, copies and samples in flight as one number; the
                ideals that it lies between
    ``seconds`` p x 4: the fewest that were enough, the most that were not with the memory that there is, and the most
                that were not whatever the memory; one to fill a line of the cache
    """

    mark: Integers
    tells: bool
    stage: Integers
    seconds: Floats


def like_stages(of_kind: Integers32) -> LikeStages:
    """Room for what will be known.  ``of_kind``: K x c units of each kind."""
    ideals, kinds = of_kind.shape
    places = min(_PER_IDEAL * ideals, _MOST)
    digits = [1]
    for most in of_kind.max(axis=0).tolist():
        digits.append(digits[-1] * (most + 1))
    tells = digits[-1] <= _LARGEST_MARK
    marks = np.array(digits[:-1]) if tells else np.random.default_rng(0).integers(1, _RANDOM_MARK, kinds)
    return LikeStages(
        of_kind.astype(np.int64) @ marks, tells, np.full((places, 4), -1, dtype=np.int64), np.empty((places, 4))
    )


@kernel(nogil=True, no_cpython_wrapper=True)
def place_of(like, of_kind, base, goal, g, copies, in_flight):  # type: ignore[no-untyped-def]
    """The place of a stage; nothing is known there yet if another one had it."""
    units = like.mark[goal] - like.mark[base]
    of = (g << 42) + (copies << 21) + in_flight
    at = (units % 1000003 * 1009 + copies * 8191 + in_flight * 131 + g) % len(like.stage)
    same = like.stage[at, 0] == units and like.stage[at, 1] == of
    if same and not like.tells:
        low, high = like.stage[at, 2], like.stage[at, 3]
        for c in range(of_kind.shape[1]):
            if of_kind[high, c] - of_kind[low, c] != of_kind[goal, c] - of_kind[base, c]:
                same = False
                break
    if not same:
        like.stage[at, 0], like.stage[at, 1], like.stage[at, 2], like.stage[at, 3] = units, of, base, goal
        like.seconds[at, ENOUGH], like.seconds[at, SHORT], like.seconds[at, NEVER] = np.inf, -np.inf, -np.inf
    return at


@kernel(nogil=True, no_cpython_wrapper=True)
def known(like, at, room):  # type: ignore[no-untyped-def]
    """Whether the options of the stage at a place fit into so many seconds, if that follows from what is known."""
    if room >= like.seconds[at, ENOUGH]:
        return YES
    if room <= like.seconds[at, NEVER]:
        return TOO_SLOW
    if room <= like.seconds[at, SHORT]:
        return NO
    return UNKNOWN


@kernel(nogil=True, no_cpython_wrapper=True)
def learn(like, at, room, answer):  # type: ignore[no-untyped-def]
    """Keep an answer."""
    if answer == YES:
        like.seconds[at, ENOUGH] = min(like.seconds[at, ENOUGH], room)
    elif answer == TOO_SLOW:
        like.seconds[at, NEVER] = max(like.seconds[at, NEVER], room)
    elif answer == NO:
        like.seconds[at, SHORT] = max(like.seconds[at, SHORT], room)


@kernel(nogil=True, no_cpython_wrapper=True)
def remembered(like, at):  # type: ignore[no-untyped-def]
    """The number that is kept at a place (of no copies); -1: none."""
    return -1 if like.seconds[at, ENOUGH] == np.inf else np.int64(like.seconds[at, ENOUGH])


@kernel(nogil=True, no_cpython_wrapper=True)
def remember(like, at, number):  # type: ignore[no-untyped-def]
    """Keep a number at a place of no copies."""
    like.seconds[at, ENOUGH] = number
