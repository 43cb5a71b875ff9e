"""What holds of every timeline, checked on its arrays and the problem alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.timeline.timeline import Timeline


def check(timeline: Timeline, placement: Sequence[int]) -> None:
    """Each node in one piece of its device, each piece once a sample, one thing at a time, inputs there before."""
    problem = timeline.problem
    piece_of = {v: p for p, piece in enumerate(timeline.pieces) for v in piece.nodes}
    assert sorted(v for piece in timeline.pieces for v in piece.nodes) == list(range(problem.graph.nodes))
    assert all(timeline.pieces[piece_of[v]].device == d for v, d in enumerate(placement))
    start, end = timeline.start, timeline.end
    slack = 1e-12 * timeline.total
    assert start.shape == end.shape == (len(timeline.pieces), timeline.samples)
    assert np.isfinite(start).all()
    assert np.isfinite(end).all()
    assert (start >= 0).all()
    for p in range(len(timeline.pieces)):
        assert np.allclose(end[p] - start[p], timeline.costs.duration(p), rtol=0, atol=1e-11 * timeline.total)
    for device in {piece.device for piece in timeline.pieces}:
        own = [p for p, piece in enumerate(timeline.pieces) if piece.device == device]
        begins, ends = start[own].ravel(), end[own].ravel()
        order = np.lexsort((ends, begins))
        assert (begins[order][1:] >= ends[order][:-1] - slack).all(), "a device does two things at once"
    for u, v in zip(problem.graph.edge_source.tolist(), problem.graph.edge_target.tolist()):
        if piece_of[u] != piece_of[v]:
            assert (start[piece_of[v]] >= end[piece_of[u]] - slack).all(), "an input had not arrived"
    for p in range(len(timeline.pieces)):
        assert (np.diff(start[p]) >= -slack).all(), "samples overtake one another"
