"""placedsl: say where the operators of a neural network may run; get a placement with a proven bound."""

from __future__ import annotations

from placedsl.diagnostics import Diagnostic, InputError, LimitError, PlacedslError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from placedsl.api import Spec, load, loads
    from placedsl.language.layout import formatted as format

__all__ = ["Diagnostic", "InputError", "LimitError", "PlacedslError", "Spec", "UsageError", "format", "load", "loads"]


def __getattr__(name: str) -> object:
    """``load``, ``loads``, ``Spec`` and ``format`` are imported when they are first used."""
    if name == "format":
        from placedsl.language.layout import formatted

        return formatted
    if name in ("load", "loads", "Spec"):
        from placedsl import api

        return getattr(api, name)
    raise AttributeError(f"module 'placedsl' has no attribute '{name}'")
