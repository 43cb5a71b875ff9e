"""The methods that are asked for by name, ours and those of plug-ins alike; none is imported before it is run."""

from __future__ import annotations

from placedsl import plugins
from placedsl.records import dataclass
from placedsl.system.installation import package_version

KIND = "algorithms"


@dataclass(frozen=True)
class Method:
    """A built-in method: its name, its meaning in a line, its module below ``placedsl.algorithms``."""

    name: str
    meaning: str
    module: str


#: Run when they are named, never under ``auto``.  Each module is an :class:`placedsl.algorithms.interface.Algorithm`.
NAMED = (
    Method("single", "everything on one accelerator", "baselines.single"),
    Method("greedy", "fill one device after the other in topological order", "baselines.greedy"),
    Method(
        "local-search",
        "best single reassignments from ten random placements",
        "baselines.steepest_descent",
    ),
    Method(
        "pipedream",
        "branchings contracted to a path, and its best cut into stages",
        "baselines.pipedream",
    ),
    Method(
        "equi",
        "plans of stages with equally many layers, copies and devices",
        "baselines.equi",
    ),
    Method(
        "pipedream-2bw", "plans of even stages without tensor parallelism, as 2BW chooses", "baselines.pipedream_2bw"
    ),
    Method(
        "megatron",
        "plans of a rule of thumb: split widely, few even stages, then copies",
        "baselines.megatron",
    ),
    Method("slicegraph", "the best division of a few orders into stages", "baselines.orders.slicegraph"),
    Method("random", "the best division of ten thousand random orders", "baselines.orders.random_orders"),
    Method("brkga", "orders that a genetic algorithm improves, each divided", "baselines.orders.brkga"),
    Method("mla", "the order with the shortest edges, divided", "baselines.orders.mla"),
    Method("mla-weighted", "the same, with edges that count by their tensors", "baselines.orders.mla_weighted"),
    Method("alpa", "plans of segments on 1, 2, 4 ... devices, as Alpa chooses them", "baselines.alpa"),
    Method("galvatron", "plans of equal groups of devices, an option for each layer", "baselines.galvatron"),
    Method(
        "m-topo",
        "devices filled in topological order up to an even share of memory",
        "operator_scheduling.list_scheduling.m_topo",
    ),
    Method(
        "etf",
        "earliest start of all ready nodes and devices",
        "operator_scheduling.list_scheduling.etf",
    ),
    Method("m-etf", "ETF among devices with room", "operator_scheduling.list_scheduling.m_etf"),
    Method(
        "m-sct",
        "favourite children by a linear program, then ETF with room",
        "operator_scheduling.list_scheduling.m_sct",
    ),
    Method(
        "heft",
        "nodes by upward rank, each where it ends first",
        "operator_scheduling.list_scheduling.heft",
    ),
    Method(
        "getf",
        "groups of devices by a linear program, then ETF",
        "operator_scheduling.list_scheduling.getf",
    ),
    Method("scotch", "graph partitioning by the program of that name", "baselines.scotch"),
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
            return built_in(name, f"placedsl.algorithms.{method.module}")
    return plugins.get(KIND, name, (*further, *own()))


def built_in(name: str, module: str) -> plugins.Plugin:
    """An algorithm of this package by its module, not imported yet."""
    from importlib import metadata

    entry = metadata.EntryPoint(name, module, f"placedsl.{KIND}")
    return plugins.Plugin(KIND, name, f"placedsl {package_version()}", entry)
