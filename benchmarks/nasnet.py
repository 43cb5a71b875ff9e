"""Profiles of NASNet-A (Zoph et al. 2018), and of networks whose cells are drawn, as irregular as PipeDream's are.

    python benchmarks/nasnet.py > mobile.txt                                     # 921 layers, 1,841 operators
    python benchmarks/nasnet.py --normal 6 --filters 168 --stem 96 --batch 16 > large.txt       # 1,251 layers
    python benchmarks/nasnet.py --drawn --seed 3 > other.txt                     # other cells

A network is a stem, then three stacks of so many normal cells, with a reduction cell between stacks, which halves the
resolution and doubles the channels.  A cell reads the two before it and adds five pairs of branches up: separable
convolutions of three sizes (eight layers each), poolings, or what is there already.  Where the two before it differ in
resolution, one is reduced by two interleaved halves.  A second classifier hangs off the last stack but one.  With
``--drawn`` states and branches of both kinds of cell are drawn at random, the same for all cells of a kind.

Times and sizes are as irregular as measured ones.  A layer takes a quarter of a millisecond to launch, and so long for
its bytes and operations as in the profiles that PipeDream has published; sums and concatenations take nothing; some
times are several times as long as those of the same layer elsewhere; the first layers, of high resolution, are many
times as long as all others, and their feature maps take longer to send than most cells take to compute.  Sizes of
tensors, which layers take no time and which are never read are as in these profiles.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from dataclasses import dataclass, field

#: A branch: number of a state, and what is done to it.  States 0 and 1 are the cell before the last and the last.
Branch = tuple[int, str]
Pair = tuple[Branch, Branch]

SEPARABLE = {"sep3": 3, "sep5": 5, "sep7": 7}
POOLS = ("avg", "max")
SAME = "same"
#: Milliseconds to launch a layer, the part of layers whose forward time has a delay in it, and the longest one.
LAUNCH, DELAYED, DELAY = 0.27, 0.02, 2.0
#: Deviation of the logarithm of a time.
NOISE = 0.1


@dataclass(frozen=True)
class Cell:
    """Pairs of branches, each a further state, and which states are concatenated."""

    pairs: tuple[Pair, ...]
    read: tuple[int, ...]


#: NASNet-A's, from figure 4 of the paper.
NORMAL = Cell(
    (
        ((1, "sep5"), (0, "sep3")),
        ((0, "sep5"), (0, "sep3")),
        ((1, "avg"), (0, SAME)),
        ((0, "avg"), (0, "avg")),
        ((1, "sep3"), (1, SAME)),
    ),
    (0, 2, 3, 4, 5, 6),
)
REDUCTION = Cell(
    (
        ((1, "sep5"), (0, "sep7")),
        ((1, "max"), (0, "sep7")),
        ((1, "avg"), (0, "sep5")),
        ((2, "avg"), (3, SAME)),
        ((2, "sep3"), (1, "max")),
    ),
    (3, 4, 5, 6),
)


def drawn(rng: random.Random, *, reduces: bool) -> Cell:
    """A cell of the same space: what no pair reads is concatenated."""
    kinds = [*SEPARABLE, *POOLS, SAME]
    pairs: list[Pair] = []
    unread = set(range(2))
    for number in range(5):
        branches = []
        for _ in range(2):
            state = rng.randrange(number + 2)
            kind = rng.choice(kinds)
            # What is passed on as it is keeps its resolution.
            branches.append((state, "max" if reduces and state < 2 and kind == SAME else kind))
            unread.discard(state)
        pairs.append((branches[0], branches[1]))
        unread.add(number + 2)
    return Cell(tuple(pairs), tuple(sorted(state for state in unread if state > 1 or not reduces)))


@dataclass(frozen=True)
class Tensor:
    """What a layer makes: its number, channels, and the side of a map."""

    layer: int
    channels: int
    side: int


@dataclass
class Profile:
    """Lines of a profile."""

    batch: int
    rng: random.Random
    lines: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)

    def megabytes(self, made: Tensor) -> float:
        """Of a tensor of four bytes a number."""
        return 4e-6 * self.batch * made.channels * made.side**2

    def layer(
        self, name: str, of: list[Tensor], channels: int, side: int, time: tuple[float, float], parameters: int = 0
    ) -> Tensor:
        """A layer, with its times forward and backward without noise (ms; not positive: it takes no time)."""
        made = Tensor(len(self.lines) + 1, channels, side)
        forward, backward = (max(t, 0.0) * math.exp(self.rng.gauss(0.0, NOISE)) for t in time)
        if forward and self.rng.random() < DELAYED:
            forward += self.rng.uniform(0.0, DELAY)
        size = 4 * self.batch * channels * side**2
        self.lines.append(
            f"node{made.layer} -- {name} -- forward_compute_time={forward:.3f}, backward_compute_time={backward:.3f}, "
            f"activation_size={size}.000, parameter_size={4 * parameters}.000"
        )
        self.edges.extend(f"\tnode{one.layer} -- node{made.layer}" for one in dict.fromkeys(of))
        return made

    def small(self, name: str, of: Tensor, factor: float, backward: float, parameters: int = 0) -> Tensor:
        """A layer whose work is a number of milliseconds a megabyte."""
        size = self.megabytes(of)
        return self.layer(
            name, [of], of.channels, of.side, (LAUNCH + factor * size, 0.03 + backward * size), parameters
        )

    def relu(self, of: Tensor) -> Tensor:
        """A rectifier."""
        return self.small("ReLU()", of, 0.0046, 0.0026)

    def normalised(self, of: Tensor) -> Tensor:
        """A batch normalisation."""
        return self.small(f"BatchNorm2d({of.channels})", of, 0.0057, 0.016, 2 * of.channels)

    def depthwise(self, of: Tensor, size: int, stride: int) -> Tensor:
        """A convolution of each channel by itself."""
        side = -(-of.side // stride)
        moved = (self.megabytes(of) + self.megabytes(Tensor(0, of.channels, side))) / 2
        time = LAUNCH + 0.0004 * size**2 * moved, (0.0125 + 0.0013 * size**2) * moved
        name = f"Conv2d({of.channels}, {of.channels}, kernel_size=({size}, {size}), groups={of.channels})"
        return self.layer(name, [of], of.channels, side, time, size**2 * of.channels)

    def pointwise(self, of: Tensor, channels: int) -> Tensor:
        """A convolution of each point by itself."""
        moved = self.megabytes(of) + self.megabytes(Tensor(0, channels, of.side))
        operations = 2e-9 * self.batch * of.side**2 * of.channels * channels
        time = LAUNCH + 0.08 * operations + 0.003 * moved, 0.05 + 0.25 * operations + 0.007 * moved
        name = f"Conv2d({of.channels}, {channels}, kernel_size=(1, 1))"
        return self.layer(name, [of], channels, of.side, time, of.channels * channels)

    def separable(self, of: Tensor, size: int, stride: int, channels: int) -> Tensor:
        """Eight layers: a convolution by channel and one by point, each normalised, twice."""
        made = self.normalised(self.pointwise(self.depthwise(self.relu(of), size, stride), channels))
        return self.normalised(self.pointwise(self.depthwise(self.relu(made), size, 1), channels))

    def pooled(self, kind: str, of: Tensor, stride: int) -> Tensor:
        """A pooling of three by three points: "avg" or "max"."""
        side = -(-of.side // stride)
        moved = (self.megabytes(of) + self.megabytes(Tensor(0, of.channels, side))) / 2
        name = f"{kind.capitalize()}Pool2d(kernel_size=3, stride={stride})"
        return self.layer(name, [of], of.channels, side, (LAUNCH + 0.004 * moved, 0.031 * moved))

    def fitted(self, of: Tensor, channels: int) -> Tensor:
        """A state as a cell reads it."""
        return self.normalised(self.pointwise(self.relu(of), channels))

    def halved(self, of: Tensor, channels: int) -> Tensor:
        """A state of twice the resolution, by two halves of which one is shifted."""
        begun = self.relu(of)
        one = self.pointwise(self.pooled("avg", begun, 2), channels // 2)
        padded = self.small("ZeroPad2d((0, 1, 0, 1))", begun, 0.004, 0.004)
        other = self.pointwise(self.pooled("avg", padded, 2), channels - channels // 2)
        return self.normalised(self.layer("Concat(1)", [one, other], channels, one.side, (0.0, 0.0)))

    def cell(self, cell: Cell, states: list[Tensor], channels: int, *, reduces: bool) -> Tensor:
        """A cell on its first two states."""
        for pair in cell.pairs:
            ends = []
            for state, kind in pair:
                of, stride = states[state], 2 if reduces and state < 2 else 1
                if kind in SEPARABLE:
                    of = self.separable(of, SEPARABLE[kind], stride, channels)
                elif kind in POOLS:
                    of = self.pooled(kind, of, stride)
                ends.append(of)
            states.append(self.layer("Add", ends, channels, ends[0].side, (0.0, 0.0)))
        read = [states[state] for state in cell.read]
        return self.layer("Concat(1)", read, sum(one.channels for one in read), read[0].side, (0.0, 0.0))

    def classified(self, of: Tensor) -> None:
        """A classifier: a view of the pooled maps, for which two sizes are asked; one is never read."""
        begun = self.relu(of)
        self.layer("Size(3)", [begun], 1, 1, (0.0, 0.0))
        pooled = self.layer("AvgPool2d(kernel_size=7)", [begun], begun.channels, 1, (LAUNCH, 0.05))
        self._linear([pooled, self.layer("Size(0)", [begun], 1, 1, (0.0, 0.0))])

    def second_maps(self, of: Tensor) -> Tensor:
        """What the second classifier reads, which helps training: two convolutions."""
        made = self.pooled("avg", self.relu(of), 3)
        made = self.relu(self.normalised(self.pointwise(made, 128)))
        return self.relu(self.normalised(self.pointwise(made, 768)))

    def classified_second(self, of: Tensor) -> None:
        """The second classifier; it asks for a size too."""
        self.layer("Size(0)", [of], 1, 1, (0.0, 0.0))
        self._linear([of])

    def _linear(self, of: list[Tensor]) -> None:
        view = self.layer("View(-1)", of, of[0].channels * of[0].side ** 2, 1, (0.0, 0.0))
        self.layer("Linear(1000)", [view], 1000, 1, (LAUNCH, 0.2), 1000 * view.channels)


def profile(normal: int, filters: int, stem: int, batch: int, seed: int = 0, *, others: bool = False) -> str:
    """A network of so many normal cells a stack, as the text of a profile (milliseconds, bytes)."""
    rng = random.Random(seed)
    cells = (drawn(rng, reduces=False), drawn(rng, reduces=True)) if others else (NORMAL, REDUCTION)
    made = Profile(batch, rng)
    image = made.layer("Input", [], 3, 224, (10.0, 0.0))
    maps = 4e-6 * batch * stem * 111**2
    first = made.layer("Conv2d(3, stem)", [image], stem, 111, (LAUNCH + 0.03 * maps, 0.007 * maps), 27 * stem)
    before = last = made.normalised(first)
    plan = [(filters // 4, True), (filters // 2, True)]
    for stack in range(3):
        plan += [(filters << stack, True)] * (stack > 0) + [(filters << stack, False)] * normal
    for number, (channels, reduces) in enumerate(plan):
        states = [before, last]
        # Layers are numbered as in PipeDream's profiles; the first cell reads the stem as it is.
        for state in (1, 0) if reduces else (0, 1):
            if number or state:
                fit = made.halved if states[state].side > last.side else made.fitted
                states[state] = fit(states[state], channels)
        before, last = last, made.cell(cells[reduces], states, channels, reduces=reduces)
        if number == 2 + 2 * normal:
            early = made.second_maps(last)
    made.classified(last)
    made.classified_second(early)
    return "\n".join([*made.lines, *made.edges]) + "\n"


def main() -> int:
    """Write one profile to standard output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--normal", type=int, default=4, help="normal cells a stack")
    parser.add_argument("--filters", type=int, default=44)
    parser.add_argument("--stem", type=int, default=32, help="channels of the first convolution")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--drawn", action="store_true", help="cells drawn at random")
    asked = parser.parse_args()
    sys.stdout.write(profile(asked.normal, asked.filters, asked.stem, asked.batch, asked.seed, others=asked.drawn))
    return 0


if __name__ == "__main__":
    sys.exit(main())
