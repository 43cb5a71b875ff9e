"""The methods that are asked for by name, ours and those of plug-ins alike; none is imported before it is run."""

from __future__ import annotations

from dataclasses import dataclass

from placedsl import plugins
from placedsl.versions import package_version

KIND = "algorithms"


@dataclass(frozen=True)
class Method:
    """A method of our own: its name, what it does in one line, and the module that is its algorithm."""

    name: str
    meaning: str
    module: str


#: Run when they are named, never under ``auto``.  Each module is an :class:`placedsl.algorithms.interface.Algorithm`.
NAMED = (
    Method("single", "everything on one accelerator", "placedsl.algorithms.single"),
    Method("greedy", "fill one device after the other in topological order", "placedsl.algorithms.greedy"),
    Method("local-search", "best single reassignments from ten random placements", "placedsl.algorithms.reassignment"),
    Method(
        "pipedream", "branchings contracted to a path, and its best cut into stages", "placedsl.algorithms.pipedream"
    ),
    Method(
        "m-topo",
        "devices filled in topological order up to an even share of memory",
        "placedsl.algorithms.dataflow.m_topo",
    ),
    Method("etf", "earliest start of all ready nodes and devices", "placedsl.algorithms.dataflow.etf"),
    Method("m-etf", "ETF among devices with room", "placedsl.algorithms.dataflow.m_etf"),
    Method("m-sct", "favourite children by a linear program, then ETF with room", "placedsl.algorithms.dataflow.m_sct"),
    Method("heft", "nodes by upward rank, each where it ends first", "placedsl.algorithms.dataflow.heft"),
    Method("getf", "groups of devices by a linear program, then ETF", "placedsl.algorithms.dataflow.getf"),
    Method("scotch", "graph partitioning by the program of that name", "placedsl.algorithms.scotch"),
)


def own() -> tuple[str, ...]:
    """The names of our own methods."""
    return tuple(method.name for method in NAMED)


def brought() -> tuple[str, ...]:
    """The names that plug-ins offer and that are not taken."""
    return tuple(name for name in plugins.names(KIND) if name not in own())


def find(name: str, further: tuple[str, ...] = ()) -> plugins.Plugin:
    """The algorithm of that name, not imported yet; UsageError with the nearest names (``further`` ones too)."""
    for method in NAMED:
        if method.name == name:
            from importlib import metadata

            entry = metadata.EntryPoint(name, method.module, f"placedsl.{KIND}")
            return plugins.Plugin(KIND, name, f"placedsl {package_version()}", entry)
    return plugins.get(KIND, name, (*further, *own()))
