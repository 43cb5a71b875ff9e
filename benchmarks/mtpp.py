"""Wide graphs sliced into pipelines: the table of MTPP (Xie et al. 2023) on generated graphs, and our own rows.

    python benchmarks/mtpp.py values                 methods: geometric means of value / simple bound, by devices
    python benchmarks/mtpp.py proofs --seconds 60    auto: value / simple bound, and value / own bound
    python benchmarks/mtpp.py cheap                  minimum cuts and two superblocks, beside the value of annealing
    python benchmarks/mtpp.py scale                  one order of 1,000 to 100,000 operators, divided
    python benchmarks/mtpp.py bounds --seconds 60 --results FILE     bounds by name, as in the paper's table
    python benchmarks/mtpp.py over-time --seconds 60 --plot FILE     value and bound over seconds, of one graph
    … --seed 7 --families barabasi-albert --sizes 50,110 --devices 4,16 --plot FILE --results FILE --graphs 2

``bounds`` has the rows of the paper's tables (simple, bottleneck …, guess, exact) and ours: geometric means of value /
bound, where a row takes the best bound of itself and all rows above it, as the paper does, and of bound / simple bound.
The value is that of ``--anneal`` seconds of annealing.  With ``--results`` every number is kept in a file of JSON lines
as soon as it is known, and what is there is not computed again: a long run may be ended and begun again.

Graphs are those of ``computation_graphs.py``: four families of six sizes.  The simple bound is the largest operator or
the even share of the work.  Graphs are not those of the paper, which are not public: rows can be compared with one
another, and with the paper's only as orientation.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import placedsl
from placedsl.algorithms.partitions import stage_annealing
from placedsl.algorithms.partitions.bounds.boundaries import boundary_bounds
from placedsl.algorithms.partitions.bounds.flow import flow_bounds
from placedsl.algorithms.partitions.bounds.named import BY_NAME
from placedsl.algorithms.partitions.bounds.relaxation import relaxation
from placedsl.algorithms.partitions.bounds.superblock_program import Pipeline
from placedsl.algorithms.partitions.bounds.superblocks import prove_superblocks
from placedsl.algorithms.partitions.load_kernel import PartitionInstance
from placedsl.algorithms.partitions.slicing import Slicer
from placedsl.algorithms.partitions.slicing_kernel import order_by_priority
from placedsl.algorithms.simple_bounds import simple_bound
from placedsl.algorithms.units import Hyperedges
from placedsl.graph.order import csr

sys.path.insert(0, str(Path(__file__).resolve().parent))
from computation_graphs import FAMILIES, SIZES, graph

DEVICES = (2, 4, 8, 16, 32, 64)
METHODS = ("random", "mla", "mla-weighted", "brkga")
SPEC = """graph from "{file}" {{ time_unit = 1 s }}
device tpu[{devices}]: accelerator
interconnect {{ bandwidth = 1 B/s }}
minimize time_per_sample
subject to
    contiguous
