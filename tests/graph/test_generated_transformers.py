"""Generated transformers have the sizes that the Moirai paper tells of, before and after fusion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from generated import ARCHITECTURES, BANDWIDTHS, SCENARIOS, graph, write

from placedsl import load

SMALL = sorted(key for key, shape in ARCHITECTURES.items() if shape.operators < 7000)
ALL = sorted(ARCHITECTURES)


@pytest.mark.parametrize("scenario", sorted(SCENARIOS))
@pytest.mark.parametrize(("model", "size"), [pytest.param(*key, marks=[] if key in SMALL else [pytest.mark.everything])
                                             for key in ALL])  # fmt: skip
def test_sizes(model: str, size: str, scenario: str, tmp_path: Path) -> None:
    problem = load(write(tmp_path, model, size, scenario)).problem
    shape = ARCHITECTURES[model, size]
    assert problem.graph.written.nodes == shape.operators
    assert abs(problem.graph.nodes - shape.coarsened) <= 0.06 * shape.coarsened
    assert problem.device_to_device is not None
    assert problem.graph.memory.sum() < problem.device_memory.sum()
    # A gigabit in one direction takes what the table says.
    tensor = int(np.argmax(problem.size))
    for a, row in enumerate(BANDWIDTHS[scenario]):
        for b, bandwidth in enumerate(row):
            if a != b:
                taken = float(problem.device_to_device.time(tensor, a, b))
                assert taken == pytest.approx(8 * problem.size[tensor] / (bandwidth * 1e9))


def test_the_same_seed_gives_the_same_graph() -> None:
    assert graph("alphafold2", "87M", seed=3) == graph("alphafold2", "87M", seed=3)
    assert graph("alphafold2", "87M", seed=3) != graph("alphafold2", "87M", seed=4)


def test_weights_are_about_as_many_as_the_name_says() -> None:
    """Half-precision weights: GPT-3 of 330M and Swin of 1.8B, counted without embeddings."""
    for model, size, weights in (("gpt-3", "330M", 330e6), ("swin-transformer", "1.8B", 1.8e9)):
        total = sum(node["memory"] for node in graph(model, size)["nodes"]) / 2
        assert 0.8 * weights < total < 1.2 * weights
