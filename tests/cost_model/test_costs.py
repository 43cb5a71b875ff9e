"""Costs of graphs and machines that are written out here, against arithmetic that is written out here."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import placedsl
from placedsl import cost_model
from placedsl.cost_model.estimators import ESTIMATORS, Estimator
from placedsl.cost_model.transfer_times import TERMS
from placedsl.diagnostics import Source
from placedsl.graph.graph import Graph
from placedsl.machine.machine import Cluster, Device, Link, Machine

GPU = {"compute": 4e12, "memory_bandwidth": 5e11, "launch_overhead": 1e-5}
NAN = np.nan


def chain(
    time=None,
    tensor_bytes=(),
    *,
    tensor_time=None,
    flops=None,
    moved=None,
    measured=None,
    in_seconds=True,
    **attributes,
) -> Graph:
    """A chain of nodes; each but the last writes one tensor, which the next one reads."""
    nodes = len(tensor_bytes if tensor_time is None else tensor_time) + 1
    columns = {"flops": flops, "bytes": moved, **attributes}
    whole = np.arange(nodes - 1)
    absent = [NAN] * (nodes - 1)
    return Graph(
        ids=tuple(range(nodes)),
        names=tuple(f"n{v}" for v in range(nodes)),
        time={name: np.array(values, dtype=float) for name, values in (time or {}).items()},
        memory=np.zeros(nodes),
        backward=np.zeros(nodes, dtype=bool),
        attributes={name: np.array(values, dtype=float) for name, values in columns.items() if values is not None},
        edge_source=whole,
        edge_target=whole + 1,
        edge_tensor=whole,
        tensor_producer=whole,
        tensor_time=np.array(absent if tensor_time is None else tensor_time, dtype=float),
        tensor_bytes=np.array(absent if tensor_time is not None else tensor_bytes, dtype=float),
        time_in_seconds=in_seconds,
        source=Source("", ""),
        measured={name: np.array(values, dtype=float) for name, values in (measured or {}).items()},
    )


def gpus(count: int, **attributes: float) -> list[Device]:
    return [Device(f"gpu[{d + 1}]", "gpu", "accelerator", np.inf, attributes) for d in range(count)]


CPU = Device("cpu", "cpu", "host", np.inf, {"compute": 1e11, "memory_bandwidth": 2e10})


def link(bandwidth: float, latency: float = 0.0, source: str = "", target: str = "", both: bool = True) -> Link:
    return Link(source, target, both, bandwidth, latency)


def messages(costs: cost_model.Costs) -> list[str]:
    return [found.message for found in costs.diagnostics]


# running times


def test_the_roofline_is_the_longer_of_computing_and_moving_and_a_launch() -> None:
    graph = chain(flops=[8e9, 4e6, 0, NAN], moved=[5e6, 5e8, 0, 1e9], tensor_bytes=[1, 1, 1])
    costs = cost_model.build(graph, Machine((*gpus(1, **GPU), CPU), interconnect=link(1e9)))
    on_gpu = [
        max(8e9 / 4e12, 5e6 / 5e11) + 1e-5,  # 2 ms: it computes
        max(4e6 / 4e12, 5e8 / 5e11) + 1e-5,  # 1 ms: it moves
        0.0,  # nothing is launched
        1e9 / 5e11 + 1e-5,
    ]
    on_cpu = [8e9 / 1e11, 5e8 / 2e10, 0.0, 1e9 / 2e10]
    assert costs.time.T.tolist() == [pytest.approx(on_gpu), pytest.approx(on_cpu)]
    assert not costs.measured.any()
    assert costs.notes == ("all 8 times are estimated from operations and bytes",)


def test_what_a_device_lacks_for_an_estimate_is_reported_by_family() -> None:
    graph = chain(flops=[8e9, 1e9], moved=[5e6, 0], tensor_bytes=[1])
    costs = cost_model.build(graph, Machine(tuple(gpus(2, compute=1e12)), interconnect=link(1e9)))
    assert len(messages(costs)) == 1
    assert messages(costs)[0].startswith("'gpu' has no 'memory_bandwidth':")
    assert np.isnan(costs.time).all()


@pytest.mark.parametrize("names", list(itertools.product([True, False], repeat=3)))
def test_the_narrowest_name_of_a_profile_goes_before_wider_ones_and_the_graph(names) -> None:
    """On gpu[2]: its own name, then its family, then its kind, each where it is there at all; then the graph's."""
    known = {"gpu[2]": [1.0, NAN, NAN, NAN], "gpu": [2.0, 2.0, NAN, NAN], "accelerator": [3.0, 3.0, 3.0, NAN]}
    measured = {name: values for (name, values), there in zip(known.items(), names, strict=True) if there}
    graph = chain({"accelerator": [7.0] * 4}, [1, 1, 1], measured=measured)
    costs = cost_model.build(graph, Machine(tuple(gpus(2)), interconnect=link(1e9)))
    own, family, kind = names
    expected = [
        1.0 if own else 2.0 if family else 3.0 if kind else 7.0,
        2.0 if family else 3.0 if kind else 7.0,
        3.0 if kind else 7.0,
        7.0,
    ]
    assert costs.time[:, 1].tolist() == expected
    assert costs.measured.all()


