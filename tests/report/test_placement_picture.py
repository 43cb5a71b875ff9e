"""The picture of loads: rows in the order of the stages, names that fit, memory, shared stages, a legend."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import placedsl
from placedsl.report.pictures.placement_picture import draw

SPEC = """
graph {
    node first { time = {accelerator: 10 ms}, memory = 1 GiB, output = 8 MiB }
    node attention_block { time = {accelerator: 30 ms}, memory = 2 GiB, output = 1 MiB }
    node the_last_of_all_the_many_nodes_of_this_graph_and_its_branches_whose_name_is_long_indeed {
        time = {accelerator: 10 ms}, memory = 1 GiB
    }
    node tiny { time = {accelerator: 1 us} }
    first -> attention_block -> the_last_of_all_the_many_nodes_of_this_graph_and_its_branches_whose_name_is_long_indeed -> tiny
}
device gpu[4]: accelerator { memory = 8 GiB }
device spare: host
interconnect { bandwidth = 1 GiB/s }
PARALLELISM
minimize time_per_sample
subject to
    contiguous
    memory
"""  # noqa: E501


def texts(picture: str) -> list[str]:
    tags = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(one.itertext()) for one in tags]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    spec = placedsl.loads(SPEC.replace("PARALLELISM", "parallelism { data = 1..2, weights = 0 }"))
    file = tmp_path_factory.mktemp("picture") / "p.svg"
    draw(spec.solve(method="dp"), file)
    return texts(file.read_text(encoding="utf-8"))


def test_rows_follow_the_stages(shared: list[str]) -> None:
    rows = [text for text in shared if text.endswith(("node)", "nodes)"))]
    assert [row.partition("  (")[2] for row in rows] == ["1 node)", "1 node)", "2 nodes)", "0 nodes)"]
    assert " and 1 more  (1 node)" in rows[1]
    assert rows[-1].startswith("spare")


def test_names_and_memory(shared: list[str]) -> None:
    assert "attention_block" in shared
    assert any(text.startswith("the_last") and text.endswith("…") for text in shared)
    assert "tiny" not in shared
    assert shared.count("1 GiB of 8 GiB") == 2
    assert "0 B" in shared


def test_legend(shared: list[str], tmp_path: Path) -> None:
    assert {"first nodes of the graph", "last nodes", "moving tensors and weights", "largest load"} <= {*shared}
    draw(placedsl.loads(SPEC.replace("PARALLELISM", "")).solve(method="dp"), tmp_path / "p.svg")
    alone = texts((tmp_path / "p.svg").read_text(encoding="utf-8"))
    assert "moving tensors" in alone
