"""``placedsl timeline``: its files, and what is wrong told in words."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from placedsl.cli.main import main

SPEC = """
graph {
    node first { time = 2 ms, memory = 1 GiB, output = 4 MiB }
    node middle { time = 4 ms, memory = 3 GiB, output = 4 MiB }
    node last { time = 2 ms, memory = 1 GiB }
    first -> middle -> last
}
device gpu[2]: accelerator { memory = 4 GiB }
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
subject to
    memory
"""
SPLIT = {"first": "gpu[1]", "middle": "gpu[2]", "last": "gpu[1]"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The spec and the split, in the current folder."""
    (tmp_path / "chain.place").write_text(SPEC, encoding="utf-8")
    (tmp_path / "split.json").write_text(json.dumps({"placement": SPLIT}), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_measures_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", "chain.place", "split.json", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["time_per_sample"] == pytest.approx(told["largest_load"], rel=1e-9)
    assert [device["name"] for device in told["devices"]] == ["gpu[1]", "gpu[2]"]
    assert [(piece["name"], piece["nodes"], piece["reads"]) for piece in told["pieces"]] == [
        ("gpu[1] 1", ["first"], []), ("gpu[2]", ["middle"], ["gpu[1] 1"]), ("gpu[1] 2", ["last"], ["gpu[2]"]),
    ]  # fmt: skip
    busy = sum(device["load"] for device in told["devices"]) * told["samples"]
    assert told["bubble"] == pytest.approx(1 - busy / 2 / told["total"])
    assert told["devices"][1]["bytes_in_flight"] == 4 * 2**20


def test_a_trace_has_every_piece_on_every_sample_once(folder: Path) -> None:
    assert main(["timeline", "chain.place", "split.json", "--samples", "5", "--trace", "t.json"]) == 0
    events = json.loads((folder / "t.json").read_text(encoding="utf-8"))["traceEvents"]
    work = [(e["tid"], e["args"]["piece"], e["args"]["sample"]) for e in events if e["ph"] == "X" and "args" in e]
    assert len(work) == len(set(work)) == 15
    assert {e["args"]["name"] for e in events if e["name"] == "thread_name"} == {"gpu[1]", "gpu[2]"}
    for thread in (1, 2):
        times = sorted(
            (e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X" and "args" in e and e["tid"] == thread
        )
        assert all(a[1] <= b[0] + 1e-6 for a, b in itertools.pairwise(times))
    starts, ends = ([e["id"] for e in events if e["ph"] == ph] for ph in "sf")
    assert sorted(starts) == sorted(ends)
    assert len(starts) == 10


def test_a_picture_in_each_kind(folder: Path) -> None:
    for name, begin in (("t.svg", b"<?xml"), ("t.png", b"\x89PNG")):
        assert main(["timeline", "chain.place", "split.json", "--picture", name]) == 0
        assert (folder / name).read_bytes().startswith(begin)


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["--samples", "0"], 2, "0 is not in the range"),
        (["--samples", "99999999"], 2, "at most 1666666 samples"),
        (["--schedule", "gpip"], 2, "did you mean 'gpipe'?"),
        (["--schedule", "1f1b"], 2, "has no backward part"),
        (["--microbatches", "4"], 2, "'microbatches' is for schedule gpipe"),
        (["--trace", "absent/t.json"], 2, "there is no folder 'absent'"),
        (["--json", "."], 2, "this is a folder"),
        (["--picture", "t.txt"], 2, "the name of a picture ends in"),
    ],
)
def test_what_cannot_be_asked_for(
    options: list[str], code: int, told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(folder.iterdir())
    assert main(["timeline", "chain.place", "split.json", *options]) == code
    assert told in capsys.readouterr().err
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("placement", "told"),
    [
        ({**SPLIT, "other": "gpu[1]"}, "the graph has no node 'other'"),
        ({**SPLIT, "last": "gpu[3]"}, "there is no device 'gpu[3]'"),
        ({"first": "gpu[1]"}, "nodes not placed: middle, last"),
        (dict.fromkeys(SPLIT, "gpu[1]"), "gpu[1] holds 5 GiB, 1 GiB more than its 4 GiB"),
        ({"placement": None}, "this answer holds no placement"),
    ],
)
def test_placements_that_do_not_fit(
    placement: object, told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "split.json").write_text(json.dumps(placement), encoding="utf-8")
    assert main(["timeline", "chain.place", "split.json"]) == 1
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("added", "beside"),
    [
        ("schedule overlapped", ["transfers of"]),
        ("schedule duplex", ["into", "out of"]),
        ("parallelism { data = 1..2 }", []),
    ],
)
def test_transfers_beside_computation_have_rows(added: str, beside: list[str], folder: Path) -> None:
    (folder / "chain.place").write_text(SPEC.replace("minimize", f"{added}\nminimize"), encoding="utf-8")
    assert main(["timeline", "chain.place", "split.json", "--trace", "trace.json", "--picture", "run.svg"]) == 0
    events = json.loads((folder / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    names = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
    assert names[:2] == ["gpu[1]", "gpu[2]"]
    for word in beside:
        assert {f"{word} gpu[1]", f"{word} gpu[2]"} <= set(names)
    assert (folder / "run.svg").exists()
