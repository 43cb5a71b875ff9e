"""Memory limits beside a chain of blocks: what memory is worth, in seconds per byte of each device."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.beside import Beside
from placedsl.algorithms.operator_scheduling.bounds.broadcast import fits
from placedsl.algorithms.operator_scheduling.bounds.priced_chain import Uses
from placedsl.algorithms.operator_scheduling.decomposition.blocks import Chain
from placedsl.algorithms.operator_scheduling.instance import floats


def memory_uses(chain: Chain) -> Uses | None:
    """The memory of all nodes; None if the limits cannot bind."""
    instance = chain.instance
    if not fits(instance) or not (instance.memory.sum() > instance.memory_limit).any():
        return None
    use = floats(np.repeat(instance.memory[:, None], instance.devices, axis=1))
    inside = np.zeros(instance.nodes, dtype=bool)
    inside[np.concatenate([chain.nodes, *(block.nodes for block in chain.blocks)])] = True
    left = instance.topological[~inside[instance.topological]]
    return Uses(use, instance.memory_limit, range(len(chain.blocks)), False, Beside(instance, left, use[left]))
