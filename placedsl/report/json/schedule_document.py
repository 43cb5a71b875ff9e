"""When everything happens for one sample, as plain data: the ``schedule`` of an answer."""

from __future__ import annotations

from typing import Any

from placedsl.evaluation.evaluate import Evaluation
from placedsl.problem.problem import Problem


def schedule_document(problem: Problem, evaluation: Evaluation) -> dict[str, Any] | None:
    """Start and finish of nodes, calls and transfers; None where the schedule says nothing of one sample.

    A tensor is called by its number in the graph and the node that makes it, as a node may make several.
    """
    times = evaluation.times
    if times is None:
        return None
    graph, devices = problem.graph, problem.machine.devices
    nodes = {
        str(i): {"start": start, "finish": finish}
        for i, start, finish in zip(graph.ids, times.start, times.finish, strict=True)
    }
    if problem.execution.run == "subgraph_calls":
        for (v,), piece in evaluation.values["piece"].items():
            nodes[str(graph.ids[v])]["piece"] = int(piece)
        calls = [
            {"device": devices[d].name, "piece": p, "start": start, "finish": finish}
            for (d, p), (start, finish) in sorted(times.calls.items())
        ]
        return {"nodes": nodes, "calls": calls}
    transfers = [
        {
            "tensor": tensor, "of": graph.ids[int(graph.tensor_producer[tensor])], "to": devices[device].name,
            "start": sent, "finish": times.arrived[tensor, device],
        }
        for (tensor, device), sent in sorted(times.sent.items(), key=lambda item: (item[1], item[0]))
    ]  # fmt: skip
    return {"nodes": nodes, "transfers": transfers}
