"""Large blocks are sorted by counting: the same triplets as by comparison."""

from __future__ import annotations

import numpy as np
import pytest

from placedsl.ir import affine


@pytest.mark.parametrize("seed", range(40))
def test_counting_and_comparing_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    rows, columns, entries = rng.integers(1, 9, 3).tolist()
    cells = rng.permutation(rows * columns)[: entries * 4] if seed % 2 else rng.integers(0, rows * columns, entries * 4)
    row, column = np.divmod(cells, columns)
    coefficient = rng.choice([-1.5, 0.0, 1.0, 3.0], len(cells))
    compared = affine.merged(row, column, coefficient, columns)
    monkeypatch.setattr(affine, "_MANY", 1)
    for one, other in zip(compared, affine.merged(row, column, coefficient, columns), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
