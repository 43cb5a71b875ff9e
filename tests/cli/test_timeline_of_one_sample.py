"""``placedsl timeline`` under schedules of one sample: its files, and what is wrong told in words."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from placedsl.cli.main import main

SPEC = """graph {
    node a { time = 2 ms, output = 4 MB }
    node b { time = 3 ms, output = 4 MB }
    node c { time = 2 ms }
    a -> b -> c
}
device gpu[2]: accelerator
interconnect { bandwidth = 1 GB/s }
"""
PLACEMENT = {"a": "gpu[1]", "b": "gpu[2]", "c": "gpu[1]"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.place").write_text(SPEC + "minimize latency\nsubject to\n    sequential\n", encoding="utf-8")
    calls = SPEC + "schedule calls { pieces = 2 }\nminimize latency\n"
    (tmp_path / "calls.place").write_text(calls, encoding="utf-8")
    (tmp_path / "split.json").write_text(json.dumps({"placement": PLACEMENT}), encoding="utf-8")
    in_calls = {"placement": PLACEMENT, "schedule": {"nodes": {"c": {"piece": 2}}}}
    (tmp_path / "pieces.json").write_text(json.dumps(in_calls), encoding="utf-8")
    return tmp_path


def test_the_terminal_shows_the_critical_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", "flow.place", "split.json"]) == 0
    out = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert max(map(len, out.splitlines())) <= 80
    assert lines[0] == "dataflow, sequential: one sample takes 15 ms"
    assert lines[1] == "critical path: 5 steps, 7 ms of computation, 8 ms of transfers"
    assert "6 ms 9 ms b gpu[2] tensor of a (gpu[1] -> gpu[2])" in lines
    assert "gpu[1] 2 4 ms 26.7% 11 ms 11 ms: tensor of b (gpu[2] -> gpu[1])" in " ".join(out.split())


def test_solve_says_how_to_see_the_schedule(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (folder / "flow.place").read_text(encoding="utf-8").replace("2 ms,", "slow,")
    (folder / "slow flow.place").write_text("param slow: time = 2 ms\n" + text, encoding="utf-8")
    assert main(["solve", "slow flow.place", "--quiet", "--set", "slow=3 ms", "--json", "answer.json"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  schedule: ")]
    command = line.removeprefix("  schedule: placedsl ")
    assert main(shlex.split(command)) == 0
    assert "one sample takes 8 ms" in capsys.readouterr().out
    assert main(["solve", "flow.place", "--quiet"]) == 0
    told = "  schedule: solve with --json answer.json, then placedsl timeline flow.place answer.json"
    assert capsys.readouterr().out.splitlines()[-1] == told


def test_a_long_critical_path_is_shown_in_part(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = "\n".join(f"node n{v} {{ time = 1 ms }}" for v in range(100))
    chain = " -> ".join(f"n{v}" for v in range(100))
    text = f"graph {{\n{nodes}\n{chain}\n}}\ndevice gpu: accelerator\nminimize latency\n"
    (folder / "long.place").write_text(text, encoding="utf-8")
    (folder / "long.json").write_text(json.dumps({f"n{v}": "gpu" for v in range(100)}), encoding="utf-8")
    assert main(["timeline", "long.place", "long.json"]) == 0
    out = capsys.readouterr().out
    assert "… 70 more …" in out
    assert " n14 " in out
    assert " n15 " not in out
    assert " n85 " in out


@pytest.mark.parametrize(
    ("spec", "placement", "latency"), [("flow.place", "split.json", 15e-3), ("calls.place", "pieces.json", 23e-3)]
)
def test_files(folder: Path, spec: str, placement: str, latency: float, capsys: pytest.CaptureFixture[str]) -> None:
    """Under calls each of the two tensors goes out and in."""
    options = ["--json", "t.json", "--trace", "trace.json", "--picture", "t.svg"]
    assert main(["timeline", spec, placement, *options]) == 0
    assert "one sample takes" in capsys.readouterr().out
    document = json.loads((folder / "t.json").read_text(encoding="utf-8"))
    assert document["latency"] == pytest.approx(latency)
    assert json.loads((folder / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    picture = (folder / "t.svg").read_text(encoding="utf-8")
    assert "critical path" in picture
    assert "gpu[2]" in picture
    main(["timeline", spec, placement, "--picture", "again.svg"])
    assert (folder / "again.svg").read_text(encoding="utf-8") == picture


def test_json_on_stdout_is_all_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", "flow.place", "split.json", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["schedule"] == "dataflow"


@pytest.mark.parametrize("option", ["--samples", "--microbatches", "--schedule"])
def test_options_about_many_samples_are_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", "flow.place", "split.json", option, "4", "--json", "t.json"]) == 2
    told = f"error: '{option}' is for many samples; schedule dataflow is how one sample runs\n"
    assert capsys.readouterr().err == told
    assert not Path("t.json").exists()


def test_a_placement_that_waits_in_a_circle_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", "calls.place", "split.json", "--json", "t.json"]) == 1
    assert "split.json does not fit: calls: these wait for one another: " in capsys.readouterr().err
    assert not Path("t.json").exists()


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ([1, 2], "a schedule is an object"),
        ({"nodes": {"x": {"piece": 1}}}, "the graph has no node 'x'"),
        ({"nodes": {"a": {"piece": "one"}}}, "a number of 0 or more is expected as the piece of 'a'"),
        ({"nodes": {"a": {"piece": float("nan")}}}, "'piece' is not a number"),
        ({"nodes": {"a": {"piece": 7}}}, "a device has calls 1 to 2: a in call 7"),
    ],
)
def test_what_is_wrong_with_times(folder: Path, times: object, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wrong.json").write_text(json.dumps({"placement": PLACEMENT, "schedule": times}), encoding="utf-8")
    assert main(["timeline", "calls.place", "wrong.json"]) == 1
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("entry", [7, {}, {"tensor": 9, "to": "gpu[1]"}, {"tensor": 0, "to": []}, {"tensor": True}])
def test_what_is_wrong_with_transfers(folder: Path, entry: object, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {"placement": PLACEMENT, "schedule": {"transfers": [entry]}}
    (folder / "wrong.json").write_text(json.dumps(wrong), encoding="utf-8")
    assert main(["timeline", "flow.place", "wrong.json"]) == 1
    assert "a transfer has the number of a tensor and a device" in capsys.readouterr().err


def test_an_answer_that_evaluate_writes_is_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    """The order of an answer is its own, not that of the dispatch rule."""
    assert main(["evaluate", "calls.place", "pieces.json", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    Path("answer.json").write_text(
        json.dumps({"placement": PLACEMENT, "schedule": found["schedule"]}), encoding="utf-8"
    )
    assert main(["timeline", "calls.place", "answer.json", "--json", "-"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert [(t["device"], t["start"], t["finish"]) for t in again["tasks"]] == [
        (c["device"], c["start"], c["finish"]) for c in sorted(found["schedule"]["calls"], key=lambda c: c["start"])
    ]
