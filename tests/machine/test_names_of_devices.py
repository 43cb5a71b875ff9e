"""Devices and clusters of which there is one are read with ``[1]`` and without, and printed as they are declared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from placedsl import InputError, loads

TEXT = """
graph {
    node a { time = {accelerator: 4 ms, host: 9 ms},  output = 8 MiB }
    node b { time = {accelerator: 6 ms, host: 30 ms}, output = 8 MiB }
    a -> b
}
cluster slow {
    device t4[2]: accelerator
    interconnect { bandwidth = 16 GiB/s }
}
cluster fast[1] {
    cluster server {
        device v100: accelerator
    }
    interconnect { bandwidth = 16 GiB/s }
}
device cpu: host
interconnect { bandwidth = 1 GiB/s }
param price[d in devices] = 1
minimize time_per_sample
subject to
    rule: @rule
"""
NAMES = {
    "slow.t4[1]": ("slow.t4[1]", "slow[1].t4[1]", "t4[1]"),
    "slow.t4[2]": ("slow.t4[2]", "slow[1].t4[2]", "t4[2]"),
    "fast[1].server.v100": ("fast[1].server.v100", "fast.server.v100", "fast.server[1].v100[1]", "v100", "v100[1]"),
    "cpu": ("cpu", "cpu[1]"),
}


@pytest.mark.parametrize(("name", "spelt"), [(name, spelt) for name, all in NAMES.items() for spelt in all])
def test_device(name: str, spelt: str, tmp_path: Path) -> None:
    spec = loads(TEXT.replace("@rule", f"a on {spelt} and b on {spelt}"))
    evaluation = spec.evaluate({"a": spelt, "b": spelt})
    assert evaluation.feasible
    devices = spec.problem.machine.devices
    assert [d.name for d, nodes in zip(devices, evaluation.nodes, strict=True) if nodes] == [name]
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"price": {spelt: 2, "*": 1}}), encoding="utf-8")
    spec = loads(TEXT.replace(" = 1\n", "\n").replace("@rule", f"price[{name}] == 2"), data=prices)
    assert spec.evaluate({"a": spelt, "b": spelt}).feasible


@pytest.mark.parametrize("spelt", ["fast", "fast[1]", "fast.server", "fast[1].server[1]", "server"])
def test_cluster(spelt: str) -> None:
    for rule in (f"inside(a, {spelt})", f"exists d in {spelt}: a on d"):
        if rule in ("exists d in fast: a on d", "exists d in server: a on d"):
            continue  # with a count somewhere it is the set of clusters
        spec = loads(TEXT.replace("@rule", rule))
        assert spec.evaluate({"a": "v100", "b": "v100"}).feasible
        assert not spec.evaluate({"a": "cpu", "b": "cpu"}).feasible
    assert [c.name for c in spec.problem.machine.clusters if not c.alone] == ["slow", "fast[1]", "fast[1].server"]


def test_a_cluster_without_a_count_is_the_set_of_its_devices() -> None:
    spec = loads(TEXT.replace("@rule", "count(d in slow: used(d)) == 2 and (exists c in fast: not inside(a, c))"))
    assert spec.evaluate({"a": "t4[1]", "b": "t4[2]"}).feasible
    assert not spec.evaluate({"a": "t4[1]", "b": "t4[1]"}).feasible


@pytest.mark.parametrize("spelt", ["slow", "slow.t4", "slow[2].t4[1]", "fast[1]"])
def test_what_calls_no_device(spelt: str) -> None:
    with pytest.raises(InputError):
        loads(TEXT.replace("@rule", f"a on {spelt}"))
    with pytest.raises(InputError, match="there is no device"):
        loads(TEXT.replace("@rule", "true")).evaluate({"a": spelt, "b": "cpu"})
