"""Types of arrays, by the kind of their entries; shapes stand where they are used."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Key = TypeVar("Key", bound=Hashable)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
#: Where memory matters: positions and counts that fit, in tables of many millions of entries.
Integers32 = NDArray[np.int32]
Integers16 = NDArray[np.int16]
#: An attribute of nodes: numbers (nan: none), or texts.
Column = Floats | NDArray[np.object_]

#: Doubles hold every whole number below this, and add them exactly.
_EXACT_BELOW = 2.0**53


def whole_numbers(values: Floats) -> Booleans:
    """Which values are whole numbers that doubles add without rounding: bytes, counts."""
    return np.asarray((np.abs(values) < _EXACT_BELOW) & (values == np.rint(values)), dtype=np.bool_)


def distinct(values: Integers) -> Integers:
    """The different ones among these, in order.  As ``np.unique``, which imports ``numpy.ma`` for it."""
    ordered = np.sort(values, axis=None)
    first = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return np.asarray(ordered[first], dtype=np.int64)


def for_each(columns: Floats, of: Integers) -> Floats:
    """The column for each entry of ``of``; where there is one column, a view that repeats it and cannot be written."""
    if columns.shape[1] == 1:
        return np.broadcast_to(columns, (columns.shape[0], len(of)))
    return columns[:, of]


def for_each_key(keys: Sequence[Key], column: Callable[[Key], Floats]) -> Floats:
    """The column of each key; those of equal keys are computed once, and are one in memory where all are equal."""
    place: dict[Key, int] = {}
    of = np.array([place.setdefault(key, len(place)) for key in keys], dtype=np.int64)
    return for_each(np.column_stack([column(key) for key in place]), of)


def repeated(values: Floats) -> bool:
    """Whether all columns are one and the same in memory."""
    return values.shape[1] <= 1 or values.strides[1] == 0


def alike(values: Floats) -> bool:
    """Whether all columns are equal."""
    return repeated(values) or bool((values == values[:, :1]).all())


def finite_sizes(values: Floats) -> Floats:
    """How large numbers are; zero for those that are infinite."""
    return np.where(np.isfinite(values), np.abs(values), 0.0)
