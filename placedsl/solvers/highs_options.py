"""What HiGHS is asked for on every way to it."""

from __future__ import annotations

from collections.abc import Mapping

from placedsl.tolerances import MIP_FEASIBILITY

#: The reduction that enumerates small subproblems, the 16th of HiGHS's rules, as its options number them.
_ENUMERATION = 1 << 16
#: With the feasibility that it comes with, a bound can be too low by more than what counts as the same value.
#: Enumeration cuts off optima: with it, 1.15.1 and 1.16.0 prove 2.75 where 2.5625 is the optimum of 160 columns with
#: coefficients from 0.1 to 40, and call 89 columns infeasible beside an incumbent of theirs.
MIP_OPTIONS: Mapping[str, float] = {"mip_feasibility_tolerance": MIP_FEASIBILITY, "presolve_rule_off": _ENUMERATION}
