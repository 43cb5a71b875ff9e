"""How near numbers have to be to count as the same: one constant per purpose, from fine to coarse.

All are relative unless stated otherwise.  Doubles carry 2.2e-16; a sum of a few thousand of them is good to about
1e-12, and what a solver returns to 1e-6.  What belongs to one algorithm alone, such as the gap at which a search
changes its method, stands with that algorithm.  Compiled kernels state their own rounding: numba keeps the machine code
of a file until that file changes, and would not notice a change here.
"""

from __future__ import annotations

#: A value replaces the best one of a search if it is better by this share: what the sum of a few thousand
#: doubles may be off, so that rounding alone is no improvement and no search goes round in a circle.
IMPROVEMENT = 1e-12

#: What a proven bound is lowered by for the rounding of its sums: that of ninety thousand terms, each with half a unit
#: in the last place.
BOUND_ROUNDING = 1e-11

#: The evaluator takes nearer values for the same (a load and a limit, say), measured by the terms that they are made
#: of, and whoever keeps limits exactly may exceed them by so much: above the rounding of sums in whatever order, and
#: below any difference that a user would state.  Whole numbers (bytes, counts) do not round and are compared exactly.
EVALUATION = 1e-9

#: Costs of two placements or schedules (a load, a latency) this near are equal to a search and to the simulation: as
#: fine as the evaluator, which decides in the end.
EQUAL_COSTS = 1e-9

#: Limits of loads and times are widened by this share where placements beyond them are cut off: sums in another order
#: must not lose one that is exactly at the limit.
LIMIT_SLACK = 1e-9

#: Bounds of a column, or the sides of a row without terms, contradict each other if they do by more than this, in
#: absolute terms near zero: they are data, or come from data by a few operations.
CONTRADICTION = 1e-9

#: A bound of an integer column that is this near to an integer, in absolute terms, is that integer: it is data, or
#: comes from data by a few operations.
INTEGER_BOUND = 1e-9

#: Feasibility that mixed-integer solvers are asked for.  Their default of 1e-6 lets a bound be too low by more than
#: what counts as the same value (:data:`SAME_VALUE`).
MIP_FEASIBILITY = 1e-8

#: A bound this near to the best value proves it optimal: half of :data:`SAME_VALUE`, so that a value and a bound that
#: are each off by this are the same in the end.
PROOF = 5e-7

#: The optimum that a solver gives of a linear program is lowered by this share before it counts as a proven bound: ten
#: times the feasibility that HiGHS asks for, 1e-7.
LP_OPTIMUM = 1e-6

#: A row holds in the point of a solver if it is off by no more than this share of its terms: the feasibility tolerance
#: that solvers have in common.
SOLVER_ROW = 1e-6

#: A bound that propagation gives an integer column is that integer if it is this near, in absolute terms: many rows of
#: real numbers may have added their rounding.
PROPAGATED_BOUND = 1e-6

#: Where terms of an objective cancel, this share of their size takes the place of its value as what gaps are relative
#: to: solvers leave open a share of the terms.
CANCELLED = 1e-2

#: Two values of an objective this near are the same, and a value this near to its bound is optimal: what the
#: tolerances of solvers leave open.
SAME_VALUE = 1e-6
