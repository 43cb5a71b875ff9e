"""Plug-ins: what other packages add, found by entry point and imported only when it is used.

One mechanism for five kinds.  A package names its objects under the entry-point groups ``placedsl.readers``,
``placedsl.solvers``, ``placedsl.algorithms``, ``placedsl.constraints`` and ``placedsl.exporters``; docs/plugins.md
says what each object must be.  What is built in keeps its name; a name that two packages offer cannot be used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from placedsl.diagnostics import PlacedslError, UsageError, nearest
from placedsl.records import dataclass

if TYPE_CHECKING:
    from importlib import metadata

KINDS = ("readers", "solvers", "algorithms", "constraints", "exporters")
T = TypeVar("T")


class PluginError(UsageError):
    """A plug-in that cannot be loaded, is not what its kind must be, or failed; names its distribution."""


@dataclass(frozen=True)
class Plugin:
    """One entry point: its kind, its name, and the distribution that brings it (name and version)."""

    kind: str
    name: str
    distribution: str
    entry: metadata.EntryPoint

    def __str__(self) -> str:
        return f"{self.kind.removesuffix('s')} '{self.name}' of {self.distribution}"

    def load(self, *parts: str) -> Any:
        """The object itself; PluginError when it cannot be imported or lacks one of the attributes ``parts``."""
        try:
            found = self.entry.load()
        except Exception as problem:
            raise PluginError(f"{self} cannot be loaded: {_reason(problem)}") from problem
        for part in parts:
            if not hasattr(found, part):
                raise PluginError(f"{self} has no '{part}': docs/plugins.md says what is expected")
        return found

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Call what it has given; an exception that placedsl does not know becomes a PluginError."""
        try:
            return function(*arguments)
        except PlacedslError:
            raise
        except Exception as problem:
            raise PluginError(f"{self} failed: {_reason(problem)}") from problem

    def text(self, function: Callable[..., object], *arguments: object) -> str:
        """Call what must give a text."""
        found = self.call(function, *arguments)
        if not isinstance(found, str):
            raise PluginError(f"{self} failed: a text is expected from it, this is {type(found).__name__}")
        return found


def names(kind: str) -> tuple[str, ...]:
    """The names that plug-ins of a kind offer, sorted; nothing is imported."""
    return tuple(sorted({p.name for p in _all(kind)}))


def find(kind: str, name: str) -> Plugin | None:
    """The plug-in of that name, not imported yet; UsageError when two packages offer it."""
    found = [p for p in _all(kind) if p.name == name]
    if len(found) > 1:
        both = " and ".join(sorted(p.distribution for p in found))
        raise UsageError(f"{both} both offer the {kind.removesuffix('s')} '{name}': uninstall one of them")
    return found[0] if found else None


def get(kind: str, name: str, built_in: Collection[str] = ()) -> Plugin:
    """As :func:`find`; UsageError with the nearest names when there is none."""
    found = find(kind, name)
    if found is None:
        hint = nearest(name, (*built_in, *names(kind))) or "no plug-in offers one"
        raise UsageError(f"there is no {kind.removesuffix('s')} '{name}'; {hint}")
    return found


def export(answer: object, name: str) -> str:
    """The text that the exporter plug-in of that name makes of a :class:`placedsl.Answer`."""
    plugin = get("exporters", name)
    made = plugin.load()
    if not callable(made):
        hint = f"'placedsl export ANSWER.json --to {name}' asks for them"
        raise UsageError(f"{plugin} writes the files of a runtime: {hint}")
    return plugin.text(made, answer)


def listing(built_in: Mapping[str, Collection[str]]) -> list[tuple[Plugin, str]]:
    """Every plug-in with what is wrong with it (empty: nothing); ``built_in`` are the names taken, by kind.

    Each one is imported for this.
    """
    out = []
    for kind in KINDS:
        times = Counter(p.name for p in _all(kind))
        for plugin in _all(kind):
            problem = ""
            if plugin.name in built_in.get(kind, ()):
                problem = "not used: this name is built in"
            elif times[plugin.name] > 1:
                problem = "not used: another package offers this name too"
            else:
                try:
                    plugin.load()
                except PluginError as error:
                    problem = str(error).partition(" cannot be loaded: ")[2]
            out.append((plugin, problem))
    return out


def _all(kind: str) -> tuple[Plugin, ...]:
    """What the installed distributions offer, sorted.  Looked up each time: a notebook may install one meanwhile."""
    from importlib import metadata

    found = []
    for entry in metadata.entry_points(group=f"placedsl.{kind}"):
        home = entry.dist
        distribution = f"{home.name} {home.version}" if home is not None else "an unknown distribution"
        found.append(Plugin(kind, entry.name, distribution, entry))
    return tuple(sorted(found, key=lambda p: (p.name, p.distribution)))


def _reason(problem: Exception) -> str:
    """The exception with the last place in its traceback."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    text = f"{type(problem).__name__}: {problem}".strip()
    if trace is None or trace.tb_frame.f_code.co_filename.startswith("<"):
        return text
    return f"{text} ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"
