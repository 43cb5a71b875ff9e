"""What is in flight: samples that have entered and not left, tensors that were made and are still to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.problem.virtual_stages import VirtualStage
from placedsl.simulation.stage_times import ActivationStash


def peak(since: Sequence[Floats], until: Sequence[Floats], amounts: Sequence[float]) -> float:
    """The largest sum of amounts at any time; an amount counts from its since to before its until, sample by sample."""
    if not since:
        return 0.0
    times = np.concatenate([*until, *since])
    each = np.repeat(np.asarray(amounts, dtype=float), [len(times_of_one) for times_of_one in since])
    changes = np.concatenate([-each, each])
    # What ends at a time is gone before what begins at it: the ends stand first, and the sort is stable.
    return float(np.cumsum(changes[np.argsort(times, kind="stable")]).max(initial=0.0))


def samples_in_flight(
    stages: Sequence[VirtualStage], start: Floats, end: Floats, taken: Mapping[int, tuple[int, Integers]], devices: int
) -> tuple[int, Integers]:
    """The most samples at once between their first stage and their last: in all, and on each device.

    ``taken``: by device whose stages it holds (its own, or those of the leader) and which samples it takes.
    """
    everywhere = round(peak([start.min(axis=0)], [end.max(axis=0)], [1.0]))
    out = np.zeros(devices, dtype=np.int64)
    for device, (leader, samples) in taken.items():
        own = [p for p, stage in enumerate(stages) if stage.device == leader]
        begun, ended = start[own][:, samples].min(axis=0), end[own][:, samples].max(axis=0)
        out[device] = round(peak([begun], [ended], [1.0]))
    return everywhere, out


def tensors_in_flight(
    stashes: Sequence[ActivationStash], end: Floats, taken: Mapping[int, tuple[int, Integers]], devices: int
) -> tuple[Integers, Floats]:
    """The most tensors, and the most bytes of them, that lie on each device at once, over all samples."""
    counts, sizes = np.zeros(devices, dtype=np.int64), np.zeros(devices)
    for device, (leader, samples) in taken.items():
        own = [stash for stash in stashes if stash.device == leader]
        since = [end[stash.since, samples] for stash in own]
        until = [end[list(stash.until)][:, samples].max(axis=0) for stash in own]
        counts[device] = round(peak(since, until, [stash.tensors for stash in own]))
        known = all(np.isfinite(stash.size) for stash in own)
        sizes[device] = peak(since, until, [stash.size for stash in own]) if known else np.nan
    return counts, sizes


def covered(begun: Floats, ended: Floats) -> float:
    """How long at least one of these is under way; nan stands for none."""
    known = np.isfinite(begun)
    order = np.argsort(begun[known], kind="stable")
    begun, ended = begun[known][order], ended[known][order]
    before = np.concatenate([[0.0], np.maximum.accumulate(ended)[:-1]]) if len(ended) else ended
    return float(np.maximum(0.0, ended - np.maximum(begun, before)).sum())
