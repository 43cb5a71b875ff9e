"""Graphs for training of measured layers, and names of models in Python files; PyTorch is not needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import placedsl
from placedsl.measurement.python_models import named
from placedsl.measurement.training_graph import MeasuredUnit, training_graph

UNITS = [
    MeasuredUnit("embed", "Embedding", 400.0, 64.0, 8.0, ()),
    MeasuredUnit("layers.0", "Layer", 100.0, 64.0, 32.0, (0,)),
    MeasuredUnit("layers.1", "Layer", 100.0, 64.0, 32.0, (1, 0)),
    MeasuredUnit("head", "Linear", 200.0, 16.0, 4.0, ()),
]
SPEC = """graph from "g.json"
device worker[2]: accelerator { memory = 1 GB }
interconnect { bandwidth = 64 B/s }
minimize time_per_sample
subject to
    memory
    colocated by module
"""


def test_a_measured_model_is_a_graph_of_both_passes(tmp_path: Path) -> None:
    """Times are those measured; what is exchanged has the sizes of the forward part, also backwards."""
    seconds = np.arange(1.0, 9.0)
    (tmp_path / "g.json").write_text(training_graph(UNITS, seconds, "worker"), encoding="utf-8")
    spec = placedsl.loads(SPEC, tmp_path)
    graph = spec.problem.graph
    assert graph.nodes == 8
    assert graph.backward.tolist() == [False] * 4 + [True] * 4
    assert spec.problem.time[:, 0].tolist() == seconds.tolist()
    by_id = dict(zip(map(str, graph.ids), range(8), strict=True))
    edges = {(int(u), int(v)) for u, v in zip(graph.edge_source, graph.edge_target, strict=True)}
    forward = {("embed", "layers.0"), ("layers.0", "layers.1"), ("embed", "layers.1"), ("layers.1", "head")}
    wanted = forward | {(f"{v}.backward", f"{u}.backward") for u, v in forward}
    wanted |= {(unit.path, f"{unit.path}.backward") for unit in UNITS}
    assert edges == {(by_id[u], by_id[v]) for u, v in wanted}
    assert graph.attributes["parameters"].tolist() == [0.0] * 4 + [400.0, 100.0, 100.0, 200.0]
    assert [str(layer) for layer in graph.attributes["layer"][1:3]] == ["layers.0", "layers.1"]
    # one device: all times; two, cut before the head: 16 tensors of 64 B forward, as many backward, a second each
    whole = spec.evaluate(dict.fromkeys(by_id, "worker[1]"))
    assert whole.objectives[0] == pytest.approx(36.0)
    split = {own: "worker[2]" if own.startswith("head") else "worker[1]" for own in by_id}
    assert spec.evaluate(split).loads == pytest.approx((24.0 + 2.0, 12.0 + 2.0))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("model.py:made", ("model.py", "made")),
        ("a/b c.py:_x9", ("a/b c.py", "_x9")),
        ("model.py", None),
        ("model.py:9x", None),
        ("model.pt2", None),
    ],
)
def test_names_of_models(text: str, found: tuple[str, str] | None) -> None:
    assert named(Path(text)) == (None if found is None else (Path(found[0]), found[1]))
