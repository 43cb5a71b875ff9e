"""The portfolio on local clusters of processes beside one process, and what an exchange with a worker costs.

    python benchmarks/cluster.py over-time --seconds 20 --workers 2,4,8     value and bound over seconds
    python benchmarks/cluster.py exchange                                   seconds and bytes of an exchange
    python benchmarks/cluster.py growth                                     the same for hundreds of workers, on paper
    … --family barabasi-albert --operators 110 --devices 8 --seed 1 --rule contiguous

``over-time``: one graph of ``computation_graphs.py``, solved by this machine alone and then with each cluster.  All
processes share this machine's cores, so that more of them are no faster here: it shows that nothing is lost, and what
the exchange costs.  ``exchange`` asks one worker of a local cluster many times: empty exchanges, and those that bring
placements of several sizes.  ``growth`` takes these numbers, and computes from them how much of the planner's process
and how much of a network exchanges with up to 1,000 workers take, and how old what a worker knows may be.
"""

from __future__ import annotations

import argparse
import json
import pickle
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import placedsl
from placedsl.algorithms.pipelines.solve import sliced
from placedsl.algorithms.shared_neighbourhoods import MOST_TOLD
from placedsl.algorithms.simple_bounds import simple_bound
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.portfolio.cluster import Cluster, pause_between
from placedsl.planner.portfolio.cluster_worker import exchange
from placedsl.planner.portfolio.neighbourhood_members import KIND, around_pipelines
from placedsl.planner.portfolio.portfolio import Known, Member, Portfolio, Report
from placedsl.planner.portfolio.throughput_members import further_members
from placedsl.problem.problem import Problem

sys.path.insert(0, str(Path(__file__).resolve().parent))
from computation_graphs import FAMILIES, graph

SPEC = """graph from "{file}" {{ time_unit = 1 s }}
device tpu[{devices}]: accelerator
interconnect {{ bandwidth = 1 B/s }}
minimize time_per_sample
"""
#: Seconds of which what is known is told.
MOMENTS = (1, 2, 5, 10, 15, 20, 30, 60, 120)
#: Exchanges that are measured, and operators of the placements that they bring.
TIMES, OPERATORS = 200, (100, 1_000, 10_000, 100_000)
#: Workers of the computation on paper; seconds in which reports of two workers are counted.
WORKERS, COUNTED_S = (8, 50, 100, 200, 500, 1_000), 15.0
#: Neighbourhoods whose bytes are counted.
COUNTED = 20


