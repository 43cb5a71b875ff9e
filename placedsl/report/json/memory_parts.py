"""What the memory of a device is occupied by, as far as the graph says so."""

from __future__ import annotations

import numpy as np

from placedsl.evaluation.evaluation import Evaluation
from placedsl.problem.problem import Problem
from placedsl.tolerances import SAME_VALUE

#: Kinds of memory that are told apart.
PARTS = ("weights", "activations", "kv_cache", "other")
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

        In a plan, ``activations`` are what samples in flight stash and ``other`` is what stays.  Elsewhere ``weights``
        and ``kv_cache`` are attributes of the nodes; where these are more than the memory, it does not hold them.
        """
        nodes, memory = list(self.evaluation.nodes[device]), self.evaluation.memory[device]
        if not nodes or memory <= 0.0:
            return {}
        if self.problem.execution.options is not None:
            stays = min(memory, self._stays(device, nodes))
            return {"activations": memory - stays, "other": stays}
        parts = {kind: float(column[nodes].sum()) for kind, column in self.known.items()}
        rest = memory - sum(parts.values())
        if not any(parts.values()) or rest < -SAME_VALUE * memory:
            return {}
        return {kind: size for kind, size in [*parts.items(), ("other", max(0.0, rest))] if size > 0.0}

    def _stays(self, device: int, nodes: list[int]) -> float:
        """Bytes on a device of a plan, whatever is in flight."""
        options, values = self.problem.execution.options, self.evaluation.values
        assert options is not None
        taken = [round(o) for v in nodes if (o := values.get("option", {}).get((v,), -1.0)) >= 0]
        copies = max(1.0, values.get("copies", {}).get((device,), 1.0))
        return float(options.memory[taken].sum() + options.sharded[taken].sum() / copies)
