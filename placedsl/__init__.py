"""placedsl: say where the operators of a neural network may run; get a placement with a proven bound."""

from __future__ import annotations

from placedsl.diagnostics import Diagnostic, InputError, LimitError, PlacedslError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from placedsl.api import Spec, load, loads

__all__ = ["Diagnostic", "InputError", "LimitError", "PlacedslError", "Spec", "UsageError", "load", "loads"]


def __getattr__(name: str) -> object:
    """``load``, ``loads`` and ``Spec`` are imported when they are first used."""
    if name in ("load", "loads", "Spec"):
        from placedsl import api

        return getattr(api, name)
    raise AttributeError(f"module 'placedsl' has no attribute '{name}'")
