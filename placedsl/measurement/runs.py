"""What is measured: a model that is ready to be run, and what passes through it gave."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from placedsl.arrays import Floats
from placedsl.graph.readers.sizes import Sizes


@dataclass(frozen=True)
class Request:
    """What to run, and how.

    ``model``    the file
    ``device``   where: ``cpu``, ``cuda``, ``cuda:1``
    ``sizes``    of dimensions that the model leaves open
    ``threads``  threads of the CPU for one operator (None: as the runtime chooses)
    ``interpreted``  of PyTorch: an interpreter calls the operators, as in stages of torch.distributed.pipelining
    ``training``     layers and modules, forward and backward, in place of operators
    ``cpu_time``     of PyTorch on a CPU: the time of the processor, without that in which other programs have it
    """

    model: Path
    device: str
    sizes: Sizes
    threads: int | None = None
    interpreted: bool = False
    training: bool = False
    cpu_time: bool = False

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds since some moment."""
        return time.process_time if self.cpu_time else time.perf_counter


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass: seconds by operator, and seconds of the whole model run as its runtime runs it."""

    seconds: Floats
    whole: float


@dataclass(frozen=True)
class Runnable:
    """A model that is loaded, with inputs.

    ``operators``  n ids, as the graph has them that is read from the same file
    ``settings``   what times depend on, in words by name: versions, device, threads, sizes
    ``digest``     tells the model from others
    ``missing``    nodes of the graph that are not measured
    ``run``        runs so many passes, some of them perhaps at once, and gives each
    ``most``       so many passes are run at once
    ``allocated``  n bytes that each operator had allocated at most while it ran (nan: not known)
    ``graph``      of layers for training: the graph with n seconds on a device of some name (None: the model has one)
    """

    operators: Sequence[str]
    settings: dict[str, str]
    digest: str
    missing: Sequence[str]
    run: Callable[[int], list[Pass]]
    most: int
    allocated: Callable[[], Floats]
    graph: Callable[[Floats, str], str] | None = None


@dataclass(frozen=True, eq=False)
class Measured:
    """Medians over passes.

    ``seconds``    n medians; ``low`` and ``high`` their quartiles
    ``whole``      median seconds of the whole model
    ``allocated``  as :class:`Runnable` has it
    ``passes``     over how many
    """

    operators: Sequence[str]
    seconds: Floats
    low: Floats
    high: Floats
    whole: float
    allocated: Floats
    passes: int

    @property
    def share(self) -> float:
        """The sum over operators as a share of the whole model's time."""
        return float(self.seconds.sum() / self.whole)

    def scaled(self) -> Measured:
        """The same with times that add up to that of the whole model."""
        factor = 1.0 / self.share
        return Measured(
            self.operators, self.seconds * factor, self.low * factor, self.high * factor, self.whole, self.allocated,
            self.passes,
        )  # fmt: skip


def measured(model: Runnable, passes: Sequence[Pass]) -> Measured:
    """What the passes say together; :attr:`Runnable.allocated` is asked here."""
    table = np.array([one.seconds for one in passes]).reshape(len(passes), len(model.operators))
    low, middle, high = np.quantile(table, (0.25, 0.5, 0.75), axis=0)
    whole = float(np.median([one.whole for one in passes]))
    return Measured(model.operators, middle, low, high, whole, model.allocated(), len(passes))
