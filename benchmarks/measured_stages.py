"""``python measured_stages.py MODEL FOLDER``: the pipeline in FOLDER, a process of one thread for each rank.

FOLDER is what ``placedsl export --to torch-pipelining`` writes.  Batches are run until five had the machine for
themselves, or for 75 s.  Prints a JSON value, a list of batches: the seconds between two samples that the last
stage ends, how many cores other programs had meanwhile, and for each rank the seconds that it computes for a sample and
the seconds of CPU that its process takes for one.
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


def work(rank: int, ranks: int, name: str, folder: Path, meeting: str) -> None:
    """One rank: its stages, forward passes only."""
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
    begun = [0.0]
    for stage in stages:
        stage.submod.register_forward_pre_hook(lambda *_: begun.__setitem__(0, time.perf_counter()))
        stage.submod.register_forward_hook(lambda *_: spans.append((begun[0], time.perf_counter())))
    schedule = _PipelineScheduleRuntime(stages, microbatches, loss_fn=lambda out, wanted: out.sum())
    schedule._load_csv(str(folder / "schedule.csv"), format="compute_only")
    last = pipe.num_stages - 1 in own
    inputs = torch.cat([one] * microbatches)
    wanted = torch.zeros(len(inputs))
    batches: list[dict[str, object]] = []
    begun_at = time.monotonic()
    while True:
        spans.clear()
        dist.barrier()
        before = (time.perf_counter(), busy(), time.process_time())
        with torch.no_grad():
            schedule.eval(*((inputs,) if 0 in own else ()), **({"target": wanted} if last else {}))
        dist.barrier()
        seconds, spent, own_cpu = (b - a for a, b in zip(before, (time.perf_counter(), busy(), time.process_time())))
        ends = [end for _, end in spans][ranks:]  # the pipeline is full
        between = (ends[-1] - ends[0]) / (len(ends) - 1) if last else 0.0
        told: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)] * ranks
        dist.all_gather_object(told, (own_cpu, between, len(own) * median(end - begin for begin, end in spans)))
        others = (spent - sum(cpu for cpu, _, _ in told)) / seconds
        computing = [each for _, _, each in told]
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
    processes.spawn(work, (count, sys.argv[1], place, at), nprocs=count)
