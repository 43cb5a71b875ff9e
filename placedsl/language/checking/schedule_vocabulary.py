"""The quantities that depend on the schedule: those of many samples, and those of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from placedsl.language.checking.vocabulary import (
    PLAIN,
    TEXT,
    TRUTH,
    AttributeType,
    Quantity,
    Vocabulary,
    element,
    number,
    quantities,
)
from placedsl.problem.execution import STANDARD, TIMES, Execution
from placedsl.problem.expressions import Sort
from placedsl.problem.streaming import RESERVE, STREAMS
from placedsl.units import BANDWIDTH, DATA, TIME

#: What only a schedule of one sample speaks of: quantities, and constraints by name.
_OF_ONE_SAMPLE = frozenset((*TIMES, "moved", "sequential", "congestion"))
#: What only a schedule of many samples speaks of.
_OF_MANY = ("time_per_sample", "forward_load", "backward_load", "synchronisation_time", "streamed")
#: What operators one by one do not have: a transfer is a link's, not a device's.
_OF_DEVICES_ALONE = ("transfer_time", "receive_time", "send_time")


#: The quantities of all schedules by name.
QUANTITIES = frozenset((*quantities(TIME, DATA), *_OF_ONE_SAMPLE, "piece")) - {"sequential", "congestion"}


def with_execution(words: Vocabulary, execution: Execution) -> Vocabulary:
    """The vocabulary with the quantities of the run of one sample in place of those of many."""
    if not execution.one_sample:
        return with_moves(words) if execution.device_to_device else words
    without = (*_OF_MANY, *_OF_DEVICES_ALONE) if execution.run == "operators" else _OF_MANY
    known = {name: q for name, q in words.quantities.items() if name not in without}
    words = replace(words, quantities=known | _of_one_sample(words, execution))
    return with_moves(words) if execution.run == "operators" else words


def _of_one_sample(words: Vocabulary, execution: Execution) -> dict[str, Quantity]:
    time = words.quantities["load"].type
    known = {
        "latency": Quantity((), time, "when the last node is finished"),
        "start": Quantity(("node",), time, "when the node starts (under calls: its call)"),
        "finish": Quantity(("node",), time, "when the node is finished (under calls: its call)"),
    }
    if execution.run == "subgraph_calls":
        return known | {"piece": Quantity(("node",), PLAIN, "which call of its device the node is in, from 1")}
    return known | {
        "moved": Quantity(("tensor", "device", "device"), TRUTH, "the tensor goes from the first to the second"),
        "sent": Quantity(("tensor", "device"), time, "when the tensor leaves for the device"),
        "arrived": Quantity(("tensor", "device"), time, "when the tensor has arrived on the device"),
    }


def with_moves(words: Vocabulary) -> Vocabulary:
    """The vocabulary with directed links, the links that each route goes over, and how long tensors take."""
    time = words.quantities["load"].type
    tensor = {
        **words.attributes["tensor"],
        "move": AttributeType(time, "device", pair=True),
        "reaches": AttributeType(TRUTH, "device", pair=True),
    }
    sets: dict[str, tuple[Sort, ...]] = {"links": ("link",), "hops": ("link", "device", "device")}
    return replace(
        words, sets={**words.sets, **sets},
        attributes={**words.attributes, "tensor": tensor, "link": {"name": AttributeType(TEXT)}},
    )  # fmt: skip


def with_plans(words: Vocabulary, names: Sequence[str]) -> Vocabulary:
    """The vocabulary with what a plan decides; ``names``: of the options that operators have."""
    sets: dict[str, tuple[Sort, ...]] = {**words.sets, "options": ("option",)}
    known = {
        "data": Quantity(("node",), PLAIN, "copies of the node's stage"),
        "tensor": Quantity(("node",), PLAIN, "devices over which each copy of the node's stage is split"),
        "stage": Quantity(("node",), PLAIN, "the place of the node's stage in the pipeline, from 1"),
        "chunk": Quantity(("node",), PLAIN, "which part of the model that its stage holds the node is in, from 1"),
        "in_flight": Quantity(("node",), PLAIN, "samples in flight on each copy of the node's stage"),
        "takes": Quantity(("node", "option"), TRUTH, "the node takes an option of that name"),
        "stages_used": Quantity((), PLAIN, "how many stages there are"),
        "copies_used": Quantity((), PLAIN, "how many copies all stages have together"),
    }
    return replace(
        words, sets=sets, quantities={**words.quantities, **known},
        attributes={**words.attributes, "option": {"name": AttributeType(TEXT)}},
        option_positions={name: k for k, name in enumerate(names)},
    )  # fmt: skip


def of_every_schedule(words: Vocabulary) -> Vocabulary:
    """The vocabulary with the quantities and sets of all schedules: formulations are for one each."""
    load, traffic = words.quantities["load"].type.dimension, words.quantities["traffic"].type.dimension
    known = {**quantities(load, traffic), **words.quantities}
    for execution in STANDARD.values():
        known |= _of_one_sample(words, execution) if execution.one_sample else {}
    words = _with_ways(with_plans(with_moves(replace(words, quantities=known)), ()))
    numbers = dict.fromkeys(("pieces", "passes", "replicas"), ("integer",))
    return replace(words, sets={**words.sets, **numbers})


#: What is known of the shape of a stage: copies, devices of each, samples in flight, the copies of this stage and all
#: later ones that make so many, how often weights cross a link per sample; and where stages hold several chunks, how
#: many stages there are and which of them it is.  Where clusters share samples: its copies within a cluster, and how
#: often that runs.
SHAPE = ("copies", "tensor", "in_flight", "least", "most", "exchanges", "within", "runs", "stages", "place")
#: Of a part of the model that a stage holds: as of its shape, which chunk it is, and its position among all of them.
SLOT = ("copies", "tensor", "in_flight", "exchanges", "chunk", "position")
#: Of clusters that share samples: on which level they are, in how many of it the same runs, how often what is around
#: them runs, how often they run in all, and how often weights cross the link around one per sample.
CLUSTER_SHAPE = ("level", "copies", "around", "runs", "exchanges")


def _with_ways(words: Vocabulary) -> Vocabulary:
    """The vocabulary with ways to run operators and shapes of stages, which formulations of plans choose from."""
    time, data = words.quantities["load"].type, words.quantities["memory"].type
    per_device = {"time": AttributeType(time, "device"), "supported": AttributeType(TRUTH, "device")}
    moved = {"way": AttributeType(element("way")), "tensor": AttributeType(element("tensor")),
             "time": AttributeType(time, "device")}  # fmt: skip
    device = {
        **words.attributes["device"], "turn": AttributeType(PLAIN),
        STREAMS: AttributeType(number(BANDWIDTH)), RESERVE: AttributeType(data), "reserves_peak": AttributeType(TRUTH),
    }  # fmt: skip
    attributes = {
        **words.attributes, "device": device, "gathering": moved, "scattering": moved,
        "node": {**words.attributes["node"], "turn": AttributeType(PLAIN)},
        "tensor": {
            **words.attributes["tensor"], "last_turn": AttributeType(PLAIN), "crossing": AttributeType(time, "cluster"),
        },
        "way": {
            "operator": AttributeType(element("node")), "name": AttributeType(TEXT), "number": AttributeType(PLAIN),
            "tensor": AttributeType(PLAIN), **per_device, "weights": per_device["time"],
            "sent": AttributeType(time, "cluster"),
            **dict.fromkeys(("stash", "memory", "sharded"), AttributeType(data)),
        },
        "shape": dict.fromkeys(SHAPE, AttributeType(PLAIN)),
        "cluster_shape": dict.fromkeys(CLUSTER_SHAPE, AttributeType(PLAIN)),
        "slot": {
            **dict.fromkeys(SLOT, AttributeType(PLAIN)), "shape": AttributeType(element("shape")),
            "held": AttributeType(PLAIN, "moment"),
        },
    }  # fmt: skip
    sets: dict[str, tuple[Sort, ...]] = {
        **words.sets, "ways": ("way",), "shapes": ("shape",), "slots": ("slot",),
        "moments": ("moment",), "gatherings": ("gathering",),
        "scatterings": ("scattering",), "leaders": ("device",), "successors": ("device", "device"),
        "ordered_devices": ("device", "device"), "cluster_shapes": ("cluster_shape",), "cluster_runs": ("integer",),
        "cluster_parents": ("cluster", "cluster"), "like_clusters": ("cluster", "cluster"),
        "cluster_mates": ("device", "device", "device"),
    }  # fmt: skip
    known = {
        "copy_size": Quantity(("device",), PLAIN, "devices of each copy of the stage that the device leads"),
        "option": Quantity(("node",), PLAIN, "the number of the way that the node takes"),
        "order": Quantity(("device",), PLAIN, "the place of the device's stage in the pipeline"),
        "cluster_copies": Quantity(("cluster",), PLAIN, "in how many clusters of its level the same runs"),
    }
    return replace(words, sets=sets, attributes=attributes, quantities={**words.quantities, **known})


def hint_for(name: str, words: Vocabulary) -> str:
    """What to say of a name that only other schedules know; empty for any other."""
    if name in ("makespan", "max_load"):
        if name == "makespan" and "latency" in words.quantities:
            return "when the last node is finished is latency"
        largest = "max(d in devices: load(d))"
        return f"the largest load is {largest if 'latency' in words.quantities else 'time_per_sample'}" + (
            "; under schedule calls and schedule dataflow the makespan is latency" if name == "makespan" else ""
        )
    if name == "throughput":
        return "the most samples per second are the least time for each: minimize time_per_sample"
    if name in _OF_ONE_SAMPLE and "latency" not in words.quantities:
        return "schedule calls and schedule dataflow know it: how one sample runs"
    if name in ("sent", "arrived", "moved") and name not in words.quantities:
        return "schedule dataflow knows it: where tensors go from device to device"
    if name == "piece" and "latency" in words.quantities and name not in words.quantities:
        return "schedule calls knows it: where devices run in calls"
    if name in _OF_MANY and "latency" in words.quantities:
        return "this spec's schedule is for one sample: minimize latency"
    return ""
