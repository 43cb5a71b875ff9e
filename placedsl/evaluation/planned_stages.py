"""How the stages of a plan run: the option of each node, the devices of each copy, and the samples in flight."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import ceil, inf

from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.tolerance import total
from placedsl.problem.execution import OptionCosts
from placedsl.problem.values import Values

#: The option of a node that has none for the degree of its stage.
NONE = -1


class PlannedStages:
    """What an answer decides beside placement and copies; what it does not say is one device a copy, the quickest
    option of each node, and the stages in a topological order.

    ``tensor``  per device: how many devices each copy of its stage has
    ``option``  per node: a position among all options, or :data:`NONE`
    ``number``  per device: the place of its stage in the pipeline, the input's first
    """

    def __init__(
        self, data: ProblemData, costs: OptionCosts, placement: Sequence[int], copies: Sequence[float], values: Values
    ) -> None:
        self.data, self.costs, self.placement, self.copies = data, costs, placement, copies
        used = {d for d in placement if d >= 0}
        self.used = sorted(used)
        tensor, numbers = values.get("copy_size", {}), values.get("order", {})
        self.tensor = [tensor.get((d,), 1.0) if d in used else 0.0 for d in range(data.devices)]
        by_node: list[list[int]] = [[] for _ in range(data.nodes)]
        for option, node in enumerate(costs.node.tolist()):
            by_node[node].append(option)
        self.options = by_node
        given = values.get("option", {})
        self.option = [
            round(given[v,]) if (v,) in given else self._quickest(v, device) for v, device in enumerate(placement)
        ]
        places = {d: k for k, d in enumerate(self._in_order())}
        self.number = [numbers.get((d,), float(places.get(d, 0))) for d in range(data.devices)]

    def _quickest(self, node: int, device: int) -> int:
        degree = self.costs.degree
        able = [o for o in self.options[node] if device >= 0 and degree[o] == self.tensor[device]]
        return min(able, key=lambda o: (self.costs.time[o, device], o), default=NONE)

    def _in_order(self) -> list[int]:
        """The devices that are used, so that work goes forward where it can."""
        before: dict[int, set[int]] = {d: set() for d in self.used}
        for u, v in self.data.pairs:
            first, second = self.placement[u], self.placement[v]
            if first != second and first >= 0 and second >= 0:
                before[second].add(first)
        order: list[int] = []
        left = list(self.used)
        while left:
            ready = next((d for d in left if not before[d] & {*left}), left[0])
            order.append(ready)
            left.remove(ready)
        return order

    def time(self, node: int, device: int) -> float:
        """Seconds per sample; inf without an option."""
        option = self.option[node]
        return inf if option == NONE else float(self.costs.time[option, device])

    def weights(self, nodes: Sequence[int], device: int) -> float:
        """Seconds that the weights of a stage take over the link of a device."""
        return total(float(self.costs.weights[o, device]) for o in self._of(nodes))

    def weight_bytes(self, nodes: Sequence[int], device: int) -> float:
        """Bytes of the weights of a stage on each device."""
        rate = float(self.costs.per_byte[device])
        return self.weights(nodes, device) / rate if rate > 0.0 else 0.0

    def memory(self, nodes: Sequence[int], device: int) -> float:
        """Bytes on each device of a stage."""
        in_flight = self.in_flight[device]
        options = self._of(nodes)
        stashed = [float(self.costs.stash[o]) * in_flight for o in options]
        sharded = total(float(self.costs.sharded[o]) for o in options) / max(1.0, self.copies[device])
        return total([*stashed, *(float(self.costs.memory[o]) for o in options), sharded])

    def _of(self, nodes: Sequence[int]) -> list[int]:
        return [self.option[v] for v in nodes if self.option[v] != NONE]

    @cached_property
    def in_flight(self) -> list[int]:
        """Per device, samples that each copy of its stage holds at once.  Under 1F1B: this stage's and all later ones'
        copies, shared out over its own."""
        sharing = self.data.problem.execution.data_parallelism
        assert sharing is not None
        out = [0] * self.data.devices
        for d in self.used:
            if sharing.held != "pipeline":
                samples = 1 if sharing.held == "sample" else sharing.microbatches or 1
                out[d] = ceil(samples / max(1.0, self.copies[d]))
                continue
            later = sum(self.copies[e] for e in self.used if self.number[e] >= self.number[d])
            out[d] = ceil(later / self.copies[d]) if self.copies[d] >= 1 else 0
        return out

    @cached_property
    def _gathered(self) -> dict[tuple[int, int], float]:
        """Bytes by option and tensor."""
        return {(o, t): x for o, t, x in zip(*(column.tolist() for column in self.costs.gathered), strict=True)}

    @cached_property
    def _scattered(self) -> dict[tuple[int, int], float]:
        return {(o, t): x for o, t, x in zip(*(column.tolist() for column in self.costs.scattered), strict=True)}

    def received(self, tensor: int, device: int) -> float:
        """Seconds per sample to bring a tensor that has come from elsewhere to all devices of a copy: as much as the
        reader needs that needs most."""
        readers = [v for v in self.data.readers[tensor] if self.placement[v] == device]
        most = max((self._gathered.get((self.option[v], tensor), 0.0) for v in readers), default=0.0)
        return most * float(self.costs.per_byte[device])

    def sent(self, tensor: int, device: int) -> float:
        """The same for a tensor that goes elsewhere."""
        maker = self.data.producer[tensor]
        return self._scattered.get((self.option[maker], tensor), 0.0) * float(self.costs.per_byte[device])
