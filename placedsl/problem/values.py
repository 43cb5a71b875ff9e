"""The numbers that an answer gives beside the placement."""

from __future__ import annotations

from collections.abc import Mapping

#: Values of the spec's variables and of the schedule's decisions (:attr:`Execution.schedule_decisions`): by name, then
#: by the positions of the indices.  Numbers in SI units.
Values = Mapping[str, Mapping[tuple[int, ...], float]]
