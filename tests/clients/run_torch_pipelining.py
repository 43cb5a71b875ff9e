"""python run_torch_pipelining.py FOLDER LAYERS [tied]: a training step in gloo processes, against the whole model."""

from __future__ import annotations

import csv
import json
import os
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch.distributed.pipelining import SplitPoint, pipeline
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

import models


def rows_of(folder: Path) -> list[list[str]]:
    with (folder / "schedule.csv").open(encoding="utf-8", newline="") as file:
        return [[cell for cell in row if cell] for row in csv.reader(file)]


def work(rank: int, ranks: int, folder: Path, layers: int, tied: bool, port: int) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks, timeout=timedelta(seconds=60))
    split = {path: SplitPoint[at.upper()] for path, at in json.loads((folder / "split_spec.json").read_text()).items()}
    rows = rows_of(folder)
    microbatches = 1 + max(int(cell.split("F")[1]) for row in rows for cell in row if "F" in cell)
    tokens, wanted = models.batch(2 * microbatches)
    whole = models.decoder(layers, tied)
    per_part = [models.loss(whole(x), y) for x, y in zip(tokens.chunk(microbatches), wanted.chunk(microbatches))]
    (sum(per_part) / microbatches).backward()
    parameters = sorted(name for name, _ in whole.named_parameters())
    expected = {name: one.grad for name, one in whole.named_parameters(remove_duplicate=False)}

    pipe = pipeline(models.decoder(layers, tied), mb_args=(tokens[:2],), split_spec=split)
    own = sorted({int(cell.split(letter)[0]) for cell in rows[rank] for letter in "FB" if letter in cell})
    stages = [pipe.build_stage(k, torch.device("cpu"), dist.group.WORLD) for k in own]
    schedule = _PipelineScheduleRuntime(stages, microbatches, loss_fn=models.loss)
    schedule._load_csv(str(folder / "schedule.csv"), format="compute_only")
    last = pipe.num_stages - 1 in own
    losses: list[torch.Tensor] = []
    schedule.step(*((tokens,) if 0 in own else ()), **({"target": wanted, "losses": losses} if last else {}))
    if last:
        torch.testing.assert_close(torch.stack(losses), torch.stack(per_part).detach(), rtol=0, atol=1e-10)
    names = [name for stage in stages for name, _ in stage.submod.named_parameters()]
    for stage in stages:
        for name, parameter in stage.submod.named_parameters():
            torch.testing.assert_close(parameter.grad, expected[name], rtol=0, atol=1e-10)
    counted: list[object] = [None] * ranks
    dist.all_gather_object(counted, names)
    if rank == 0:
        every = sorted(name for one in counted for name in one)  # type: ignore[attr-defined]
        assert every == parameters, "each parameter is in one stage"
        print(
            f"accepted: {pipe.num_stages} stages on {ranks} ranks, {microbatches} microbatches; "
            "losses and gradients agree"
        )
    dist.destroy_process_group()


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


if __name__ == "__main__":
    place = Path(sys.argv[1])
    count = len(rows_of(place))
    processes.spawn(work, (count, place, int(sys.argv[2]), "tied" in sys.argv, free_port()), nprocs=count)
