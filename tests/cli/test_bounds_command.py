"""``placedsl bounds``: values that enumeration confirms, reasons where there is no bound, and wrong requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.tiny_graphs import TinyGraph, optimum

from placedsl.cli.main import main

GRAPH = TinyGraph((3.0, 2.0, 4.0, 1.0), (1.0, 1.0, 0.5, 0.0), ((1, 2), (3,), (3,), ()), 2)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.place").write_text(GRAPH.spec(), encoding="utf-8")
    host = GRAPH.spec().replace("interconnect", "device cpu: host\ninterconnect")
    Path("host.place").write_text(host.replace("{accelerator: ", "{host: 9 s, accelerator: "), encoding="utf-8")


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, object]]:
    assert main(["bounds", *arguments, "--json", "-", "--quiet"]) == 0
    return {one["name"]: one for one in json.loads(capsys.readouterr().out)["bounds"]}


def test_values_and_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    place = {"v0": "tpu[1]", "v1": "tpu[1]", "v2": "tpu[2]", "v3": "tpu[2]"}
    Path("answer.json").write_text(json.dumps({"placement": place}), encoding="utf-8")
    found = asked(capsys, "a.place", "--only", "exact", "--only", "simple", "--answer", "answer.json")
    assert list(found) == ["simple", "exact"]
    assert found["simple"]["value"] == pytest.approx(GRAPH.simple)
    assert found["exact"]["value"] == pytest.approx(optimum(GRAPH), rel=1e-6)
    assert all(one["valid"] and one["final"] for one in found.values())
    value = 3.0 + 2.0 + 1.0 + 1.0  # v0 and v1 on one device, both of their tensors read on the other
    assert found["simple"]["ratio"] == pytest.approx(value / GRAPH.simple)


def test_what_is_no_bound_of_a_spec_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "host.place", "--only", "bottleneck", "--only", "simple")
    assert not found["bottleneck"]["valid"]
    assert found["bottleneck"]["value"] is None
    assert "accelerators only" in str(found["bottleneck"]["reasons"])
    assert found["simple"]["valid"]


def test_a_table_and_wrong_requests(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bounds", "a.place", "--only", "simple", "--quiet"]) == 0
    assert "simple" in capsys.readouterr().out
    assert main(["bounds", "a.place", "--only", "simpel"]) == 2
    assert "did you mean 'simple'?" in capsys.readouterr().err
    wrong = {"v0": "tpu[1]", "v1": "tpu[2]", "v2": "tpu[2]", "v3": "tpu[1]"}
    Path("wrong.json").write_text(json.dumps({"placement": wrong}), encoding="utf-8")
    assert main(["bounds", "a.place", "--only", "simple", "--answer", "wrong.json"]) == 1
    assert "wrong.json does not fit" in capsys.readouterr().err
    assert main(["bounds", "a.place", "--answer", "none.json"]) == 1