def test_the_graphs_own_times_by_device_family_and_kind() -> None:
    graph = chain({"gpu[1]": [1.0, np.inf, np.inf], "gpu": [2.0, 2.0, np.inf], "host": [5.0, 5.0, 5.0]}, [1, 1])
    costs = cost_model.build(graph, Machine((*gpus(2), CPU), interconnect=link(1e9)))
    inf = np.inf
    assert costs.time.tolist() == [[1.0, 2.0, 5.0], [2.0, 2.0, 5.0], [inf, inf, 5.0]]
    assert costs.measured.tolist() == np.isfinite(costs.time).tolist()


def test_a_profile_goes_before_an_estimate() -> None:
    graph = chain(flops=[4e9, 4e9], moved=[0, 0], tensor_bytes=[1], measured={"gpu": [NAN, 0.5]})
    costs = cost_model.build(graph, Machine(tuple(gpus(1, **GPU)), interconnect=link(1e9)))
    assert costs.time[:, 0].tolist() == pytest.approx([4e9 / 4e12 + 1e-5, 0.5])
    assert costs.measured[:, 0].tolist() == [False, True]
    assert costs.notes == ("1 of 2 times are measured, the rest are estimated from operations and bytes",)


# transfers


def test_accelerators_reach_memory_over_their_own_link_or_the_interconnect() -> None:
    graph = chain({"accelerator": [1.0] * 3, "host": [1.0] * 3}, [6e9, 0])
    links = (link(2e9, 0.25, "gpu[1]", "cpu"), link(99e9, 0.0, "gpu[1]", "gpu[2]"))
    costs = cost_model.build(graph, Machine((*gpus(2), CPU), links, link(3e9, 0.5)))
    assert costs.transfer.tolist() == [[6 / 2 + 0.25, 6 / 3 + 0.5, 0.0], [0.25, 0.5, 0.0]]
    assert costs.size.tolist() == [6e9, 0.0]
    assert costs.device_to_device is None
    assert costs.weight_exchange.shape == (0, 0)


def test_times_that_the_graph_gives_need_no_link() -> None:
    graph = chain({"accelerator": [1.0] * 2, "host": [1.0] * 2}, tensor_time=[0.125])
    costs = cost_model.build(graph, Machine((*gpus(2), CPU)))
    assert not costs.diagnostics
    assert costs.transfer.tolist() == [[0.125, 0.125, 0.0]]
    assert costs.size.tolist() == [0.125]


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ((), "nothing says how fast 'gpu' exchanges data with a host, and the graph gives bytes"),
        ((link(1e9, 0, "gpu", "cpu", both=False),), "this link goes one way only"),
        (
            (link(1e9, 0, "gpu", "cpu"), link(2e9, 0, "cpu", "gpu")),
            "the links between this device and its hosts differ",
        ),
    ],
)
def test_links_that_do_not_say_what_a_transfer_takes(links, message: str) -> None:
    graph = chain({"accelerator": [1.0] * 2, "host": [1.0] * 2}, [1e9])
    costs = cost_model.build(graph, Machine((*gpus(2), CPU), links))
    assert messages(costs) == [message]
    assert np.isnan(costs.transfer[:, :2]).all()
    assert costs.transfer[:, 2].tolist() == [0.0]


