"""One of the two processes of :mod:`placedsl.measurement.links`: ``RANK MEETING BACKEND REPEATS WARM_UP SIZE ...``.

The first writes a JSON value a line: the runtime, then the median seconds of half a round trip of each size.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta
from statistics import median

#: Seconds after which a process that hears nothing from the other gives up.
_LIMIT_S = 60


def main(words: list[str]) -> None:
    """Meet the other process and send tensors to and fro."""
    import torch
    import torch.distributed as dist

    rank, meeting, backend = int(words[0]), words[1], words[2]
    repeats, warm_up, *sizes = map(int, words[3:])
    torch.set_num_threads(1)
    device = torch.device("cpu" if backend == "gloo" else f"cuda:{rank % max(torch.cuda.device_count(), 1)}")
    dist.init_process_group(backend, init_method=meeting, rank=rank, world_size=2, timeout=timedelta(seconds=_LIMIT_S))
    if rank == 0:
        _say({"runtime": f"{backend} of torch {torch.__version__}"})
    for size in sizes:
        tensor = torch.zeros(size, dtype=torch.uint8, device=device)
        halves = []
        for k in range(warm_up + repeats):
            begun = time.perf_counter()
            if rank == 0:
                dist.send(tensor, 1)
                dist.recv(tensor, 1)
            else:
                dist.recv(tensor, 0)
                dist.send(tensor, 0)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if k >= warm_up:
                halves.append((time.perf_counter() - begun) / 2)
        if rank == 0:
            _say({"bytes": size, "seconds": median(halves)})
    dist.barrier()
    dist.destroy_process_group()


def _say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
