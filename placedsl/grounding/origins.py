"""Names and places of the rows and columns that grounding creates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from placedsl.diagnostics import Span
from placedsl.grounding.frames import Frame
from placedsl.grounding.universe import Universe
from placedsl.ir.program import Origin


class Origins:
    """Origins for what is being grounded over a universe.

    ``subject``: the constraint, objective or quantity that new columns are named after; ``current``: the origin of the
    constraint that new rows belong to.
    """

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        self.subject = "objective"
        self.current = Origin("objective")

    def of(self, name: str, span: Span | None, frame: Frame) -> Origin:
        """What comes from each row of a frame, under this name."""
        labels = {k: self.universe.labels.get(sort, ()) for k, sort in frame.sorts.items() if k in frame.slots}
        shown = {k: v for k, v in frame.slots.items() if labels[k] or frame.sorts[k] == "integer"}
        return Origin(name, span, shown, labels)

    def auxiliary(self, what: str, frame: Frame, span: Span | None = None) -> Origin:
        """The name of columns, one per row of the frame, that stand for a part of what is being grounded."""
        return self.of(f"{self.subject}_{what}", span or self.current.span, frame)

    def at(self, frame: Frame) -> Origin:
        """The constraint that is being grounded, for rows that are those of a frame."""
        return self.of(self.current.name, self.current.span, frame)

    def begin(self, name: str, span: Span, frame: Frame) -> Origin:
        """The origin of a constraint whose grounding begins."""
        self.subject = name
        self.current = self.of(name, span, frame)
        return self.current

    @contextmanager
    def quantity(self, name: str) -> Iterator[None]:
        """Columns are named after a quantity while its definition is grounded."""
        before, self.subject = self.subject, name
        yield
        self.subject = before