def test_routes_between_devices_are_as_wide_as_their_narrowest_link() -> None:
    """gpu[1] -> cpu -> gpu[2] is the one way there; a direct link leads back."""
    links = (
        link(4e9, 0.5, "gpu[1]", "cpu"),
        link(1e9, 0.25, "cpu", "gpu[2]"),
        link(8e9, 0.0, "gpu[2]", "gpu[1]", False),
    )
    graph = chain({"accelerator": [1.0] * 2, "host": [1.0] * 2}, [8e9])
    costs = cost_model.build(graph, Machine((*gpus(2), CPU), links), cost_model.Options(device_to_device=True))
    assert not costs.diagnostics
    between = costs.device_to_device
    assert between is not None
    assert between.time(0, 0, 1) == 0.5 + 0.25 + 8 / 1
    assert between.time(0, 1, 0) == 8 / 8
    assert between.time(0, 0, 2) == 0.5 + 8 / 4
    assert between.time(0, 1, 1) == 0.0
    assert between.hop_ends[between.hops(0, 1)].tolist() == [[0, 2], [2, 1]]


def test_devices_that_no_link_leads_to() -> None:
    graph = chain({"accelerator": [1.0] * 2}, [8e9])
    links = (link(1e9, 0, "gpu[1]", "gpu[2]", both=False),)
    costs = cost_model.build(graph, Machine(tuple(gpus(2)), links), cost_model.Options(device_to_device=True))
    assert messages(costs) == ["no link leads from 'gpu[2]' to 'gpu[1]'"]


def test_given_transfer_times_count_out_and_in_between_devices() -> None:
    graph = chain({"accelerator": [1.0] * 2, "host": [1.0] * 2}, tensor_time=[0.125])
    costs = cost_model.build(graph, Machine((*gpus(2), CPU)), cost_model.Options(device_to_device=True))
    assert costs.device_to_device is not None
    taken = [[float(costs.device_to_device.time(0, a, b)) for b in range(3)] for a in range(3)]
    assert taken == [[0, 0.25, 0.125], [0.25, 0, 0.125], [0.125, 0.125, 0]]


def nested() -> Machine:
    """A rack of 1 GB/s with a server of 4 GB/s and one without a link, and a shelf of 2 GB/s; 0.5 GB/s around."""
    devices = [Device(f"d{d}", "gpu", "accelerator", np.inf) for d in range(5)]
    clusters = (
        Cluster("rack[1]", "rack", 1, (0, 1, 2), link(1e9, 0.25)),
        Cluster("server[1]", "server", 2, (0, 1), link(4e9), 0),
        Cluster("server[2]", "server", 2, (2,), None, 0),
        Cluster("shelf", "shelf", 1, (3, 4), link(2e9, 0.75)),
        Cluster("d3", "", 2, (3,), None, alone=True),
        Cluster("d4", "", 2, (4,), None, alone=True),
    )
    return Machine(tuple(devices), (), link(0.5e9, 0.5), clusters)


def test_leaving_a_cluster_costs_what_the_interconnect_around_it_is_slower() -> None:
    graph = chain({"accelerator": [1.0] * 3}, [2e9, 0])
    surcharge = cost_model.build(graph, nested()).cluster_surcharge
    rack = [2 / 0.5 - 2 / 1 + 0.25, 0.25]
    server = [2 / 1 - 2 / 4 + 0.25, 0.25]
    shelf = [2 / 0.5 - 2 / 2 - 0.25, 0.0]  # never negative: the latency outside is shorter
    nothing = [0.0, 0.0]
    assert surcharge.tolist() == [rack, server, nothing, shelf, nothing, nothing]


def test_given_transfer_times_are_those_of_the_fastest_interconnect() -> None:
    """1 s over 4 GB/s is 4 GB: 2 s over 2 GB/s, 4 s over 1 GB/s, 8 s over 0.5 GB/s; latencies are part of it."""
    costs = cost_model.build(chain({"accelerator": [1.0] * 2}, tensor_time=[1.0]), nested())
    assert costs.transfer.tolist() == [[1.0, 1.0, 4.0, 2.0, 2.0]]
    assert costs.cluster_surcharge[:, 0].tolist() == [8.0 - 4.0, 4.0 - 1.0, 0.0, 8.0 - 2.0, 0.0, 0.0]


# weight exchange


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    "clusters", ["", "cluster server { device cpu: host\n interconnect { bandwidth = 32 GB/s } }\n"]
)
def test_transfer_times_beyond_all_sizes_are_refused_at_their_node(clusters: str) -> None:
    text = f"""graph {{
    node a {{ time = 1 s, transfer = 1e300 s }}
    node b {{ time = 1 s }}
    a -> b
}}
device gpu[2]: accelerator
{clusters}interconnect {{ bandwidth = 16 GB/s }}
minimize time_per_sample
"""
    with pytest.raises(placedsl.InputError, match=r"node 'a' has its output moved: [12]e\+300 units of time") as found:
        placedsl.loads(text)
    assert found.value.diagnostics[0].span is not None


