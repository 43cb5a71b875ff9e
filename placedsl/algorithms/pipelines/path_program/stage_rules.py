"""Which of a spec's rules a single stage satisfies or not, which are rows over all stages, and which compare devices.

local     about one device: a stage of it is allowed or not
joint     a sum over devices: a row of the program
family    the same for every device, or pair of devices, of a class, beside a sum over all devices: ``f(d) + g(e) +
          common <= upper``; devices of the class stay interchangeable
general   over several devices and 0/1 columns of the rule's own: kept as it is, the devices told apart
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.pipelines.path_program.inequalities import (
    Conditional,
    Written,
    stacked,
)
from placedsl.algorithms.pipelines.path_program.rule_columns import StageColumns
from placedsl.arrays import Floats, Integers

#: A number of a stage by feature: positions and coefficients.
Feature = tuple[Integers, Floats]
#: Of rows that hold without a condition.
UNCONDITIONAL = Conditional(stacked(()), ())


@dataclass(frozen=True, eq=False)
class Local:
    """Rows over the features of one device, and a coefficient of the time per sample; ``logic``: what they depend on.

    ``rows``   columns are features, or ``features`` (the time), or beyond it 0/1 columns of the rule's own
    """

    rule: str
    written: Written
    used_only: bool = False

    @property
    def signature(self) -> bytes:
        """Equal for devices of which the same is asked."""
        return signature_of(self.written) + bytes((self.used_only,))


@dataclass(frozen=True, eq=False)
class Joint:
    """``sum over devices of a number of their stages + time * time per sample <= upper``."""

    rule: str
    of_device: dict[int, Feature]
    time: float
    upper: float


@dataclass(frozen=True, eq=False)
class Family:
    """``first(d) + second(e) + common <= upper`` for d of ``firsts`` and e of ``seconds`` (device classes), d != e.

    ``second``   None: of single devices
    ``common``   a joint row without a side, or None
    ``used_only``  it holds of devices in use alone
    """

    rule: str
    first: Feature
    firsts: frozenset[int]
    second: Feature | None
    seconds: frozenset[int]
    common: Joint | None
    upper: float
    used_only: bool


@dataclass(frozen=True, eq=False)
class General:
    """A rule over several devices with 0/1 columns of its own, over the columns of ``StageColumns`` and those."""

    rule: str
    written: Written
    first: int
    binary: np.ndarray
    devices: tuple[int, ...]


@dataclass(eq=False)
class StageRules:
    """All rules of a spec; ``beyond`` names those that are left out, ``impossible`` those that nothing satisfies."""

    columns: StageColumns
    local: dict[int, list[Local]] = field(default_factory=dict)
    joint: list[Joint] = field(default_factory=list)
    families: list[Family] = field(default_factory=list)
    general: list[General] = field(default_factory=list)
    beyond: list[str] = field(default_factory=list)
    impossible: list[str] = field(default_factory=list)
    most_time: float = np.inf


def signature_of(part: Written) -> bytes:
    """Equal for rows that are equal."""
    arrays = [array for one in (part.always, part.conditional.body)
              for array in (one.start, one.column, one.coefficient, one.upper)]  # fmt: skip
    return b"|".join(a.tobytes() for a in arrays) + repr((part.conditional.literals, part.products)).encode()
