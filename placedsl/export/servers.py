"""On which machines the ranks of a pipeline are, and the numbers of their accelerators there.

A machine is an innermost cluster, or all devices where there is one such cluster or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from placedsl.export.layout import Layout

#: Begins the line that names the devices of all ranks in their order, where numbers do not tell them apart.
RANKS = "# Devices of the ranks in their order: "
#: In commands: the address of the first machine.
ADDRESS = "ADDRESS"


@dataclass(frozen=True)
class Server:
    """Ranks that follow one another on one machine.

    ``name``     of the cluster, or of the first of its devices outside of all clusters
    ``first``    the first of these ranks, from 0
    ``numbers``  of their accelerators on that machine, from 0, in the order of the ranks
    """

    name: str
    first: int
    numbers: tuple[int, ...]

    @property
    def environment(self) -> str:
        """The variable that shows a process these devices in this order."""
        return f"CUDA_VISIBLE_DEVICES={','.join(map(str, self.numbers))}"

    @property
    def ranks(self) -> str:
        """Its ranks in words."""
        last = self.first + len(self.numbers) - 1
        return f"rank {last}" if last == self.first else f"ranks {self.first} to {last}"


def servers(layout: Layout) -> list[Server]:
    """The machines in the order of the ranks; with several copies of the pipeline a machine may come again."""
    inside: dict[str, list[str]] = {}
    for device in layout.plan.devices:
        if device.kind == "accelerator":
            inside.setdefault(device.cluster, []).append(device.name)
    out: list[Server] = []
    for cluster, group in groupby(layout.ranks, key=lambda name: layout.plan.device(name).cluster):
        own, first = list(group), out[-1].first + len(out[-1].numbers) if out else 0
        out.append(Server(cluster or own[0], first, tuple(inside[cluster].index(name) for name in own)))
    return out


def nodes(layout: Layout) -> list[Server]:
    """What runtimes call nodes, which all have as many ranks: the machines, or where these differ each stage."""
    own = servers(layout)
    if all(len(a.numbers) == len(b.numbers) for a, b in pairwise(own)):
        return own
    size = layout.tensor
    return [
        Server(one.name, one.first + k, one.numbers[k : k + size])
        for one in own for k in range(0, len(one.numbers), size)
    ]  # fmt: skip


def several(layout: Layout) -> bool:
    """Whether one pipeline is on several machines, so that each of them has a command of its own."""
    return layout.data == 1 and not layout.in_one_place


def visible(layout: Layout, each: Sequence[str] = ()) -> list[str]:
    """Lines of a file of environment variables: which devices the ranks are on; ``each``: the command of each node."""
    if layout.in_one_place:
        return [
            "# Accelerators are numbered from 0 in the order of declaration.",
            f"CUDA_VISIBLE_DEVICES={','.join(str(layout.number(name)) for name in layout.ranks)}",
        ]
    out = [RANKS + ", ".join(layout.ranks)]
    if not each:
        return out + [f"# {one.name}, {one.ranks}: {one.environment}" for one in servers(layout)]
    own = nodes(layout)
    out.append(f"# On each machine, with the variables of this file; {ADDRESS} is that of {own[0].name}:")
    return out + [f"# {node.environment} {command}" for node, command in zip(own, each, strict=True)]
