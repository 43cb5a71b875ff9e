"""What can be spoken of: sets, attributes of elements, and the quantities that objectives provide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from placedsl.graph.graph import Graph
from placedsl.machine.machine import Machine
from placedsl.problem.expressions import Sort
from placedsl.records import dataclass
from placedsl.units import BANDWIDTH, DATA, ENERGY, MONEY, NUMBER, POWER, PRICE, TIME, Dimension


@dataclass(frozen=True, slots=True)
class Type:
    """What an expression stands for.

    ``kind`` is number, truth, text, element, set or error (an error was reported already);
    ``dimension`` that of a number; ``sorts`` what an element is, or the elements of a set.
    """

    kind: str
    dimension: Dimension = NUMBER
    sorts: tuple[Sort, ...] = ()

    def __str__(self) -> str:
        if self.kind == "number":
            return "a plain number" if self.dimension == NUMBER else f"a number ({self.dimension})"
        if self.kind == "element":
            return f"a {self.sorts[0].partition(':')[0]}"
        if self.kind == "set":
            one = self.sorts[0].partition(":")[0]
            return "a set of " + (
                "whole numbers" if one == "integer" else one + "s" if len(self.sorts) == 1 else "pairs"
            )
        return {"truth": "a condition", "text": "a text"}.get(self.kind, self.kind)


#: A value that is known beforehand, and its type.
Value = tuple[float | bool | str, Type]


TRUTH = Type("truth")
TEXT = Type("text")
ERROR = Type("error")
PLAIN = Type("number")


def number(dimension: Dimension) -> Type:
    """The type of a number of that dimension."""
    return Type("number", dimension)


def element(sort: Sort) -> Type:
    """The type of one element."""
    return Type("element", sorts=(sort,))


@dataclass(frozen=True, slots=True)
class AttributeType:
    """The type of ``element.name``; ``per``: what stands in brackets after it (nothing, a device or a cluster).

    ``pair``: two devices stand there, from the first to the second.
    """

    type: Type
    per: Sort = ""
    pair: bool = False

    @property
    def per_device(self) -> bool:
        """It is written with brackets."""
        return bool(self.per)


@dataclass(frozen=True)
class Quantity:
    """A quantity of the vocabulary: the sorts of its arguments, its type, and what it means."""

    arguments: tuple[Sort, ...]
    type: Type
    meaning: str


def quantities(time: Dimension, size: Dimension) -> dict[str, Quantity]:
    """Every quantity that some formulation provides.

    ``time`` is the dimension of times of this graph (a plain number when the graph has a unit of its
    own), ``size`` that of tensor sizes (data, or time where the graph gives transfer times only).
    """
    return {
        "on": Quantity(("node", "device"), TRUTH, "v on d: the node is placed on the device"),
        "load": Quantity(("device",), number(time), "busy time of the device for one sample"),
        "compute_time": Quantity(("device",), number(time), "computation of the device for one sample"),
        "transfer_time": Quantity(("device",), number(time), "transfers of the device for one sample, in and out"),
        "receive_time": Quantity(("device",), number(time), "transfers into the device for one sample"),
        "send_time": Quantity(("device",), number(time), "transfers out of the device for one sample"),
        "synchronisation_time": Quantity(
            ("device",), number(time), "the device's part in the exchange of gradients where a stage is shared"
        ),
        "streamed": Quantity(("device",), number(time), "streaming of what does not fit of its memory, for one sample"),
        "forward_load": Quantity(("device",), number(time), "busy time of the device in a forward pass (gpipe)"),
        "backward_load": Quantity(("device",), number(time), "busy time of the device in a backward pass (gpipe)"),
        "memory": Quantity(("device",), number(DATA), "memory that the device's nodes occupy"),
        "traffic": Quantity(("device", "device"), number(size), "tensors made on the first, read on the second"),
        "time_per_sample": Quantity((), number(time), "the largest load"),
        "used": Quantity(("device",), TRUTH, "the device holds a node"),
        "devices_used": Quantity((), PLAIN, "how many devices hold a node"),
        "communication": Quantity((), number(time), "all transfers in and out of accelerators"),
        "peak_memory": Quantity((), number(DATA), "the largest memory of an accelerator"),
    }


@dataclass(frozen=True, slots=True)
class Family:
    """An indexed name, a decision variable or a parameter: the sorts of its indices, and the type of each value.

    ``binary``: a variable that is 0 or 1, and may stand for a condition.  ``single``: the positions of further indices
    that have one value under the execution model; they may be written, and mean nothing.
    """

    sorts: tuple[Sort, ...]
    type: Type
    binary: bool = False
    single: tuple[int, ...] = ()


@dataclass(frozen=True)
class Vocabulary:
    """All names that an expression may use (parameters and bound variables apart).

    ``types`` are the words that may stand after a colon: ``param limit: time``; ``units`` those in which the spec
    writes quantities of a dimension; ``option_positions`` the names of options, where there is a choice; ``chunks``
    whether stages of a plan hold several parts of the model.
    """

    sets: Mapping[str, tuple[Sort, ...]]
    families: Mapping[str, tuple[int, ...]]
    attributes: Mapping[Sort, Mapping[str, AttributeType]]
    quantities: Mapping[str, Quantity]
    graph: Graph
    machine: Machine
    node_positions: Mapping[str, int]
    types: Mapping[str, Type]
    variables: Mapping[str, Family] = field(default_factory=dict)
    tables: Mapping[str, Family] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[Dimension, str] = field(default_factory=dict)
    option_positions: Mapping[str, int] = field(default_factory=dict)
    chunks: bool = False

    def as_written(self, dimension: Dimension) -> Dimension:
        """The dimension, with the unit in which answers show its values."""
        unit = self.units.get(dimension)
        return replace(dimension, unit=unit) if unit else dimension


def types(time: Dimension = TIME) -> dict[str, Type]:
    """The types by name; ``time``: what times are in this graph."""
    return {
        "int": PLAIN, "number": PLAIN, "real": PLAIN, "time": number(time), "data": number(DATA),
        "bandwidth": number(BANDWIDTH), "money": number(MONEY), "price": number(PRICE), "energy": number(ENERGY),
        "power": number(POWER), "text": TEXT, "bool": TRUTH,
    }  # fmt: skip


def vocabulary(
    graph: Graph,
    machine: Machine,
    device_dimensions: Mapping[str, Dimension],
    node_dimensions: Mapping[str, Dimension],
) -> Vocabulary:
    """The names that a graph and a machine give; with the dimensions of attributes that have a meaning of their own."""
    members: dict[str, list[int]] = {}
    for i, one in enumerate(machine.devices):
        members.setdefault(one.family, []).append(i)
    families = {name: tuple(devices) for name, devices in members.items()}
    sets: dict[str, tuple[Sort, ...]] = {
        "nodes": ("node",), "forward": ("node",), "backward": ("node",), "devices": ("device",),
        "accelerators": ("device",), "hosts": ("device",), "tensors": ("tensor",),
        "edges": ("node", "node"), "reads": ("tensor", "node"),
    }  # fmt: skip
    sets |= dict.fromkeys(families, ("device",))
    time = TIME if graph.time_in_seconds else NUMBER
    sized = bool(np.isfinite(graph.tensor_bytes).all()) and (graph.tensors > 0 or graph.time_in_seconds)
    size = DATA if sized else time
    node: dict[str, AttributeType] = {
        "name": AttributeType(TEXT),
        "id": AttributeType(TEXT),
        "memory": AttributeType(number(DATA)),
        "backward": AttributeType(TRUTH),
        "time": AttributeType(number(time), "device"),
        "supported": AttributeType(TRUTH, "device"),
        "measured": AttributeType(TRUTH, "device"),
    }
    for name, values in graph.attributes.items():
        if name not in node:
            plain = number(node_dimensions.get(name, NUMBER))
            node[name] = AttributeType(plain if values.dtype.kind == "f" else TEXT)
    device: dict[str, AttributeType] = {
        "name": AttributeType(TEXT),
        "family": AttributeType(TEXT),
        "kind": AttributeType(TEXT),
        "number": AttributeType(PLAIN),
        "class": AttributeType(PLAIN),
        "memory": AttributeType(number(DATA)),
    }
    device |= {name: AttributeType(number(d)) for name, d in device_dimensions.items() if name not in device}
    device |= {name: AttributeType(TEXT) for one in machine.devices for name in one.texts}
    tensor = {
        "producer": AttributeType(element("node")),
        "size": AttributeType(number(size)),
        "transfer": AttributeType(number(time), "device"),
    }
    ids = {str(i): position for position, i in enumerate(graph.ids)}
    if graph.fusion is not None:
        # Members stand for the operator that they are part of.
        ids |= {str(i): v for i, v in zip(graph.written.ids, graph.fusion.node_of.tolist(), strict=True)}
    attributes = {"node": node, "device": device, "tensor": tensor}
    words = Vocabulary(sets, families, attributes, quantities(time, size), graph, machine, ids, types(time))
    return with_clusters(words) if machine.clusters else words


def with_clusters(words: Vocabulary) -> Vocabulary:
    """The vocabulary with what can be said of clusters; formulations speak of them on every machine."""
    sets: dict[str, tuple[Sort, ...]] = {
        **words.sets, "clusters": ("cluster",), "memberships": ("device", "cluster"), "cluster_levels": ("integer",),
    }  # fmt: skip
    sets |= dict.fromkeys((c.family for c in words.machine.clusters if not c.alone), ("cluster",))
    tensor = {**words.attributes["tensor"], "leaving": replace(words.attributes["tensor"]["transfer"], per="cluster")}
    cluster = {"name": AttributeType(TEXT), "level": AttributeType(PLAIN)}
    inside = Quantity(("node", "cluster"), TRUTH, "the node is on a device of the cluster")
    return replace(
        words, sets=sets, attributes={**words.attributes, "tensor": tensor, "cluster": cluster},
        quantities={**words.quantities, "inside": inside},
    )  # fmt: skip


#: Functions whose values are groups of nodes by an attribute.
PARTITIONS = ("partition", "sections")
#: A set of every spec whose nodes have the attribute ``layer``: their groups by it.  A spec may have one of its own.
LAYERS = "layers"
#: Attributes that every device has.
OF_EVERY_DEVICE = ("name", "family", "kind", "number", "class")
#: Names of sets that every spec has, or every spec with clusters.
SETS = frozenset((
    "nodes", "forward", "backward", "devices", "accelerators", "hosts", "tensors", "edges", "reads", "clusters",
    "memberships", "cluster_levels",
))  # fmt: skip
