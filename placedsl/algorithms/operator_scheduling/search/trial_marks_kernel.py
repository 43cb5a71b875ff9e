"""Compiled: which rows of the order a trial of an incremental schedule concerns."""

from __future__ import annotations

from typing import NamedTuple

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Integers

#: Positions of a row.
STRIDE = 16
#: Up to so many nodes all rows behind a change are evaluated: to find out which have to be takes as long.
FEW = 400

#: What ``numbers`` of :class:`Marks` has at each place: the number of the trial, that of its transfers, the last row to
#: be evaluated, the first and the last row looked at, the last row shaped, and the first one in ``behind``.
TRIAL, SENT, LAST_MARKED, FIRST_ROW, LAST_ROW, LAST_SHAPED, FIRST_BEHIND = range(7)


class Marks(NamedTuple):
    """Rows that a trial concerns; an entry holds if it is the number of the trial.

    ``evaluate``  rows to be evaluated; ``shaped``: those in which nodes, devices or transfers are others than before;
                  ``behind``: those where what follows may have changed
    ``evaluated`` rows that were; ``carried``: those that were passed with resources free at other times
    ``numbers``   see :data:`TRIAL`
    """

    evaluate: Integers
    shaped: Integers
    behind: Integers
    evaluated: Integers
    carried: Integers
    numbers: Integers


@kernel(no_cpython_wrapper=True)
def mark(marks: Marks, place: int) -> None:
    """Have the row of a position evaluated later in this trial."""
    row = place // STRIDE
    marks.evaluate[row] = marks.numbers[TRIAL]
    marks.numbers[LAST_MARKED] = max(marks.numbers[LAST_MARKED], row)


@kernel(no_cpython_wrapper=True)
def mark_behind(marks: Marks, place: int) -> None:
    """What follows the row of a position may change if the trial becomes the schedule."""
    row = place // STRIDE
    marks.behind[row] = marks.numbers[TRIAL]
    marks.numbers[FIRST_BEHIND] = min(marks.numbers[FIRST_BEHIND], row)


@kernel(no_cpython_wrapper=True)
def reshape(marks: Marks, place: int) -> None:
    """Nodes, devices or transfers of the row of a position are others in this trial."""
    row = place // STRIDE
    mark(marks, place)
    mark_behind(marks, place)
    marks.shaped[row] = marks.numbers[TRIAL]
    marks.numbers[LAST_SHAPED] = max(marks.numbers[LAST_SHAPED], row)


@kernel(no_cpython_wrapper=True)
def reshape_between(marks: Marks, low: int, high: int) -> None:
    """The same for all rows from one position to another."""
    for row in range(low // STRIDE, high // STRIDE + 1):
        reshape(marks, row * STRIDE)


@kernel(no_cpython_wrapper=True)
def next_trial(marks: Marks, nodes: int) -> None:
    """Begin the next trial."""
    marks.numbers[TRIAL] += 1
    marks.numbers[LAST_MARKED], marks.numbers[FIRST_BEHIND] = -1, nodes
    marks.numbers[LAST_SHAPED] = -1 if nodes > FEW else nodes  # of few nodes nobody knows what follows
