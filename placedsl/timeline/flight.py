"""What is in flight: samples that have entered and not left, tensors that were made and are still to be read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.graph.graph import Floats, Integers
from placedsl.timeline.costs import Holding
from placedsl.timeline.pieces import Piece


def peak(since: Sequence[Floats], until: Sequence[Floats], amounts: Sequence[float]) -> float:
    """The largest sum of amounts at any time; an amount counts from its since to before its until, sample by sample."""
    if not since:
        return 0.0
    times = np.concatenate([*until, *since])
    each = np.repeat(np.asarray(amounts, dtype=float), [len(times_of_one) for times_of_one in since])
    changes = np.concatenate([-each, each])
    # What ends at a time is gone before what begins at it: the ends stand first, and the sort is stable.
    return float(np.cumsum(changes[np.argsort(times, kind="stable")]).max(initial=0.0))


def samples_in_flight(pieces: Sequence[Piece], start: Floats, end: Floats, devices: int) -> tuple[int, Integers]:
    """The most samples at once between their first piece and their last: in all, and on each device."""
    everywhere = round(peak([start.min(axis=0)], [end.max(axis=0)], [1.0]))
    out = np.zeros(devices, dtype=np.int64)
    for device in {piece.device for piece in pieces}:
        own = [p for p, piece in enumerate(pieces) if piece.device == device]
        out[device] = round(peak([start[own].min(axis=0)], [end[own].max(axis=0)], [1.0]))
    return everywhere, out


def tensors_in_flight(holdings: Sequence[Holding], end: Floats, devices: int) -> tuple[Integers, Floats]:
    """The most tensors, and the most bytes of them, that lie on each device at once, over all samples."""
    counts, sizes = np.zeros(devices, dtype=np.int64), np.zeros(devices)
    for device in {holding.device for holding in holdings}:
        own = [holding for holding in holdings if holding.device == device]
        since = [end[holding.since] for holding in own]
        until = [end[list(holding.until)].max(axis=0) for holding in own]
        counts[device] = round(peak(since, until, [holding.tensors for holding in own]))
        known = all(np.isfinite(holding.size) for holding in own)
        sizes[device] = peak(since, until, [holding.size for holding in own]) if known else np.nan
    return counts, sizes
