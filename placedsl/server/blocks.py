"""The words that some places take, and which statement the entries of a syntax node belong to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from placedsl import plugins
from placedsl.graph.readers import READERS
from placedsl.planner.request import methods, solver_names
from placedsl.problem.execution import COMMUNICATIONS, TRANSFERS
from placedsl.problem.streaming import PEAK

#: The statements of syntax nodes with entries, as :data:`placedsl.language.elaboration.statement_entries.STATEMENTS`
#: calls them.
HOLDERS = {
    "DeviceFamily": "device", "LinkBetween": "link", "Interconnect": "interconnect", "Node": "node", "Chain": "edge",
    "GraphFile": "graph", "Solve": "solve", "Parallelism": "parallelism", "Schedule": "schedule",
    "Option": "option",
}  # fmt: skip

#: The words that may be the value of an entry, plug-ins included; looked up anew each time.
CHOICES: Mapping[str, Callable[[], tuple[str, ...]]] = {
    "solver": solver_names,
    "method": methods,
    "communication": lambda: COMMUNICATIONS,
    "transfers": lambda: TRANSFERS,
    "reserve": lambda: (PEAK,),
    "format": lambda: tuple(dict.fromkeys((*READERS, *plugins.names("readers")))),
}