@contextmanager
def spec_of(asked: argparse.Namespace) -> Iterator[placedsl.Spec]:
    """The spec of the graph that is asked for."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.json"
        file.write_text(json.dumps(graph(asked.family, asked.operators, asked.seed)), encoding="utf-8")
        text = SPEC.format(file=file, devices=asked.devices)
        text += f"subject to\n    {asked.rule}\n" if asked.rule else ""
        (Path(folder) / "wide.place").write_text(text, encoding="utf-8")
        yield placedsl.load(Path(folder) / "wide.place")


@contextmanager
def cluster_of(workers: int) -> Iterator[str]:
    """The address of a local cluster of so many processes of one thread."""
    from distributed import LocalCluster

    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0", local_directory=folder
        ) as made,
    ):
        yield made.scheduler_address


def over_time(asked: argparse.Namespace) -> int:
    """Value and bound over seconds, by this machine alone and with each cluster."""
    told: dict[str, list[tuple[float, float, float]]] = {}
    with spec_of(asked) as spec:
        least = simple_bound(spec.problem)
        for workers in (0, *asked.workers):
            name = f"{workers} workers" if workers else "alone"
            heard: list[tuple[float, float, float]] = []
            told[name] = heard

            def hear(value: float, bound: float, seconds: float, heard: list[Any] = heard) -> None:
                heard.append((seconds, value, bound))

            if workers:
                with cluster_of(workers) as address:
                    answer = spec.solve(time_limit=asked.seconds, progress=hear, dask=address)
            else:
                answer = spec.solve(time_limit=asked.seconds, progress=hear)
            print(f"{name}: {answer.termination}; {answer.message}", file=sys.stderr)
            for note in answer.notes:
                print(f"    {note}", file=sys.stderr)
    print(f"{asked.family}, {asked.operators} operators, {asked.devices} devices, {asked.rule or 'any placement'}: ")
    print("value and bound as multiples of the simple bound\n")
    print("| seconds | " + " | ".join(told) + " |\n| ---: |" + " --- |" * len(told))
    for moment in [moment for moment in MOMENTS if moment <= asked.seconds]:
        cells = []
        for heard in told.values():
            known = [one for one in heard if one[0] <= moment] or [(0.0, np.inf, -np.inf)]
            cells.append(f"{known[-1][1] / least:.4f} / {known[-1][2] / least:.4f}")
        print(f"| {moment} | " + " | ".join(cells) + " |", flush=True)
    return 0


def brought(_run: str, size: int) -> bytes:
    """What an exchange brings that has one placement of so many operators to report."""
    placement = np.arange(size) % 64
    return pickle.dumps([(0, [Report(placement, -np.inf)])], protocol=5)


@dataclass(frozen=True)
class Measured:
    """Of an empty exchange seconds, those of the processor for planner and scheduler together, and bytes; of those with
    a placement, by operators: seconds and bytes, where the worker has it to report and where it is told of it."""

    seconds: float
    processor: float
    size: int
    back: dict[int, tuple[float, int]]
    there: dict[int, tuple[float, int]]


def asked_with(known: Known) -> int:
    """Bytes of an exchange on its way there."""
    return len(pickle.dumps((exchange, ("none", known))))


def measured() -> Measured:
    """What an exchange takes."""
    from distributed import Client

    with cluster_of(1) as address, Client(address, set_as_default=False) as client:
        (worker,) = client.nthreads()
        known = Known(1.0, 0.5)

        def timed(function: Any, *arguments: Any) -> tuple[float, float]:
            spent, seconds = time.process_time(), []
            for _ in range(TIMES):
                start = time.perf_counter()
                client.run(function, *arguments, workers=[worker])
                seconds.append(time.perf_counter() - start)
            return statistics.median(seconds), (time.process_time() - spent) / TIMES

        timed(exchange, "none", known)
        seconds, both = timed(exchange, "none", known)
        back = {n: (timed(brought, "none", n)[0], len(brought("none", n))) for n in OPERATORS}
        best = {n: Known(1.0, 0.5, np.arange(n) % 64) for n in OPERATORS}
        there = {n: (timed(exchange, "none", told)[0], asked_with(told)) for n, told in best.items()}
    # The scheduler of a local cluster is in this process: both together.
    return Measured(seconds, both, asked_with(known), back, there)


def printed_exchange(_asked: argparse.Namespace) -> int:
    """What an exchange costs."""
    found = measured()
    print("| exchange | median, ms | bytes |\n| --- | ---: | ---: |")
    print(f"| nothing to report | {1e3 * found.seconds:.2f} | {found.size} there |")
    for where, rows in (("back", found.back), ("there", found.there)):
        for operators, (took, size) in rows.items():
            print(f"| a placement of {operators:,} operators | {1e3 * took:.2f} | {size:,} {where} |")
    busy = f"{1e3 * found.processor:.2f} ms in an exchange"
    print(f"\nThe processor is busy for {busy}, in planner and scheduler together;")
    print(f"one after the other there are {1 / found.seconds:.0f} exchanges in a second.")
    return 0


def reports_a_second(problem: Problem) -> float:
    """How many reports one worker has in a second, in the first seconds, which have most of them."""
    with cluster_of(2) as address:
        cluster, number, began = Cluster(address), 0, 0.0
        with Portfolio((), further=cluster.host(further_members(problem, lambda: None, 0))) as portfolio:
            while not began or time.monotonic() < began + COUNTED_S:
                number += sum(not message.failed for message in portfolio.messages())
                began = began or (time.monotonic() if number else 0.0)
                time.sleep(0.05)
        cluster.close()
    return number / COUNTED_S / 2


def bytes_of_a_neighbourhood(problem: Problem) -> float:
    """What a worker is sent of a neighbourhood that another begins and ends."""
    start = sliced(problem).placement
    assert start is not None
    with Portfolio([Member(KIND, around_pipelines, (problem, 0))]) as portfolio:
        portfolio.announce(evaluate(problem, start.tolist()).objectives[0], -np.inf, start)
        while len(portfolio.findings.numbers) < COUNTED:
            list(portfolio.messages())
            time.sleep(0.05)
        told = dict(portfolio.findings.numbers)
    return 2 * len(pickle.dumps(told)) / len(told)


def growth(asked: argparse.Namespace) -> int:
    """Exchanges with many workers, on paper."""
    found = measured()
    seconds, each, sizes = found.seconds, found.processor / 2, found.back
    with spec_of(asked) as spec:
        nodes, devices = spec.problem.graph.nodes, len(spec.problem.machine.devices)
        placement = [v % devices for v in range(nodes)]
        start = time.perf_counter()
        for _ in range(20):
            evaluate(spec.problem, placement)
        evaluating = (time.perf_counter() - start) / 20
        often, each_of = reports_a_second(spec.problem), bytes_of_a_neighbourhood(spec.problem)
    size = min(sizes.items(), key=lambda item: abs(item[0] - nodes))[1][1]
    print(f"An exchange takes {1e3 * each:.2f} ms of the planner's processor and as much of the scheduler's,")
    print(f"an evaluation {1e3 * evaluating:.2f} ms ({nodes} operators), a report {size:,} bytes;")
    print(f"{often:.2f} reports of each worker in a second, in the first {COUNTED_S:.0f} s;")
    print(f"a neighbourhood that somebody begins and ends is {each_of:.0f} bytes to each worker,")
    print(f"at most about {each_of * MOST_TOLD / 1e3:.0f} kB for each better placement.\n")
    print("| workers | seconds between exchanges | exchanges, share of a core | evaluations, share of a core | kB/s |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for workers in WORKERS:
        pause = pause_between(workers)
        a_second = workers / (pause + seconds)
        reports = often * workers
        print(
            f"| {workers:,} | {pause:.1f} | {a_second * each:.3f} | {reports * evaluating:.3f} | "
            f"{(reports * size + a_second * 1000) / 1e3:.0f} |"
        )
    return 0


def main(arguments: Sequence[str]) -> int:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables = parser.add_subparsers(required=True, metavar="TABLE")
    for name, table in (("over-time", over_time), ("exchange", printed_exchange), ("growth", growth)):
        one = tables.add_parser(name)
        one.set_defaults(table=table)
        one.add_argument("--family", choices=FAMILIES, default="barabasi-albert")
        one.add_argument("--operators", type=int, default=110)
        one.add_argument("--devices", type=int, default=8)
        one.add_argument("--seed", type=int, default=1)
        one.add_argument("--rule", default="contiguous", help="contiguous, or nothing")
        one.add_argument("--seconds", type=float, default=20.0)
        one.add_argument("--workers", type=lambda text: [int(n) for n in text.split(",")], default=[2, 4, 8])
    given = parser.parse_args(arguments)
    return int(given.table(given))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
