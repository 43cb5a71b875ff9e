"""What is known of the options of an instance by degree and kind, whatever the stages."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.pipelines.parallel_plans.instance import PlanInstance
from placedsl.algorithms.pipelines.parallel_plans.options import OptionTable
from placedsl.arrays import Floats, Integers


def quickest_rows(instance: PlanInstance, table: OptionTable, keys: Integers) -> Integers:
    """g x c: the row of the quickest option of each kind, of equally quick ones the smallest; -1 for none.

    ``keys``: the degree and kind of each row as one number.
    """
    order = np.lexsort((table.stash + table.memory, table.time, keys))
    out = np.full(len(instance.degrees) * instance.kinds, -1, dtype=np.int64)
    out[keys[order][::-1]] = order[::-1]  # of several the first one of the order is written last
    return out.reshape(-1, instance.kinds)


def alike_weights(table: OptionTable, keys: Integers) -> bool:
    """Whether options of a kind that have one degree have the same weights."""
    low, high = np.full(int(keys.max(initial=0)) + 1, np.inf), np.zeros(int(keys.max(initial=0)) + 1)
    np.minimum.at(low, keys, table.weights)
    np.maximum.at(high, keys, table.weights)
    return bool((low >= high)[np.isfinite(low)].all())


def smallest_bytes(instance: PlanInstance, table: OptionTable, keys: Integers, most: int) -> Floats:
    """g x y x u: bytes of the smallest options of each unit's nodes with 1 to ``most`` samples in flight."""
    out = np.full((len(instance.degrees) * instance.kinds, most), np.inf)
    in_flight = np.arange(1, most + 1)
    np.minimum.at(out, keys, table.stash[:, None] * in_flight + table.memory[:, None])
    of_nodes = out.reshape(len(instance.degrees), instance.kinds, most)[:, instance.kind]
    return instance.of_units(of_nodes.transpose(0, 2, 1))
