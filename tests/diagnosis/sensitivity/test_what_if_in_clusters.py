"""One more device per cluster is the machine that the spec with one more in its text declares."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import placedsl
from placedsl.diagnosis.sensitivity.what_if import changes, with_cluster, with_device
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem

GRAPH = """graph {
    node a { time = {accelerator: 4 ms, host: 30 ms}, memory = 2 GiB, output = 8 MiB }
    node b { time = {accelerator: 6 ms, host: 40 ms}, memory = 3 GiB, output = 80 MiB }
    node c { time = {accelerator: 5 ms}, memory = 3 GiB, output = 20 MiB }
    node e { time = {accelerator: 5 ms}, memory = 1 GiB, output = 1 MiB }
    a -> b -> c -> e
    a -> c
}
"""
GOAL = """minimize time_per_sample
subject to
    memory
"""
ONE_LEVEL = """cluster pod[2] {
    device gpu[2]: accelerator { memory = 6 GiB }
    interconnect { bandwidth = 100 GiB/s }
}
device cpu: host
interconnect { bandwidth = 16 GiB/s }
"""
TWO_LEVELS = """cluster rack[2] {
    cluster server[2] {
        device gpu[1]: accelerator { memory = 6 GiB }
        interconnect { bandwidth = 100 GiB/s }
    }
    device tpu[1]: accelerator { memory = 4 GiB }
    interconnect { bandwidth = 40 GiB/s }
}
device cpu[2]: host
interconnect { bandwidth = 16 GiB/s }
"""
MACHINES = {"one level": ONE_LEVEL, "two levels": TWO_LEVELS}
SHARED = "parallelism { data = 1..2, weights = memory }\n"
CASES = [
    (machine, family, extra)
    for machine, families in (("one level", ("gpu", "cpu")), ("two levels", ("gpu", "tpu", "cpu")))
    for family in families
    for extra in ("", "schedule overlapped\n", SHARED)
]


@pytest.mark.parametrize(("machine", "family", "extra"), CASES)
def test_the_changed_machine_is_that_of_the_changed_text(machine: str, family: str, extra: str) -> None:
    text = GRAPH + MACHINES[machine] + extra + GOAL
    larger = with_device(placedsl.loads(text).problem, family)
    assert larger is not None
    more = re.sub(rf"device {family}\[(\d)\]", lambda m: f"device {family}[{int(m[1]) + 1}]", text)
    if more == text:  # declared without a count; alone it is called as it was
        more = text.replace(f"device {family}:", f"device {family}[2]:")
    written = placedsl.loads(more).problem
    unnumbered = f"device {family}:" in text
    confirm_same(larger, written, lambda name: name.replace(f"{family}[1]", family) if unnumbered else name)


CLUSTERS = [
    (machine, family, extra)
    for machine, families in (("one level", ("pod",)), ("two levels", ("rack", "server")))
    for family in families
    for extra in ("", "schedule overlapped\n", SHARED)
]


@pytest.mark.parametrize(("machine", "family", "extra"), CLUSTERS)
def test_a_further_cluster_is_that_of_the_changed_text(machine: str, family: str, extra: str) -> None:
    text = GRAPH + MACHINES[machine] + extra + GOAL
    larger = with_cluster(placedsl.loads(text).problem, family)
    assert larger is not None
    written = placedsl.loads(text.replace(f"cluster {family}[2]", f"cluster {family}[3]")).problem
    confirm_same(larger, written, lambda name: name)
    ours, theirs = (
        sorted((c.name, c.level, len(c.devices), "" if c.parent < 0 else one.machine.clusters[c.parent].name)
               for c in one.machine.clusters)
        for one in (larger, written)
    )  # fmt: skip
    assert ours == theirs


@pytest.mark.rotates(1)
def test_a_further_server_that_shares_samples() -> None:
    text = """graph {
    node a { time = 4 ms, output = 8 MiB, stash = 1 MiB }
    node b { time = 6 ms, output = 8 MiB, stash = 1 MiB }
    a -> b
}
cluster server[SERVERS] {
    device gpu[2]: accelerator { memory = 6 GiB }
    interconnect { bandwidth = 100 GiB/s }
}
interconnect { bandwidth = 16 GiB/s }
parallelism { microbatches = 12, data = divisors(microbatches), exchange = batch, across = server }
minimize time_per_sample
subject to
    memory
    contiguous
