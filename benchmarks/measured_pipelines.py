"""Predicted time per sample against pipelines that run: ``python benchmarks/measured_pipelines.py [FOLDER]``.

A model is exported, profiled and placed by the commands of placedsl, and what ``placedsl export`` writes is run by as
many processes as there are devices, of one thread each.  All of a row happens in one run of this program, at moments at
which nothing else runs on the machine, as far as there are any.  With ``--training``: steps of training, by two
processes, of models that are measured layer by layer, forward and backward.  Needs the extra ``clients``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import measured_models
import torch
from measured_stages import QUIET, busy

HERE = Path(__file__).parent
RANKS = (2, 4)
MICROBATCHES, PASSES = 24, 25
SPEC = """\
import "links.place"
graph from "{model}.pt2" {{ profile = "{model}.csv" }}
device worker[{ranks}]: accelerator {{ memory = 4 GiB, compute = 1 TFLOP/s, memory_bandwidth = 1 TB/s }}
minimize time_per_sample
subject to
    contiguous
    boundaries by layer
    exportable_to_torch_pipelining
    all_used: forall d in worker: used(d)
"""
TRAINING_SPEC = """\
import "links.place"
graph from "{model}.json" {{ profile = "{model}.csv" }}
device worker[{ranks}]: accelerator {{ memory = 4 GiB }}
minimize time_per_sample
subject to
    contiguous
    colocated by module
    exportable_to_torch_pipelining
    all_used: forall d in worker: used(d)
"""


def placedsl(folder: Path, *words: str) -> None:
    """A command, which must succeed."""
    path = os.pathsep.join((str(HERE.parent), os.environ.get("PYTHONPATH", "")))
    subprocess.run(
        [sys.executable, "-m", "placedsl", *words], cwd=folder, check=True, env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=600,
    )  # fmt: skip


def wait_for_quiet() -> None:
    """Until other programs leave all cores for a second, or for a minute; those that give way do not count."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        before = busy(niced=False)
        time.sleep(1.0)
        if busy(niced=False) - before <= QUIET:
            return
        time.sleep(3.0)


def source(model: str) -> tuple[str, ...]:
    """What ``placedsl profile`` is given for a model."""
    trained = model in measured_models.TRAINED
    return (f"{HERE / 'measured_models.py'}:{model}", "--training") if trained else (f"{model}.pt2",)


def profile(model: str, folder: Path, output: str, beside: int = 0, *options: str) -> Path:
    """The profile of a model on one core, while so many other processes run it as well.

    It is taken again, four times at most, where the machine was busy: a whole pass is then interrupted more often than
    a single operator, and the operators do not add up to it.
    """
    for _ in range(5):
        if "--cpu-time" not in options:
            wait_for_quiet()
        placedsl(folder, "profile", *source(model), "--device", "cpu", "--threads", "1", "--as", "worker", "--quiet",
                 "--beside", str(beside), *options, "--repeats", str(PASSES), "-o", output)  # fmt: skip
        if abs(number(folder / output, "operators take ", " of") - 1.0) < 0.06:
            break
    return folder / output


def solved(model: str, ranks: int, folder: Path) -> tuple[float, list[float]]:
    """Time per sample of the best placement under a profile, and the loads of its stages in their order."""
    spec = TRAINING_SPEC if model in measured_models.TRAINED else SPEC
    (folder / "spec.place").write_text(spec.format(model=model, ranks=ranks), encoding="utf-8")
    placedsl(folder, "solve", "spec.place", "--json", "answer.json", "--quiet")
    answer = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
    loads = {device["name"]: device["load"] for device in answer["devices"]}
    return answer["objective"]["value"], [loads[stage["devices"][0]] for stage in answer["plan"]["stages"]]


def evaluated(folder: Path) -> tuple[float, list[float]]:
    """Time per sample of the placement that was found, and its loads, under the profile that is there now."""
    placedsl(folder, "evaluate", "spec.place", "answer.json", "--json", "later.json")
    told = json.loads((folder / "later.json").read_text(encoding="utf-8"))
    return told["objectives"][0]["value"], [device["load"] for device in told["devices"]]


