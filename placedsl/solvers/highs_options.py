"""What HiGHS is asked for on every way to it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from placedsl.ir.program import LinearProgram
from placedsl.solvers.outcome import row_of_entry
from placedsl.tolerances import MIP_FEASIBILITY

#: The reduction that enumerates small subproblems, the 16th of HiGHS's rules, as its options number them.
_ENUMERATION = 1 << 16


def mip_options(program: LinearProgram) -> Mapping[str, float | str]:
    """Options for a program in the units that HiGHS is given.

    With the feasibility that it comes with, a bound can be too low by more than what counts as the same value.

    Enumeration cuts off optima: with it, 1.16.0 proves 2.75 where 2.5625 is the optimum of 160 columns with
    coefficients from 0.1 to 40, and calls 89 columns infeasible beside an incumbent of theirs.  Where a coefficient of
    a row with continuous columns is below the feasibility asked for, no reduction at all can be trusted.  Releases
    before 1.16 cut off optima with reductions and without, the smallest of 13 columns
    (``tests/algorithms/partitions/test_bounds_by_name.py``).
    """
    common: dict[str, float | str] = {
        "mip_feasibility_tolerance": MIP_FEASIBILITY, "presolve_rule_off": _ENUMERATION
    }  # fmt: skip
    row, size = row_of_entry(program), np.abs(program.coefficient)
    mixed = np.zeros(program.rows, dtype=bool)
    mixed[row[~program.integer[program.column]]] = True
    hidden = mixed[row] & (size > 0.0) & (size < MIP_FEASIBILITY)
    return {**common, "presolve": "off"} if hidden.any() else common


def otherwise(options: Mapping[str, float | str]) -> Mapping[str, float | str]:
    """The same with reductions where there are none, and without where there are: for a run that ends with an error."""
    return {**options, "presolve": "on" if options.get("presolve") == "off" else "off"}
