"""How a placement is run: what one run is, microbatch order, communication, slots, and devices per stage.

The evaluator, the formulations and the algorithms ask this model what it implies; none compares keywords of the
language.  Those keywords are names of models (:data:`SHORTHANDS`, :data:`STANDARD`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, get_args

from placedsl.arrays import Floats, Integers
from placedsl.diagnostics import Span
from placedsl.graph.options import Moved
from placedsl.problem.cluster_levels import ClusterLevels
from placedsl.records import dataclass

#: A stream of samples through a pipeline; one sample by uninterrupted subgraph calls; one sample operator by operator.
Run = Literal["pipeline", "subgraph_calls", "operators"]
#: When a stage turns from forward to backward work: as soon as it can, or after all microbatches.
Order = Literal["1f1b", "gpipe"]
#: Transfers after computation, beside it in one direction at a time, or beside it in both directions at once.
Communication = Literal["sequential", "overlapped", "full_duplex"]
#: Where tensors of a pipeline go: through the memory of the hosts, where readers fetch them; from device to device, to
#: one reading device after another; or to all of them at once.
Transfers = Literal["through_host", "direct", "broadcast"]

#: What the copies of a stage exchange their weights once per: each sample, each round (a sample on each copy), or each
#: batch of microbatches.
Exchange = Literal["sample", "round", "batch"]

#: The samples that the stages of a plan hold at once: those in the pipeline under 1F1B, all of a batch as under GPipe,
#: or one, as where nothing goes backward.
Held = Literal["pipeline", "batch", "sample"]

RUNS: tuple[Run, ...] = get_args(Run)
ORDERS: tuple[Order, ...] = get_args(Order)
#: What is set aside where devices stream what does not fit: none streams, so many bytes, the peak of activations.
Streams = Literal["none", "reserve", "peak"]
STREAMS: tuple[Streams, ...] = get_args(Streams)
COMMUNICATIONS: tuple[Communication, ...] = get_args(Communication)
TRANSFERS: tuple[Transfers, ...] = get_args(Transfers)
EXCHANGES: tuple[Exchange, ...] = get_args(Exchange)
HELD: tuple[Held, ...] = get_args(Held)

#: Times of a node, and of a tensor on its way to a device, within the run of one sample.
NODE_TIMES = ("start", "finish")
TENSOR_TIMES = ("sent", "arrived")
#: All quantities that are points in time of the run of one sample.
TIMES = frozenset(("latency", *NODE_TIMES, *TENSOR_TIMES))


@dataclass(frozen=True, eq=False)
class OptionCosts:
    """What the options of operators cost on a machine of D devices.  o options, g and s amounts that are moved.

    ``node``      o positions of nodes, ascending;  ``name``  o texts
    ``degree``    o numbers of devices that the node is split over
    ``time``      o x D seconds per sample; inf = not supported
    ``weights``   o x D seconds that the node's weights take over the link of a device
    ``stash``     o bytes per sample in flight;  ``memory``  o bytes whatever is in flight
    ``sharded``   o bytes that the copies of a stage divide among them
    ``gathered``, ``scattered``  options, tensors and bytes: what bringing a tensor to all devices of a copy moves
                  beside the tensor itself, into a stage and out of it
    ``per_byte``  D seconds per byte over the link of a device
    """

    node: Integers
    name: tuple[str, ...]
    degree: Integers
    time: Floats
    weights: Floats
    stash: Floats
    memory: Floats
    sharded: Floats
    gathered: Moved
    scattered: Moved
    per_byte: Floats

    @property
    def labels(self) -> tuple[str, ...]:
        """The names that there are, each once: the elements of the set ``options``."""
        return tuple(dict.fromkeys(self.name))


@dataclass(frozen=True, eq=False)
class DataParallelism:
    """Several devices may share the samples of one stage; each copy of it may be several devices.

    ``degrees``          how many copies a stage may have, ascending, 1 among them
    ``weights``          n bytes of weights that devices exchange that share a stage
    ``synchronisation``  n x D: how long the weights of a node take over the link of a device, in seconds
    ``span``             the statement that allows it
    ``tensor``           how many devices a copy may have, ascending
    ``microbatches``     samples of a batch, and the most in a pipeline (None: any number)
    ``held``             the samples that are in flight at once
    ``exchange``         what the copies exchange their weights once per
    ``traffic``          how often weights cross a device's link in one exchange among many copies
    ``options``          how each node may run, where the spec asks for more than copies (``planned``); memory then
                         depends on the samples in flight, and stages have an order
    ``names``            of the options that nodes may take (None: all)
    ``across``           clusters whose copies share samples as well (None: none does)
    ``chunks``           parts of the model that each stage holds, in turn: with S stages, part k is in stage k mod S;
                         all stages then have as many copies
    ``on_any``           ``degrees`` and ``tensor`` as the spec allows them on however many devices
    """

    degrees: tuple[int, ...]
    weights: Floats
    synchronisation: Floats
    span: Span
    tensor: tuple[int, ...] = (1,)
    microbatches: int | None = None
    exchange: Exchange = "sample"
    traffic: float = 1.0
    options: OptionCosts | None = None
    planned: bool = False
    names: frozenset[str] | None = None
    held: Held = "pipeline"
    across: ClusterLevels | None = None
    chunks: int = 1
    on_any: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def on(self, devices: int) -> DataParallelism:
        """The same on another number of devices: with the numbers that the spec allows there."""
        degrees, tensor = (tuple(number for number in numbers if number <= devices) for numbers in self.on_any)
        most = devices if self.across is None else self.across.size[0]
        return replace(self, degrees=degrees, tensor=tuple(t for t in tensor if t <= most) or (1,))

    @property
    def most_in_pipeline(self) -> int | None:
        """How many copies all stages may have together, each with a sample of its own (None: any number)."""
        return self.microbatches if self.held == "pipeline" else None

    @property
    def in_turns(self) -> bool:
        """Whether copies take the samples of a batch in rounds of as many as there are stages (interleaved 1F1B)."""
        return self.chunks > 1 and self.held == "pipeline"

    def held_at_once(self, copies: int, stages: int, place: int) -> tuple[tuple[int, ...], ...]:
        """Samples of each chunk that a copy of a stage may hold at once, where stages hold several chunks.

        ``place``: of the stage among so many, from 0.  Of the moments in a batch those that can be the largest,
        whatever a sample takes in each chunk.  Interleaved 1F1B (Narayanan et al. 2021): a copy runs as many samples as
        there are stages through its first chunk, as many through its second, and so on; before its first backward pass
        it does 2(S - place - 1) + (chunks - 1)S + 1 forward ones, then a backward and a forward one in turn.
        """
        own = -(-(self.microbatches or 1) // copies)
        if self.held == "batch":
            return ((own,) * self.chunks,)
        if self.held == "sample":  # one chunk at a time
            return tuple(tuple(int(c == k) for c in range(self.chunks)) for k in range(self.chunks))
        round_, every = stages * self.chunks, own * self.chunks
        ahead = min(2 * (stages - place - 1) + (self.chunks - 1) * stages, every - 1)

        def done(passes: int, chunk: int) -> int:
            whole, rest = divmod(passes, round_)
            return whole * stages + min(max(rest - chunk * stages, 0), stages)

        # All of them have as many samples in all, so that none covers another one; of two chunks, what they hold
        # together is most where one of them has most, whatever a sample of either takes.
        moments = sorted({
            tuple(done(k, c) - done(k - ahead - 1, self.chunks - 1 - c) for c in range(self.chunks))
            for k in range(ahead + 1, min(every, ahead + round_) + 1)
        })  # fmt: skip
        return (moments[0], moments[-1])[: len(moments)] if self.chunks == 2 else tuple(moments)

    def in_flight(self, copies: int, behind: int) -> int:
        """Samples that each copy of a stage holds at once; ``behind``: the copies of this stage and all later ones."""
        together = {"pipeline": behind, "batch": self.microbatches or 1, "sample": 1}[self.held]
        return -(-together // copies)

    def sent(self, copies: float) -> float:
        """How often weights are exchanged per sample of a stage, times the traffic of an exchange."""
        if self.exchange == "sample" or copies < 1:
            return self.traffic
        samples = copies if self.exchange == "round" else float(self.microbatches or 1)
        return self.traffic / samples


@dataclass(frozen=True)
class Execution:
    """What the evaluator, the programs and the algorithms assume about a run.

    ``run``            a pipeline of samples (throughput), or one sample (latency) by calls or by operators
    ``order``          microbatch order of a pipeline
    ``communication``  how transfers of a pipeline relate to computation
    ``transfers``      where tensors of a pipeline go
    ``slots``          calls per accelerator under ``subgraph_calls`` (Tarnawski et al. 2020, Figure 4)
    ``data_parallelism``  several devices per stage of a pipeline (Tarnawski et al. 2020, Appendix C.2); None: one each
    ``streams``        whether devices of a pipeline stream what does not fit, and what they set aside
    """

    run: Run = "pipeline"
    order: Order = "1f1b"
    communication: Communication = "sequential"
    transfers: Transfers = "through_host"
    slots: int = 1
    data_parallelism: DataParallelism | None = None
    streams: Streams = "none"

    def __post_init__(self) -> None:
        if self.data_parallelism is not None and not self.shareable:
            raise ValueError(f"data parallelism is not defined under schedule {self.name}")

    @property
    def name(self) -> str:
        """The keyword of ``schedule`` for this model; where there is none, its standard form with a block."""
        short = next((name for name, known in SHORTHANDS.items() if self.like(known)), "")
        directly = self.run == "pipeline" and self.transfers != "through_host"
        if short and not directly:
            return short
        how = [f"communication = {self.communication}"] * (self.communication != "sequential" or not directly)
        return f"{self.order} {{ {', '.join(how + [f'transfers = {self.transfers}'] * directly)} }}"

    def like(self, other: Execution) -> bool:
        """Whether the two agree in run, order and communication; transfers, slots and devices per stage aside."""
        return (self.run, self.order, self.communication) == (other.run, other.order, other.communication)

    @property
    def one_sample(self) -> bool:
        """Whether one run is one sample, so that latency and not time per sample is what it has."""
        return self.run != "pipeline"

    @property
    def device_to_device(self) -> bool:
        """Whether tensors go from device to device, so that times between two devices must be known."""
        return self.run == "operators" or (self.run == "pipeline" and self.transfers != "through_host")

    @property
    def schedule_decisions(self) -> tuple[str, ...]:
        """The quantities that an answer has to give beside the placement."""
        if self.run == "pipeline":
            levels = self.cluster_levels
            own = () if self.options is None else ("copy_size", "option", "order")
            own = (*own, "chunk") if self.chunks > 1 else own
            return own if levels is None else (*own, "cluster_copies")
        return ("piece",) if self.run == "subgraph_calls" else ("start", "sent")

    @property
    def times(self) -> tuple[str, ...]:
        """The quantities that are points in time of the run; none where samples follow one another."""
        tensors = TENSOR_TIMES if self.run == "operators" else ()
        return ("latency", *NODE_TIMES, *tensors) if self.one_sample else ()

    @property
    def passes(self) -> int:
        """Phases that all devices of a pipeline finish before the next begins: one, or forward and backward."""
        return 2 if self.order == "gpipe" else 1

    @property
    def shareable(self) -> bool:
        """Whether it is known what a load is when several devices share the samples of a stage."""
        return not self.one_sample

    @property
    def parallelism(self) -> tuple[str, ...]:
        """The kinds of parallelism within a stage that a formulation must be for."""
        if self.data_parallelism is None:
            return ()
        if self.cluster_levels is not None:
            return ("data", "tensor", "clusters")
        if self.chunks > 1:
            return ("data", "tensor", "chunks")
        return ("data", "tensor") if self.data_parallelism.planned else ("data",)

    @property
    def options(self) -> OptionCosts | None:
        """How each node may run, where there is a choice; stages then have an order, and copies several devices."""
        return None if self.data_parallelism is None else self.data_parallelism.options

    @property
    def chunks(self) -> int:
        """Parts of the model that each stage of a plan holds."""
        return 1 if self.data_parallelism is None else self.data_parallelism.chunks

    @property
    def cluster_levels(self) -> ClusterLevels | None:
        """The clusters whose copies share samples; None where none does."""
        return None if self.data_parallelism is None else self.data_parallelism.across

    def alone(self) -> Execution:
        """The same with one device per stage."""
        return replace(self, data_parallelism=None)


#: Keywords of ``schedule`` that stand for a combination.
SHORTHANDS: Mapping[str, Execution] = {
    "pipedream": Execution(),
    "gpipe": Execution(order="gpipe"),
    "overlapped": Execution(communication="overlapped"),
    "duplex": Execution(communication="full_duplex"),
    "calls": Execution(run="subgraph_calls"),
    "dataflow": Execution(run="operators"),
}
#: Standard names: microbatch orders of a pipeline, and the runs of one sample.
STANDARD: Mapping[str, Execution] = {order: Execution(order=order) for order in ORDERS} | {
    run: Execution(run=run) for run in RUNS if run != "pipeline"
}
#: Every keyword of ``schedule``.
SCHEDULES: Mapping[str, Execution] = {**SHORTHANDS, **STANDARD}
