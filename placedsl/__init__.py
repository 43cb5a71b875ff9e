"""placedsl: say where the operators of a neural network may run; get a placement with a proven bound."""

from __future__ import annotations

from placedsl.diagnostics import Diagnostic, InputError, LimitError, PlacedslError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from placedsl.api import Spec, load, loads
    from placedsl.language.layout import formatted as format
    from placedsl.model import Model
    from placedsl.results import Answer, Evaluation
    from placedsl.sweeps.engine import sweep
    from placedsl.timelines import SampleTimeline, Timeline

__all__ = [
    "Answer", "Diagnostic", "Evaluation", "InputError", "LimitError", "Model", "PlacedslError", "SampleTimeline",
    "Spec", "Timeline", "UsageError", "format", "load", "loads", "sweep",
]  # fmt: skip

#: What is imported when it is first used, by module and name: importing placedsl alone takes no time.
_LATER = {
    "Answer": ("results", "Answer"), "Evaluation": ("results", "Evaluation"), "Model": ("model", "Model"),
    "SampleTimeline": ("timelines", "SampleTimeline"), "Spec": ("api", "Spec"), "Timeline": ("timelines", "Timeline"),
    "format": ("language.layout", "formatted"), "load": ("api", "load"), "loads": ("api", "loads"),
    "sweep": ("sweeps.engine", "sweep"),
}  # fmt: skip


def __getattr__(name: str) -> object:
    """Import what stands in ``_LATER`` when it is first used."""
    if name in _LATER:
        from importlib import import_module

        module, there = _LATER[name]

        return getattr(import_module(f"placedsl.{module}"), there)
    raise AttributeError(f"module 'placedsl' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
