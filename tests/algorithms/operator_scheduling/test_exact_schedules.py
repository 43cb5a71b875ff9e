"""A block of GoogLeNet's published profile for which CP-SAT 9.15 proves what is not so, with probing, and with the
simplification of clauses during the search.
"""

from __future__ import annotations

import numpy as np
import pytest

from placedsl.algorithms.operator_scheduling.exact_cp_sat import solve_exactly
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, build
from placedsl.algorithms.operator_scheduling.schedule_kernel import schedule_of
from placedsl.machine.routes import TransferTimes

pytestmark = pytest.mark.rotates(2)

#: Times on four devices, in units of 10 us (the first and the last node are on the first device), and what reads what.
TIME = [
    [4800, 11800, 11900, 7500], [200, 300, 300, 200], [4700, 11800, 11800, 7300], [200, 300, 200, 200],
    [6600, 14600, 14800, 6500], [200, 300, 300, 200], [4500, 11800, 11800, 7100], [200, 300, 300, 200],
    [9400, 16900, 17000, 5100], [200, 300, 300, 200], [300, 500, 500, 300], [4700, 11800, 11900, 7200],
    [200, 300, 300, 200],
]  # fmt: skip
PRODUCER = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0, 0, 0, 0]
READER = [2, 14, 4, 5, 6, 14, 8, 9, 10, 14, 12, 13, 14, 1, 3, 7, 11]
#: What a tensor takes from device to device, for tensors of five sizes, and the size of each.
LARGE = [[0, 1317, 3463, 1295], [1461, 0, 2571, 1295], [3328, 2571, 0, 3443], [1488, 1393, 3291, 0]]
MIDDLE = [[0, 608, 1598, 598], [674, 0, 1187, 598], [1536, 1187, 0, 1589], [687, 643, 1519, 0]]
SMALL = [[0, 304, 799, 299], [337, 0, 593, 299], [768, 593, 0, 794], [343, 321, 760, 0]]
SMALLER = [[0, 203, 533, 199], [225, 0, 396, 199], [512, 396, 0, 530], [229, 214, 506, 0]]
LEAST = [[0, 76, 200, 75], [84, 0, 148, 75], [192, 148, 0, 199], [86, 80, 190, 0]]
GIVEN = [
    MIDDLE, MIDDLE, SMALL, SMALL, MIDDLE, MIDDLE, LEAST, LEAST, SMALLER, SMALLER, LARGE, SMALLER, SMALLER, LARGE,
    LARGE, LARGE, LARGE,
]  # fmt: skip


def block() -> SchedulingInstance:
    end = [[0.0, np.inf, np.inf, np.inf]]
    apart = 1.0 - np.eye(4)
    none = np.zeros(0, dtype=np.int64)
    moves = TransferTimes(
        0 * apart, 0 * apart, np.zeros(17), np.array(GIVEN, dtype=float), np.zeros(17, dtype=np.int64), none,
        np.zeros((0, 2), dtype=np.int64),
    )  # fmt: skip
    return build(
        time=np.array(end + TIME + end), memory=np.zeros(15), memory_limit=np.full(4, np.inf),
        producer=np.array(PRODUCER),
        edge_tensor=np.arange(17), edge_target=np.array(READER), moves=moves, congestion={"port"}, sequential=True,
        groups=[],
    )  # fmt: skip


@pytest.mark.parametrize("upper", [16000.0, 16100.0, 16200.0, 16400.0])
def test_no_limit_makes_cp_sat_miss_the_optimum(upper: float) -> None:
    solved = solve_exactly(block(), None, upper, effort=20.0, seed=0)
    assert solved.final
    assert solved.sequence is not None
    assert solved.bound == 16000.0
    assert schedule_of(block(), solved.sequence)[0] == 16000.0


@pytest.mark.parametrize("seed", range(30))
def test_no_seed_makes_cp_sat_miss_the_optimum(seed: int) -> None:
    """With a lower bound that is known."""
    solved = solve_exactly(block(), None, 16451.97, effort=2.0, seed=seed, target=15675.95)
    assert solved.final
    assert solved.bound == 16000.0
