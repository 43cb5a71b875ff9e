"""Annealing of an incremental schedule, as the searches call it."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.annealing import CoolingSchedule
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, supported, unit_memory
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, mean_times
from placedsl.algorithms.operator_scheduling.search.annealing_kernel import Moves, UnitData, anneal
from placedsl.algorithms.operator_scheduling.search.clusters_kernel import UndoRecord
from placedsl.algorithms.operator_scheduling.search.incremental_state import IncrementalSchedule

#: The share of the steps that move a cluster joined by costly tensors, unless a search asks for another.
CLUSTER_MOVE_SHARE = 0.15


def run_annealing(
    instance: SchedulingInstance,
    schedule: IncrementalSchedule,
    latency: float,
    best: float,
    cooling: CoolingSchedule,
    cluster_move_share: float = CLUSTER_MOVE_SHARE,
    among: range | None = None,
) -> tuple[float, OperatorSequence | None]:
    """Anneal a schedule of the given ``latency`` in place; temperatures are in seconds; ``among``: the positions of the
    order from which nodes are drawn (None: all).

    Returns its latency at the end, and the best sequence met if that is shorter than ``best`` seconds.
    """
    number = len(instance.member_start) - 1
    undo = UndoRecord(
        *(np.zeros(size, dtype=np.int64) for size in (number + 1, number + 1, number, *[instance.nodes] * 2))
    )
    found = OperatorSequence(
        schedule.device.copy(),
        schedule.order.copy(),
        schedule.transfer_trigger.copy(),
        schedule.first_transfer.copy(),
        schedule.next_transfer.copy(),
    )
    units = UnitData(supported(instance), unit_memory(instance), mean_times(instance)[1])
    drawn = range(instance.nodes) if among is None else among
    moves = Moves(cluster_move_share, drawn.start, drawn.stop)
    latency, value = anneal(instance, schedule, units, latency, cooling, moves, undo, found, best)
    return latency, found if value < best else None
