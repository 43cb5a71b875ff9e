"""Data files: what is wrong with one is told at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

import placedsl
from placedsl.diagnostics import InputError, Source
from placedsl.language.elaboration.external_values import parsed_toml


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("a = 1\nb = = 2\n", "this is not TOML: Invalid value", (2, 5)),
        ("a = 1\nb = [1,\n", "this is not TOML: ", (2, 7)),
        ("a = 1\na = 2\n", "this is not TOML: Cannot overwrite a value", (2, 6)),
        ("a = 1\nb = " + "9" * 5000, "a number here has too many digits", (2, 5)),
        ("a = 1\nb = " + "9" * 400, "'b' is no finite number", (2, 1)),
        ("a = 1\nb = { c = [1, -inf] }", "'c' is no finite number", (2, 7)),
        ("a = 1\n[b]\nd = nan", "'d' is no finite number", (3, 1)),
        ("a = " + "[" * 5000, "this TOML is nested too deeply", (1, 1)),
    ],
)
def test_what_is_no_toml(text: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(InputError) as found:
        parsed_toml(Source("data.toml", text))
    (only,) = found.value.diagnostics
    assert only.message.startswith(message)
    assert only.span is not None
    assert (only.span.line, only.span.column) == place


@pytest.mark.parametrize("key", ["--1", "²", "9" * 5000, "+1", "x"])
def test_what_is_no_index_of_whole_numbers(key: str, tmp_path: Path) -> None:
    text = """
graph { node a { time = 1 ms } }
device gpu: accelerator
param share[i in 1..2]: number
minimize time_per_sample
subject to
    limit: sum(i in 1..2: share[i]) >= devices_used
"""
    data = tmp_path / "data.json"
    data.write_text(f'{{"share": {{"1": 2, "{key}": 3, "2": 4}}}}', encoding="utf-8")
    with pytest.raises(InputError) as found:
        placedsl.loads(text, data=data)
    (only,) = found.value.diagnostics
    assert only.span is not None
    assert only.span.source.name == str(data)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_products_of_data_beyond_floating_point(tmp_path: Path) -> None:
    text = """
graph { node a { time = 1 ms } }
device gpu: accelerator
param share[v in nodes]: number
minimize time_per_sample
subject to
    limit: sum(v in nodes, d in devices: share[v] * 2 * (v on d)) <= 3
"""
    data = tmp_path / "data.json"
    data.write_text('{"share": {"a": -1e308}}', encoding="utf-8")
    with pytest.raises(InputError, match="an infinite number cannot be a coefficient"):
        placedsl.loads(text, data=data).check()