def test_weights_take_bytes_over_the_bandwidth_of_the_devices_link() -> None:
    graph = chain({"accelerator": [1.0] * 2, "host": [1.0] * 2}, [1e9])
    machine = Machine((*gpus(2), CPU), (link(2e9, 0.5, "gpu[2]", "cpu"),), link(4e9, 0.5))
    costs = cost_model.build(graph, machine, cost_model.Options(weights=np.array([8e9, 0.0])))
    assert costs.weight_exchange.tolist() == [[8 / 4, 8 / 2, 0.0], [0.0, 0.0, 0.0]]  # latency is the transfers'


@pytest.mark.parametrize(
    ("weights", "seconds", "message"),
    [
        ([1e9, 0.0], True, "nothing says how fast 'gpu' sends its weights"),
        ([1e9, 0.0], False, "weights have bytes, and the graph's times no unit"),
        ([1e9, -2.0], True, "node 'n1' has weights of -2 bytes"),
    ],
)
def test_weights_that_cannot_be_exchanged(weights: list[float], seconds: bool, message: str) -> None:
    graph = chain({"accelerator": [1.0] * 2}, tensor_time=[1.0], in_seconds=seconds)
    options = cost_model.Options(weights=np.array(weights))
    assert messages(cost_model.build(graph, Machine(tuple(gpus(2))), options)) == [message]
    assert not cost_model.build(graph, Machine(tuple(gpus(2))), cost_model.Options(weights=np.zeros(2))).diagnostics


# further sources: docs/adding-a-cost-model.md


def by_parameters(graph: Graph, device: Device) -> np.ndarray:
    """A microsecond for each parameter; it knows nothing of nodes without."""
    return graph.attributes["parameters"] * 1e-6 * device.attributes["price"]


def test_another_estimator_goes_before_the_roofline_where_it_knows_something() -> None:
    def missing(_graph, device: Device, _nodes) -> list[str]:
        return [] if "price" in device.attributes else ["price"]

    graph = chain(flops=[4e9] * 3, moved=[0.0] * 3, parameters=[100.0, NAN, 300.0], tensor_bytes=[1, 1], measured={
        "host": [9.0, NAN, NAN]})  # fmt: skip
    machine = Machine((*gpus(1, **GPU, price=2.0), CPU), interconnect=link(1e9))
    learned = Estimator("a table of parameters", by_parameters, missing)
    costs = cost_model.build(graph, machine, cost_model.Options(estimators=(learned, *ESTIMATORS)))
    assert costs.time[:, 0].tolist() == pytest.approx([2e-4, 4e9 / 4e12 + 1e-5, 6e-4])
    assert costs.time[:, 1].tolist() == pytest.approx([9.0, 4e9 / 1e11, 4e9 / 1e11])  # no price: the roofline
    assert costs.measured.tolist() == [[False, True], [False, False], [False, False]]
    words = "1 of 6 times are measured, the rest are estimated from a table of parameters or operations and bytes"
    assert costs.notes == (words,)
    alone = cost_model.build(graph, machine, cost_model.Options(estimators=(learned,)))
    assert [m.partition(":")[0] for m in messages(alone)] == [
        "nothing says how long node 'n1' takes on 'gpu', nor can it be estimated",
        "'cpu' has no 'price'",
    ]


def pinning(graph: Graph, machine: Machine, _places) -> tuple[np.ndarray, list]:
    """Half a second for each tensor on accelerators."""
    accelerators = [d.kind == "accelerator" for d in machine.devices]
    return np.full((graph.tensors, 1), 0.5) * np.array(accelerators), []


def test_another_transfer_cost_adds_to_that_of_the_links() -> None:
    graph = chain({"accelerator": [1.0] * 2, "host": [1.0] * 2}, [8e9])
    machine = Machine((*gpus(2), CPU), (), link(4e9, 0.25))
    costs = cost_model.build(graph, machine, cost_model.Options(terms=(*TERMS, pinning)))
    assert costs.transfer.tolist() == [[2.75, 2.75, 0.0]]
    options = cost_model.Options(device_to_device=True, terms=(*TERMS, pinning))
    between = cost_model.build(graph, machine, options).device_to_device
    assert between is not None
    taken = [[float(between.time(0, a, b)) for b in range(3)] for a in range(3)]
    assert taken == [[0, 3.25, 2.75], [3.25, 0, 2.75], [2.75, 2.75, 0]]
    assert between.hop_ends[between.hops(0, 1)].tolist() == [[0, 1]]
