"""Where output goes: files, links, pipes, devices, streams that are closed or full, terminals without Unicode."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import networkx as nx
import pytest
from support.paths import child_environment

import placedsl
from placedsl import Model, UsageError
from placedsl.system import files

pytestmark = pytest.mark.rotates(3)

if sys.platform != "linux":
    pytest.skip("devices and limits of Linux", allow_module_level=True)

SPEC = """
graph {
    node "é" { time = 4 ms, output = 8 MiB }
    node b { time = 6 ms }
    "é" -> b
}
device gpu[2]: accelerator
interconnect { bandwidth = 16 GB/s }
minimize time_per_sample
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "small.place"
    path.write_text(SPEC, encoding="utf-8")
    return path


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A line of a shell in which ``$placedsl`` is the command."""
    known = {**child_environment(), "placedsl": f"{sys.executable} -m placedsl", **environment}
    done = subprocess.run(
        ["bash", "-c", line], env=known, capture_output=True, text=True, encoding="utf-8", check=False, timeout=100
    )
    assert "Traceback" not in done.stdout + done.stderr
    assert "Exception ignored" not in done.stderr
    return done


def test_a_regular_file_is_replaced_whole_with_its_permissions(tmp_path: Path) -> None:
    target = tmp_path / "answer.json"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o640)
    files.write(target, "new")
    assert target.read_text(encoding="utf-8") == "new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["answer.json"]


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for name in ("old.json", "new.json"):
        (tmp_path / name).symlink_to(f"there/{name}")
    (tmp_path / "there" / "old.json").write_text("old", encoding="utf-8")
    for name in ("old.json", "new.json"):
        files.write(tmp_path / name, "content")
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "there" / name).read_text(encoding="utf-8") == "content"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    files.write(pipe, "content")
    reader.join(timeout=30)
    assert got == ["content"]
    assert pipe.is_fifo()


def test_devices_stay(spec: Path) -> None:
    before = Path("/dev/null").stat()
    done = shell(f"$placedsl solve {spec} --quiet --json /dev/null >/dev/null")
    assert done.returncode == 0, done.stderr
    assert os.path.samestat(before, Path("/dev/null").stat())
    done = shell(f"$placedsl solve {spec} --quiet --json /dev/stdout | tail -n +5")
    assert '"schema"' in done.stdout


def test_stdout_as_a_file_keeps_all_that_is_written_to_it(spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    for target in ("/dev/stdout", str(out)):
        done = shell(f"$placedsl solve {spec} --quiet --json {target} > {out}")
        assert done.returncode == 0, done.stderr
        text = out.read_text(encoding="utf-8")
        assert text.startswith("optimal ")
        assert json.loads(text[text.index("{") :])["verified"]


def test_what_cannot_be_written_is_said(spec: Path, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    for target, reason in (
        (tmp_path, "is a directory"), (tmp_path / "no" / "a", "no such file"), (loop, "too many levels"),
        (Path("/dev/full"), "no space left on device"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=f"cannot be written: {reason}"):
            files.write(target, "content")
    with pytest.raises(UsageError, match=r"'\\ud800' is no character"):
        files.write(tmp_path / "a", "\ud800")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "command",
    [
        "solve small.place --quiet --json out", "solve small.place --quiet --picture out.svg",
        "emit small.place --to mps -o out", "explain small.place --json out", "conflict small.place --json out",
        "evaluate small.place placement.json --json out", "timeline small.place placement.json --json out",
        "timeline small.place placement.json --trace out", "timeline small.place placement.json --picture out.pdf",
        "sweep small.place --jobs 1 --quiet --out runs", "fmt small.place",
    ],
)  # fmt: skip
def test_files_that_cannot_be_written_leave_nothing_behind(command: str, spec: Path) -> None:
    """As on a full disk: no file may have a byte."""
    folder = spec.parent
    spec.write_text(SPEC.replace("minimize ", "minimize   "), encoding="utf-8")
    (folder / "placement.json").write_text('{"é": "gpu[1]", "b": "gpu[2]"}', encoding="utf-8")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    # Matplotlib has made no list of fonts yet, and cannot keep it either.
    done = shell(f"cd {folder}; export MPLCONFIGDIR={folder}/fonts; ulimit -f 0; $placedsl {command}")
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: '")
    assert done.stderr.endswith("cannot be written: file too large\n")
    assert done.stderr.count("\n") == 1
    kept = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "fonts"]
    assert {path: path.read_bytes() for path in kept} == before


@pytest.mark.parametrize("streams", [">&-", "> /dev/full", "<&- >&-"])
def test_stdout_that_takes_nothing(spec: Path, streams: str) -> None:
    for command in ("solve --quiet", "check", "explain", "emit --to lp"):
        done = shell(f"$placedsl {command} {spec} {streams}")
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("error: the output could not be written: ")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("streams", "code", "said"),
    [("> /dev/null", 1, 1), ("> /dev/full", 2, 2), (">&-", 2, 2), ("| true", 0, 1), ("> /dev/null 2>&-", 1, 0)],
)
def test_a_language_server_that_reads_no_message_or_can_send_none(streams: str, code: int, said: int) -> None:
    done = shell(f"printf 'Content-Length: 2\\r\\n\\r\\n{{}}' | $placedsl lsp {streams}")
    assert done.returncode == code, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == said
    assert all(line.startswith("error: ") for line in lines)


@pytest.mark.parametrize("streams", ["2>&-", "2> /dev/full"])
def test_stderr_that_takes_nothing(spec: Path, streams: str) -> None:
    done = shell(f"$placedsl solve {spec} --json - {streams}")
    assert done.returncode == 0
    assert json.loads(done.stdout)["verified"]
    assert shell(f"$placedsl check {spec}no {streams}").returncode == 1


def test_a_terminal_without_unicode(spec: Path) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = shell(f"$placedsl solve {spec} --quiet", **ascii_only)
    assert done.returncode == 0, done.stderr
    assert "\\xe9" in done.stdout
    assert "####" in done.stdout
    assert done.stdout.isascii()
    assert shell(f"$placedsl explain {spec}", **ascii_only).returncode == 0
    assert shell(f"$placedsl check {spec.parent}/é.place", **ascii_only).returncode == 1
    answer = json.loads(shell(f"$placedsl solve {spec} --quiet --json -", **ascii_only).stdout)
    assert "é" in answer["placement"]


@pytest.mark.parametrize("megabytes", [100, 300, 1000])
def test_too_little_memory_is_said_in_one_line(spec: Path, megabytes: int) -> None:
    def narrow() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    command = [sys.executable, "-m", "placedsl", "check", str(spec)]
    environment = child_environment()
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=100, preexec_fn=narrow
    )
    assert "Traceback" not in done.stderr
    if done.returncode != 0:
        assert done.returncode == 5, done.stderr
        assert done.stderr.startswith("error: the memory of this process is limited to ")
        assert done.stderr.count("\n") == 1


def test_reading_takes_no_more_memory_than_the_file_has(tmp_path: Path) -> None:
    file = tmp_path / "a"
    tracemalloc.start()
    try:
        for size in (0, 5, 1000, 200_000):
            file.write_bytes(b"x" * size)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            assert len(files.read_bytes(file, "graph-bytes")) == size
            assert tracemalloc.get_traced_memory()[1] - before < 10**6
    finally:
        tracemalloc.stop()


def test_no_more_is_read_than_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100)
    monkeypatch.setenv("PLACEDSL_LIMITS", "graph-bytes=100, stream-bytes=1000")
    assert len(files.read_bytes(tmp_path / "a", "graph-bytes")) == 100
    (tmp_path / "a").write_bytes(b"x" * 101)
    with pytest.raises(files.TooLargeError, match="it has 101 bytes, more than 100"):
        files.read_bytes(tmp_path / "a", "graph-bytes")
    assert len(files.read_bytes(Path("/proc/self/status"), "data-bytes")) > 100  # has 0 bytes, as it says itself
    with pytest.raises(files.TooLargeError, match="it has more than 1,000 bytes"):
        files.read_bytes(Path("/dev/zero"), "data-bytes")


def test_models_of_one_name_do_not_share_a_graph_file(tmp_path: Path) -> None:
    for stem, count in (("a", 2), ("b", 3)):
        model = Model()
        graph = nx.DiGraph()
        nx.add_path(graph, range(count))
        nx.set_node_attributes(graph, 1.0, "time")
        model.graph(graph, time_unit="ms")
        model.device("gpu", "accelerator", 2)
        model.interconnect(bandwidth=1e9)
        model.minimize("time_per_sample")
        model.write(tmp_path / f"{stem}.place")
    assert placedsl.load(tmp_path / "a.place").problem.graph.nodes == 2
    assert placedsl.load(tmp_path / "b.place").problem.graph.nodes == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.graph.json", "a.place", "b.graph.json", "b.place"]


def test_names_that_are_too_long(spec: Path) -> None:
    """They name nothing, whatever the system says of them."""
    name = "a" * 5000
    for option in (f"--json {name}", f"--json {name}/x.json", f"--picture {name}.svg"):
        done = shell(f"$placedsl solve '{spec}' --quiet {option}")
        assert done.returncode == 2, option
        assert done.stderr.count("\n") == 1, option
    spec.write_text(f'import "{name}.place"\n{SPEC}', encoding="utf-8")
    done = shell(f"$placedsl check '{spec}'")
    assert done.returncode == 1
    assert "small.place:1:8: error: there is no file" in done.stderr
