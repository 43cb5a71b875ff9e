"""What can stand in the block of each statement, and the words that some places take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from placedsl.algorithms import registry
from placedsl.graph.readers import READERS
from placedsl.language.vocabulary import DEVICE_ATTRIBUTES
from placedsl.units import BANDWIDTH, DATA, NUMBER, OPERATIONS, TIME, Dimension


@dataclass(frozen=True, slots=True)
class EntryKind:
    """An entry of a block: its meaning, and the dimension of its value (None: it is no number)."""

    meaning: str
    dimension: Dimension | None


_LINK = {
    "bandwidth": EntryKind("how fast data moves over the link", BANDWIDTH),
    "latency": EntryKind("time that each transfer takes on top", TIME),
}
_MEANINGS = {
    "memory": "memory of each device", "compute": "operations in a second", "price": "what a device costs",
    "memory_bandwidth": "how fast a device reads its own memory",
    "launch_overhead": "time that each node takes on top, where times are estimated",
}  # fmt: skip

#: By syntax node and the keyword that begins the statement: the entries that it can have.
ENTRIES: Mapping[str, Mapping[str, EntryKind]] = {
    "device": {n: EntryKind(_MEANINGS.get(n, "attribute of a device"), d) for n, d in DEVICE_ATTRIBUTES.items()},
    "link": _LINK,
    "interconnect": _LINK,
    "node": {
        "time": EntryKind("running time; one, or one a kind, family or device: {accelerator: 4 ms, host: 9 ms}", TIME),
        "memory": EntryKind("memory that the node occupies", DATA),
        "output": EntryKind("size of the tensor that it makes", DATA),
        "transfer": EntryKind("time to move its tensor between a device and RAM", TIME),
        "backward": EntryKind("true where the node belongs to the backward part", None),
        "name": EntryKind("readable name, a text", None),
        "parameters": EntryKind("size of the weights that copies of the node exchange", DATA),
        "flops": EntryKind("operations, from which times are estimated", OPERATIONS),
        "bytes": EntryKind("what it reads and writes, from which times are estimated", DATA),
    },
    "graph": {
        "time_unit": EntryKind("the unit of the file's times, as in 1 ms", TIME),
        "format": EntryKind("format of the file: " + ", ".join(READERS), None),
        "profile": EntryKind("file of measured times, JSON or CSV", None),
    },
    "parallelism": {
        "data": EntryKind("how many devices may share the samples of a stage, as in 1..4", NUMBER),
        "weights": EntryKind("attribute of nodes that holds the bytes to exchange, or 0", None),
    },
    "solve": {
        "time_limit": EntryKind("when to stop", TIME),
        "gap": EntryKind("how near to the bound is near enough, as in 1%", NUMBER),
        "workers": EntryKind("threads that the solver may use", NUMBER),
        "seed": EntryKind("seed of whatever is random", NUMBER),
        "solver": EntryKind("auto, cp-sat, highs, pyomo, mip or cvxpy", None),
        "method": EntryKind("auto, dp, program, or another that placedsl methods lists", None),
    },
}
#: The names of the syntax nodes that have such blocks.
HOLDERS = {
    "DeviceFamily": "device", "LinkBetween": "link", "Interconnect": "interconnect", "Node": "node", "Chain": "node",
    "GraphFile": "graph", "Solve": "solve", "Parallelism": "parallelism",
}  # fmt: skip

KINDS = {"accelerator": "has a memory of its own; moving tensors in and out takes time", "host": "shares RAM"}
SOLVERS = ("auto", "cp-sat", "highs", "pyomo", "mip", "cvxpy")
METHODS = ("auto", "dp", "program", *registry.own())
PARAMETER_TYPES = ("int", "number", "time", "data", "text", "bool")
VARIABLE_TYPES = ("binary", "integer", "real")
WORDS = {"solver": SOLVERS, "method": METHODS, "format": tuple(READERS)}
