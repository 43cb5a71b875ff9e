"""The ways to estimate the running times of operators for which no time is known.

To add one, write a module with the two functions and put a row here; docs/adding-a-cost-model.md.
"""

from __future__ import annotations

from collections.abc import Callable

from placedsl.arrays import Booleans, Floats
from placedsl.cost_model import roofline
from placedsl.graph.graph import Graph
from placedsl.machine.machine import Device
from placedsl.records import dataclass


@dataclass(frozen=True)
class Estimator:
    """One way to estimate running times.

    ``basis``    what it estimates from, as notes call it
    ``seconds``  n seconds on a device; nan for nodes that it cannot estimate
    ``missing``  the attributes of the device that it would need for some nodes (n flags) and that are not there
    """

    basis: str
    seconds: Callable[[Graph, Device], Floats]
    missing: Callable[[Graph, Device, Booleans], list[str]]


#: In order of precedence; of what none can estimate the last one says what it lacks.
ESTIMATORS = (Estimator("operations and bytes", roofline.seconds, roofline.missing_rates),)
