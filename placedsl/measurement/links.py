"""Links measured: two processes of PyTorch's process groups send tensors of many sizes to and fro.

The time of a transfer is half of a round trip.  ``latency + size / bandwidth`` is fitted to the medians by least
squares of the relative errors, since sizes cover five orders of magnitude; neither may be negative.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from scipy.optimize import nnls

from placedsl.arrays import Floats
from placedsl.diagnostics import Diagnostic, InputError
from placedsl.measurement.runners import needed
from placedsl.system.installation import import_root

#: Bytes that are sent: 1 KiB to 64 MiB, fourfold.
SIZES = tuple(4**k for k in range(5, 14))
BACKENDS = ("gloo", "nccl")
#: Seconds in which a process has to begin and to end its part.
_LIMIT_S = 300.0


@dataclass(frozen=True)
class LinkRequest:
    """What is measured.

    ``backend``  gloo, between processes of the CPU, or nccl, between the first two GPUs (the first of each machine)
    ``sizes``    bytes of the tensors
    ``repeats``  round trips of each size, after ``warm_up``
    ``ranks``    of the two processes, those that are started here: both, or one of two machines
    ``address``  ``HOST:PORT`` at which processes of two machines meet; empty: both are here
    """

    backend: str = "gloo"
    sizes: Sequence[int] = SIZES
    repeats: int = 20
    warm_up: int = 3
    ranks: Sequence[int] = (0, 1)
    address: str = ""


@dataclass(frozen=True, eq=False)
class MeasuredLink:
    """Medians, and the line fitted to them.

    ``sizes``      bytes; ``seconds`` median of each
    ``latency``    seconds; ``bandwidth`` bytes a second (inf: no size takes longer than another)
    ``runtime``    what measured it
    """

    sizes: Floats
    seconds: Floats
    latency: float
    bandwidth: float
    runtime: str

    @property
    def fitted(self) -> Floats:
        """Seconds by the line."""
        return self.latency + self.sizes / self.bandwidth

    @property
    def largest_error(self) -> float:
        """The largest distance of the line from a median, as a share of the median."""
        return float(np.abs(self.fitted / self.seconds - 1.0).max())


def fitted(sizes: Sequence[float], seconds: Sequence[float], runtime: str) -> MeasuredLink:
    """The line through medians; ``sizes`` and ``seconds`` are positive."""
    size, median = np.array(sizes, dtype=float), np.array(seconds, dtype=float)
    rows = np.column_stack((1.0 / median, size / median))
    scale = np.abs(rows).max(axis=0)
    (latency, per_byte), _ = nnls(rows / scale, np.ones(len(size)))
    latency, per_byte = latency / scale[0], per_byte / scale[1]
    return MeasuredLink(size, median, float(latency), 1.0 / per_byte if per_byte > 0 else np.inf, runtime)


def measure(request: LinkRequest, tell: Callable[[int, int], None]) -> MeasuredLink | None:
    """Run the processes; ``tell`` hears how many sizes of how many are done.

    None where only the second process is here: the first has the result.  InputError where one fails.
    """
    needed(("torch",))
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        meeting = f"tcp://{request.address}" if request.address else (Path(folder) / "meeting").absolute().as_uri()
        children = [_child(request, rank, meeting, errors) for rank in request.ranks]
        try:
            runtime, medians = _received(children[0], len(request.sizes), tell)
            ended = [child.wait(_LIMIT_S) == 0 for child in children]
        except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
            raise _failed(errors) from None
        finally:
            for child in children:
                child.kill()
                child.wait()
                assert child.stdout is not None
                child.stdout.close()
        if not all(ended) or (0 in request.ranks and len(medians) < len(request.sizes)):
            raise _failed(errors)
    return fitted(list(medians), list(medians.values()), runtime) if 0 in request.ranks else None


def text(link: MeasuredLink, name: str) -> str:
    """Statements of the language: an interconnect, or a link between the devices of a family, and the medians."""
    bandwidth = f"{link.bandwidth:.6g} B/s" if link.bandwidth < np.inf else "1e15 B/s"
    pairs = zip(link.sizes, link.seconds, link.fitted, strict=True)
    beginning = f"link {name} <-> {name}" if name else "interconnect"
    return "\n".join([
        f"# Measured by placedsl profile --links: {link.runtime}.  A tensor takes latency + size / bandwidth,",
        f"# fitted to medians of half round trips; it is off by {link.largest_error:.0%} at most.",
        "#        bytes     median        fit",
        *(f"# {size:12.0f} {seconds * 1e6:7.0f} us {line * 1e6:7.0f} us" for size, seconds, line in pairs),
        f"{beginning} {{ bandwidth = {bandwidth}, latency = {link.latency * 1e6:.6g} us }}",
        "",
    ])  # fmt: skip


def _child(request: LinkRequest, rank: int, meeting: str, errors: IO[bytes]) -> subprocess.Popen[str]:
    words = (rank, meeting, request.backend, request.repeats, request.warm_up, *request.sizes)
    path = os.pathsep.join(dict.fromkeys((import_root(), *filter(None, sys.path))))
    return subprocess.Popen(
        [sys.executable, "-m", "placedsl.measurement.link_worker", *map(str, words)], stdout=subprocess.PIPE,
        stderr=errors, text=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def _received(
    child: subprocess.Popen[str], count: int, tell: Callable[[int, int], None]
) -> tuple[str, dict[int, float]]:
    """What the first process says line by line: the runtime, then the median of each size."""
    assert child.stdout is not None
    runtime, medians = "", {}
    tell(0, count)
    for line in child.stdout:
        said = json.loads(line)
        runtime = said.get("runtime", runtime)
        if "bytes" in said:
            medians[int(said["bytes"])] = float(said["seconds"])
            tell(len(medians), count)
    return runtime, medians


def _failed(errors: IO[bytes]) -> InputError:
    errors.seek(0)
    lines = [line.strip() for line in errors.read().decode("utf-8", "replace").splitlines() if line.strip()]
    told = f": {lines[-1]}" if lines else ""
    hint = "are both processes reachable, and does this build of PyTorch have the backend?"
    return InputError([Diagnostic(f"the processes could not exchange tensors{told}", None, hint)])
