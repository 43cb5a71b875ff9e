"""What the evaluator reports."""

from __future__ import annotations

from dataclasses import field

from placedsl.diagnostics import Span
from placedsl.evaluation.sample_times import SampleTimes
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values
from placedsl.records import dataclass
from placedsl.rendering import Rendered, Renderer


@dataclass(frozen=True)
class Violation:
    """A rule that a placement breaks; ``amount`` is by how much (0 where that means nothing)."""

    rule: str
    message: str
    span: Span | None
    amount: float


@dataclass(frozen=True)
class Work:
    """What keeps a device busy for one sample, in seconds or the graph's own unit.

    ``compute`` its nodes, ``receive`` and ``send`` tensors, ``weights`` their exchange among the devices that share a
    stage.  How they add up to the load, the communication model says.
    """

    compute: float
    receive: float
    send: float
    weights: float


@dataclass(frozen=True, repr=False)
class Evaluation(Rendered[Renderer]):
    """Objective values in order, what is violated, and load, memory and nodes of each device.

    ``streamed``: how long each device streams for a sample what does not fit (empty: no device streams).
    ``work``: what each device is busy with;
    ``sizes``: of the terms that each objective is made of, its own size where none cancel; ``soft_costs``: what each
    soft constraint costs; ``values``: the spec's own variables, and what else an answer says;
    ``times``: when everything happens, under a schedule of one sample; ``problem``: what was evaluated.
    """

    problem: Problem = field(compare=False)
    objectives: tuple[float, ...]
    violations: tuple[Violation, ...]
    loads: tuple[float, ...]
    memory: tuple[float, ...]
    nodes: tuple[tuple[int, ...], ...]
    soft_costs: tuple[float, ...] = ()
    sizes: tuple[float, ...] = ()
    values: Values = field(default_factory=dict)
    times: SampleTimes | None = None
    streamed: tuple[float, ...] = ()
    work: tuple[Work, ...] = ()

    @property
    def feasible(self) -> bool:
        """Nothing is violated."""
        return not self.violations
