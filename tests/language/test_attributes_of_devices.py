"""Devices have attributes of the spec's own: numbers of any dimension, and texts."""

from __future__ import annotations

import random

import pytest

from placedsl import InputError, loads
from placedsl.diagnostics import misspelt

TEXT = """
graph {
    node a { time = {accelerator: 4 ms, host: 9 ms},  memory = 2 GiB, output = 8 MiB }
    node b { time = {accelerator: 6 ms, host: 30 ms}, memory = 3 GiB, output = 8 MiB }
    a -> b
}
device gpu[2]: accelerator { @gpu }
device cpu: host { @cpu }
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
subject to
    rule: @rule
"""
GPU, CPU = 'power = 300 W, zone = "eu", rank = 2', 'power = 0.1 kW, zone = "us"'
ON_CPU, ON_GPU = {"a": "cpu", "b": "cpu"}, {"a": "gpu[1]", "b": "gpu[1]"}


def spec(rule: str, gpu: str = GPU, cpu: str = CPU):
    return loads(TEXT.replace("@gpu", gpu).replace("@cpu", cpu).replace("@rule", rule))


@pytest.mark.parametrize(
    ("rule", "on_gpu", "on_cpu"),
    [
        ("sum(d in devices: d.power * used(d)) <= 150 W", False, True),
        ("sum(d in devices: d.power * load(d)) <= 3.5 J", True, False),  # 3 J, and 3.9 J
        ('forall d in devices where d.zone == "us": not used(d)', True, False),
        ("forall d in devices where d.rank >= 1: not used(d)", False, True),  # the host has no rank
        ('exists d in devices: used(d) and d.zone ~ "e*"', True, False),
    ],
)
def test_rule(rule: str, on_gpu: bool, on_cpu: bool) -> None:
    one = spec(rule)
    assert one.evaluate(ON_GPU).feasible == on_gpu
    assert one.evaluate(ON_CPU).feasible == on_cpu
    both = spec(f"({rule}) and a on cpu and b on cpu")
    assert both.solve().termination == ("optimal" if on_cpu else "infeasible")


def test_the_elaborated_spec_keeps_them() -> None:
    text = spec("gpu[1].power >= 1 W").explain()
    assert 'device gpu[2]: accelerator { power = 300 W, zone = "eu", rank = 2 }' in text
    assert loads(text).explain().split("# graph")[0] == text.split("# graph")[0]


@pytest.mark.parametrize(
    ("gpu", "cpu", "message"),
    [
        ("memori = 3 GiB", "", "a device has no 'memori'"),
        ("family = 3", "", "every device has a 'family' already"),
        ("rank = 1, rank = 2", "", "'rank' is given twice"),
        ("power = 300 W", "power = 300", "'power' is a number .power. on another device, this is a plain number"),
        ("zone = true", "", "'zone' is a number or a text, this is a condition"),
        ("zone = eu", "", 'a text stands in quotes: "eu"'),
        ("power = -", "", "expected: an expression"),
    ],
)
def test_what_is_no_attribute(gpu: str, cpu: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        spec("a on cpu", gpu, cpu)


@pytest.mark.parametrize("name", ["server", "rank", "compute_class", "prices_2", "memories", "latency"])
def test_names_that_are_merely_like_an_entry_are_the_spec_s_own(name: str) -> None:
    one = spec(f"forall d in gpu: d.{name} == 2", gpu=f"{name} = 2")
    assert one.evaluate(ON_GPU).feasible


@pytest.mark.parametrize(
    ("name", "meant"),
    [("memroy", "memory"), ("memry", "memory"), ("pricee", "price"), ("stream", "streams"), ("comqute", "compute")],
)
def test_slips_are_told_with_what_was_meant(name: str, meant: str) -> None:
    with pytest.raises(InputError, match=f"a device has no '{name}'") as told:
        spec("used(cpu)", gpu=f"{name} = 2")
    hint = told.value.diagnostics[0].hint
    assert hint == f"did you mean '{meant}'? An attribute of your own needs a name that is less like it"


def test_one_slip_and_no_more() -> None:
    """Against all words that a slip makes."""
    word, letters = "price", "abcdefghijklmnopqrstuvwxyz_"
    slips = {word[:k] + word[k + 1 :] for k in range(5)}
    slips |= {word[:k] + a + word[k + 1 :] for k in range(5) for a in letters}
    slips |= {word[:k] + a + word[k:] for k in range(6) for a in letters}
    slips |= {word[:k] + word[k + 1] + word[k] + word[k + 2 :] for k in range(4)}
    source = random.Random(0)
    others = {"".join(source.choice("price") for _ in range(source.randint(3, 7))) for _ in range(2000)}
    for one in slips | others:
        assert (misspelt(one, ["price"]) is not None) == (one in slips and one != word), one
