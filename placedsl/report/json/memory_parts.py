"""What the memory of a device is occupied by, as far as the graph says so."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Floats
from placedsl.evaluation.evaluation import Evaluation
from placedsl.problem.problem import Problem
from placedsl.problem.streaming import STREAMS
from placedsl.tolerances import SAME_VALUE

#: Kinds of memory that are told apart; ``streamed``: what does not fit, and is brought in for each sample.
PARTS = ("weights", "activations", "kv_cache", "other", "streamed")
#: What is streamed is of these, in this order.
_STREAMED_FIRST = ("weights", "other", "kv_cache")
#: Attributes of nodes that are parts of their memory, and what the parts are called.
_ATTRIBUTES = {"parameters": "weights", "kv_cache": "kv_cache"}


class MemoryParts:
    """Bytes by kind on the devices of an evaluated placement."""

    def __init__(self, problem: Problem, evaluation: Evaluation) -> None:
        self.problem, self.evaluation = problem, evaluation
        columns = {kind: problem.graph.attributes.get(name) for name, kind in _ATTRIBUTES.items()}
        self.known = {
            kind: np.nan_to_num(column)
            for kind, column in columns.items()
            if column is not None and column.dtype.kind == "f"
        }

    def of(self, device: int) -> dict[str, float]:
        """Parts that add up to the memory of a device; empty where nothing is known of them.

        ``weights`` and ``kv_cache`` are attributes of the nodes; where these are more than the memory, it does not hold
        them.  In a plan, ``activations`` are what samples in flight stash; of what stays with a node, its attributes
        have the share that they have of the node's memory.
        """
        nodes, memory = list(self.evaluation.nodes[device]), self.evaluation.memory[device]
        if not nodes or memory <= 0.0:
            return {}
        if self.problem.execution.options is not None:
            return self._of_plan(device, nodes, memory)
        known = self._known(nodes, self.problem.graph.memory[nodes])
        return self._with_streamed(device, memory, known)

    def _known(self, nodes: list[int], stays: Floats) -> dict[str, float]:
        """What the attributes say of nodes, each of which keeps so many bytes, and what they do not say; empty: they
        say nothing, or more than there is."""
        memory = self.problem.graph.memory[nodes]
        share = np.divide(stays, memory, out=np.zeros(len(nodes)), where=memory > 0.0)
        parts = {kind: float(column[nodes] @ share) for kind, column in self.known.items()}
        whole = float(stays.sum())
        rest = whole - sum(parts.values())
        if not any(parts.values()) or rest < -SAME_VALUE * whole:
            return {}
        return {kind: size for kind, size in [*parts.items(), ("other", max(0.0, rest))] if size > 0.0}

    def _of_plan(self, device: int, nodes: list[int], memory: float) -> dict[str, float]:
        """Parts in a plan; what stays does so whatever is in flight."""
        options, values = self.problem.execution.options, self.evaluation.values
        assert options is not None
        copies = max(1.0, values.get("copies", {}).get((device,), 1.0))
        chosen = values.get("option", {})
        taken = [round(chosen.get((v,), -1.0)) for v in nodes]
        bytes_of = options.memory + options.sharded / copies
        stays = np.array([bytes_of[o] if o >= 0 else 0.0 for o in taken])
        whole = min(memory, float(stays.sum()))
        known = self._known(nodes, stays) if whole == stays.sum() else {}
        return {"activations": memory - whole, **(known or {"other": whole})}

    def _with_streamed(self, device: int, memory: float, parts: dict[str, float]) -> dict[str, float]:
        """The parts, with what does not fit and is streamed as one of its own."""
        seconds = self.evaluation.streamed[device] if self.evaluation.streamed else 0.0
        left = beyond = min(memory, seconds * self.problem.machine.devices[device].attributes.get(STREAMS, 0.0))
        if not beyond:
            return parts
        out = dict(parts or {"other": memory})
        for kind in _STREAMED_FIRST:
            gone = min(left, out.get(kind, 0.0))
            if gone:
                out[kind], left = out[kind] - gone, left - gone
        return {kind: size for kind, size in out.items() if size > 0.0} | {"streamed": beyond - left}
