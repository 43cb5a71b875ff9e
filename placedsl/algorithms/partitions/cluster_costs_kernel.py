"""Compiled: what devices pay on top for tensors that leave their clusters, kept up to date as units move."""

from __future__ import annotations

from typing import NamedTuple

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Floats, Integers


class ClusterCosts(NamedTuple):
    """L levels of clusters over D devices, and the t tensors that cost something where they leave one.

    ``cluster``   L x D a number a device; -1: in none
    ``cost``      L x D x t seconds of a device that makes a tensor which is read outside of its cluster, or reads one
                  that is made outside
    ``maker``     t the unit that makes it;  ``reader_start``, ``reader``: the units that read it
    ``touch_start``, ``touched``   the tensors that a unit makes or reads
    """

    cluster: Integers
    cost: Floats
    maker: Integers
    reader_start: Integers
    reader: Integers
    touch_start: Integers
    touched: Integers


@kernel(no_cpython_wrapper=True)
def _pay(clusters, device, t, sign, further, mark):  # type: ignore[no-untyped-def]
    """Add to ``further`` (D) ``sign`` times what each device pays for tensor ``t``; ``mark``: D numbers for its use."""
    first, last = clusters.reader_start[t], clusters.reader_start[t + 1]
    a = device[clusters.maker[t]]
    for level in range(len(clusters.cluster)):
        home, outside = clusters.cluster[level, a], False
        for j in range(first, last):
            mark[device[clusters.reader[j]]] = 0
        for j in range(first, last):
            b = device[clusters.reader[j]]
            there = clusters.cluster[level, b]
            if there == home:
                continue
            outside = True
            if there >= 0 and mark[b] == 0:
                mark[b] = 1
                further[b] += sign * clusters.cost[level, b, t]
        if outside and home >= 0:
            further[a] += sign * clusters.cost[level, a, t]


@kernel()
def pay_all(clusters, device, further, mark):  # type: ignore[no-untyped-def]
    """What each device pays in all, in ``further``."""
    further[:] = 0.0
    for t in range(len(clusters.maker)):
        _pay(clusters, device, t, 1.0, further, mark)


@kernel()
def leave(clusters, device, u, count, tensors, stamp, when, further, mark):  # type: ignore[no-untyped-def]
    """Take from ``further`` what is paid for the tensors of unit ``u``, which is about to move, and list them.

    ``tensors``: those listed so far, ``count`` of them; ``stamp``: t, ``when`` they were listed.  Returns their number.
    """
    for j in range(clusters.touch_start[u], clusters.touch_start[u + 1]):
        t = clusters.touched[j]
        if stamp[t] != when:
            stamp[t] = when
            tensors[count] = t
            count += 1
            _pay(clusters, device, t, -1.0, further, mark)
    return count


@kernel()
def join(clusters, device, count, tensors, further, mark):  # type: ignore[no-untyped-def]
    """Add what is paid for these tensors once their units have moved."""
    for i in range(count):
        _pay(clusters, device, tensors[i], 1.0, further, mark)


@kernel(no_cpython_wrapper=True)
def together(clusters, a, b):  # type: ignore[no-untyped-def]
    """Whether two devices are in the same clusters."""
    out = True
    for level in range(len(clusters.cluster)):
        out = out and clusters.cluster[level, a] == clusters.cluster[level, b]
    return out
