"""How the stages of a plan run: the option of each node, the devices of each copy, and the samples in flight."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import ceil, inf

from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.tolerance import total
from placedsl.problem.execution import DataParallelism, OptionCosts
from placedsl.problem.values import Values
from placedsl.problem.virtual_stages import cut

#: The option of a node that has none for the degree of its stage.
NONE = -1


class PlannedStages:
    """What an answer decides beside placement and copies; what it does not say is one device a copy, the quickest
    option of each node, and the stages in a topological order.

    ``tensor``  per device: how many devices each copy of its stage has
    ``option``  per node: a position among all options, or :data:`NONE`
    ``number``  per device: the place of its stage in the pipeline, the input's first
    ``chunk``   per node: which part of the model that its stage holds it is in, from 1
    """

    def __init__(
        self, data: ProblemData, costs: OptionCosts, placement: Sequence[int], copies: Sequence[float], values: Values
    ) -> None:
        sharing = data.problem.execution.data_parallelism
        assert sharing is not None
        self.data, self.costs, self.placement, self.copies = data, costs, placement, copies
        self.sharing: DataParallelism = sharing
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
            self._own(v, given[v,]) if (v,) in given else self._quickest(v, device)
            for v, device in enumerate(placement)
        ]
        if "chunk" in values or sharing.chunks == 1:
            self.chunk = [values.get("chunk", {}).get((v,), 1.0) for v in range(data.nodes)]
            places = {d: k for k, d in enumerate(self._in_order())}
        else:
            self.chunk, places = self._in_turn()
        self.number = [numbers.get((d,), float(places.get(d, 0))) for d in range(data.devices)]

    def _own(self, node: int, option: float) -> int:
        return round(option) if round(option) in self.options[node] else NONE

    def _quickest(self, node: int, device: int) -> int:
        degree = self.costs.degree
        able = [o for o in self.options[node] if device >= 0 and degree[o] == self.tensor[device]]
        return min(able, key=lambda o: (self.costs.time[o, device], o), default=NONE)

    def _in_turn(self) -> tuple[list[float], dict[int, int]]:
        """The chunk of each node, and the place of each device, where an answer says nothing of them: the pieces that a
        device runs without a break, in a topological order."""
        chunk, seen, places = [1.0] * self.data.nodes, dict[int, int](), dict[int, int]()
        for nodes in cut(self.data.pairs, self.placement):
            device = self.placement[nodes[0]]
            places.setdefault(device, len(places))
            seen[device] = seen.get(device, 0) + 1
            for v in nodes:
                chunk[v] = float(seen[device])
        return chunk, places

    def position(self, node: int) -> tuple[float, float]:
        """Where the node is on a sample's way through the stages."""
        return self.chunk[node], self.number[self.placement[node]]

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
        options = self._of(nodes)
        if self.sharing.chunks > 1:
            known = [(float(self.costs.stash[self.option[v]]), round(self.chunk[v]) - 1)
                     for v in nodes if self.option[v] != NONE]  # fmt: skip
            at = self.held[device]
            stashed = max(([stash * held.get(chunk, 0) for stash, chunk in known] for held in at), key=total)
        else:
            stashed = [float(self.costs.stash[o]) * self.in_flight[device] for o in options]
        sharded = total(float(self.costs.sharded[o]) for o in options) / max(1.0, self.copies[device])
        return total([*stashed, *(float(self.costs.memory[o]) for o in options), sharded])

    def _of(self, nodes: Sequence[int]) -> list[int]:
        return [self.option[v] for v in nodes if self.option[v] != NONE]

    @cached_property
    def in_flight(self) -> list[int]:
        """Per device, samples that each copy of its stage holds at once.  Under 1F1B: this stage's and all later ones'
        copies, shared out over its own."""
        sharing, out = self.sharing, [0] * self.data.devices
        for d in self.used:
            if sharing.held != "pipeline":
                samples = 1 if sharing.held == "sample" else sharing.microbatches or 1
                out[d] = ceil(samples / max(1.0, self.copies[d]))
                continue
            later = sum(self.copies[e] for e in self.used if self.number[e] >= self.number[d])
            out[d] = ceil(later / self.copies[d]) if self.copies[d] >= 1 else 0
        return out

    @cached_property
    def held(self) -> list[list[dict[int, int]]]:
        """Per device, at each moment of a batch the samples of each chunk (from 0) that a copy of its stage holds.

        Under interleaved 1F1B by the order of Narayanan et al. 2021, pass after pass.
        """
        chunks, stages = self.sharing.chunks, len(self.used)
        order = sorted(self.used, key=lambda d: self.number[d])
        out: list[list[dict[int, int]]] = [[] for _ in range(self.data.devices)]
        for place, d in enumerate(order):
            own = ceil((self.sharing.microbatches or 1) / max(1.0, self.copies[d]))
            if self.sharing.held == "sample":
                out[d] = [{chunk: 1} for chunk in range(chunks)]  # one after the other
                continue
            if self.sharing.held == "batch":
                out[d] = [dict.fromkeys(range(chunks), own)]
                continue
            # Samples go through a chunk in rounds of as many as there are stages; a few rounds show all there is.
            rounds = [range(first, min(first + stages, own)) for first in range(0, min(own, 5 * stages), stages)]
            forth = [chunk for samples in rounds for chunk in range(chunks) for _ in samples]
            back = [chunk for samples in rounds for chunk in reversed(range(chunks)) for _ in samples]
            first = min(2 * (stages - place - 1) + (chunks - 1) * stages + 1, len(forth))
            now = dict.fromkeys(range(chunks), 0)
            for k, chunk in enumerate(forth[: first + stages * chunks]):
                if k >= first:
                    now[back[k - first]] -= 1
                now[chunk] += 1
                if k + 1 >= first:
                    out[d].append(dict(now))
        return out

    def samples(self, node: int) -> int:
        """The most samples of the node that a copy of its stage holds at once."""
        device = self.placement[node]
        if self.sharing.chunks == 1:
            return self.in_flight[device]
        return max(held.get(round(self.chunk[node]) - 1, 0) for held in self.held[device])

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
