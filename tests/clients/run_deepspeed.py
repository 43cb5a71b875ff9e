"""python run_deepspeed.py FOLDER LAYERS [tied|loose]: the PipelineModule of the file in gloo processes, both passes.

``tied``: of a model whose head has the weights of the embedding; ``loose``: of that too, without a TiedLayerSpec.
"""

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


def work(rank: int, ranks: int, folder: Path, layers: int, tied: str, port: int) -> None:
    os.environ |= {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo", "RANK": str(rank),
        "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks),
    }  # fmt: skip
    torch.set_num_threads(1)
    import deepspeed
    from deepspeed.runtime.pipe.module import LayerSpec, TiedLayerSpec

    sys.path.insert(0, str(folder))
    from placed_pipeline import PlacedPipeline

    # gloo carries all messages; else a kernel for them is compiled here
    import_module("deepspeed.comm.torch").build_shm_op = lambda: None  # type: ignore[attr-defined]
    deepspeed.init_distributed("gloo", timeout=timedelta(seconds=120))
    given = json.loads((folder / "deepspeed.json").read_text(encoding="utf-8"))
    whole = models.decoder(layers, bool(tied))
    items = [whole.get_submodule(path) for path in given["layers"]]
    specs = [LayerSpec(Holder, item) for item in items]
    for first, *others in given.get("tied", []) if tied != "loose" else ():
        specs[first] = TiedLayerSpec("same", Holder, items[first], tied_weight_attr="item.weight")
        for k in others:
            specs[k] = TiedLayerSpec("same", Holder, items[first], forward_fn=projected, tied_weight_attr="item.weight")
    pipeline = PlacedPipeline(layers=specs, num_stages=given["num_stages"], loss_fn=models.loss)
    assert list(pipeline.parts) == given["parts"]
    own = list(pipeline.forward_funcs)
    assert len(own) == given["parts"][rank + 1] - given["parts"][rank]
    tokens, wanted = models.batch(2)
    x = read = tokens
    if rank > 0:
        read = torch.empty(2, 5, models.WIDTH, dtype=torch.float64)
        dist.recv(read, rank - 1)
        x = read.requires_grad_()
    for function in own:
        x = function(x)
    if rank < ranks - 1:
        dist.send(x.detach(), rank + 1)
        back = torch.empty_like(x)
        dist.recv(back, rank + 1)
        x.backward(back)
    else:
        torch.testing.assert_close(x, whole(tokens), rtol=0, atol=1e-12)
        models.loss(x, wanted).backward()
    if rank > 0:
        assert read.grad is not None
        dist.send(read.grad, rank - 1)
    pipeline.allreduce_tied_weight_gradients()
    again = models.decoder(layers, bool(tied))
    models.loss(again(tokens), wanted).backward()
    for name, parameter in pipeline.named_parameters():
        number, rest = name.split(".item.", 1)
        path = given["layers"][given["tied"][0][0] if number.startswith("tied_modules") else int(number)]
        torch.testing.assert_close(parameter.grad, again.get_parameter(f"{path}.{rest}").grad, rtol=0, atol=1e-10)
    dist.barrier()
    if rank == ranks - 1:
        linked = f", {len(pipeline.tied_comms)} tied" * bool(tied)
        print(f"accepted by DeepSpeed {deepspeed.__version__}: {given['parts']}{linked}; outputs and gradients agree")
    dist.destroy_process_group()


class Holder(torch.nn.Module):
    """A layer that exists already."""

    def __init__(self, item: torch.nn.Module) -> None:
        super().__init__()
        self.item = item

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.item(x)


def projected(holder: Holder, x: torch.Tensor) -> torch.Tensor:
    """A head of the weights of an embedding."""
    return torch.nn.functional.linear(x, holder.item.weight)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    count = json.loads((place / "deepspeed.json").read_text(encoding="utf-8"))["num_stages"]
    words = (count, place, int(sys.argv[2]), "".join(sys.argv[3:]), free_port())
    processes.spawn(work, words, nprocs=count)
