"""How results show themselves on terminals and in notebooks.

Results stand below the reports that show them, so :mod:`placedsl.api.display` gives each class its renderer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from placedsl.diagnostics import PlacedslError

if TYPE_CHECKING:
    from rich.text import Text


class Renderer(Protocol):
    """What reports make of the results of one class."""

    def line(self, shown: Any) -> str:
        """One line, between angle brackets in a ``repr``."""

    def text(self, shown: Any) -> Text:
        """What a terminal shows, for ``rich``."""

    def html(self, shown: Any) -> str:
        """An HTML element, for notebooks."""


R = TypeVar("R", bound=Renderer)


class Rendered(Generic[R]):
    """A result that shows itself by the renderer of its class."""

    #: Set by :mod:`placedsl.api.display`.
    renderer: ClassVar[Any] = None

    def __repr__(self) -> str:
        return object.__repr__(self) if self.renderer is None else f"<{self.renderer.line(self)}>"

    def __rich__(self) -> Text:
        return self._rendered().text(self)

    def _repr_html_(self) -> str:
        return self._rendered().html(self)

    def _rendered(self) -> R:
        if self.renderer is None:
            raise PlacedslError("results are shown by placedsl.api.display, which has not been imported")
        renderer: R = self.renderer
        return renderer
