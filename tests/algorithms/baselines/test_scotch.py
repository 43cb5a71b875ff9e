"""The baseline "scotch": what is written for the program, what is read from it, and what is said without it."""

from __future__ import annotations

from pathlib import Path

import pytest

import placedsl
from placedsl.diagnostics import UsageError

DIAMOND = """
graph {
    node a { time = {accelerator: 4 ms, host: 40 ms}, output = 2 GiB }
    node b { time = {accelerator: 6 ms, host: 40 ms}, output = 1 GiB, color = 1 }
    node c { time = {accelerator: 3 ms, host: 40 ms}, output = 1 GiB, color = 1 }
    node d { time = {accelerator: 7 ms, host: 40 ms}, output = 1 GiB }
    node e { time = {host: 1 ms} }
    a -> b -> d -> e
    a -> c -> d
}
device gpu[2]: accelerator
device cpu: host
interconnect { bandwidth = 1 GiB/s }
minimize time_per_sample
subject to
    colocated by color
"""


def test_vertices_are_what_shares_a_device_and_edges_what_moving_takes(partitioner: Path) -> None:
    answer = placedsl.loads(DIAMOND).solve(method="scotch")
    arguments, *lines = (partitioner / "seen").read_text(encoding="utf-8").splitlines()
    assert arguments == "2"
    # Three vertices: a, {b, c}, d; e is left to the host.  Of 2 s each: a's tensor once, those of b and c together.
    assert lines[:3] == ["0", "3 4", "0 011"]
    rows = [[int(word) for word in line.split()] for line in lines[3:]]
    assert [row[1] for row in rows] == [1, 2, 1]
    assert [row[0] / rows[0][0] for row in rows] == pytest.approx([1.0, 9 / 4, 7 / 4])
    (ab,), (ba, bd), (db,) = ([(row[i + 1], row[i]) for i in range(2, len(row), 2)] for row in rows)
    assert (ab[0], ba[0], bd[0], db[0]) == (1, 0, 2, 1)
    assert ab[1] == ba[1] == bd[1] == db[1]
    # The stand-in deals the vertices out in turn.
    assert answer.device_of() == {"a": "gpu[1]", "b": "gpu[2]", "c": "gpu[2]", "d": "gpu[1]", "e": "cpu"}
    assert (answer.termination, answer.exit_code) == ("ended", 4)


def test_it_is_skipped_loudly_where_it_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"scotch_gpart is not there: .*apt install scotch"):
        placedsl.loads(DIAMOND).solve(method="scotch")


def test_a_program_of_the_same_name_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a ``gpart`` that guesses the partitions of a disk."""
    other = tmp_path / "gpart"
    other.write_text("#!/bin/sh\necho gpart 0.3, a tool for disks\n", encoding="utf-8")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr("placedsl.algorithms.baselines.scotch.PROGRAMS", ("a_program_that_is_nowhere", "gpart"))
    with pytest.raises(UsageError, match="is not there"):
        placedsl.loads(DIAMOND).solve(method="scotch")
    other.write_text("#!/bin/sh\necho gmap/gpart, version 7\nexit 1\n", encoding="utf-8")
    with pytest.raises(UsageError, match="gpart' failed: gmap/gpart, version 7"):
        placedsl.loads(DIAMOND).solve(method="scotch")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("3\n0 0\n1 0\n", "wrote no mapping of the 3 vertices"),
        ("3\n0 0\n1 0\n2 7\n", "wrote parts beyond the 2 that were asked for"),
        ("no numbers\n", "wrote no mapping"),
        ("", "wrote no mapping"),
    ],
)
def test_what_is_no_mapping_is_an_error(
    written: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "scotch_gpart"
    (tmp_path / "text").write_text(written, encoding="utf-8")
    fake.write_text(f'#!/bin/sh\ncat "{tmp_path / "text"}" > "$3"\n', encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(UsageError, match=words):
        placedsl.loads(DIAMOND).solve(method="scotch")


def test_a_program_that_takes_too_long_ends_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "scotch_gpart"
    fake.write_text("#!/bin/sh\nexec sleep 100\n", encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    answer = placedsl.loads(DIAMOND).solve(method="scotch", time_limit=0.5)
    assert (answer.termination, answer.exit_code, answer.placement) == ("time_limit", 5, None)


def test_parts_that_are_alike_need_accelerators_that_are(partitioner: Path) -> None:
    mixed = DIAMOND.replace("device cpu", "device tpu: accelerator { memory = 1 GiB }\ndevice cpu")
    with pytest.raises(UsageError, match="its parts are all alike, and the accelerators are not"):
        placedsl.loads(mixed).solve(method="scotch")
