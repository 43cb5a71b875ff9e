"""Three nodes in a chain and two devices."""

SPEC = """graph {
    node a { time = {accelerator: 4 ms, host: 9 ms}, memory = 1 GiB, output = 1 MiB }
    node b { time = {accelerator: 3 ms, host: 9 ms}, memory = 1 GiB, output = 1 MiB }
    node c { time = {accelerator: 2 ms, host: 9 ms}, memory = 1 GiB, output = 1 MiB }
    a -> b -> c
}
device gpu[2]: accelerator { memory = 6 GiB }
interconnect { bandwidth = 1 GiB/s }
"""
