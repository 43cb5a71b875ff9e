"""The quantities of the vocabulary on a finished placement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from placedsl.evaluation import operator_schedule as dataflow
from placedsl.evaluation import subgraph_call_schedule as calls
from placedsl.evaluation.activation_peaks import ActivationPeaks
from placedsl.evaluation.cluster_loads import ClusterLoads
from placedsl.evaluation.evaluation import Work
from placedsl.evaluation.load_components import Components, computing, of_calls, of_pipeline, shared
from placedsl.evaluation.planned_stages import NONE, PlannedStages
from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.sample_times import SampleTimes
from placedsl.evaluation.tolerance import total
from placedsl.problem.execution import NODE_TIMES, TENSOR_TIMES
from placedsl.problem.values import Values

PASSES = 2
FORWARD, BACKWARD = range(PASSES)


class Quantities:
    """Loads, memory and traffic; ``placement`` has a device per node, -1 for none.

    ``copies`` says how many devices share the samples of what is on each device (one, where nothing is said).
    ``schedule_decisions`` are those that an answer gives for one sample's run: ``piece``, or ``start`` and ``sent``
    (``not_before``: these starts are kept, not only their order); and for the stages of a plan.
    """

    def __init__(
        self,
        data: ProblemData,
        placement: Sequence[int],
        copies: Sequence[float] | None = None,
        schedule_decisions: Values | None = None,
        *,
        not_before: bool = False,
    ) -> None:
        self.data = data
        self.placement = list(placement)
        self.schedule_decisions = schedule_decisions or {}
        self.not_before = not_before
        self.copies = list(copies) if copies is not None else [float(bool(nodes)) for nodes in self.nodes]

    @cached_property
    def nodes(self) -> list[list[int]]:
        """The nodes of each device."""
        out: list[list[int]] = [[] for _ in range(self.data.devices)]
        for node, device in enumerate(self.placement):
            if device >= 0:
                out[device].append(node)
        return out

    @cached_property
    def stages(self) -> PlannedStages | None:
        """How stages run, where the spec asks for a plan."""
        costs = self.data.problem.execution.options
        if costs is None:
            return None
        return PlannedStages(self.data, costs, self.placement, self.copies, self.schedule_decisions)

    @cached_property
    def clusters(self) -> ClusterLoads | None:
        """The clusters whose copies share samples, where the spec lets them."""
        sharing = self.data.problem.execution.data_parallelism
        if sharing is None or sharing.across is None or self.stages is None:
            return None
        return ClusterLoads(self.data, sharing, self.stages, self.schedule_decisions.get("cluster_copies", {}))

    @cached_property
    def components(self) -> list[list[Components]]:
        """What keeps each device busy, by phase of the run: forward and backward pass under GPipe, else all in one."""
        run = self.data.problem.execution.run
        if run == "pipeline":
            phases = self._phases(self.data.problem.execution.passes)
            for part, time in zip(phases[0], self.streamed, strict=True):
                part.streamed.append(time)
            return phases
        if run == "subgraph_calls":
            return [of_calls(self.data, self.placement, self.piece)]
        return [computing(self.data, self.placement)]

    def _phases(self, passes: int) -> list[list[Components]]:
        backward = self.data.backward
        return of_pipeline(
            self.data, self.placement, passes, lambda v: int(backward[v]) if passes > 1 else 0, self.stages
        )

    def pass_loads(self) -> list[list[float]]:
        """Busy time of each device in the forward and in the backward pass, transfers counted in each."""
        return [list(parts) for parts in zip(*self._busy(self._phases(PASSES)), strict=True)]

    @cached_property
    def phase_loads(self) -> list[list[float]]:
        """Busy time of each device by phase of the run; where several share the samples of a stage, that of each."""
        return self._busy(self.components)

    def _busy(self, phases: list[list[Components]]) -> list[list[float]]:
        """Busy time by phase and device; devices that share a stage exchange its weights in the last phase."""
        execution = self.data.problem.execution
        alone = [[part.busy(execution.communication) for part in phase] for phase in phases]
        if execution.data_parallelism is None:
            return alone
        clusters = self.clusters
        if clusters is not None:
            # Copies in other clusters exchange weights over the links around them.
            return [
                [
                    max(time / max(1.0, copies) + clusters.exchange(device, nodes), clusters.around(device))
                    if nodes else 0.0
                    for device, (time, copies, nodes) in enumerate(zip(phase, self.copies, self.nodes, strict=True))
                ]
                for phase in alone
            ]  # fmt: skip
        weights = self._weights()
        exchanged = [[0.0] * len(weights)] * (len(alone) - 1) + [weights]
        return [
            [shared(execution.communication, *parts) for parts in zip(phase, self.copies, due, strict=True)]
            for phase, due in zip(alone, exchanged, strict=True)
        ]

    @cached_property
    def loads(self) -> list[float]:
        """Busy time of each device; where several share the samples (Appendix C.2), that of each."""
        return [total(parts) for parts in zip(*self.phase_loads, strict=True)]

    @cached_property
    def work(self) -> tuple[Work, ...]:
        """What each device is busy with, over all phases; of those that share the samples of a stage, each."""
        out = []
        for device, weights in enumerate(self.synchronisation_times):
            copies = max(1.0, self.copies[device])
            phases = [phase[device] for phase in self.components]
            compute = total([x for part in phases for x in part.computation]) / copies
            received = total([x for part in phases for x in part.received]) / copies
            sent = total([x for part in phases for x in part.sent]) / copies
            out.append(Work(compute, received, sent, weights))
        return tuple(out)

    @cached_property
    def synchronisation_times(self) -> list[float]:
        """How long each device takes part in the exchange of gradients; nothing where no stage is shared."""
        if self.data.problem.execution.data_parallelism is None:
            return [0.0] * self.data.devices
        clusters = self.clusters
        if clusters is not None:
            return [clusters.exchange(d, nodes) if nodes else 0.0 for d, nodes in enumerate(self.nodes)]
        return [
            weights * (copies - 1) / copies if copies >= 1 else 0.0
            for weights, copies in zip(self._weights(), self.copies, strict=True)
        ]

    def _weights(self) -> list[float]:
        """How long the weights of each device take over its link, per sample."""
        sharing = self.data.problem.execution.data_parallelism
        assert sharing is not None
        if self.stages is not None:
            stages = self.stages
            return [
                sharing.sent(self.copies[device]) * stages.weights(nodes, device) if nodes else 0.0
                for device, nodes in enumerate(self.nodes)
            ]
        known = self.data.attributes["node", "synchronisation"]
        return [total(known[v][device] for v in nodes) for device, nodes in enumerate(self.nodes)]

    @cached_property
    def piece(self) -> list[int]:
        """Which call of its device each node is in (schedule ``calls``; 1 where nothing is said)."""
        number = self.schedule_decisions.get("piece", {})
        return [round(number.get((v,), 1)) for v in range(self.data.nodes)]

    @cached_property
    def times(self) -> SampleTimes:
        """When everything happens for one sample."""
        if self.data.problem.execution.run == "subgraph_calls":
            return calls.run(self.data, self.placement, self.piece)
        decisions = self.schedule_decisions
        given = (decisions["start"], decisions.get("sent", {})) if "start" in decisions else None
        return dataflow.run(self.data, self.placement, given, not_before=self.not_before)

    @cached_property
    def memory(self) -> list[float]:
        """Memory that the nodes of each device occupy; in a plan, with what the samples in flight do."""
        if self.stages is not None:
            stages = self.stages
            return [stages.memory(nodes, device) if nodes else 0.0 for device, nodes in enumerate(self.nodes)]
        return [total(self.data.memory[v] for v in nodes) for nodes in self.nodes]

    @cached_property
    def streamed(self) -> list[float]:
        """How long each device streams for a sample what does not fit of its memory; nothing where it holds nothing."""
        peaks, out = ActivationPeaks(self.data), []
        for device, nodes, memory in zip(self.data.problem.machine.devices, self.nodes, self.memory, strict=True):
            rate, beyond = device.attributes.get("streams", 0.0), 0.0
            if rate > 0.0 and nodes:
                reserve = peaks.of(nodes) if device.reserves_peak else device.attributes.get("reserve", 0.0)
                beyond = max(0.0, memory + reserve - device.memory)
            out.append(beyond / rate if beyond else 0.0)
        return out

    @cached_property
    def traffic(self) -> dict[tuple[int, int], float]:
        """Sizes of the tensors made on one device and read on another; absent pairs exchange none."""
        terms: dict[tuple[int, int], list[float]] = {}
        for tensor, producer in enumerate(self.data.producer):
            home = self.placement[producer]
            for device in {self.placement[r] for r in self.data.readers[tensor]} - {home}:
                terms.setdefault((home, device), []).append(self.data.size[tensor])
        return {pair: total(sizes) for pair, sizes in terms.items()}

    def _transfers(self) -> Iterator[float]:
        """How long each transfer takes, by what the execution model counts as one; a pipeline counts each tensor once
        per device, in whatever passes it is read."""
        data, moves = self.data, self.data.problem.device_to_device
        if moves is not None and data.problem.execution.run == "operators":
            for tensor, device in self.times.sent:
                yield float(moves.time(tensor, self.placement[data.producer[tensor]], device))
            return
        devices = self._phases(1)[0] if data.problem.execution.run == "pipeline" else self.components[0]
        yield from (time for part in devices for time in part.transfers)

    def of_element(self, name: str, at: tuple[int, ...]) -> float:
        """A quantity of a node, or of a tensor and devices; KeyError when there is none of that name.

        A tensor that does not go to a device leaves for it, and arrives, when it is made.
        """
        if name in STAGE_QUANTITIES:
            return self._of_stage(name, at)
        if name == "piece":
            (v,) = at
            return float(self.piece[v]) if self.data.accelerator[self.placement[v]] else 1.0
        if name in NODE_TIMES:
            column = self.times.start if name == "start" else self.times.finish
            return column[at[0]]
        if name in TENSOR_TIMES:
            known = self.times.sent if name == "sent" else self.times.arrived
            found = known.get((at[0], at[1]))
            return self.times.finish[self.data.producer[at[0]]] if found is None else found
        if name == "moved":
            tensor, source, target = at
            home = self.placement[self.data.producer[tensor]]
            return float(home == source != target and (tensor, target) in self.times.sent)
        raise KeyError(name)

    def _of_stage(self, name: str, at: tuple[int, ...]) -> float:
        """What a plan decides of a node."""
        stages, device = self.stages, self.placement[at[0]]
        assert stages is not None
        match name:
            case "data":
                return self.copies[device]
            case "tensor":
                return stages.tensor[device]
            case "stage":
                return float(1 + sorted(stages.number[d] for d in stages.used).index(stages.number[device]))
            case "chunk":
                return stages.chunk[at[0]]
            case "in_flight":
                return float(stages.samples(at[0]))
        option = stages.option[at[0]]
        return float(option != NONE and stages.costs.name[option] == self.data.option_names[at[1]])

    def scalar(self, name: str) -> float:
        """A quantity without arguments; KeyError when there is none of that name."""
        data = self.data
        if name == "time_per_sample":
            return total(max(phase, default=0.0) for phase in self.phase_loads)
        if name == "devices_used":
            if self.stages is not None:
                return total(copies * each for copies, each in zip(self.copies, self.stages.tensor, strict=True))
            return float(sum(self.copies))
        if name == "copies_used":
            return total(self.copies)
        if name == "stages_used" and self.stages is not None:
            return float(len(self.stages.used))
        if name == "communication":
            return total(self._transfers())
        if name == "latency" and data.problem.execution.one_sample:
            return self.times.latency
        if name == "peak_memory":
            return max((self.memory[d] for d in data.sets["accelerators"]), default=0.0)
        raise KeyError(name)


def _component(part: Callable[[Components], list[float]]) -> Callable[[Quantities], list[float]]:
    """A component of the loads of the devices; several that share a stage do equal parts of it."""
    return lambda q: [
        total(time for phase in phases for time in part(phase)) / max(1.0, copies)
        for phases, copies in zip(zip(*q.components, strict=True), q.copies, strict=True)
    ]


#: Quantities of one sample's run, of nodes and of tensors.
RUN_QUANTITIES = ("piece", *NODE_TIMES, *TENSOR_TIMES, "moved")
#: Quantities of a plan, of nodes.
STAGE_QUANTITIES = ("data", "tensor", "stage", "chunk", "in_flight", "takes")
#: Quantities of one device, as a list with an entry a device.
DEVICE_QUANTITIES: dict[str, Callable[[Quantities], list[float]]] = {
    "load": lambda q: q.loads,
    "compute_time": _component(lambda part: part.computation),
    "transfer_time": _component(lambda part: part.transfers),
    "receive_time": _component(lambda part: part.received),
    "send_time": _component(lambda part: part.sent),
    "synchronisation_time": lambda q: q.synchronisation_times,
    "streamed": lambda q: q.streamed,
    "memory": lambda q: q.memory,
    "used": lambda q: [float(bool(nodes)) for nodes in q.nodes],
    "forward_load": lambda q: [parts[FORWARD] for parts in q.pass_loads()],
    "backward_load": lambda q: [parts[BACKWARD] for parts in q.pass_loads()],
}
