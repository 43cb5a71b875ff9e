"""The entries that the block of each statement can have, as ``{ memory = 16 GiB }``: one row per entry.

Elaboration reads names, dimensions and examples here; the language server completes and explains from the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from placedsl.problem.execution import COMMUNICATIONS, EXCHANGES, HELD, ORDERS, SCHEDULES, TRANSFERS
from placedsl.records import dataclass
from placedsl.units import BANDWIDTH, COMPUTE, DATA, NUMBER, OPERATIONS, PRICE, TIME, Dimension


@dataclass(frozen=True, slots=True)
class EntryKind:
    """An entry: its meaning, the dimension of its value (None: it is not a number), and a value as an example."""

    meaning: str
    dimension: Dimension | None
    example: str


@dataclass(frozen=True)
class StatementEntries:
    """The entries of one statement; ``subject`` is how messages call what they belong to."""

    subject: str
    entries: Mapping[str, EntryKind]

    @property
    def dimensions(self) -> dict[str, Dimension]:
        """The dimension of each entry that is a number."""
        return {name: kind.dimension for name, kind in self.entries.items() if kind.dimension is not None}


_DEVICE = {
    "memory": EntryKind("memory of each device", DATA, "16 GiB"),
    "compute": EntryKind("operations in a second", COMPUTE, "312 TFLOP/s"),
    "memory_bandwidth": EntryKind("how fast a device reads its own memory", BANDWIDTH, "900 GB/s"),
    "launch_overhead": EntryKind("time that each node takes on top, where times are estimated", TIME, "5 us"),
    "price": EntryKind("what a device costs", PRICE, "2.5 USD/h"),
    "streams": EntryKind("rate at which what does not fit is streamed for each sample", BANDWIDTH, "25 GB/s"),
    "reserve": EntryKind("memory set aside for activations where parameters are streamed, or peak", DATA, "16 MiB"),
}
_LINK = {
    "bandwidth": EntryKind("how fast data moves over the link", BANDWIDTH, "25 GB/s"),
    "latency": EntryKind("time that each transfer takes on top", TIME, "2 us"),
}
_EDGE = {
    "output": EntryKind("size of the tensor that it makes", DATA, "8 MiB"),
    "transfer": EntryKind("time to move its tensor between a device and RAM", TIME, "2 ms"),
}
#: What plans count on each device, and attributes that nodes of graph files have as well; formulas read both.
_OF_PLANS = {
    "stash": EntryKind("memory that it needs per sample in flight (plans)", DATA, "512 MiB"),
    "sharded": EntryKind("memory that the copies of its stage divide among them (plans)", DATA, "1 GiB"),
}
_WORK = {
    "parameters": EntryKind("size of the weights that copies of the node exchange", DATA, "8 MiB"),
    "flops": EntryKind("operations, from which times are estimated", OPERATIONS, "3 GFLOP"),
    "bytes": EntryKind("bytes read and written, from which times are estimated", DATA, "20 MB"),
}
#: What graphs of layers that are read from a model's sizes give beside work.
_OF_LAYERS = {
    "kv_cache": EntryKind("memory of the keys and values that attention keeps", DATA, "512 MiB"),
    "activations": EntryKind("size of all tensors that the layer makes in one pass", DATA, "2 GiB"),
    "allocated": EntryKind("memory that it had allocated at most while it was measured", DATA, "64 MiB"),
}
_NODE = {
    "time": EntryKind(
        "running time; one, or one per kind, family or device: {accelerator: 4 ms, host: 9 ms}", TIME, "4 ms"
    ),
    "memory": EntryKind("memory that the node occupies", DATA, "2 GiB"),
    **_EDGE,
    "backward": EntryKind("true where the node belongs to the backward part", None, "true"),
    "name": EntryKind("readable name, a text", None, '"attention 3"'),
    **_WORK,
    **_OF_PLANS,
    **_OF_LAYERS,
}
_GRAPH = {
    "time_unit": EntryKind("the unit of the file's times", TIME, "1 ms"),
    "format": EntryKind("format of the file", None, '"native"'),
    "profile": EntryKind("file of measured times, JSON or CSV", None, '"measured.json"'),
}
#: Entries that a config.json of Hugging Face is read with, beside sizes.
_TYPES = {
    "dtype": EntryKind("type of activations and weights, for a config.json", None, "bf16"),
    "weights": EntryKind("type of weights where it is another, for a config.json", None, "int4"),
}
_PARALLELISM = {
    "data": EntryKind("how many devices may share the samples of a stage, as in 1..4", NUMBER, "1..4"),
    "weights": EntryKind("attribute of nodes that holds the bytes to exchange, or 0", None, "parameters"),
    "tensor": EntryKind("how many devices each copy of a stage may have", NUMBER, "{1, 2, 4, 8}"),
    "options": EntryKind("names of the options that operators may take", None, '{"vanilla"}'),
    "microbatches": EntryKind("samples of a batch, and the most in flight", NUMBER, "512"),
    "in_flight": EntryKind("which samples are in flight at once: " + ", ".join(HELD), None, "batch"),
    "exchange": EntryKind("copies exchange weights once per " + ", ".join(EXCHANGES), None, "batch"),
    "chunks": EntryKind("parts of the model that each stage holds, in turn", NUMBER, "2"),
    "across": EntryKind("the innermost clusters whose copies share samples", None, "server"),
    "weights_traffic": EntryKind("how often weights cross a link in one exchange among many copies", NUMBER, "2"),
}
_OPTION = {
    "tensor": EntryKind("how many devices the node is split over", NUMBER, "2"),
    "time": EntryKind("time per sample on each of these devices", TIME, "18.7 ms"),
    "parameters": EntryKind("weights on each device, which copies exchange", DATA, "84 MiB"),
    "stash": EntryKind("memory on each device per sample in flight", DATA, "326 MiB"),
    "memory": EntryKind("memory on each device, whatever is in flight", DATA, "169 MiB"),
    "sharded": EntryKind("memory that the copies of a stage divide among them", DATA, "500 MiB"),
    "gather": EntryKind("what bringing in a tensor moves beside it: bytes, or so often its size", DATA, "30 MiB"),
    "scatter": EntryKind("the same for a tensor that goes to another stage", DATA, "30 MiB"),
}
_PIPELINE = {
    "communication": EntryKind("how transfers relate to computation: " + ", ".join(COMMUNICATIONS), None, "overlapped"),
    "transfers": EntryKind("where tensors go: " + ", ".join(TRANSFERS), None, "direct"),
}
_CALLS = {
    "slots": EntryKind("subgraph calls: how many an accelerator may have", NUMBER, "2"),
    "pieces": EntryKind("calls: how many an accelerator may have", NUMBER, "2"),
}
_SOLVE = {
    "time_limit": EntryKind("when to stop", TIME, "10 s"),
    "gap": EntryKind("how near to the bound is near enough, as in 1%", NUMBER, "1%"),
    "workers": EntryKind("threads that the solver may use", NUMBER, "4"),
    "seed": EntryKind("seed of whatever is random", NUMBER, "1"),
    "solver": EntryKind("the solver of programs, as placedsl solvers lists them", None, "highs"),
    "method": EntryKind("auto, dp, program, or another that placedsl methods lists", None, "dp"),
}

#: By the keyword that begins the statement; "edge" is ``a -> b { … }`` in an inline graph.
STATEMENTS: Mapping[str, StatementEntries] = {
    "device": StatementEntries("a device", _DEVICE),
    "link": StatementEntries("a link", _LINK),
    "interconnect": StatementEntries("an interconnect", _LINK),
    "node": StatementEntries("a node", _NODE),
    "edge": StatementEntries("an edge", _EDGE),
    "graph": StatementEntries("a graph file", {**_GRAPH, **_TYPES}),
    "parallelism": StatementEntries("'parallelism'", _PARALLELISM),
    "option": StatementEntries("an option", _OPTION),
    "schedule": StatementEntries("a schedule", {**_PIPELINE, **_CALLS}),
    "solve": StatementEntries("'solve'", _SOLVE),
}


def schedule_entries(keyword: str) -> Mapping[str, EntryKind]:
    """The entries that the block after one keyword of ``schedule`` can have: none after most shorthands."""
    if keyword in ORDERS:
        return _PIPELINE
    return _CALLS if keyword in SCHEDULES and SCHEDULES[keyword].run == "subgraph_calls" else {}


#: Dimensions of the attributes that formulas read of devices and of nodes.
DEVICE_DIMENSIONS = STATEMENTS["device"].dimensions
NODE_DIMENSIONS = StatementEntries("a node", {**_WORK, **_OF_PLANS, **_OF_LAYERS}).dimensions

#: What stands after ``device NAME:``.
DEVICE_KINDS = {
    "accelerator": "has a memory of its own; moving tensors in and out takes time",
    "host": "shares RAM",
}
