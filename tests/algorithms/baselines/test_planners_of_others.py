"""The planners of Alpa, Galvatron and PipeDream-2BW against enumeration of what each chooses among, in fractions."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import placedsl
from placedsl.planner.request import Request
from placedsl.planner.solve import solve

SPEC = """graph from "layers.json" {{ time_unit = 1 s }}
device gpu[{devices}]: accelerator {{ memory = {memory} B }}
interconnect {{ bandwidth = 1024 B/s }}
parallelism {{ microbatches = {batch}, data = divisors(microbatches), exchange = batch, in_flight = {held} }}
minimize time_per_sample
subject to
    memory
    contiguous
"""


class Way(NamedTuple):
    """How a layer may run: devices of a copy, name, seconds, bytes once and for each sample in flight, weights."""

    degree: int
    name: str
    time: Fraction
    memory: int
    stash: int
    weights: int


class Chain(NamedTuple):
    """Layers in a row, bytes of the tensor behind each but the last, devices, their memory, samples of a batch."""

    ways: list[list[Way]]
    sizes: list[int]
    devices: int
    memory: int
    batch: int
    held: str


def drawn(seed: int, held: str, memory: int | None = None) -> Chain:
    """A random chain; memory in units that divide it evenly."""
    rng = random.Random(seed)
    layers = []
    for _ in range(rng.randint(1, 5)):
        weights = rng.randint(0, 3) * 256
        own = [Way(1, "", Fraction(rng.randint(1, 16), 4), rng.randint(0, 4) * 64, rng.randint(0, 4) * 64, weights)]
        for degree, name in ((1, "slow"), (2, "split"), (2, "slow")):
            if rng.random() < 0.8 or degree == 2:
                quick = degree if name == "split" else Fraction(degree, 2)
                own.append(
                    Way(degree, name, own[0].time / quick, rng.randint(0, 4) * 32, rng.randint(0, 2) * 32, weights)
                )
        layers.append(own)
    sizes = [rng.randint(0, 4) * 256 for _ in layers[1:]]
    return Chain(
        layers, sizes, rng.choice((1, 2, 3, 4, 6)), memory or rng.randint(4, 16) * 64, rng.choice((2, 4, 6)), held
    )


def spec(chain: Chain, folder: Path) -> placedsl.Spec:
    """The same in the language."""
    nodes: list[dict[str, Any]] = []
    for v, (plain, *further) in enumerate(chain.ways):
        nodes.append({
            "id": v, "time": float(plain.time), "memory": plain.memory, "stash": plain.stash,
            "attributes": {"parameters": plain.weights}, "output": chain.sizes[v] if v < len(chain.sizes) else 0,
            "options": [
                {"name": way.name, "tensor": way.degree, "time": float(way.time), "memory": way.memory,
                 "stash": way.stash, "parameters": way.weights}
                for way in further
            ],
        })  # fmt: skip
    edges = [{"from": v, "to": v + 1} for v in range(len(chain.sizes))]
    graph = {"format": "placedsl-graph", "nodes": nodes, "edges": edges}
    (folder / "layers.json").write_text(json.dumps(graph), encoding="utf-8")
    text = SPEC.format(devices=chain.devices, memory=chain.memory, batch=chain.batch, held=chain.held)
    return placedsl.loads(text, folder)


def held_samples(chain: Chain, copies: int, behind: int) -> int:
    """Samples in flight on a copy of a stage; ``behind``: copies of stages after it."""
    if chain.held == "pipeline":
        return -(-(copies + behind) // copies)
    return 1 if chain.held == "sample" else chain.batch // copies


def load(chain: Chain, first: int, end: int, copies: int, ways: tuple[Way, ...], behind: int) -> Fraction | None:
    """Seconds per sample of a stage; None where it does not fit."""
    parts = load_parts(chain, first, end, copies, ways, behind)
    return None if parts is None else sum(parts)


def load_parts(
    chain: Chain, first: int, end: int, copies: int, ways: tuple[Way, ...], behind: int
) -> tuple[Fraction, Fraction] | None:
    """Of these, the seconds of computation and transfers, and those of the exchange of weights."""
    in_flight = held_samples(chain, copies, behind)
    if sum(way.memory + way.stash * in_flight for way in ways) > chain.memory:
        return None
    moved = sum((Fraction(chain.sizes[k - 1], 1024) for k in (first, end) if 0 < k < len(chain.ways)), Fraction(0))
    weights = Fraction(sum(way.weights for way in ways), 1024)
    time = sum((way.time for way in ways), Fraction(0)) + moved
    return time / copies, Fraction(copies - 1, copies) * weights / chain.batch


def named(chain: Chain, layers: range, degree: int, name: str) -> tuple[Way, ...] | None:
    """Options of one name, the quickest where a layer has none by that name; None: some layer has none at all."""
    out = []
    for v in layers:
        own = [way for way in chain.ways[v] if way.degree == degree]
        if not own:
            return None
        same = [way for way in own if way.name == name]
        out.append(same[0] if same else min(own, key=lambda way: way.time))
    return tuple(out)


def segments(chain: Chain, first: int, left: int) -> Iterator[list[tuple[int, int, int, int, str]]]:
    """All ways to cut what is left into segments on 1, 2, 4 ... devices that are all devices together."""
    if first == len(chain.ways):
        if left == 0:
            yield []
        return
    names = {(way.degree, way.name) for own in chain.ways for way in own}
    for end in range(first + 1, len(chain.ways) + 1):
        for degree, name in names:
            for copies in (d for d in range(1, left // degree + 1) if chain.batch % d == 0):
                if (copies * degree) & (copies * degree - 1) == 0:
                    for rest in segments(chain, end, left - copies * degree):
                        yield [(first, end, copies, degree, name), *rest]


def best_of_alpa(chain: Chain) -> Fraction | None:
    """The least time of a batch that enters an empty pipeline."""
    best = None
    for plan in segments(chain, 0, chain.devices):
        if chain.held == "pipeline" and sum(copies for _, _, copies, *_ in plan) > chain.batch:
            continue
        loads, behind = list[Fraction | None](), 0
        for first, end, copies, degree, name in reversed(plan):
            ways = named(chain, range(first, end), degree, name)
            loads.append(None if ways is None else load(chain, first, end, copies, ways, behind))
            behind += copies
        known = [one for one in loads if one is not None]
        if len(known) == len(plan):
            whole = sum(known, Fraction(0)) + (chain.batch - 1) * max(known)
            best = whole if best is None else min(best, whole)
    return best


def best_of_galvatron(chain: Chain) -> Fraction | None:
    """The least largest load of 1, 2, 4 ... stages, each the best on its group, the last first."""
    best, count = None, 1
    while count <= min(len(chain.ways), chain.devices):
        each, more = divmod(len(chain.ways), count)
        ends = list(itertools.accumulate(each + (k >= count - more) for k in range(count)))
        largest, behind, end = Fraction(0), 0, len(chain.ways)
        for first in reversed([0, *ends[:-1]]):
            found = []
            for degree in (1, 2):
                copies = chain.devices // count // degree
                fits = chain.held != "pipeline" or behind + copies <= chain.batch
                if copies * degree != chain.devices // count or chain.batch % max(copies, 1) or not fits:
                    continue
                own = [[way for way in chain.ways[v] if way.degree == degree] for v in range(first, end)]
                loads = [load(chain, first, end, copies, ways, behind) for ways in itertools.product(*own)]
                found += [(one, copies) for one in loads if one is not None]
            if not found:
                break
            quickest = min(found, key=lambda one: one[0])
            largest, behind, end = max(largest, quickest[0]), behind + quickest[1], first
        if end == 0:
            best = largest if best is None else min(best, largest)
        count *= 2
    return best


def plans_of_2bw(chain: Chain) -> Iterator[tuple[Fraction, Fraction]]:
    """Of each even split with one option and without tensor parallelism, what 2BW compares and the largest load."""
    names = {way.name for own in chain.ways for way in own if way.degree == 1}
    for count in range(1, min(len(chain.ways), chain.devices) + 1):
        each, more = divmod(len(chain.ways), count)
        ends = list(itertools.accumulate(each + (k >= count - more) for k in range(count)))
        for copies in (d for d in range(1, chain.devices // count + 1) if chain.batch % d == 0):
            if chain.held == "pipeline" and copies * count > chain.batch:
                continue
            for name in names:
                stages = zip([0, *ends[:-1]], ends, range(count - 1, -1, -1), strict=True)
                parts = [
                    load_parts(chain, first, end, copies, named(chain, range(first, end), 1, name) or (), k * copies)
                    for first, end, k in stages
                ]
                known = [part for part in parts if part is not None]
                if len(known) == count:
                    yield max(max(part) for part in known), max(sum(part) for part in known)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("held", ["pipeline", "sample", "batch"])
@pytest.mark.parametrize("first", range(0, 120, 10))
def test_2bw_takes_the_best_of_its_plans(first: int, held: str, tmp_path: Path) -> None:
    for seed in range(first, first + 10):
        chain = drawn(seed, held)
        asked = spec(chain, tmp_path)
        request = Request(method="pipedream-2bw")
        found = solve(asked.problem, asked.elaborated.checked_formulations, request, isolated=False)
        plans = list(plans_of_2bw(chain))
        if not plans:
            assert found.placement is None, seed
            continue
        least = min(plans)[0]
        best = {float(value) for own, value in plans if own == least}
        assert any(found.value == pytest.approx(value, rel=1e-9) for value in best), seed


@pytest.mark.sampled(6)
@pytest.mark.parametrize("held", ["sample", "batch"])
@pytest.mark.parametrize("first", range(0, 120, 10))
def test_alpa_takes_the_best_of_its_plans(first: int, held: str, tmp_path: Path) -> None:
    """Where samples in flight do not depend on the stages behind, its dynamic program is exact, but for its steps."""
    for seed in range(first, first + 10):
        chain = drawn(seed, held)
        asked = spec(chain, tmp_path)
        found = solve(asked.problem, asked.elaborated.checked_formulations, Request(method="alpa"), isolated=False)
        best = best_of_alpa(chain)
        if best is None:
            assert found.placement is None, seed
            continue
        assert found.evaluation is not None, f"seed {seed}: {found.message}"
        loads = [value for value in found.evaluation.loads if value > 0.0]
        own = [stage.load for stage in found.plan.stages]
        assert len(loads) >= len(own)
        whole = sum(one or 0.0 for one in own) + (chain.batch - 1) * max(one or 0.0 for one in own)
        assert float(best) * (1 - 1e-9) <= whole <= float(best) * 1.002, seed


@pytest.mark.sampled(6)
@pytest.mark.parametrize("held", ["pipeline", "sample", "batch"])
@pytest.mark.parametrize("first", range(0, 120, 10))
def test_galvatron_takes_the_best_of_its_plans(first: int, held: str, tmp_path: Path) -> None:
    """Where a unit of memory divides all sizes."""
    for seed in range(first, first + 10):
        chain = drawn(seed, held, memory=1024)
        asked = spec(chain, tmp_path)
        found = solve(asked.problem, asked.elaborated.checked_formulations, Request(method="galvatron"), isolated=False)
        best = best_of_galvatron(chain)
        if best is None:
            assert found.placement is None, seed
            continue
        assert found.evaluation is not None, f"seed {seed}: {found.message}"
        assert found.value == pytest.approx(float(best), rel=1e-9), seed


@pytest.mark.parametrize("method", ["alpa", "galvatron", "pipedream-2bw"])
def test_no_planner_is_better_than_the_best_plan(method: str, tmp_path: Path) -> None:
    found = 0
    for seed in range(30):
        asked = spec(drawn(seed, "pipeline"), tmp_path)
        theirs, best = asked.solve(method=method), asked.solve()
        if theirs.evaluation is not None:
            found += 1
            assert best.value <= theirs.value * (1 + 1e-9), seed
    assert found >= 10
