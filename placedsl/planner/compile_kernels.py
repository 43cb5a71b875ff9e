"""Compile all search kernels, once: ``python -m placedsl.planner.compile_kernels [--wait] [--jobs N]``.

Small problems of each kind are solved, and all that runs beside a solver works on them for a moment; numba keeps what
was compiled.  Runs in the background of an installation's first run (:mod:`placedsl.system.first_run`), and before the
tests.
"""

from __future__ import annotations

import itertools
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placedsl.system.first_run import compiling, kernel_files, note_kernels_are_compiled

# Where another process compiles already, nothing else is imported.
if TYPE_CHECKING:
    from placedsl.language.elaboration.elaborate import Elaborated

_GRAPH = """graph {
    node a { time = {accelerator: 400 ms, host: 700 ms}, memory = 3 GiB, output = 2 GiB }
    node b { time = {accelerator: 500 ms, host: 900 ms}, memory = 2 GiB, output = 1 GiB }
    node c { time = {accelerator: 200 ms, host: 300 ms}, memory = 2 GiB, output = 1 GiB }
    node d { time = {accelerator: 300 ms, host: 800 ms}, memory = 4 GiB, output = 1 GiB }
    a -> b -> d
    a -> c
    a -> d
}
"""
_DEVICES = """device gpu[2]: accelerator { memory = 16 GiB }
device cpu: host
interconnect { bandwidth = 8 GiB/s }
"""
#: Operators without time that do not fit beside what makes their tensor, which is dear.
_FULL = """graph {
    node a { time = 3 ms, memory = 100 MiB, output = 8 MiB }
    node b { time = 3 ms, memory = 100 MiB, output = 1 KiB }
    node c { time = 6 ms, memory = 100 MiB }
    node x { time = 0 ms, memory = 200 MiB }
    node y { time = 0 ms, memory = 200 MiB }
    a -> b -> c
    a -> x
    a -> y
}
device gpu[2]: accelerator { memory = 450 MiB }
interconnect { bandwidth = 1 GiB/s }
minimize time_per_sample
subject to
    memory
    contiguous
"""
_ALIKE = "device gpu[3]: accelerator { memory = 12 GiB }\ninterconnect { bandwidth = 8 GiB/s }\n"
_CLUSTERS = """cluster server[2] {
    device gpu[2]: accelerator { memory = 16 GiB }
    interconnect { bandwidth = 16 GiB/s }
}
interconnect { bandwidth = 4 GiB/s }
"""
_LINKED = """device gpu[2]: accelerator { memory = 16 GiB }
device cpu: host
link gpu <-> gpu { bandwidth = 8 GiB/s }
link gpu <-> cpu { bandwidth = 4 GiB/s }
"""
_SHARED = "parallelism { data = 1..2, weights = memory }\n"
_PLANS = "parallelism { data = 1..2, tensor = 1, microbatches = 4, exchange = round }\nminimize time_per_sample"
_ACROSS = _PLANS.replace("exchange = round", "exchange = round, across = server")
_CHUNKS = _PLANS.replace("{ data", "{ chunks = 2, data")
_PIPELINES = ("pipedream", "overlapped", "duplex", "gpipe")
#: The specs of each kind: machine, execution, and constraints beside memory.
KINDS = {
    "pipelines": [
        (devices, f"schedule {schedule}\n{shared}minimize time_per_sample", rules)
        for schedule in _PIPELINES
        for devices, shared in ((_DEVICES, ""), (_DEVICES, _SHARED), (_CLUSTERS, _SHARED))
        for rules in ("    contiguous\n", "")
    ] + [(_LINKED, "minimize time_per_sample", "")],
    "plans": [(_ALIKE, _PLANS, "    contiguous\n"), (_ALIKE, _CHUNKS, "    contiguous\n"),
              (_CLUSTERS, _ACROSS, "    contiguous\n")],
    "rules": [
        (_DEVICES, "minimize time_per_sample", "    contiguous\n    shared: load(gpu[1]) + load(gpu[2]) <= 3 s\n")
    ],
    "one sample": [
        (_DEVICES, "schedule calls { pieces = 2 }\nminimize latency", ""),
        *((_DEVICES, "schedule dataflow\nminimize latency", rules)
          for rules in ("    sequential\n    congestion by port\n", "    sequential\n", "")),
    ],
}  # fmt: skip
#: How long a member that has reported works on without compiling, and the longest that it may take, in seconds.
_AFTER, _MOST = 1.0, 300.0