"""
    spec = placedsl.loads(text.replace("SERVERS", "2"))
    effects = {effect.change: effect for effect in spec.why(spec.solve()).effects}
    written = placedsl.loads(text.replace("SERVERS", "3")).solve()
    assert written.termination == "optimal"
    assert effects["one more server"].value == pytest.approx(written.value, rel=1e-9)
    assert effects["one more server"].proven


def test_a_further_device_allows_further_numbers_of_copies() -> None:
    """Numbers of copies that the spec allows, and only the machine did not have devices for."""
    text = """graph { node a { time = 4 ms, stash = 1 MiB } }
device gpu[COUNT]: accelerator
interconnect { bandwidth = 16 GiB/s }
parallelism { microbatches = 12, data = divisors(microbatches), exchange = batch }
minimize time_per_sample
subject to
    contiguous
"""
    spec = placedsl.loads(text.replace("COUNT", "2"))
    effects = {effect.change: effect for effect in spec.why(spec.solve()).effects}
    written = placedsl.loads(text.replace("COUNT", "3")).solve()
    assert written.value == pytest.approx(4e-3 / 3, rel=1e-9)
    assert effects["one more gpu"].value == pytest.approx(written.value, rel=1e-9)


def test_a_further_device_for_no_further_number_of_copies() -> None:
    """Three copies cannot share four microbatches evenly: the third device is of no use."""
    text = """graph { node a { time = 4 ms, stash = 1 MiB } }
device gpu[2]: accelerator
interconnect { bandwidth = 16 GiB/s }
parallelism { microbatches = 4, data = 1..4, exchange = batch }
minimize time_per_sample
subject to
    contiguous
"""
    spec = placedsl.loads(text)
    effects = {effect.change: effect for effect in spec.why(spec.solve()).effects}
    assert effects["one more gpu"].value == pytest.approx(2e-3, rel=1e-9)
    assert not effects["one more gpu"].helps


def confirm_same(larger: Problem, written: Problem, called: Callable[[str], str]) -> None:
    """Two problems whose devices come in another order; ``called``: what one's names are in the other."""
    ours = [d.name for d in larger.machine.devices]
    theirs = [called(d.name) for d in written.machine.devices]
    assert sorted(ours) == sorted(theirs)
    rng = np.random.default_rng(0)
    position = [theirs.index(name) for name in ours]
    assert np.array_equal(larger.time, written.time[:, position])
    values = {"copies": {(d,): 1.0 for d in range(len(ours))}} if larger.execution.data_parallelism is not None else {}
    compared = 0
    for _ in range(200):
        placement = [int(rng.choice(np.flatnonzero(np.isfinite(times)))) for times in larger.time]
        mine, other = evaluate(larger, placement, values), evaluate(written, [position[d] for d in placement], values)
        assert mine.objectives == pytest.approx(other.objectives, rel=1e-12)
        assert [v.amount for v in mine.violations] == [v.amount for v in other.violations]
        compared += 1
    assert compared == 200


def test_every_family_in_a_cluster_has_its_row() -> None:
    problem = placedsl.loads(GRAPH + TWO_LEVELS + GOAL).problem
    told = [change.text for change in changes(problem)]
    assert told[:3] == ["one more gpu in each server", "one more tpu in each rack", "one more cpu"]
    assert told[3:5] == ["one more rack", "one more server in each rack"]


def test_the_effect_is_the_optimum_of_the_changed_text() -> None:
    spec = placedsl.loads(GRAPH + ONE_LEVEL.replace("gpu[2]", "gpu[1]") + GOAL)
    effects = {effect.change: effect for effect in spec.why(spec.solve(workers=1)).effects}
    written = placedsl.loads(GRAPH + ONE_LEVEL + GOAL).solve(workers=1)
    assert effects["one more gpu in each pod"].value == pytest.approx(written.value, rel=1e-9)
    assert effects["one more gpu in each pod"].proven
    assert effects["one more gpu in each pod"].helps
