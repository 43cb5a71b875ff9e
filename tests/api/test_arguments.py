"""What Python callers pass in: other types and values end in UsageError or InputError, with a message."""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import placedsl
from placedsl import InputError, Model, Spec, UsageError, loads, sweep

TEXT = """
graph {
    node a { time = 4 ms, output = 8 MiB }
    node b { time = 6 ms }
    a -> b
}
param gpus: int = 2
device gpu[gpus]: accelerator
interconnect { bandwidth = 16 GB/s }
minimize time_per_sample
"""


@pytest.fixture(scope="module")
def spec() -> Spec:
    return loads(TEXT)


@pytest.mark.parametrize(
    "wanted",
    [
        {"gap": math.nan}, {"gap": -0.1}, {"gap": 1}, {"gap": "1%"}, {"workers": -3}, {"workers": 2.5},
        {"workers": True}, {"workers": 10**9}, {"seed": -1}, {"seed": "x"}, {"seed": 2**31}, {"time_limit": "60s"},
        {"time_limit": math.nan}, {"time_limit": -1}, {"time_limit": 0}, {"solver": 3}, {"method": []},
        {"progress": 3},
    ],
)  # fmt: skip
def test_options_of_solve(spec: Spec, wanted: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        spec.solve(**wanted)


def test_an_endless_time_limit_is_none(spec: Spec) -> None:
    assert spec.solve(time_limit=math.inf).termination == "optimal"


@pytest.mark.parametrize(
    "placement",
    [[0.5, 1], [math.nan, 0], [True, False], ["gpu[1]", "gpu[2]"], "ab", 3, None, {"a": None, "b": []}, [0], {0: 1}],
)
def test_placements(spec: Spec, placement: Any) -> None:
    for call in (spec.evaluate, spec.timeline):
        with pytest.raises((UsageError, InputError)):
            call(placement)


@pytest.mark.parametrize(
    "call",
    [
        lambda spec: spec.evaluate([0, 1], variables=3),
        lambda spec: spec.evaluate([0, 1], times=3),
        lambda spec: spec.timeline([0, 1], schedule=3),
        lambda spec: spec.timeline([0, 1], samples=2.5),
        lambda spec: spec.emit(3),
        lambda spec: spec.explanation(solver=3),
        lambda spec: spec.conflict(workers=-3),
        lambda _: placedsl.load(3),
        lambda _: placedsl.load(None),
        lambda _: placedsl.load(b"a.place"),
        lambda _: loads(3),
        lambda _: loads(TEXT, folder=3),
        lambda _: loads(TEXT, parameters=3),
        lambda _: loads(TEXT, parameters={"gpus": 3}),
        lambda _: loads(TEXT, parameters={3: "3"}),
        lambda _: loads(TEXT, data=3),
        lambda _: placedsl.format(3),
        lambda _: sweep("a.place", vary=3),
        lambda _: sweep("a.place", jobs=-1),
        lambda _: sweep("a.place", most=0),
        lambda _: sweep("a.place", plan=3),
    ],
)
def test_other_calls(spec: Spec, call: Callable[[Spec], Any]) -> None:
    with pytest.raises((UsageError, InputError)):
        call(spec)


@pytest.mark.parametrize(
    "build",
    [
        lambda model: model.device("gpu", "accelerator", 2.5),
        lambda model: model.device("gpu", "accelerator", math.nan),
        lambda model: model.device("gpu", "accelerator", []),
        lambda model: model.device(3, "accelerator", 2),
        lambda model: model.device("gpu", 3, 2),
        lambda model: model.device("gpu", "accelerator", 2, memory=object()),
        lambda model: model.graph(3),
        lambda model: model.node(3, time=1.0),
        lambda model: model.node("\ud800", time=1.0),
        lambda model: model.edge(3, 4),
        lambda model: model.param(3),
        lambda model: model.minimize(None),
        lambda model: model.subject_to(3),
        lambda model: model.subject_to("x", []),
        lambda model: model.add(3),
        lambda model: model.fuse(3),
        lambda model: model.parallelism(3),
        lambda model: model.write(3),
    ],
)
def test_models(build: Callable[[Model], Any]) -> None:
    model = Model()
    model.node("a", time=1.0)
    model.interconnect(bandwidth=1e9)
    with pytest.raises((UsageError, InputError)):  # noqa: PT012 - at once, or when it is checked
        build(model)
        model.device("other", "accelerator")
        model.minimize("time_per_sample")
        model.spec()


@pytest.mark.parametrize("rest", ["", "minimize load(gpu[1])\n", "schedule calls\nminimize latency\n"])
def test_specs_can_be_pickled(rest: str) -> None:
    text = TEXT.replace("minimize time_per_sample\n", rest or "minimize time_per_sample\nsubject to\n    contiguous\n")
    spec = loads(text)
    copy = pickle.loads(pickle.dumps(spec))
    assert copy.solve().value == spec.solve().value
    assert repr(copy) == repr(spec)
    copy.check()
    assert pickle.load(io.BytesIO(pickle.dumps(copy.solve()))).value == spec.solve().value
