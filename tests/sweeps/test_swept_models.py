"""Sweeps over specs that read models and profiles: all of it goes where the runs are, and counts for their keys."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.paths import ROOT

import placedsl
from placedsl.api.spec import spec_of
from placedsl.sweeps.jobs import jobs_of, texts_of
from placedsl.sweeps.runs import Run

DOCS = ROOT / "docs"
SPEC = """
param samples = 4
graph from "data/picture.onnx" { batch = samples, profile = "data/times.csv" }
device gpu: accelerator { compute = 10 TFLOP/s, memory_bandwidth = 300 GB/s }
device cpu: host { compute = 500 GFLOP/s, memory_bandwidth = 40 GB/s }
interconnect { bandwidth = 16 GB/s }
minimize time_per_sample
"""


def written(folder: Path) -> Path:
    """The spec beside a folder with its model and profile."""
    (folder / "data").mkdir(parents=True)
    shutil.copy(DOCS / "picture.onnx", folder / "data")
    shutil.copy(DOCS / "picture-times.csv", folder / "data" / "times.csv")
    (folder / "model.place").write_text(SPEC, encoding="utf-8")
    return folder / "model.place"


def test_a_spec_is_read_where_its_files_are_not(tmp_path: Path) -> None:
    texts = texts_of(str(written(tmp_path / "here")), None)
    problem = spec_of(texts.source, tmp_path / "there", {"samples": "16"}, held=texts.held).problem
    assert problem.graph.attributes["flops"][0] > 9e8
    assert problem.measured.sum() == 6


def test_the_model_and_the_profile_count_for_the_key(tmp_path: Path) -> None:
    keys = set()
    for name, change in (("a", ""), ("b", ""), ("c", "data/times.csv"), ("d", "data/picture.onnx")):
        path = written(tmp_path / name)
        if change.endswith("csv"):
            changed = path.parent / change
            changed.write_text(changed.read_text(encoding="utf-8").replace("0.4", "0.5"), encoding="utf-8")
        elif change:
            changed = path.parent / change
            changed.write_bytes(changed.read_bytes().replace(b"relu1", b"relu9"))
        (job,) = jobs_of([Run(str(path))])
        keys.add(job.key)
    assert len(keys) == 3


PLANS = """
param gpus = 8
graph from "blocks.json"
device gpu[gpus]: accelerator { memory = 24 GiB }
interconnect { bandwidth = 16 GiB/s }
parallelism { microbatches = 16, data = divisors(microbatches), tensor = {1, 2}, exchange = batch }
minimize time_per_sample
subject to
    memory
    contiguous
"""


@pytest.mark.rotates(1)
def test_a_sweep_over_devices_is_one_search_with_the_answers_of_each(tmp_path: Path) -> None:
    """The largest number goes first, in the process that keeps its tables; rows are in the order that was asked for."""
    shutil.copy(DOCS / "language" / "blocks.json", tmp_path)
    (tmp_path / "plans.place").write_text(PLANS, encoding="utf-8")
    heard = []
    table = placedsl.sweep(
        tmp_path / "plans.place", vary={"gpus": range(1, 13)}, out=tmp_path / "runs", jobs=1,
        progress=lambda row, _done, _total: heard.append(int(row.run.parameters["gpus"])),
    )  # fmt: skip
    assert heard == list(range(12, 0, -1))
    for gpus, row in enumerate(table, 1):
        alone = placedsl.load(tmp_path / "plans.place", {"gpus": str(gpus)}).solve()
        assert row.termination == alone.termination
        if alone.placement is not None:
            assert row.value == pytest.approx(alone.value, rel=1e-10)
            assert row.bound == pytest.approx(alone.bound, rel=1e-10)
    assert {row.termination for row in table} == {"optimal", "infeasible"}
