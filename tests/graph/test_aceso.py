"""Profiles of Aceso: one layer is repeated, operators are a chain, times and sizes are as in the table."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from placedsl import InputError, loads
from placedsl.graph.readers import read
from placedsl.graph.readers.sizes import Size

HEADINGS = (
    "op_name,forward-compute,backward-compute,input_size,output_size,weights,activations,fwd_reserved,bwd_reserved"
)
MIB = 2**20


def table(rows: list[tuple[str, list[float]]]) -> str:
    return "\n".join([HEADINGS, *(",".join([name, *(f"{x:.3f}" for x in numbers)]) for name, numbers in rows), ""])


def transformer(seed: int) -> list[tuple[str, list[float]]]:
    """Embedding, two operators of a layer, norm; numbers with three digits after the point."""
    draw = random.Random(seed)
    names = ["encoder-embedding", "enc-attention-qkv", "enc-MLP-gelu", "final-layernorm"]
    return [(name, [round(draw.uniform(0.0, 900.0), 3) for _ in range(8)]) for name in names]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("layers", [1, 2, 5])
def test_the_chain_of_a_transformer(seed: int, layers: int, tmp_path: Path) -> None:
    rows = transformer(seed)
    file = tmp_path / "gpt.csv"
    file.write_text(table(rows), encoding="utf-8")
    graph = read(file, None, {"layers": Size(layers)})
    block = [f"{name}.{k}" for k in range(layers) for name in ("enc-attention-qkv", "enc-MLP-gelu")]
    forward = ["encoder-embedding", *block, "final-layernorm"]
    assert list(graph.ids) == [*forward, *(f"{own}.backward" for own in forward)]
    known = dict(rows)
    for v, own in enumerate(graph.ids):
        operator = str(own).removesuffix(".backward").rstrip("0123456789").rstrip(".")
        numbers = known[operator]
        back = bool(graph.backward[v])
        assert back == str(own).endswith(".backward")
        assert graph.time["accelerator"][v] == pytest.approx(numbers[1 if back else 0] * 1e-6)
        assert graph.memory[v] == pytest.approx((numbers[4] + (0 if back else numbers[5])) * MIB)
        assert graph.attributes["parameters"][v] == pytest.approx(numbers[4] * MIB if back else 0.0)
        assert graph.attributes["type"][v] == operator
    order = [*forward, *(f"{own}.backward" for own in reversed(forward))]
    ends = zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)
    assert sorted((graph.ids[u], graph.ids[v]) for u, v in ends) == sorted(pairwise(order))
    size = {graph.ids[u]: graph.tensor_bytes[t] for t, u in enumerate(graph.tensor_producer.tolist())}
    for own in forward:
        operator = own.rstrip("0123456789").rstrip(".")
        assert size[own] == pytest.approx(known[operator][3] * MIB)


def test_a_training_pipeline_is_solved(tmp_path: Path) -> None:
    """The optimum of a chain over two devices, by all divisions of its layers."""
    rows = [(name, [100.0 * (k + 1), 200.0 * (k + 1), 0, 0, 1, 1, 0, 0]) for k, (name, _) in enumerate(transformer(0))]
    (tmp_path / "gpt.csv").write_text(table(rows), encoding="utf-8")
    spec = loads(
        'graph from "gpt.csv" { layers = 3 }\ndevice gpu[2]: accelerator { memory = 1 GiB }\n'
        "interconnect { bandwidth = 1 GB/s }\nminimize time_per_sample\nsubject to\n    contiguous\n"
        "    colocated by operator\n",
        tmp_path,
    )
    times = [1, *[2, 3] * 3, 4]
    best = min(max(sum(times[:k]), sum(times[k:])) for k in range(len(times) + 1)) * 300e-6
    assert spec.solve().value == pytest.approx(best)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("200.000", "many"), "'backward-compute' is not a number, 0 or more: 'many'"),
        (("200.000", "-1"), "'backward-compute' is not a number, 0 or more: '-1'"),
        (("100.000", "10000000"), "operator 'encoder-embedding' did not run when this was measured"),
        (("enc-MLP-gelu", "enc-attention-qkv"), "operator 'enc-attention-qkv' is there twice"),
        (("weights", "wieghts"), "'wieghts' is no column of Aceso"),
        (("final-layernorm,", "final-layernorm,1,"), "this line has 10 cells, the headings are 9"),
    ],
)
def test_defects_are_told_at_their_lines(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    rows = [(name, [100.0, 200.0, 0, 0, 1, 1, 0, 0]) for name, _ in transformer(0)]
    text = table(rows)
    assert change[0] in text
    file = tmp_path / "gpt.csv"
    file.write_text(text.replace(*change, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read(file, "aceso", {"layers": Size(2)})
    found = next(d for d in caught.value.diagnostics if d.message == message)
    assert found.span is not None


def test_the_number_of_layers_is_needed_where_a_layer_is_repeated(tmp_path: Path) -> None:
    file = tmp_path / "gpt.csv"
    file.write_text(table(transformer(0)), encoding="utf-8")
    with pytest.raises(InputError, match="the dimension 'layers' of this model has no size"):
        read(file)
    file.write_text(table([("conv1", [1.0] * 8), ("bn1", [2.0] * 8)]), encoding="utf-8")
    assert np.allclose(read(file).time["accelerator"], [1e-6, 2e-6, 1e-6, 2e-6])
    with pytest.raises(InputError, match="a graph file has no 'layers'"):
        read(file, None, {"layers": Size(2)})
