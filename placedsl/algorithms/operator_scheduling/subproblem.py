"""Subproblems of operator scheduling: some of the nodes, with the tensors among them."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, integers
from placedsl.arrays import Floats, Integers
from placedsl.graph.order import csr


def subproblem(instance: SchedulingInstance, nodes: Integers, time: Floats) -> SchedulingInstance:
    """The instance of ``nodes`` (in topological order) with running times ``time`` (len(nodes) x D seconds) and the
    tensors among them; memory is not limited.

    Tensors from and to other nodes are left out: the least latency is at most the time that these nodes take in any
    schedule of all.
    """
    number = np.full(instance.nodes, -1, dtype=np.int64)
    number[nodes] = np.arange(len(nodes))
    tensor = np.repeat(np.arange(len(instance.producer)), np.diff(instance.reader_start))
    inside = (number[instance.producer[tensor]] >= 0) & (number[instance.reader] >= 0)
    tensors, pair_tensor = np.unique(tensor[inside], return_inverse=True)
    pair_reader = number[instance.reader[inside]]
    producer = number[instance.producer[tensors]]
    reader_start, reader = csr(pair_tensor, pair_reader, len(tensors))
    input_start, inputs = csr(pair_reader, pair_tensor, len(nodes))
    output_start, outputs = csr(producer, np.arange(len(tensors)), len(nodes))
    _, first, inverse = np.unique(instance.unit[nodes], return_index=True, return_inverse=True)
    unit = integers(np.argsort(np.argsort(first))[inverse])
    member_start, member = csr(unit, np.arange(len(nodes)), len(first))
    return instance._replace(
        time=np.ascontiguousarray(time), memory=instance.memory[nodes], memory_limit=np.full(instance.devices, np.inf),
        producer=integers(producer), input_start=input_start, input=inputs, output_start=output_start, output=outputs,
        reader_start=reader_start, reader=reader, size=instance.size[tensors],
        given=np.ascontiguousarray(instance.given[tensors]) if len(instance.given) else instance.given,
        unit=unit, member_start=member_start, member=member, topological=np.arange(len(nodes)),
    )  # fmt: skip
