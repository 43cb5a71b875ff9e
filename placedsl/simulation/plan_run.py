"""A plan, sample by sample: the copies of a stage take samples in turn, each in the order of 1F1B or of whole batches.

Under 1F1B a copy of a stage with d copies does ceil(s/d) forward passes first, s the copies of its stage and all later
ones, and then a backward and a forward pass in turn; whatever the times, no copy waits for one that waits for it.
Where stages hold several chunks, passes follow one another as in interleaved 1F1B (Narayanan et al. 2021): as many
samples as there are stages through one chunk, then through the next; after a batch the pipeline drains.
The time of an operator is that of both its passes: :data:`FORWARD` of it, and of the transfers, is forward.  An account
of its own, as all of the simulation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, lcm, prod

import numpy as np

from placedsl.problem.execution import DataParallelism, OptionCosts
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values
from placedsl.problem.virtual_stages import Arcs, VirtualStage
from placedsl.simulation.operations import Operation, Work
from placedsl.simulation.stage_times import Moving, StageTimes

#: The part of a stage's time that is its forward pass.
FORWARD = 1 / 3
#: What timelines call the run of samples that are in flight in that way.
SCHEDULE_OF = {"pipeline": "1f1b", "batch": "gpipe", "sample": "pipelined"}


@dataclass(frozen=True)
class PlannedStage:
    """A stage, or a chunk of one: its leading device, nodes, copies (each its devices) and place from 0.

    Copies take samples in turn.  ``apart``: in how many clusters the stage runs, which take samples in turn as well
    (1 where none share samples); only copies within one exchange weights as devices.

    ``stash``, ``fixed``  bytes on each device per sample in flight, and whatever is in flight
    ``weights``           seconds that the weights take over the link of a device
    """

    device: int
    nodes: tuple[int, ...]
    copies: tuple[tuple[int, ...], ...]
    place: int
    stash: float
    fixed: float
    weights: float
    apart: int = 1


class PlanRun:
    """The stages of a plan, what they take, and the order in which each copy works.

    ``values``     what the plan decides: the options of nodes, the devices of each copy, the order of stages
    ``followers``  the devices that share the stages of another, and which
    """

    def __init__(
        self, problem: Problem, placement: Sequence[int], values: Values, followers: Mapping[int, int]
    ) -> None:
        assert problem.execution.data_parallelism is not None
        assert problem.execution.options is not None
        self.problem, self.placement = problem, placement
        self.sharing: DataParallelism = problem.execution.data_parallelism
        self.costs: OptionCosts = problem.execution.options
        self.option = [round(values["option"][v,]) for v in range(problem.graph.nodes)]
        self.both = self.sharing.held != "sample"
        self.clusters = {cluster: round(runs) for cluster, runs in values.get("cluster_copies", {}).items()}
        self.planned = self._planned(values, followers)

    def _planned(self, values: Values, followers: Mapping[int, int]) -> tuple[PlannedStage, ...]:
        """The stages, the input's first."""
        costs, out = self.costs, []
        order, chunk = values["order"], values.get("chunk", {})
        self.chunk = [chunk.get((v,), 1.0) for v in range(self.problem.graph.nodes)]
        held = sorted(
            set(zip(self.chunk, self.placement, strict=True)), key=lambda own: (own[0], order[own[1],], own[1])
        )
        for place, (part, device) in enumerate(held):
            nodes = tuple(v for v, own in enumerate(self.placement) if own == device and self.chunk[v] == part)
            options = [self.option[v] for v in nodes]
            wide = round(values["copy_size"][device,])
            members = (device, *(d for d, leader in followers.items() if leader == device))
            copies = tuple(members[k : k + wide] for k in range(0, len(members), wide))
            copies, apart = self._in_turn(device, copies)
            fixed = fsum([*(float(costs.memory[o]) for o in options),
                          fsum(float(costs.sharded[o]) for o in options) / len(copies)])  # fmt: skip
            out.append(PlannedStage(
                device, nodes, copies, place, fsum(float(costs.stash[o]) for o in options), fixed,
                fsum(float(costs.weights[o, device]) for o in options), apart,
            ))  # fmt: skip
        return tuple(out)

    def _in_turn(self, device: int, copies: tuple[tuple[int, ...], ...]) -> tuple[tuple[tuple[int, ...], ...], int]:
        """The copies so that the outermost clusters change from one to the next first; and how many clusters there are.

        Stages of one cluster then take the same samples in each of those that run it.
        """
        if self.sharing.across is None:
            return copies, 1
        shape = [self.clusters.get((c,), 1) for c in reversed(self.sharing.across.around[device])]
        apart = prod(shape)
        order = np.arange(len(copies)).reshape(*shape, -1).transpose().ravel()
        return tuple(copies[k] for k in order.tolist()), apart

    def memory(self, device: int, samples: Mapping[int, int]) -> float:
        """Bytes on each device of a stage while its copy holds so many samples, by the places of its chunks."""
        own = self._by_device[device]
        return fsum(part for one in own for part in (one.stash * samples.get(one.place, 0), one.fixed))

    @cached_property
    def _by_device(self) -> dict[int, list[PlannedStage]]:
        return {d: [own for own in self.planned if own.device == d] for d in {own.device for own in self.planned}}

    @cached_property
    def in_turn(self) -> int:
        """How many stages there are, where they hold several chunks; else 0."""
        return len(self._by_device) if self.sharing.chunks > 1 else 0

    @cached_property
    def stages(self) -> tuple[VirtualStage, ...]:
        """A stage for each pass: all forward ones, then the backward ones."""
        names = [self.problem.machine.devices[own.device].name for own in self.planned]
        if not self.both:
            return tuple(VirtualStage(own.device, False, own.nodes, name)
                         for own, name in zip(self.planned, names, strict=True))  # fmt: skip
        return tuple(
            VirtualStage(own.device, back, own.nodes, f"{name} {'backward' if back else 'forward'}")
            for back in (False, True) for own, name in zip(self.planned, names, strict=True)
        )  # fmt: skip

    @cached_property
    def arcs(self) -> Arcs:
        """Which pass of which stage needs what another made; a gradient goes the way of its tensor back."""
        graph, number = self.problem.graph, len(self.planned)
        place = {v: own.place for own in self.planned for v in own.nodes}
        out: set[tuple[int, int]] = {(p, number + p) for p in range(number)} if self.both else set()
        for u, v in zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True):
            a, b = place[u], place[v]
            if a != b:
                out |= {(a, b), (number + b, number + a)} if self.both else {(a, b)}
        return frozenset(out)

    @cached_property
    def times(self) -> StageTimes:
        """What each pass of each stage takes."""
        shares = (FORWARD, 1.0 - FORWARD) if self.both else (1.0,)
        each = [self._times(own) for own in self.planned]
        receive, compute, send = (
            tuple(share * amounts[kind] for share in shares for amounts in each) for kind in range(3)
        )
        return StageTimes(receive, compute, send, ())

    def _times(self, own: PlannedStage) -> tuple[float, float, float]:
        """Seconds that a copy receives, computes and sends for one sample."""
        graph, costs, device = self.problem.graph, self.costs, own.device
        compute = fsum(float(costs.time[self.option[v], device]) for v in own.nodes)
        if not self.problem.accelerators[device]:
            return 0.0, compute, 0.0
        moving, inside = Moving(self.problem), set(own.nodes)
        receive: list[float] = []
        send: list[float] = []
        gathered, scattered = (
            {(o, t): size for o, t, size in zip(*(column.tolist() for column in moved), strict=True)}
            for moved in (costs.gathered, costs.scattered)
        )
        per_byte = float(costs.per_byte[device])
        for tensor, maker in enumerate(graph.tensor_producer.tolist()):
            readers = self._readers[tensor]
            if maker in inside:
                if others := {self.placement[v] for v in readers} - {device}:
                    extra = scattered.get((self.option[maker], tensor), 0.0) * per_byte
                    send += [*moving.out_of(tensor, device, others), extra]
            elif self.placement[maker] != device and inside & {*self._first_readers(tensor, device)}:
                within = [v for v in readers if self.placement[v] == device]
                extra = max(gathered.get((self.option[v], tensor), 0.0) for v in within) * per_byte
                receive += [*moving.into(tensor, device, self.placement[maker]), extra]
        return fsum(receive), compute, fsum(send)

    def _first_readers(self, tensor: int, device: int) -> list[int]:
        """The readers on a device in the first chunk that reads: it brings the tensor in for all."""
        own = [v for v in self._readers[tensor] if self.placement[v] == device]
        first = min((self.chunk[v] for v in own), default=0.0)
        return [v for v in own if self.chunk[v] == first]

    @cached_property
    def _readers(self) -> list[list[int]]:
        graph = self.problem.graph
        out: list[list[int]] = [[] for _ in range(graph.tensors)]
        for tensor, reader in zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True):
            out[tensor].append(reader)
        return out

    @cached_property
    def work(self) -> Work:
        """An operation for each pass of each stage, and the exchanges of weights."""
        times = self.times
        operations = [
            Operation("stage", p, stage.device, stage.backward, "device", times.duration(p))
            for p, stage in enumerate(self.stages)
        ]
        inner = set(self.arcs)
        self.exchange: dict[int, int] = {}  # by place
        for own in self.planned:
            copies = len(own.copies) // own.apart
            crossing = own.weights * self.sharing.traffic * (copies - 1)
            if crossing > 0.0:
                inner.add((own.place + len(self.planned) * self.both, len(operations)))
                self.exchange[own.place] = len(operations)
                due = crossing if self.sharing.exchange == "sample" else crossing / copies
                operations.append(Operation("weights", -1, own.device, True, "device", due, self.period(own)))
        groups = {own.device: tuple(copy[0] for copy in own.copies) for own in self.planned}
        wide = {copy[0]: copy for own in self.planned for copy in own.copies}
        apart = {own.device: own.apart for own in self.planned}
        return Work(tuple(operations), frozenset(inner), groups, wide, apart)

    def period(self, own: PlannedStage) -> int:
        """After how many samples the copies exchange weights."""
        return (self.sharing.microbatches or 1) if self.sharing.exchange == "batch" else len(own.copies)

    @property
    def batch(self) -> int:
        """Samples after which the pipeline drains; 0 where it does not."""
        return (self.sharing.microbatches or 1) if self.sharing.held == "batch" or self.sharing.in_turns else 0

    def turns(self, samples: int) -> list[int]:
        """The number of each sample in its batch, or of all."""
        return [n % self.batch if self.batch else n for n in range(samples)]

    def periods(self, period: int, samples: int) -> list[range]:
        """The samples between exchanges of weights; what is left of a batch, or of the run, counts as well."""
        batch, out = self.batch or samples, list[range]()
        for begin in range(0, samples, batch):
            end = min(begin + batch, samples)
            out += [range(first, min(first + period, end)) for first in range(begin, end, period)]
        return out

    @property
    def schedule(self) -> str:
        """What timelines call it."""
        return "interleaved" if self.sharing.in_turns else SCHEDULE_OF[self.sharing.held]

    def whole_rounds(self, samples: int) -> int:
        """So many samples or a few more: where stages take samples in rounds, only whole ones are run."""
        round_ = self.in_turn * len(self.planned[0].copies) if self.sharing.held != "batch" else 0
        return -(-samples // round_) * round_ if round_ else samples

    def samples(self) -> int:
        """How many show the steady state: some times what is in flight, and what repeats."""
        copies = [len(own.copies) for own in self.planned]
        if self.batch:
            return 2 * self.batch
        return max(100, 4 * sum(copies) + 3 * self.cycle)

    @property
    def cycle(self) -> int:
        """After so many samples all stages do the same again."""
        return lcm(*(self.period(own) for own in self.planned), *(len(own.copies) for own in self.planned))
