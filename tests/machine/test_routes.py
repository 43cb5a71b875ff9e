"""Routes between devices: the widest of all ways, then that of the fewest hops, then the quickest; a link of their own
goes before any."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import placedsl
from placedsl.machine.machine import Device, Link, Machine
from placedsl.machine.routes import TransferTimes, direct_links, transfer_times


def machine_of(devices: int, links, interconnect=None) -> Machine:
    """Links are (source, target, bandwidth, latency), one way each."""
    named = tuple(Device(f"gpu[{d + 1}]", "gpu", "accelerator", np.inf) for d in range(devices))
    wires = tuple(Link(f"gpu[{a + 1}]", f"gpu[{b + 1}]", False, w, delay) for a, b, w, delay in links)
    return Machine(named, wires, interconnect)


def way(found: TransferTimes, source: int, target: int) -> list[int]:
    """The devices along a route."""
    ends = found.hop_ends[found.hops(source, target)]
    return [source, *ends[:, 1].tolist()]


def best_ways(links, source: int, target: int) -> list[list[int]]:
    """Among all simple paths the best one, or several that are as good."""
    world = nx.DiGraph()
    for a, b, bandwidth, latency in links:
        world.add_edge(a, b, bandwidth=bandwidth, latency=latency)
    if world.has_edge(source, target):
        return [[source, target]]
    if not {source, target} <= set(world):
        return []

    def worth(path):
        hops = [world.edges[pair] for pair in itertools.pairwise(path)]
        return -min(hop["bandwidth"] for hop in hops), len(hops), round(sum(hop["latency"] for hop in hops), 9)

    paths = list(nx.all_simple_paths(world, source, target))
    least = min(map(worth, paths), default=None)
    return [path for path in paths if worth(path) == least]


@pytest.mark.parametrize("seed", range(120))
def test_random_machines_against_all_simple_paths(seed: int) -> None:
    rng = np.random.default_rng(seed)
    devices, density = int(rng.integers(2, 7)), rng.uniform(0.15, 0.6)
    links = [
        (a, b, float(rng.choice([1.0, 2.0, 4.0])), float(rng.choice([0.0, 0.25, 0.5, 1.0])))
        for a, b in itertools.permutations(range(devices), 2)
        if rng.random() < density
    ]
    size = rng.uniform(1, 5, 2)
    found = transfer_times(machine_of(devices, links), size)
    known = {(a, b): (w, delay) for a, b, w, delay in links}
    for a, b in itertools.permutations(range(devices), 2):
        ways = best_ways(links, a, b)
        if not ways:
            assert np.isinf(found.latency[a, b])
            assert np.isinf(found.time(0, a, b))
            assert len(found.hops(a, b)) == 0
            continue
        taken = way(found, a, b)
        assert taken in ways
        hops = [known[pair] for pair in itertools.pairwise(taken)]
        assert found.latency[a, b] == pytest.approx(sum(delay for _, delay in hops))
        expected = sum(delay for _, delay in hops) + size[1] / min(w for w, _ in hops)
        assert found.time(1, a, b) == pytest.approx(expected)
    assert not found.latency.diagonal().any()
    assert found.time(0, 0, 0) == 0.0


def test_a_link_of_its_own_counts_however_slow() -> None:
    found = transfer_times(machine_of(3, [(0, 2, 1.0, 9.0), (0, 1, 100.0, 0.0), (1, 2, 100.0, 0.0)]), np.array([100.0]))
    assert way(found, 0, 2) == [0, 2]
    assert found.time(0, 0, 2) == 109.0


def test_the_widest_way_counts_however_long() -> None:
    links = [(0, 3, 1.0, 0.0), (3, 2, 1.0, 0.0), (0, 1, 2.0, 5.0), (1, 4, 2.0, 5.0), (4, 2, 2.0, 5.0)]
    assert way(transfer_times(machine_of(5, links), np.ones(1)), 0, 2) == [0, 1, 4, 2]


def test_of_ways_as_wide_the_shorter_counts_then_the_quicker() -> None:
    narrow = [(0, 1, 1.0, 0.0), (1, 2, 9.0, 0.0), (2, 3, 9.0, 0.0), (0, 4, 1.0, 7.0), (4, 3, 1.0, 7.0)]
    assert way(transfer_times(machine_of(5, narrow), np.ones(1)), 0, 3) == [0, 4, 3]
    quicker = [*narrow, (1, 3, 1.0, 6.0)]
    assert way(transfer_times(machine_of(5, quicker), np.ones(1)), 0, 3) == [0, 1, 3]


def test_an_interconnect_is_a_link_between_each_pair_without_one() -> None:
    between = Link("", "", True, 4.0, 0.5)
    found = transfer_times(machine_of(3, [(0, 1, 1.0, 0.0)], between), np.array([8.0]))
    assert found.time(0, 0, 1) == 8.0
    assert found.time(0, 1, 0) == found.time(0, 0, 2) == 2.5
    assert all(len(found.hops(a, b)) == 1 for a, b in itertools.permutations(range(3), 2))


def test_a_tensor_of_no_bytes_takes_the_latencies() -> None:
    found = transfer_times(machine_of(2, [(0, 1, 2.0, 0.5)]), np.array([0.0, 1.0]))
    assert found.time(np.array([0, 1]), 0, 1).tolist() == [0.5, 1.0]


def test_given_times_need_no_links() -> None:
    given = np.arange(18.0).reshape(2, 3, 3)
    found = transfer_times(machine_of(3, []), np.ones(2), given)
    assert found.time(1, 0, 2) == given[1, 0, 2]
    assert way(found, 2, 0) == [2, 0]


def spec(lines: str) -> placedsl.Spec:
    return placedsl.loads(
        f"graph {{\n node a {{ time = 1 s, output = 8 MB }}\n node b {{ time = 1 s }}\n a -> b\n}}\n{lines}\n"
        "minimize latency\n"
    )


def test_links_of_a_spec_are_directed_or_go_both_ways() -> None:
    problem = spec(
        "device gpu[2]: accelerator\ndevice cpu: host\n"
        "link gpu <-> cpu { bandwidth = 2 MB/s, latency = 1 s }\nlink gpu[1] -> gpu[2] { bandwidth = 8 MB/s }"
    ).problem
    bandwidth, latency = direct_links(problem.machine)
    assert bandwidth.tolist() == [[0, 8e6, 2e6], [0, 0, 2e6], [2e6, 2e6, 0]]
    assert latency.tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    assert problem.device_to_device is not None
    assert problem.device_to_device.time(0, 0, 1) == 1.0
    assert way(problem.device_to_device, 1, 0) == [1, 2, 0]
    assert problem.device_to_device.time(0, 1, 0) == 2.0 + 4.0


def test_a_link_of_single_devices_counts_more_than_one_of_families() -> None:
    one, all_ = "link gpu[1] <-> gpu[2] { bandwidth = 9 MB/s }", "link gpu <-> gpu { bandwidth = 1 MB/s }"
    bandwidth, _ = direct_links(spec(f"device gpu[3]: accelerator\n{one}\n{all_}").problem.machine)
    assert bandwidth.tolist() == [[0, 9e6, 1e6], [9e6, 0, 1e6], [1e6, 1e6, 0]]


def test_over_clusters_the_slowest_interconnect_on_the_way_counts() -> None:
    problem = spec(
        "cluster server[2] {\n device gpu[2]: accelerator\n interconnect { bandwidth = 8 MB/s }\n}\n"
        "interconnect { bandwidth = 1 MB/s, latency = 1 s }"
    ).problem
    assert problem.device_to_device is not None
    assert problem.device_to_device.time(0, 0, 1) == 1.0
    assert problem.device_to_device.time(0, 0, 2) == 9.0


def nested(rng: random.Random, depth: int, name: str) -> str:
    """A family of clusters with devices, and maybe clusters, in each; some have an interconnect of their own."""
    lines = [f"cluster {name}[{rng.randint(1, 3)}] {{"]
    lines += [f"device {name}d{k}[{rng.randint(1, 2)}]: accelerator" for k in range(rng.randint(0 if depth else 1, 2))]
    lines += [nested(rng, depth - 1, f"{name}{k}") for k in range(rng.randint(1, 2) if depth else 0)]
    if rng.random() < 0.7:
        lines.append(f"interconnect {{ bandwidth = {rng.randint(1, 4)} GiB/s, latency = {rng.randint(0, 5)} us }}")
    return "\n".join((*lines, "}"))


def walked(machine: Machine, a: int, b: int) -> Link | None:
    """The slowest interconnect on the way out of the clusters of both devices and around the first that has both."""
    holding = [[c for c in machine.clusters if d in c.devices and not c.alone] for d in (a, b)]
    ways = [
        cluster.interconnect
        for own, other in zip(holding, reversed(holding), strict=True)
        for cluster in sorted(own, key=lambda c: -c.level)
        if cluster not in other
    ]
    common = [cluster for cluster in holding[0] if cluster in holding[1]]
    around = [c.interconnect for c in sorted(common, key=lambda c: -c.level)] + [machine.interconnect]
    outer = next((link for link in around if link is not None), None)
    known = [link for link in (*ways, outer) if link is not None]
    return None if outer is None else min(known, key=lambda link: link.bandwidth)


def test_interconnects_of_random_clusters() -> None:
    compared = 0
    for seed in range(60):
        rng = random.Random(seed)
        text = nested(rng, rng.randint(0, 2), "c") + f"\ndevice g[{rng.randint(1, 3)}]: accelerator\n"
        text += "interconnect { bandwidth = 2 GiB/s, latency = 1 us }\n"
        graph = "graph { node a { time = {accelerator: 1 s} } }\n"
        machine = placedsl.loads(f"{graph}{text}minimize time_per_sample\n").problem.machine
        if rng.random() < 0.4:
            machine = replace(machine, interconnect=None)
        bandwidth, latency = direct_links(machine)
        for a, b in itertools.product(range(len(machine.devices)), repeat=2):
            link = walked(machine, a, b) if a != b else None
            expected = (0.0, 0.0) if link is None else (link.bandwidth, link.latency)
            assert (bandwidth[a, b], latency[a, b]) == expected, (seed, a, b)
            compared += link is not None
    assert compared > 1000