"""


def specs(asked: argparse.Namespace) -> Iterator[tuple[str, int, placedsl.Spec]]:
    """Every graph on every number of devices."""
    folder = Path(tempfile.mkdtemp())
    for family in asked.families:
        for operators in asked.sizes:
            file = folder / f"{family}-{operators}.json"
            file.write_text(json.dumps(graph(family, operators, asked.seed)), encoding="utf-8")
            for devices in asked.devices:
                path = folder / f"{family}-{operators}-{devices}.place"
                path.write_text(SPEC.format(file=file.name, devices=devices), encoding="utf-8")
                yield f"{family}-{operators}", devices, placedsl.load(path)


def mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def row(name: str, found: dict[int, list[float]], more: str = "") -> None:
    """A line of a table: means by devices."""
    print(f"| {name} | " + " | ".join(f"{mean(values):.4f}" for values in found.values()) + f" | {more} |", flush=True)


def head(devices: Sequence[int], more: str) -> None:
    """The head of a table."""
    print("| | " + " | ".join(map(str, devices)) + f" | {more} |")
    print("| --- |" + " ---: |" * (len(devices) + 1))


def values(asked: argparse.Namespace) -> int:
    """Methods by name, and annealing of stages for so many seconds of a processor."""
    known: dict[str, dict[int, list[float]]] = {}
    spent: dict[str, float] = {}
    for _, devices, spec in specs(asked):
        least = simple_bound(spec.problem)
        for method in METHODS:
            began = time.process_time()
            found = spec.solve(method=method, seed=1).value / least
            spent[method] = spent.get(method, 0.0) + time.process_time() - began
            known.setdefault(method, {}).setdefault(devices, []).append(found)
        name = f"annealing, {asked.seconds:g} s"
        known.setdefault(name, {}).setdefault(devices, []).append(annealed(spec, asked.seconds) / least)
        spent[name] = spent.get(name, 0.0) + asked.seconds
    head(asked.devices, "processor seconds a run")
    for method, by_devices in known.items():
        row(method, by_devices, f"{spent[method] / sum(map(len, by_devices.values())):.2f}")
    return 0


def annealed(spec: placedsl.Spec, seconds: float) -> float:
    """The value of annealing after so many seconds of a processor."""
    search = stage_annealing.begin(spec.problem, None, 1)
    began = time.process_time()
    for _ in stage_annealing.run(search):
        if time.process_time() - began > seconds:
            break
    return search.value


def cheap(asked: argparse.Namespace) -> int:
    """Annealing's value over the best of the simple bound, minimum cuts, and two superblocks."""
    known: dict[str, dict[int, list[float]]] = {}
    met: dict[int, int] = {}
    two: dict[str, float] = {}
    for name, devices, spec in specs(asked):
        least, value = simple_bound(spec.problem), annealed(spec, asked.seconds)
        began = time.process_time()
        cuts = flow_bounds(relaxation(spec.problem), str, least, lambda value=value: value, lambda: False, 60.0)
        cut = max((bound.value for bound in cuts), default=least)
        spent = time.process_time() - began
        if name not in two:
            heard = [0.0]
            began = time.process_time()
            prove_superblocks(
                spec.problem, lambda value=value: value * 1.000001, lambda: False,
                lambda bound, _, heard=heard: heard.append(0.0 if bound is None else bound.value), blocks=(2,),
            )  # fmt: skip
            two[name] = max(heard) * devices / 2
            spent += time.process_time() - began
        double = two[name] * 2 / devices
        best = np.nanmax([least, cut, double])
        met[devices] = met.get(devices, 0) + (value <= best * 1.000001)
        for label, bound in (("simple", least), ("minimum cuts", max(least, cut)), ("all three", best)):
            known.setdefault(label, {}).setdefault(devices, []).append(value / bound)
        print(f"{name} {devices}: {value / least:.4f} {value / best:.4f} {spent:.2f} s", file=sys.stderr)
    head(asked.devices, "")
    for label, by_devices in known.items():
        row(label, by_devices)
    print("| met exactly | " + " | ".join(map(str, met.values())) + " | |")
    return 0


