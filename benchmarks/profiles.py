"""PipeDream's profiles on 4, 8 and 16 devices, and graphs like NASNet's that dynamic programming does not get through.

    python benchmarks/profiles.py profiles                       # every profile, two links, 120 s a run on two cores
    python benchmarks/profiles.py profiles --only gnmt --devices 16 --links "25 Gbit/s"
    python benchmarks/profiles.py cells --cells 30 80            # generated wide graphs, inference and training
    python benchmarks/profiles.py nasnet --seconds 60            # NASNet as it is profiled, and cells that are drawn
    python benchmarks/profiles.py servers --seconds 60           # wide graphs on two servers of four devices
    python benchmarks/profiles.py search --seconds 30            # the search by parts alone, where the optimum is known

The model is a plain one.  A profile is a training step of one minibatch: a layer and its backward part share a device
(``colocated by layer``), the devices are alike, there are no replicas and no limit on memory, and every tensor crosses
one link of the bandwidth that is named, once out of a device and once into another, while the device waits
(schedule ``pipedream``).  Values are milliseconds a minibatch.  "pipedream" is PipeDream's optimiser (``--method
pipedream``), "other" the best of the other baselines; one with an asterisk is not contiguous, and may be below the
optimum of pipelines.  Prints Markdown, a row as soon as it is known.  Workloads: $PLACEDSL_WORKLOADS, else
../shared/workloads.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import cells
import nasnet
import numpy as np

import placedsl
from placedsl.algorithms.baselines.scotch import program as scotch
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.algorithms.pipelines.large_neighbourhood_search import begin, run
from placedsl.planner.answer import Answer

WORKLOADS = Path(os.environ.get("PLACEDSL_WORKLOADS", Path(__file__).resolve().parents[2] / "shared" / "workloads"))
#: Ethernet between servers as in PipeDream's clusters, and a PCIe slot within one.
LINKS = ("10 Gbit/s", "12 GB/s")
DEVICES = (4, 8, 16)
#: The baselines beside PipeDream's, and whether their pieces are contiguous.
OTHERS = {"single": True, "greedy": True, "local-search": False, "scotch": False}


def spec_of(graph: Path, devices: int, link: str, *, chained: bool = True) -> placedsl.Spec:
    """A graph on so many devices alike."""
    rule = "    contiguous\n" if chained else ""
    return placedsl.loads(
        f"graph from {json.dumps(str(graph))}\n"
        f"device gpu[{devices}]: accelerator\n"
        f"interconnect {{ bandwidth = {link} }}\n"
        f"minimize time_per_sample\nsubject to\n{rule}    colocated by layer\n"
    )


def solved(spec: placedsl.Spec, method: str, seconds: float) -> Answer:
    """One run on two cores."""
    return spec.solve(method=method, time_limit=seconds, workers=2, seed=0)


def baselines(graph: Path, devices: int, link: str, seconds: float) -> tuple[str, str]:
    """PipeDream's value, and the best of the others with its name."""
    pipedream = solved(spec_of(graph, devices, link), "pipedream", seconds)
    values = []
    for name, chained in OTHERS.items():
        if name == "scotch" and scotch() is None:
            continue
        answer = solved(spec_of(graph, devices, link, chained=chained), name, seconds)
        if answer.placement is not None:
            values.append((answer.value, name if chained else f"{name}*"))
    value, name = min(values)
    return milliseconds(pipedream), f"{value * 1e3:.2f} {name}"


def milliseconds(answer: Answer) -> str:
    """The value, if there is one."""
    return "none" if answer.placement is None else f"{answer.value * 1e3:.2f}"


def row(name: str, graph: Path, devices: int, link: str, seconds: float) -> None:
    """Solve one problem and its baselines."""
    spec = spec_of(graph, devices, link)
    answer = solved(spec, "auto", seconds)
    assert answer.evaluation is not None
    assert not answer.evaluation.violations
    used = sum(1 for nodes in answer.evaluation.nodes if nodes)
    pipedream, other = baselines(graph, devices, link, seconds)
    print(
        f"| {name} | {spec.problem.graph.nodes} | {link} | {devices} | {used} | {answer.value * 1e3:.2f} "
        f"| {answer.bound * 1e3:.2f} | {answer.gap:.2%} | {answer.seconds['total']:.2f} | {answer.termination} "
        f"| {how(answer)} | {pipedream} | {other} |",
        flush=True,
    )


