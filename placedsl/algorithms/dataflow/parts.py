"""Parts of a problem of schedule dataflow: some of its nodes, with what they exchange among one another."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.dataflow.arrays import Flow, grouped, integers
from placedsl.graph.graph import Floats, Integers


def part(flow: Flow, nodes: Integers, time: Floats) -> Flow:
    """The nodes (in topological order) with their running times ``time`` and the tensors between them; no memory limit.

    What others read and write does not count: the least latency is at most what the nodes take in a schedule of all.
    """
    number = np.full(flow.nodes, -1, dtype=np.int64)
    number[nodes] = np.arange(len(nodes))
    tensor = np.repeat(np.arange(len(flow.producer)), np.diff(flow.reader_start))
    inside = (number[flow.producer[tensor]] >= 0) & (number[flow.reader] >= 0)
    tensors, pair_tensor = np.unique(tensor[inside], return_inverse=True)
    pair_reader = number[flow.reader[inside]]
    producer = number[flow.producer[tensors]]
    reader_start, reader = grouped(pair_tensor, pair_reader, len(tensors))
    input_start, inputs = grouped(pair_reader, pair_tensor, len(nodes))
    output_start, outputs = grouped(producer, np.arange(len(tensors)), len(nodes))
    _, first, inverse = np.unique(flow.unit[nodes], return_index=True, return_inverse=True)
    unit = integers(np.argsort(np.argsort(first))[inverse])
    member_start, member = grouped(unit, np.arange(len(nodes)), len(first))
    return flow._replace(
        time=np.ascontiguousarray(time), memory=flow.memory[nodes], room=np.full(flow.devices, np.inf),
        producer=integers(producer), input_start=input_start, input=inputs, output_start=output_start, output=outputs,
        reader_start=reader_start, reader=reader, size=flow.size[tensors],
        given=np.ascontiguousarray(flow.given[tensors]) if len(flow.given) else flow.given,
        unit=unit, member_start=member_start, member=member, topological=np.arange(len(nodes)),
    )  # fmt: skip