def proofs(asked: argparse.Namespace) -> int:
    """What auto finds and proves in so many seconds."""
    value_of: dict[int, list[float]] = {}
    bound_of: dict[int, list[float]] = {}
    proven: dict[int, list[float]] = {}
    for name, devices, spec in specs(asked):
        least = simple_bound(spec.problem)
        began = time.monotonic()
        found = spec.solve(time_limit=asked.seconds)
        took = time.monotonic() - began
        value_of.setdefault(devices, []).append(found.value / least)
        bound_of.setdefault(devices, []).append(found.value / found.bound)
        proven.setdefault(devices, []).extend([took] if found.termination == "optimal" else [])
        print(
            f"{name} {devices}: {found.value / least:.4f} {found.value / found.bound:.4f} {found.termination} "
            f"{took:.1f} s, bound by {found.bound_by[0]}",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    head(asked.devices, "")
    row("value / simple bound", value_of)
    row("value / own bound", bound_of)
    print("| proven | " + " | ".join(str(len(times)) for times in proven.values()) + " | |")
    longest = (f"{max(times):.1f}" if times else "-" for times in proven.values())
    print("| longest proof (s) | " + " | ".join(longest) + " | |")
    if asked.plot is not None:
        plot(asked.plot, value_of, bound_of)
    return 0


def cells(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Graph, devices and name of each bound with its value and seconds, and the value of annealing."""
    known: dict[tuple[str, int, str, float], dict[str, Any]] = {}
    if asked.results is not None and asked.results.is_file():
        read = map(json.loads, asked.results.read_text(encoding="utf-8").splitlines())
        known = {(one["graph"], one["devices"], one["name"], one["limit"]): one for one in read}

    def kept(graph_name: str, devices: int, name: str, limit: float, found: Callable[[], dict[str, Any]]) -> Any:
        key = (f"{graph_name}-{asked.seed}", devices, name, limit)
        if key not in known:
            known[key] = {"graph": key[0], "devices": devices, "name": name, "limit": limit, **found()}
            if asked.results is not None:
                with asked.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(known[key]) + "\n")
            print(json.dumps(known[key]), file=sys.stderr, flush=True)
        return known[key]

    for graph_name, devices, spec in itertools.islice(specs(asked), asked.graphs * len(asked.devices)):
        value = kept(
            graph_name, devices, "annealing", asked.anneal,
            lambda spec=spec: {"value": annealed(spec, asked.anneal), "seconds": asked.anneal},
        )  # fmt: skip
        yield value
        for name in asked.only or BY_NAME:

            def found(spec: placedsl.Spec = spec, name: str = name, upper: float = value["value"]) -> dict[str, Any]:
                (one,) = spec.bounds([name], time_limit=asked.seconds, value=upper)
                return {"value": one.value or 0.0, "seconds": one.seconds, "final": one.final}

            yield kept(graph_name, devices, name, asked.seconds, found)


def bounds(asked: argparse.Namespace) -> int:
    """The paper's table of bounds, and ours below it."""
    of: dict[str, dict[tuple[int, str], dict[str, Any]]] = {}
    for one in cells(asked):
        of.setdefault(one["name"], {})[one["devices"], one["graph"]] = one
    value = of.pop("annealing")
    best = dict.fromkeys(value, 0.0)
    ratio: dict[str, dict[int, list[float]]] = {}
    raised: dict[str, dict[int, list[float]]] = {}
    for name in (name for name in BY_NAME if name in of):
        for key, one in of[name].items():
            best[key] = max(best[key], one["value"])
            if best[key] > 0.0:
                ratio.setdefault(name, {}).setdefault(key[0], []).append(value[key]["value"] / best[key])
            if "simple" in of and one["value"] > 0.0:
                raised.setdefault(name, {}).setdefault(key[0], []).append(one["value"] / of["simple"][key]["value"])
    for title, found in (("value / best bound so far", ratio), ("bound / simple bound", raised)):
        head(asked.devices, f"{title}; seconds a run; final")
        for name, by_devices in found.items():
            own = list(of[name].values())
            ended = sum(one["final"] for one in own) / len(own)
            more = f"{sum(one['seconds'] for one in own) / len(own):.2f}; {ended:.0%}"
            means = (f"{mean(by_devices[k]):.4f}" if k in by_devices else "-" for k in asked.devices)
            print(f"| {name} | " + " | ".join(means) + f" | {more} |", flush=True)
        print()
    if asked.plot is not None:
        points = {name: [(str(k), mean(v)) for k, v in by.items()] for name, by in ratio.items()}
        draw(asked.plot, points, "devices", "value / best bound so far")
    return 0


def over_time(asked: argparse.Namespace) -> int:
    """Value and bound of auto while it runs, on the first graph and number of devices."""
    name, devices, spec = next(specs(asked))
    least = simple_bound(spec.problem)
    heard: list[tuple[float, float, float]] = []
    spec.solve(time_limit=asked.seconds, progress=lambda value, bound, seconds: heard.append((seconds, value, bound)))
    print(f"{name}, {devices} devices\n\n| seconds | value / simple bound | bound / simple bound |")
    print("| ---: | ---: | ---: |")
    for seconds, value, bound in heard:
        print(f"| {seconds:.2f} | {value / least:.4f} | {bound / least:.4f} |")
    if asked.plot is not None:
        values = [(seconds, value / least) for seconds, value, _ in heard if math.isfinite(value)]
        proven = [(seconds, bound / least) for seconds, _, bound in heard if math.isfinite(bound)]
        draw(asked.plot, {"value": values, "bound": proven}, "seconds", "times the simple bound", steps=True)
    return 0


def draw(file: Path, found: dict[str, list[tuple[Any, float]]], across: str, up: str, *, steps: bool = False) -> None:
    """A picture of some lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 4.0), layout="constrained")
    axes = figure.add_subplot()
    for number, (label, points) in enumerate(found.items()):
        style = {"marker": "osD^v<>phXPd*+x"[number % 15], "color": f"C{number % 10}", "markersize": 5}
        own = {"drawstyle": "steps-post"} if steps else style
        axes.plot([x for x, _ in points], [y for _, y in points], label=label, **own)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.legend(fontsize="small")
    figure.savefig(file)


def plot(file: Path, value_of: dict[int, list[float]], bound_of: dict[int, list[float]]) -> None:
    """Both ratios over the number of devices."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 3.5), layout="constrained")
    axes = figure.add_subplot()
    for label, known in (("value / simple bound", value_of), ("value / own bound", bound_of)):
        axes.plot([str(k) for k in known], [mean(v) for v in known.values()], marker="o", label=label)
    axes.set_xlabel("devices")
    axes.set_ylabel("geometric mean")
    axes.legend()
    figure.savefig(file)


def scale(asked: argparse.Namespace) -> int:
    """One order of a random local graph; with seconds, also what boundaries of stages prove of it."""
    more = (" value / bound by boundaries | s |", " ---: | ---: |") if asked.seconds else ("", "")
    print("| operators | devices | order (s) | division (s) | value / simple bound | peak (MB) |" + more[0])
    print("| ---: | ---: | ---: | ---: | ---: | ---: |" + more[1])
    # The first run loads kernels.
    for operators in (1_000, *(asked.sizes if asked.sizes != list(SIZES) else (1_000, 10_000, 100_000))):
        rng = np.random.default_rng(0)
        source = np.sort(rng.integers(0, operators, 2 * operators))
        target = source + rng.integers(1, 100, len(source))
        source, target = source[target < operators], target[target < operators]
        makers, first = np.unique(source, return_index=True)
        pins = [[int(m), *np.unique(own).tolist()] for m, own in zip(makers, np.split(target, first[1:]), strict=True)]
        start = np.concatenate(([0], np.cumsum([len(own) for own in pins])))
        none = np.zeros(0, dtype=np.int64)
        instance = PartitionInstance(
            rng.uniform(50, 250, operators)[None], np.zeros(operators), np.array([np.inf]), none, none, start,
            np.array([u for own in pins for u in own]), rng.uniform(30, 70, len(pins))[None], none, none,
            np.zeros(1), np.array([np.inf]),
        )  # fmt: skip
        later, earlier = csr(source, target, operators), csr(target, source, operators)
        for devices in asked.devices if asked.devices != list(DEVICES) else (8, 64, 256):
            slicer = Slicer(instance, 0, devices)
            times = [time.perf_counter()]
            order = order_by_priority(*later, earlier[0], rng.random(operators), False)
            times.append(time.perf_counter())
            found = slicer.slice(order, near=1e-4)
            times.append(time.perf_counter())
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            proven = ""
            if asked.seconds:
                edges = Hyperedges(tuple(map(tuple, pins)), instance.transfer[0])
                pipeline = Pipeline(instance.work[0], edges, source, target, np.arange(operators), devices)
                began, bound = time.perf_counter(), pipeline.simple
                for one in boundary_bounds(
                    pipeline, bound, lambda value=found.value: value, lambda: False, asked.seconds
                ):
                    bound = one.value
                proven = f" {found.value / bound:.4f} | {time.perf_counter() - began:.1f} |"
            print(
                f"| {operators:,} | {devices} | {times[1] - times[0]:.3f} | {times[2] - times[1]:.3f} "
                f"| {found.value / slicer.lowest:.4f} | {peak:.0f} |{proven}",
                flush=True,
            )
    return 0


def main(arguments: Sequence[str]) -> int:
    """One of the tables."""
    parser = argparse.ArgumentParser(description="Wide graphs sliced into pipelines.")
    tables = parser.add_subparsers(required=True)
    known: tuple[tuple[str, Callable[[argparse.Namespace], int], float], ...] = (
        ("values", values, 6.0), ("cheap", cheap, 6.0), ("proofs", proofs, 60.0), ("scale", scale, 0.0),
        ("bounds", bounds, 60.0), ("over-time", over_time, 60.0),
    )  # fmt: skip
    for name, table, seconds in known:
        one = tables.add_parser(name)
        one.set_defaults(table=table)
        one.add_argument("--seed", type=int, default=1)
        one.add_argument("--seconds", type=float, default=seconds)
        one.add_argument("--families", type=lambda text: text.split(","), default=list(FAMILIES))
        one.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=list(SIZES))
        one.add_argument("--devices", type=lambda text: [int(n) for n in text.split(",")], default=list(DEVICES))
        one.add_argument("--plot", type=Path)
        one.add_argument("--results", type=Path, help="keep what is computed in this file, and go on from it")
        one.add_argument("--only", type=lambda text: text.split(","), default=[], help="bounds by name")
        one.add_argument("--graphs", type=int, default=10**6, help="at most so many graphs")
        one.add_argument("--anneal", type=float, default=6.0, help="seconds of annealing")
    given = parser.parse_args(arguments)
    return int(given.table(given))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
