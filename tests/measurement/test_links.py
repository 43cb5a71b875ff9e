"""The line through measured transfers, and the statement that it becomes."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from placedsl import load
from placedsl.measurement.links import SIZES, fitted, text


@pytest.mark.parametrize("seed", range(5))
def test_a_line_is_found_again(seed: int) -> None:
    draw = random.Random(seed)
    latency, bandwidth = 10 ** draw.uniform(-7, -3), 10 ** draw.uniform(7, 11)
    found = fitted(SIZES, [latency + size / bandwidth for size in SIZES], "")
    assert found.latency == pytest.approx(latency, rel=1e-6)
    assert found.bandwidth == pytest.approx(bandwidth, rel=1e-6)
    assert found.largest_error < 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_no_other_line_is_nearer(seed: int) -> None:
    """In the sum of the squares of the relative errors, among lines near by without negative parts."""
    draw = random.Random(seed)
    seconds = [draw.uniform(0.5, 2.0) * (1e-4 + size / 1e9) for size in SIZES]
    found = fitted(SIZES, seconds, "")

    def squares(latency: float, per_byte: float) -> float:
        return float((((latency + np.array(SIZES) * per_byte) / np.array(seconds) - 1) ** 2).sum())

    least = squares(found.latency, 1 / found.bandwidth)
    for a in np.linspace(0.0, 3.0, 31):
        for b in np.linspace(0.0, 3.0, 31):
            assert squares(1e-4 * a, 1e-9 * b) >= least - 1e-9


def test_neither_part_is_negative() -> None:
    falling = fitted((1e3, 1e6), (2.0, 1.0), "")
    assert falling.latency > 0
    assert falling.bandwidth == np.inf
    steep = fitted((1e3, 1e6), (1e-6, 1.0), "")
    assert steep.latency == 0.0


@pytest.mark.parametrize("name", ["", "gpu"])
def test_a_spec_imports_it(name: str, tmp_path: Path) -> None:
    """A transfer costs what was measured, whether it is read from a link or from the interconnect."""
    link = fitted((1e3, 1e6, 1e9), (1e-5 + 1e-6, 1e-5 + 1e-3, 1e-5 + 1.0), "gloo")
    (tmp_path / "links.place").write_text(text(link, name), encoding="utf-8")
    spec = """import "links.place"
graph {
    node a { time = 1 s, output = 1 MB }
    node b { time = 1 s }
    a -> b
}
device gpu[2]: accelerator
minimize time_per_sample
subject to apart(nodes)
"""
    (tmp_path / "spec.place").write_text(spec, encoding="utf-8")
    assert load(tmp_path / "spec.place").solve().value == pytest.approx(1 + 1e-3 + 1e-5, rel=1e-6)