class _Reports:
    """A channel to no planner; says by a pipe that there was a report, and that a kernel begins or ends to compile."""

    best = float("inf")

    def __init__(self, pipe: int) -> None:
        from numba.core import event

        self.pipe = pipe
        listener: Any = event.RecordingListener()
        listener.on_start = lambda _: os.write(pipe, b"+")
        listener.on_end = lambda _: os.write(pipe, b"-")
        event.register("numba:compile", listener)

    def report(self, *_: object, **_further: object) -> None:
        os.write(self.pipe, b".")

    def tell(self, found: object) -> None:
        """Nobody else works on it."""

    def heard(self) -> dict[tuple[object, ...], float]:
        """Nothing."""
        return {}


def _apart(work: Callable[[_Reports], object]) -> None:
    """Do it in a process of its own, which is ended once it has reported and compiles no more; the disk keeps what it
    compiled."""
    reports, pipe = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            work(_Reports(pipe))
            code = 0
        except Exception:  # noqa: BLE001 - shown, and the parent sees the exit code
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(pipe)
    _wait_until_compiled(reports)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(reports)
    if os.waitstatus_to_exitcode(status) not in (0, -signal.SIGKILL):
        sys.exit("what compiles the kernels has failed: see above")


def _wait_until_compiled(reports: int) -> None:
    compiling, reported, end, quiet = 0, False, time.monotonic() + _MOST, float("inf")
    while (left := min(end, quiet) - time.monotonic()) > 0.0:
        if not select.select([reports], [], [], left)[0]:
            continue
        said = os.read(reports, 4096)
        if not said:  # it has ended
            return
        compiling += said.count(b"+") - said.count(b"-")
        reported |= b"." in said
        if not reported or compiling:
            quiet = float("inf")
        elif quiet == float("inf") or b"-" in said:
            quiet = time.monotonic() + _AFTER


def _solve(spec: Elaborated, contiguous: bool) -> None:
    from placedsl.planner.request import Request
    from placedsl.planner.solve import solve

    request = Request(method="dp") if contiguous else Request("highs", workers=1)
    solve(spec.problem, spec.checked_formulations, request, isolated=False)


def _divide_and_price(spec: Elaborated) -> None:
    """Methods that divide orders, and sets of wide graphs."""
    import numpy as np

    from placedsl.algorithms.partitions.bounds.connected_sets import ConnectedSets
    from placedsl.algorithms.partitions.bounds.entangled_pricing import EntangledPricing
    from placedsl.algorithms.partitions.bounds.relaxation import relaxation
    from placedsl.planner.request import Request
    from placedsl.planner.solve import solve

    for method in ("slicegraph", "random", "mla"):
        solve(spec.problem, spec.checked_formulations, Request(method=method), isolated=False)
    device = relaxation(spec.problem).classes[0]
    price = np.ones(len(device.work))
    pricing = EntangledPricing(device, lambda: False)
    pricing.best_priced_set(price, 1.0, 0.5, 1, 1)
    pricing.cheapest.least(price, lambda: np.inf, lambda *_: False)
    sets = ConnectedSets(pricing.tensors)
    sets.listed(1.0, np.inf)
    sets.least(price, 1.0, lambda *_: False)


def _cut_least(spec: Elaborated) -> None:
    """Where the boundaries of a pipeline's stages can lie: small graphs are solved without."""
    import numpy as np

    from placedsl.algorithms.partitions.bounds.boundaries import BoundaryFlows
    from placedsl.algorithms.partitions.bounds.least_cuts import LeastCuts
    from placedsl.algorithms.partitions.bounds.superblock_program import pipeline_of

    pipeline = pipeline_of(spec.problem)
    flows = None if pipeline is None else BoundaryFlows.of(pipeline)
    assert pipeline is not None
    assert flows is not None
    cuts = LeastCuts(pipeline, flows.until[0], flows.beyond[0])
    cuts.least(0.0, cuts.all, np.ones(len(cuts.pin), dtype=bool), np.inf, 4)


