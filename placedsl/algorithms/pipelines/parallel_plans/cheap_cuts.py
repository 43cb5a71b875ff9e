"""The ideals that are cheapest to cut: the boundaries of good plans where memory asks for many stages.

Transfers at its boundaries are what a stage wastes.  A plan whose stages end at such ideals is soon found, and is most
often the best or very near to it, so that one question more proves it.
"""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Floats, Integers

#: Ideals that are taken, and how many of about the same weight.
_TAKEN, _ALIKE = 1500, 20


def cheapest_cuts(weight: Floats, cut: Floats) -> Integers:
    """Some ideals of each weight whose cuts cost least, in the order in which they come, the first and last included.

    ``weight``: K, ascending along the ideals;  ``cut``: K.
    """
    groups = _TAKEN // _ALIKE
    group = np.minimum((weight / max(float(weight[-1]), 1e-300) * groups).astype(np.int64), groups - 1)
    order = np.lexsort((cut, group))
    place = np.arange(len(order)) - np.searchsorted(group[order], group[order])
    return np.unique(np.concatenate((order[place < _ALIKE], np.array([0, len(weight) - 1]))))
