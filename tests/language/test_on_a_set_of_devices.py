"""``v on fast`` of a set of devices: on one of them, as ``exists d in fast: v on d``."""

from __future__ import annotations

import itertools
import random

import pytest

from placedsl import InputError, loads

TEXT = """
graph {
    node a { time = {accelerator: 4 ms, host: 9 ms}, output = 8 MiB }
    node b { time = {accelerator: 6 ms, host: 30 ms}, output = 8 MiB }
    node c { time = {accelerator: 2 ms, host: 7 ms} }
    a -> b -> c
}
device gpu[2]: accelerator { server = 1 }
device npu[2]: accelerator { server = 2 }
device cpu: host
set first = devices where server == 1
set several = {gpu[2], npu[1], cpu}
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
subject to
"""
DEVICES = ("gpu[1]", "gpu[2]", "npu[1]", "npu[2]", "cpu")
SETS = {
    "first": DEVICES[:2],
    "several": ("gpu[2]", "npu[1]", "cpu"),
    "{gpu[1], cpu}": ("gpu[1]", "cpu"),
    "first union {npu[2]}": ("gpu[1]", "gpu[2]", "npu[2]"),
    "several except first": ("npu[1]", "cpu"),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("b on SET", lambda at, held: at["b"] in held),
        ("forall v in nodes: not (v on SET)", lambda at, held: not set(at.values()) & set(held)),
        ("count(v in nodes: v on SET) == 2", lambda at, held: sum(d in held for d in at.values()) == 2),
        ("a on SET => c on SET", lambda at, held: at["a"] not in held or at["c"] in held),
    ],
)
def test_it_holds_on_one_of_them(name: str, rule: str, holds: object) -> None:
    """Of every placement; and what is solved is the best of those."""
    text = f"{TEXT}    rule: {rule.replace('SET', f'({name})' if ' ' in name and name[0] != '{' else name)}\n"
    spec = loads(text)
    values = []
    for places in itertools.product(DEVICES, repeat=3):
        at = dict(zip("abc", places, strict=True))
        found = spec.evaluate(at)
        assert found.feasible == holds(at, SETS[name]), (rule, name, at)  # type: ignore[operator]
        values += [found.objectives[0]] if found.feasible else []
    if random.Random(f"{rule} {name}").random() < 0.3:
        assert loads(spec.explain()).solve().value == pytest.approx(min(values))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("a on nodes", "a device is expected after 'on', this is a set of nodes"),
        ("a on {b, c}", "a device is expected after 'on', this is a node"),
        ("first on a", "a node is expected before 'on'"),
        ("a on frist", "there is no 'frist'"),
    ],
)
def test_what_is_no_set_of_devices(rule: str, message: str) -> None:
    with pytest.raises(InputError) as told:
        loads(f"{TEXT}    rule: {rule}\n")
    assert message in str(told.value)
