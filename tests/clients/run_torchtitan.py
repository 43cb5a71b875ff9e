"""python run_torchtitan.py FOLDER LAYERS [tied]: torchtitan's own split and schedule, a step of gloo processes."""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from run_torch_pipelining import free_port
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torchtitan.config.configs import ParallelismConfig
from torchtitan.distributed.pipeline_parallel import _build_pipeline_schedule, _pipeline_module_split

import models


class Titan(nn.Module):
    """A decoder with torchtitan's names, whose parts may be absent."""

    def __init__(self, layers: int, tied: bool) -> None:
        super().__init__()
        made = models.decoder(layers, tied)
        self.tok_embeddings = made.model.embed_tokens
        self.layers = nn.ModuleDict({str(k): layer for k, layer in enumerate(made.model.layers)})
        self.norm, self.lm_head = made.model.norm, made.lm_head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x if self.tok_embeddings is None else self.tok_embeddings(x)
        for layer in self.layers.values():
            x = layer(x)
        x = x if self.norm is None else self.norm(x)
        return x if self.lm_head is None else self.lm_head(x)


def loss(logits: torch.Tensor, wanted: torch.Tensor) -> tuple[torch.Tensor, None]:
    return models.loss(logits, wanted), None


def work(rank: int, ranks: int, arguments: dict, layers: int, tied: bool, port: int) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks, timeout=timedelta(seconds=60))
    parallelism = ParallelismConfig(**arguments)
    mesh = init_device_mesh("cpu", (ranks,), mesh_dim_names=("pp",))
    parts = parallelism.module_fqns_per_model_part
    assert parts is not None
    stages, own = _pipeline_module_split(
        Titan(layers, tied), mesh, parallelism.pipeline_parallel_schedule, torch.device("cpu"), parts
    )
    microbatches = 2 * len(parts)
    schedule = _build_pipeline_schedule(
        parallelism=parallelism, local_batch_size=microbatches, stages=stages, loss_fn=loss
    )
    tokens, wanted = models.batch(microbatches)
    whole = Titan(layers, tied)
    each = zip(tokens.chunk(microbatches), wanted.chunk(microbatches))
    sum(models.loss(whole(x), y) for x, y in each).backward()  # type: ignore[union-attr]
    parameters = sorted(name for name, _ in whole.named_parameters())
    expected = {name: one.grad for name, one in whole.named_parameters(remove_duplicate=False)}
    last = any(stage.is_last for stage in stages)
    first = any(stage.is_first for stage in stages)
    schedule.step(*((tokens,) if first else ()), **({"target": wanted, "losses": []} if last else {}))
    names = []
    for part in own:
        for name, parameter in part.named_parameters():
            torch.testing.assert_close(parameter.grad, expected[name], rtol=0, atol=1e-10)
            names.append(name)
    counted: list[object] = [None] * ranks
    dist.all_gather_object(counted, names)
    if rank == 0:
        every = sorted(name for one in counted for name in one)  # type: ignore[attr-defined]
        assert every == parameters, "each parameter is in one part"
        print(
            f"accepted: {len(parts)} parts on {ranks} ranks, {parallelism.pipeline_parallel_schedule}; gradients agree"
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    given = json.loads((Path(sys.argv[1]) / "torchtitan.json").read_text(encoding="utf-8"))
    count = given["pipeline_parallel_degree"]
    processes.spawn(work, (count, given, int(sys.argv[2]), "tied" in sys.argv, free_port()), nprocs=count)
