"""A schedule that changes step by step, in arrays: what is known of it, and of the trial that is being evaluated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.algorithms.operator_scheduling.search.trial_marks_kernel import Marks
from placedsl.arrays import Booleans, Floats, Integers, Integers32


class Boundary(NamedTuple):
    """The boundary of an instance that is a window of a larger schedule; all 0 where there is none.

    ``release``   n x D seconds: when the inputs from outside are there
    ``delivery``  n x D seconds: how much follows a node's end outside
    ``free``      D devices, then resources: when they become free
    ``next``      D seconds: how much follows on a device once it is free
    """

    release: Floats
    delivery: Floats
    free: Floats
    next: Floats


def no_boundary(instance: SchedulingInstance) -> Boundary:
    """The boundary of an instance that is not part of another."""
    shape = instance.time.shape
    return Boundary(np.zeros(shape), np.zeros(shape), np.zeros(shape[1] + instance.resources), np.zeros(shape[1]))


class IncrementalSchedule(NamedTuple):
    """The current schedule, and beside it the trial that is being evaluated.

    ``device``, ``order``, ``transfer_trigger``, ``first_transfer``, ``next_transfer``  as in OperatorSequence
    ``position``  n: of each node in the order; ``memory_used``: D bytes
    ``ended``, ``arrived``   n and t x D seconds; ``called`` t x D: the position of a transfer's trigger (n: never)
    ``first_sent``, ``next_sent``   the first of the transfers called in each row, and the next one in the same row (-1:
                  none)
    ``kept``      when resources are free before each row, and at the end; ``used``: flags of those that a row uses
    ``longest``   when all nodes of a row have ended, with what follows outside
    ``follows``, ``after_arrival``   n and t x D seconds: the longest path after a node's end and a transfer's arrival
    ``left``      the longest path from when a resource is free before each row, and at the end
    ``late``      t x D flags: a transfer is called after the node of its place, not for it
    ``tail``      n x D seconds: how much follows at least when a node has ended on a device
    ``trial_…``   the same of the trial; its entries for a transfer are valid if ``stamp`` is the number of the trial
    ``state``, ``differs``   of the row that is being looked at: when resources are free, or what follows, and flags of
                  those that differ from the schedule
    ``boundary``  the times around the instance
    """

    device: Integers
    order: Integers
    transfer_trigger: Integers32
    first_transfer: Integers32
    next_transfer: Integers32
    position: Integers
    memory_used: Floats
    ended: Floats
    arrived: Floats
    called: Integers32
    first_sent: Integers32
    next_sent: Integers32
    kept: Floats
    used: Booleans
    longest: Floats
    follows: Floats
    after_arrival: Floats
    left: Floats
    late: Booleans
    tail: Floats
    trial_ended: Floats
    trial_arrived: Floats
    trial_called: Integers32
    trial_late: Booleans
    stamp: Integers
    trial_tensor: Integers32
    trial_target: Integers32
    trial_kept: Floats
    trial_used: Booleans
    trial_longest: Floats
    marks: Marks
    state: Floats
    differs: Booleans
    boundary: Boundary
