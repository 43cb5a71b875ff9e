"""placedsl: say where the operators of a neural network may run; get a placement with a proven bound."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from placedsl.api.model import Model
    from placedsl.api.spec import Spec, load, loads
    from placedsl.api.timelines import SampleTimeline, Timeline
    from placedsl.diagnostics import Diagnostic, InputError, LimitError, PlacedslError, UsageError
    from placedsl.evaluation.evaluation import Evaluation
    from placedsl.language.syntax.formatter import formatted as format
    from placedsl.planner.answer import Answer
    from placedsl.sweeps.engine import sweep

__all__ = [
    "Answer", "Diagnostic", "Evaluation", "InputError", "LimitError", "Model", "PlacedslError", "SampleTimeline",
    "Spec", "Timeline", "UsageError", "format", "load", "loads", "sweep",
]  # fmt: skip

#: What is imported when it is first used, by module and name: importing placedsl alone takes no time.
_LATER = {
    "Answer": ("planner.answer", "Answer"), "Evaluation": ("evaluation.evaluation", "Evaluation"),
    "Model": ("api.model", "Model"), "SampleTimeline": ("api.timelines", "SampleTimeline"),
    "Spec": ("api.spec", "Spec"), "Timeline": ("api.timelines", "Timeline"),
    "Diagnostic": ("diagnostics", "Diagnostic"), "InputError": ("diagnostics", "InputError"),
    "LimitError": ("diagnostics", "LimitError"), "PlacedslError": ("diagnostics", "PlacedslError"),
    "UsageError": ("diagnostics", "UsageError"),
    "format": ("language.syntax.formatter", "formatted"), "load": ("api.spec", "load"), "loads": ("api.spec", "loads"),
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