def how(answer: Answer) -> str:
    """Which path the answer came on."""
    return answer.method if answer.method != "program" else f"search beside {answer.solver}"


HEAD = (
    "| graph | nodes | link | devices | used | value | bound | gap | s | ended | method | pipedream | other |\n"
    "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- | ---: | ---: |"
)


def profiles(only: list[str], devices: list[int], links: list[str], seconds: float) -> int:
    """Every profile."""
    folder = WORKLOADS / "pipedream"
    files = sorted(f for f in folder.glob("*.txt") if "LICENSE" not in f.name and (not only or f.stem in only))
    if not files:
        print(f"no profiles: '{folder}' is not there, or has none of that name", file=sys.stderr)
        return 1
    print(HEAD)
    for file in files:
        for link in links:
            for count in devices:
                row(file.stem, file, count, link, seconds)
    return 0


def wide(sizes: list[int], devices: list[int], links: list[str], seconds: float) -> int:
    """Generated graphs, with the seconds in which dynamic programming finds that they are not for it."""
    print("| graph | units | dynamic programming says | after s |\n| --- | ---: | --- | ---: |")
    graphs: list[tuple[str, Path]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for size in sizes:
            for training in (False, True):
                file = Path(scratch) / f"{size}{training}.json"
                file.write_text(json.dumps(cells.graph(size, training=training)), encoding="utf-8")
                name = f"{size} cells, {'training' if training else 'inference'}"
                graphs.append((name, file))
                problem = spec_of(file, devices[0], links[0]).problem
                begun = time.monotonic()
                found = contiguous.solve(problem)
                took = time.monotonic() - begun
                units = contiguous.fits(problem).units
                print(f"| {name} | {units} | {found.message or 'none: solved'} | {took:.2f} |", flush=True)
        print(f"\n{HEAD}")
        for name, file in graphs:
            for link in links:
                for count in devices:
                    row(name, file, count, link, seconds)
    return 0


#: Networks as PipeDream profiled them: normal cells a stack, filters, channels of the stem, and the batch.
NETWORKS = {"NASNet-A mobile": (4, 44, 32, 128), "NASNet-A large": (6, 168, 96, 16)}


def irregular(seeds: list[int], devices: list[int], links: list[str], seconds: float) -> int:
    """Networks of irregular cells (``nasnet.py``): NASNet-A, and for each further seed one of drawn cells."""
    shapes = [(name, shape, 0, False) for name, shape in NETWORKS.items()]
    shapes += [(f"drawn cells, seed {seed}", (4, 44, 32, 128), seed, True) for seed in seeds]
    print("| graph | nodes | link | devices | value | bound | gap | s | ended |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    with tempfile.TemporaryDirectory() as scratch:
        for name, shape, seed, others in shapes:
            file = Path(scratch) / "profile.txt"
            file.write_text(nasnet.profile(*shape, seed, others=others), encoding="utf-8")
            for link in links:
                for count in devices:
                    spec = spec_of(file, count, link)
                    answer = solved(spec, "auto", seconds)
                    assert answer.evaluation is not None
                    assert not answer.evaluation.violations
                    print(
                        f"| {name} | {spec.problem.graph.nodes} | {link} | {count} | {answer.value * 1e3:.3f} "
                        f"| {answer.bound * 1e3:.3f} | {answer.gap:.2%} | {answer.seconds['total']:.1f} "
                        f"| {answer.termination} |",
                        flush=True,
                    )
    return 0


#: Two servers of four devices: PCIe within, 25 Gbit/s between them.
SERVERS = """cluster server[2] {
    device gpu[4]: accelerator
    interconnect pcie { bandwidth = 12 GB/s }
}
interconnect network { bandwidth = 25 Gbit/s }
minimize time_per_sample
subject to
    contiguous
    colocated by layer
"""


def layered(nodes: int, seed: int) -> str:
    """A random graph: each operator reads one or two of the six before it; times, sizes and memory from wide ranges."""
    rng = random.Random(seed)
    lines = [
        f"    node n{v} {{ time = {rng.uniform(0.5, 5.0):.3f} ms, output = {rng.randint(1, 16)} MiB, layer = {v} }}"
        for v in range(nodes)
    ]
    for v in range(1, nodes):
        lines += [f"    n{u} -> n{v}" for u in rng.sample(range(max(0, v - 6), v), min(v, rng.choice([1, 1, 2])))]
    return "\n".join(["graph {", *lines, "}", ""])


def servers(sizes: list[int], seconds: float) -> int:
    """Wide graphs on devices in clusters: generated cells, NASNet-A mobile, random graphs of 60 and 150 operators."""
    print("| graph | nodes | value | first value after s | bound | gap | s | ended |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    with tempfile.TemporaryDirectory() as scratch:
        texts = {f"random, {nodes} operators": layered(nodes, nodes) for nodes in (60, 150)}
        for size in sizes:
            file = Path(scratch) / f"{size}.json"
            file.write_text(json.dumps(cells.graph(size, training=False)), encoding="utf-8")
            texts[f"{size} cells, inference"] = f"graph from {json.dumps(str(file))}\n"
        file = Path(scratch) / "profile.txt"
        file.write_text(nasnet.profile(*NETWORKS["NASNet-A mobile"], 0, others=False), encoding="utf-8")
        texts["NASNet-A mobile"] = f"graph from {json.dumps(str(file))}\n"
        for name, text in texts.items():
            spec = placedsl.loads(text + SERVERS)
            answer = solved(spec, "auto", seconds)
            assert answer.evaluation is None or not answer.evaluation.violations
            first = next((f"{seconds:.1f}" for seconds, value, _ in answer.progress if np.isfinite(value)), "-")
            print(
                f"| {name} | {spec.problem.graph.nodes} | {answer.value * 1e3:.3f} | {first} "
                f"| {answer.bound * 1e3:.3f} | {answer.gap:.2%} | {answer.seconds['total']:.1f} "
                f"| {answer.termination} |",
                flush=True,
            )
    return 0


def search(sizes: list[str], seconds: float, seeds: range) -> int:
    """The search by parts beside dynamic programming on the whole: blocks of parallel branches, six devices."""
    print("| branches x length x blocks | best cut | dynamic programming | proven | s | seed | search | after s |")
    print("| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for size in sizes:
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch) / "blocks.json"
            file.write_text(json.dumps(cells.blocks(*map(int, size.split("x")))), encoding="utf-8")
            text = f'graph from "{file}"\ndevice gpu[6]: accelerator\nminimize time_per_sample\n'
            text += "subject to\n    contiguous\n"
            problem = placedsl.loads(text).problem
        cut, begun = contiguous.sliced(problem).value, time.monotonic()
        whole = contiguous.solve(problem, deadline=begun + 120.0)
        took = time.monotonic() - begun
        for seed in seeds:
            found, begun, last = begin(problem, None, seed), time.monotonic(), 0.0
            for better in run(found):
                last = time.monotonic() - begun if better else last
                if time.monotonic() - begun > seconds:
                    break
            print(
                f"| {size} | {cut:.3f} | {whole.value:.3f} | {'yes' if whole.complete else 'no'} | {took:.1f} "
                f"| {seed} | {found.value:.3f} | {last:.1f} |",
                flush=True,
            )
    return 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["profiles", "cells", "nasnet", "servers", "search"])
    parser.add_argument("--only", nargs="*", default=[], metavar="PROFILE")
    parser.add_argument("--devices", nargs="*", type=int)
    parser.add_argument("--links", nargs="*")
    parser.add_argument("--cells", nargs="*", type=int, help="how many; default: 30 and 80, with servers 10 and 30")
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3, 4], help="of drawn cells")
    parser.add_argument("--blocks", nargs="*", default=["6x5x8", "7x5x8", "8x5x8", "9x5x8"])
    parser.add_argument("--seconds", type=float, default=120.0, help="limit of each run")
    arguments = parser.parse_args()
    if arguments.what == "search":
        return search(arguments.blocks, arguments.seconds, range(2))
    if arguments.what == "profiles":
        return profiles(
            arguments.only, arguments.devices or list(DEVICES), arguments.links or list(LINKS), arguments.seconds
        )
    if arguments.what == "servers":
        return servers(arguments.cells or [10, 30], arguments.seconds)
    if arguments.what == "nasnet":
        return irregular(
            arguments.seeds, arguments.devices or [8], arguments.links or list(LINKS[1:]), arguments.seconds
        )
    return wide(
        arguments.cells or [30, 80], arguments.devices or [8], arguments.links or list(LINKS[1:]), arguments.seconds
    )


if __name__ == "__main__":
    sys.exit(main())
