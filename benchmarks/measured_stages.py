"""``python measured_stages.py MODEL FOLDER [training]``: the pipeline in FOLDER, a process of one thread for each rank.

FOLDER is what ``placedsl export --to torch-pipelining`` writes.  Batches are run, forward only or as steps of training,
until five had the machine for themselves, or for 75 s.  Prints a JSON value, a list of batches: the seconds between two
samples that the last stage ends (training: between two backward passes that the first stage ends), how many cores other
programs had meanwhile, and for each rank the seconds that it computes for a sample and the seconds of CPU that its
process takes for one.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from statistics import median

import measured_models
import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch.distributed.pipelining import SplitPoint, pipeline
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

#: A batch counts where other programs had less than so many cores; so many are enough; seconds to wait for them.
QUIET, ENOUGH, LIMIT_S = 0.2, 5, 75.0


def rows_of(folder: Path) -> list[list[str]]:
    """The actions of each rank."""
    with (folder / "schedule.csv").open(encoding="utf-8", newline="") as file:
        return [[cell for cell in row if cell] for row in csv.reader(file)]


def timed(stage: object, name: str, spans: list[tuple[float, float]]) -> None:
    """Note when each call of a method of a stage begins and ends; what it receives is there by then."""
    inner = getattr(stage, name)

    def outer(*arguments: object, **options: object) -> object:
        begun = time.perf_counter()
        made = inner(*arguments, **options)
        spans.append((begun, time.perf_counter()))
        return made

    setattr(stage, name, outer)


def work(rank: int, ranks: int, name: str, folder: Path, meeting: str, training: bool) -> None:
    """One rank: its stages, forward passes only, or steps of training."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=ranks, timeout=timedelta(seconds=120))
    rows = rows_of(folder)
    microbatches = 1 + max(int(cell.split("F")[1]) for row in rows for cell in row if "F" in cell)
    own = sorted({int(cell.split("F")[0]) for cell in rows[rank] if "F" in cell})
    model, one = measured_models.made(name)
    split = {path: SplitPoint[at.upper()] for path, at in json.loads((folder / "split_spec.json").read_text()).items()}
    pipe = pipeline(model, mb_args=(one,), split_spec=split)
    stages = [pipe.build_stage(k, torch.device("cpu"), dist.group.WORLD) for k in own]
    spans: list[tuple[float, float]] = []
    back: list[tuple[float, float]] = []
    for stage in stages:
        timed(stage, "forward_one_chunk", spans)
        timed(stage, "backward_one_chunk", back)
    schedule = _PipelineScheduleRuntime(stages, microbatches, loss_fn=lambda out, wanted: out.sum())
    schedule._load_csv(str(folder / "schedule.csv"), format="compute_only")
    last = pipe.num_stages - 1 in own
    inputs = torch.cat([one] * microbatches)
    wanted = torch.zeros(len(inputs))
    batches: list[dict[str, object]] = []
    begun_at = time.monotonic()
    while True:
        spans.clear()
        back.clear()
        dist.barrier()
        before = (time.perf_counter(), busy(), time.process_time())
        run = schedule.step if training else schedule.eval
        with torch.set_grad_enabled(training):
            run(*((inputs,) if 0 in own else ()), **({"target": wanted} if last else {}))
        dist.barrier()
        seconds, spent, own_cpu = (b - a for a, b in zip(before, (time.perf_counter(), busy(), time.process_time())))
        ends = [end for _, end in (back if training else spans)][ranks:]  # the pipeline is full
        ends = ends[:-ranks] if training else ends  # and empties with backward passes alone
        tells = 0 in own if training else last
        between = (ends[-1] - ends[0]) / (len(ends) - 1) if tells else 0.0
        told: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)] * ranks
        each = len(own) * sum(median(end - begin for begin, end in one) for one in (spans, back) if one)
        dist.all_gather_object(told, (own_cpu, between, each))
        others = (spent - sum(cpu for cpu, _, _ in told)) / seconds
        computing = [own_each for _, _, own_each in told]
        batches.append({"between": max(b for _, b, _ in told), "others": others, "computing": computing,
                        "cpu": [cpu / microbatches for cpu, _, _ in told]})  # fmt: skip
        quiet = [batch for batch in batches[1:] if float(str(batch["others"])) <= QUIET]
        ended = [len(quiet) >= ENOUGH or time.monotonic() - begun_at > LIMIT_S]
        dist.broadcast_object_list(ended, 0)
        if ended[0]:
            break
        if others > QUIET:
            time.sleep(2.0)
    if rank == 0:
        print(json.dumps(batches[1:]))  # the first prepares the buffers
    dist.barrier()
    dist.destroy_process_group()


def busy(niced: bool = True) -> float:
    """Seconds that the cores of this machine have worked since it runs; ``niced``: also for programs that give way."""
    counted = [int(word) for word in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    idle = counted[3] + counted[4] + (0 if niced else counted[1])
    return (sum(counted) - idle) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    place = Path(sys.argv[2])
    count = len(rows_of(place))
    at = (place / f"meeting-{os.getpid()}").absolute().as_uri()
    processes.spawn(work, (count, sys.argv[1], place, at, "training" in sys.argv[3:]), nprocs=count)