def _plan_as_if_it_were_large(spec: Elaborated) -> None:
    """The bounds of blocks in which a node sends a tensor to many, and of large ones by work, cuts with work beside
    them, what that costs, windows of a schedule, and copies of layers: so small a graph is solved without them.
    """
    import numpy as np

    from placedsl.algorithms.operator_scheduling.bounds.beside import Beside
    from placedsl.algorithms.operator_scheduling.bounds.broadcast import broadcast_bound
    from placedsl.algorithms.operator_scheduling.bounds.work import work_bound
    from placedsl.algorithms.operator_scheduling.decomposition.blocks import chain_of
    from placedsl.algorithms.operator_scheduling.instance import scheduling_instance
    from placedsl.algorithms.operator_scheduling.search.repeated_layers import layers_of
    from placedsl.algorithms.operator_scheduling.search.search import search_from
    from placedsl.algorithms.operator_scheduling.search.windows import windows

    instance = scheduling_instance(spec.problem)
    chain_of(instance, 1)
    layers = layers_of(instance, np.arange(4).reshape(2, 2), np.arange(4))
    next(itertools.islice(windows(search_from(instance, None, 1), [layers], 1), 1, None))
    first, nodes = int(instance.topological[0]), instance.topological[1:]
    beside = Beside(instance, nodes, np.zeros((len(nodes), instance.devices)), first)
    beside.least(np.ones(instance.devices), np.ones(instance.resources))
    instance.time[instance.producer, 1:] = np.inf
    broadcast_bound(instance, 0.0, np.inf)
    work_bound(instance)


def compile_kind(kind: str) -> None:
    """Solve small problems of one kind, and do all that runs beside a solver."""
    import numba  # noqa: F401 - kernels of small problems are begun plainly until something has imported it

    from placedsl.diagnostics import Source
    from placedsl.language.elaboration.elaborate import elaborate
    from placedsl.language.syntax.parser import parse
    from placedsl.planner.portfolio.latency_members import members_for_one_sample
    from placedsl.planner.portfolio.path_program_member import member as path_program
    from placedsl.planner.portfolio.throughput_members import members_for

    installed = kernel_files()
    for devices, execution, rules in KINDS[kind]:
        if kernel_files() != installed:
            sys.exit("another version has been installed meanwhile")
        text = f"{_GRAPH}{devices}{execution}\nsubject to\n    memory\n{rules}"
        spec = elaborate(parse(Source("<kernels>", text)), Path())
        if kind == "rules":
            members = [path_program(spec.problem, 0)]
        elif kind == "one sample":
            members = members_for_one_sample(spec.problem, 1, 0, None, alone=False)
            if "sequential" in rules:
                _apart(lambda _, spec=spec: _plan_as_if_it_were_large(spec))  # type: ignore[misc]
        else:
            _apart(lambda _, spec=spec, rules=rules: _solve(spec, bool(rules)))  # type: ignore[misc]
            if (devices, rules) == (_DEVICES, "    contiguous\n") and "pipedream\nminimize" in execution:
                _apart(lambda _, spec=spec: _divide_and_price(spec))  # type: ignore[misc]
                full = elaborate(parse(Source("<kernels>", _FULL)), Path())
                _apart(lambda _, spec=full: _solve(spec, True))  # type: ignore[misc]
                _apart(lambda _, spec=full: _cut_least(spec))  # type: ignore[misc]
            members = members_for(spec.problem, None, 1, 0)
        for member in members:
            _apart(lambda channel, member=member: member.work(channel, *member.arguments))  # type: ignore[misc]


def main(arguments: Sequence[str]) -> int:
    """Compile what is not compiled yet; ``--wait`` for another process that does."""
    if arguments and arguments[0] in KINDS:
        compile_kind(arguments[0])
        return 0
    wait = "--wait" in arguments
    with compiling(wait=wait) as needed:
        if not needed:
            return 0
        if not wait:
            os.nice(10)
        command = [sys.executable, "-P", "-m", "placedsl.planner.compile_kernels"]
        running = [subprocess.Popen([*command, kind]) for kind in KINDS]
        codes = [process.wait() for process in running]
        if any(codes):
            return 1
        note_kernels_are_compiled()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
