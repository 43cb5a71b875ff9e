"""python run_deepspeed.py FOLDER LAYERS: the PipelineModule of the file in gloo processes, forward across stages."""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from importlib import import_module
from pathlib import Path

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from run_torch_pipelining import free_port

import models


def work(rank: int, ranks: int, folder: Path, layers: int, port: int) -> None:
    os.environ |= {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo", "RANK": str(rank),
        "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks),
    }  # fmt: skip
    torch.set_num_threads(1)
    import deepspeed
    from deepspeed.runtime.pipe.module import LayerSpec

    sys.path.insert(0, str(folder))
    from placed_pipeline import PlacedPipeline

    # gloo carries all messages; else a kernel for them is compiled here
    import_module("deepspeed.comm.torch").build_shm_op = lambda: None  # type: ignore[attr-defined]
    deepspeed.init_distributed("gloo", timeout=timedelta(seconds=120))
    given = json.loads((folder / "deepspeed.json").read_text(encoding="utf-8"))
    whole = models.decoder(layers)
    items = [whole.get_submodule(path) for path in given["layers"]]
    pipeline = PlacedPipeline(
        layers=[LayerSpec(type(Holder(item)), item) for item in items],
        num_stages=given["num_stages"],
        loss_fn=models.loss,
    )
    assert list(pipeline.parts) == given["parts"]
    own = list(pipeline.forward_funcs)
    assert len(own) == given["parts"][rank + 1] - given["parts"][rank]
    tokens, _ = models.batch(2)
    x = tokens
    if rank > 0:
        x = torch.empty(2, 5, models.WIDTH, dtype=torch.float64)
        dist.recv(x, rank - 1)
    for function in own:
        x = function(x)
    if rank < ranks - 1:
        dist.send(x.detach(), rank + 1)
    else:
        torch.testing.assert_close(x, whole(tokens), rtol=0, atol=1e-12)
        print(f"accepted by DeepSpeed {deepspeed.__version__}: {given['parts']}; outputs agree")
    dist.barrier()
    dist.destroy_process_group()


class Holder(torch.nn.Module):
    """A layer that exists already."""

    def __init__(self, item: torch.nn.Module) -> None:
        super().__init__()
        self.item = item

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.item(x)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    count = json.loads((place / "deepspeed.json").read_text(encoding="utf-8"))["num_stages"]
    processes.spawn(work, (count, place, int(sys.argv[2]), free_port()), nprocs=count)
