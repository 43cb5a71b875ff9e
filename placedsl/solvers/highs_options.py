"""What HiGHS is asked for on every way to it."""

from __future__ import annotations

from collections.abc import Mapping

from placedsl.tolerances import MIP_FEASIBILITY

#: With the feasibility that it comes with, a bound can be too low by more than what counts as the same value.  When it
#: restarts after the root, it reduces the model once more, and can cut off the optimum by that: 1.15.1 and 1.16.0 prove
#: 2.75 where 2.5625 is the optimum of 160 columns with coefficients from 0.1 to 40.
MIP_OPTIONS: Mapping[str, float | bool] = {"mip_feasibility_tolerance": MIP_FEASIBILITY, "mip_allow_restart": False}
