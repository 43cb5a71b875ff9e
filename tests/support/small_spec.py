"""A small spec for commands and sweeps."""

from __future__ import annotations

#: A chain of three operators over two accelerators and a host, with two parameters.
SMALL = """
graph {
    node a { time = {accelerator: 4 ms, host: 9 ms}, memory = 2 GiB, output = 8 MiB }
    node b { time = {accelerator: 6 ms, host: 40 ms}, memory = 3 GiB, output = 8 MiB }
    node c { time = {accelerator: 5 ms}, memory = 3 GiB }
    a -> b -> c
}
param room = 6 GiB
param gpus: int = 2
device gpu[gpus]: accelerator { memory = room }
device cpu: host
link gpu <-> cpu { bandwidth = 16 GB/s }
minimize time_per_sample
subject to
    memory
    contiguous
"""
