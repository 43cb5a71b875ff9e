"""Grounding of ``max`` and ``min``."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Floats, Integers, distinct
from placedsl.diagnostics import Diagnostic, InputError, Span
from placedsl.grounding.frames import Columns, Frame
from placedsl.grounding.origins import Origins
from placedsl.ir import affine
from placedsl.ir.affine import Affine
from placedsl.ir.program import Maximum


class MaximumGrounder:
    """``max`` and ``min`` as columns that a :class:`Maximum` defines; of data they are data."""

    def __init__(self, columns: Columns, origins: Origins) -> None:
        self.columns = columns
        self.origins = origins

    def of_values(self, operator: str, values: list[Affine], frame: Frame, span: Span) -> Affine:
        """``max`` or ``min`` of several values in each row of the frame.

        A constant that another value never falls below is left out, and what is then alone needs no maximum: a
        formulation may name components that some of its devices do not have.
        """
        if operator == "min":
            return -self.of_values("max", [-value for value in values], frame, span)
        if all(value.is_data for value in values):
            return self.of_groups("max", affine.stack(values), np.tile(np.arange(frame.size), len(values)), frame, span)
        least = np.stack([self._least(value) for value in values])
        constant = np.stack([np.bincount(value.row, minlength=frame.size) == 0 for value in values])
        kept = np.ones(least.shape, dtype=bool)
        for i in range(len(values)):
            others = np.where(kept, least, -np.inf)
            others[i] = -np.inf
            kept[i] = ~(constant[i] & (others.max(axis=0) >= least[i]))
        alone = kept.sum(axis=0) == 1
        several = np.flatnonzero(~alone)
        parts = [
            value.take(rows).placed(rows, frame.size)
            for value, rows in ((v, np.flatnonzero(k & alone)) for v, k in zip(values, kept, strict=True))
            if len(rows)
        ]
        if len(several):
            within = frame.take(several)
            position = np.cumsum(~alone) - 1
            chosen = [np.flatnonzero(k & ~alone) for k in kept]
            stacked = affine.stack([v.take(rows) for v, rows in zip(values, chosen, strict=True) if len(rows)])
            group = position[np.concatenate(chosen)]
            parts.append(self.of_groups("max", stacked, group, within, span).placed(several, frame.size))
        out = parts[0]
        for part in parts[1:]:
            out = out + part
        return out

    def _least(self, body: Affine) -> Floats:
        """A number that each row is never below, by the bounds of its columns."""
        lower, upper = np.concatenate(self.columns.lower), np.concatenate(self.columns.upper)
        ends = np.where(body.coefficient > 0.0, lower[body.column], upper[body.column])
        with np.errstate(invalid="ignore"):
            terms = np.where(body.coefficient == 0.0, 0.0, body.coefficient * ends)
        return body.constant + np.bincount(body.row, terms, minlength=body.size)

    def of_groups(self, operator: str, body: Affine, group: Integers, frame: Frame, span: Span) -> Affine:
        """``max`` or ``min`` of the rows of each group, one group a row of the frame."""
        groups = frame.size
        if len(distinct(group)) < groups:
            raise InputError([Diagnostic(f"the {operator} of nothing has no value", span)])
        if operator == "min":
            return -self.of_groups("max", -body, group, frame, span)
        if body.is_data:
            out = np.full(groups, -np.inf)
            np.maximum.at(out, group, body.constant)
            return affine.data(out)
        origin = self.origins.auxiliary("max", frame, span)
        result = self.columns.add(groups, -np.inf, np.inf, False, origin)
        self.columns.constraints.append(
            Maximum(origin, result, group, body.constant, body.row, body.column, body.coefficient, False)
        )
        return affine.of_columns(result)
