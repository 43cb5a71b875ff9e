"""Ways to run an operator: what each costs, by the number of devices that the operator is split over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import NamedTuple

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.records import dataclass


class Moved(NamedTuple):
    """x amounts that options move beside tensors: the option, the tensor, and bytes."""

    option: Integers
    tensor: Integers
    amount: Floats

    @classmethod
    def of(cls, rows: list[tuple[int, int, float]]) -> Moved:
        """From triples; amounts of 0 are left out."""
        kept = [row for row in rows if row[2]]
        columns = list(zip(*kept, strict=True)) or [(), (), ()]
        return cls(
            np.array(columns[0], dtype=np.int64), np.array(columns[1], dtype=np.int64), np.array(columns[2], float)
        )


NOTHING = Moved.of([])


@dataclass(frozen=True, eq=False)
class OperatorOptions:
    """o options of the n nodes of a graph (Tarnawski et al. 2021, "tensor-parallel and memory configurations").

    ``node``        o positions of nodes, ascending
    ``name``        o texts, such as "recomputed"
    ``degree``      o numbers of devices that the node is split over
    ``time``        per device kind, family or device name: o times per sample; inf = not supported
    ``parameters``  o bytes of weights on each of these devices
    ``stash``       o bytes on each device for every sample in flight
    ``memory``      o bytes on each device, whatever is in flight
    ``sharded``     o bytes that the copies of a stage divide among them (Rajbhandari et al. 2020, ZeRO)
    ``gathered``    what bringing a tensor from another stage to all devices of a copy moves beside the tensor itself
    ``scattered``   the same for a tensor that the node makes for other stages
    """

    node: Integers
    name: tuple[str, ...]
    degree: Integers
    time: Mapping[str, Floats]
    parameters: Floats
    stash: Floats
    memory: Floats
    sharded: Floats
    gathered: Moved = field(default=NOTHING)
    scattered: Moved = field(default=NOTHING)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names that there are, each once."""
        return tuple(dict.fromkeys(self.name))

    @property
    def degrees(self) -> tuple[int, ...]:
        """The degrees that there are options for, ascending."""
        return tuple(np.unique(self.degree).tolist())

    def in_units(self, unit: float) -> OperatorOptions:
        """The same with times multiplied by a unit."""
        return replace(self, time={kind: values * unit for kind, values in self.time.items()})
