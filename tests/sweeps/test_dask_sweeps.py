"""A sweep on a Dask cluster of two processes gives what the pool of processes gives."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.small_spec import SMALL
from support.sweep_specs import NO_DASK, answers, hard_spec

import placedsl
from placedsl.processes import dask_cluster as clusters
from placedsl.sweeps.engine import planned, swept
from placedsl.sweeps.jobs import jobs_of

NODES = '"nodes": [{"id": "a", "time": {"accelerator": 2, "host": 9}}], "edges": []'
GRAPH = '{"format": "placedsl-graph", "version": 1, ' + NODES + "}"
pytestmark = [pytest.mark.xdist_group("dask"), pytest.mark.rotates(3)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason=NO_DASK)
    space = tmp_path_factory.mktemp("dask")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", local_directory=str(space)
    ) as made:
        yield made


def test_the_texts_are_sent_along(cluster: Any, tmp_path: Path) -> None:
    """Nothing that a spec reads is there any more when its runs begin."""
    (tmp_path / "cluster.place").write_text("device gpu[n]: accelerator\ndevice cpu: host\n", encoding="utf-8")
    (tmp_path / "one.json").write_text(GRAPH, encoding="utf-8")
    (tmp_path / "n.json").write_text('{"n": 2}', encoding="utf-8")
    text = (
        'import "cluster.place"\ngraph from "one.json" { time_unit = 1 ms }\nparam n: int\nminimize time_per_sample\n'
    )
    (tmp_path / "one.place").write_text(text, encoding="utf-8")
    axes = {"spec": (str(tmp_path / "one.place"),), "data": (str(tmp_path / "n.json"),), "seed": ("0", "1", "2")}
    jobs = jobs_of(planned(axes, None)[0])
    for path in tmp_path.iterdir():
        path.unlink()
    table = swept(jobs, tmp_path / "runs", dask=cluster.scheduler_address)
    assert [(row.termination, row.value) for row in table] == [("optimal", 0.002)] * 3
    local = swept(jobs, tmp_path / "others", size=1)
    assert [(row.termination, row.value) for row in local] == [("optimal", 0.002)] * 3


def test_the_same_table_as_here(cluster: Any, tmp_path: Path) -> None:
    spec = tmp_path / "small.place"
    spec.write_text(SMALL, encoding="utf-8")
    asked: dict[str, Any] = {"vary": {"gpus": [1, 2]}, "method": ["dp", "local-search"]}
    there = placedsl.sweep(spec, **asked, out=tmp_path / "there", dask=cluster.scheduler_address)
    here = placedsl.sweep(spec, **asked, out=tmp_path / "here")
    told = [[(row.termination, row.value, row.exit_code, row.message) for row in table] for table in (there, here)]
    assert told[0] == told[1]
    assert there.exit_code == 1  # local search fits no spec that asks for contiguous pieces
    again = placedsl.sweep(spec, **asked, out=tmp_path / "there", dask=cluster.scheduler_address)
    assert [row.earlier for row in again] == [True, False, True, False]


def test_stopping_ends_the_runs_on_the_cluster(cluster: Any, tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    quick, hard = tmp_path / "small.place", tmp_path / "hard.place"
    quick.write_text(SMALL, encoding="utf-8")
    hard.write_text(hard_spec(), encoding="utf-8")

    def solving() -> list[Any]:
        out = []
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                out += [process] if "placedsl.sweeps.worker" in " ".join(process.cmdline()) else []
        return out

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    table = placedsl.sweep(
        quick, hard, method="program", solver="highs", seed=[0, 1], time_limit=60, out=tmp_path / "runs",
        dask=cluster.scheduler_address, progress=stop,
    )  # fmt: skip
    assert table.stopped
    assert table.exit_code == 4
    assert len(answers(tmp_path / "runs")) == sum(row.termination == "optimal" for row in table) == 1
    until = time.monotonic() + 20
    while solving():
        assert time.monotonic() < until, "runs go on though the sweep was stopped"
        time.sleep(0.1)


def test_no_scheduler_at_that_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason=NO_DASK)
    monkeypatch.setattr(clusters, "PATIENCE", 0.5)
    (tmp_path / "small.place").write_text(SMALL, encoding="utf-8")
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        with pytest.raises(placedsl.UsageError, match="no Dask scheduler answers at"):
            placedsl.sweep(tmp_path / "small.place", out=tmp_path / "runs", dask=address)


def test_without_distributed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "find_spec", lambda name: None)
    (tmp_path / "small.place").write_text(SMALL, encoding="utf-8")
    with pytest.raises(placedsl.UsageError, match=r"pip install 'placedsl\[dask\]'"):
        placedsl.sweep(tmp_path / "small.place", out=tmp_path / "runs", dask="tcp://127.0.0.1:8786")