def run(model: str, exported: Path) -> list[dict[str, Any]]:
    """The batches that the processes measure: those that had the machine for themselves, or all if none had."""
    words = [sys.executable, str(HERE / "measured_stages.py"), model, str(exported)]
    if model in measured_models.TRAINED:
        words.append("training")
    else:
        wait_for_quiet()
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=400)
    batches = json.loads(done.stdout.splitlines()[-1])
    return [batch for batch in batches if batch["others"] <= QUIET] or batches


def row(model: str, ranks: int, folder: Path) -> list[str]:
    """A row of the table."""
    cores = len(os.sched_getaffinity(0))
    trained = model in measured_models.TRAINED
    clock = ("--cpu-time",) if trained else ()
    first = profile(model, folder, f"{model}.csv", 0, *clock)
    before = whole(first)  # the file is written anew
    alone, _ = solved(model, ranks, folder)
    calls = (*clock, "--interpreted")
    profile(model, folder, f"{model}.csv", min(ranks, cores) - 1, *calls)
    predicted, loads = solved(model, ranks, folder)
    shared = max(predicted, sum(loads) / cores)
    out = folder / f"{model}-{ranks}"
    placedsl(folder, "export", "answer.json", "--to", "torch-pipelining", "--microbatches", str(MICROBATCHES),
             "-o", str(out))  # fmt: skip
    batches = run(model, out)
    between = [batch["between"] for batch in batches]
    measured, others = median(between), median(batch["others"] for batch in batches)
    computing = [median(column) for column in zip(*(batch["computing"] for batch in batches), strict=True)]
    cpu = max(median(column) for column in zip(*(batch["cpu"] for batch in batches), strict=True))
    profile(model, folder, f"{model}.csv", min(ranks, cores) - 1, *calls)
    later, loads_later = evaluated(folder)
    shared_later = max(later, sum(loads_later) / cores)
    drift = whole(profile(model, folder, f"{model}-again.csv", 0, *clock)) / before
    return [
        model, str(ranks), f"{alone * 1e3:.2f}", f"{shared * 1e3:.2f}", f"{shared_later * 1e3:.2f}",
        f"{measured * 1e3:.2f}", f"{min(between) * 1e3:.2f} to {max(between) * 1e3:.2f}", f"{measured / alone:.2f}",
        f"{measured / shared:.2f}", f"{2 * measured / (shared + shared_later):.2f}",
        f"{cpu * 1e3:.2f}", f"{cpu / predicted:.2f}", f"{max(others, 0.0):.2f}", f"{drift:.2f}",
        " ".join(f"{seconds * 1e3:.1f}" for seconds in loads),
        " ".join(f"{seconds * 1e3:.1f}" for seconds in computing),
    ]  # fmt: skip


def number(profiled: Path, before: str, after: str) -> float:
    """A number in the comments of a profile, between two texts."""
    return float(profiled.read_text(encoding="utf-8").split(before, 1)[1].split(after, 1)[0])


def whole(profiled: Path) -> float:
    """Milliseconds of the whole model."""
    return number(profiled, "whole model's ", " ms")


def main(folder: Path, *, training: bool) -> None:
    """Print the table."""
    cores = len(os.sched_getaffinity(0))
    print(f"torch {torch.__version__}, {cores} cores, load average {os.getloadavg()[0]:.1f}")
    wait_for_quiet()
    placedsl(folder, "profile", "--links", "--as", "worker", "-o", "links.place")
    print((folder / "links.place").read_text(encoding="utf-8").splitlines()[-1])
    print("| model | processes | predicted alone, ms | predicted, ms | predicted after, ms | measured, ms | range "
          "| ratio alone | ratio | ratio to the mean | CPU, ms | ratio of the CPU | cores of others "
          "| profile after / before | loads, ms | computing, ms |")  # fmt: skip
    print("|" + " --- |" * 16)
    for model in measured_models.TRAINED if training else measured_models.MODELS:
        if not training:
            module, one = measured_models.made(model)
            torch.export.save(torch.export.export(module, (one,)), folder / f"{model}.pt2")
        for ranks in RANKS[:1] if training else RANKS:
            print("| " + " | ".join(row(model, ranks, folder)) + " |", flush=True)


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word != "--training"]
    trained = "--training" in sys.argv[1:]
    if given:
        place = Path(given[0])
        place.mkdir(exist_ok=True)
        main(place.absolute(), training=trained)
    else:
        with tempfile.TemporaryDirectory() as made_folder:
            main(Path(made_folder), training=trained)
