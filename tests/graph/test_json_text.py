"""JSON texts: what Python's parser lets pass and is refused here, each at its place; what is accepted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from placedsl import InputError, load
from placedsl.diagnostics import Source
from placedsl.graph.readers.json_text import parsed

MACHINE = "device gpu[2]: accelerator\ninterconnect { bandwidth = 16 GB/s }\nminimize time_per_sample\n"


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ('{"a": 1, "a": 2}', "'a' is there twice", 10),
        ('{"x": [{"a": {"b": 1}, "b": 2, "\\u0061" : 3}]}', "'a' is there twice", 32),
        ('{"a": {"b": 1}, "b": {"a": "a"}, "c": 1e400}', "'c' is infinite, or too large", 39),
        ('{"a": [1, -1e999]}', "'a' is infinite, or too large", 11),
        ('{"a": NaN}', "'a' is not a number", 7),
        ('{"a": -Infinity}', "'a' is infinite, or too large", 7),
        ('{"a": ' + "1" * 400 + "}", "'a' is infinite, or too large", 7),
        ('{"a": ' + "1" * 5000 + "}", "'a' is infinite, or too large", 7),
        ('{"a": ' + "1" * 5000 + "]}", "this is not JSON", 5007),
        ('{"a": ' + "1" * 5000 + ', "b": "\\q"}', "this is not JSON", 5015),
        ('["\\ud800"]', "half of a surrogate pair", 2),
    ],
)
def test_defects_at_their_places(text: str, message: str, column: int) -> None:
    with pytest.raises(InputError) as caught:
        parsed(Source("a.json", text))
    (found,) = caught.value.diagnostics
    assert message in found.message
    assert found.span is not None
    assert found.span.column == column


@pytest.mark.parametrize(
    "text",
    ['{"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]}', '"\\ud83d\\ude00"', "[1e100, -0.0, 1e-400]", '{"": ":1e999"}'],
)
def test_what_is_in_order_is_as_python_reads_it(text: str) -> None:
    assert parsed(Source("a.json", text)) == json.loads(text)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    graph = {
        "format": "placedsl-graph",
        "time_unit": "1 ms",
        "nodes": [{"id": 1, "time": 1}, {"id": 2, "time": 2}],
        "edges": [],
    }
    (tmp_path / "g.json").write_text(json.dumps(graph), encoding="utf-8-sig")
    (tmp_path / "data.json").write_text('{"room": 3}', encoding="utf-8-sig")
    spec = tmp_path / "a.place"
    spec.write_text(f'graph from "g.json"\nparam room: int\n{MACHINE}', encoding="utf-8")
    assert load(spec, data=tmp_path / "data.json").problem.graph.nodes == 2


@pytest.mark.parametrize("content", ['{"room": 3, "room": 4}', '{"room": 1e400}'])
def test_data_files(tmp_path: Path, content: str) -> None:
    (tmp_path / "data.json").write_text(content, encoding="utf-8")
    spec = tmp_path / "a.place"
    spec.write_text(f"graph {{ node a {{ time = 1 ms }} }}\nparam room: int\n{MACHINE}", encoding="utf-8")
    with pytest.raises(InputError, match=r"data\.json:1:"):
        load(spec, data=tmp_path / "data.json")
