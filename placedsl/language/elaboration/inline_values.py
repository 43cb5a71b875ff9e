"""Numbers and times in the blocks of an inline graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from placedsl.diagnostics import nearest
from placedsl.language.checking.checker import Checker
from placedsl.language.elaboration.statement_entries import STATEMENTS, EntryKind
from placedsl.language.syntax import statements as syntax
from placedsl.problem import expressions as core
from placedsl.units import DATA, NUMBER, Dimension

_NODE = STATEMENTS["node"].entries
#: The kinds that a time without a kind is for.
_EVERYWHERE = ("accelerator", "host")


class InlineValues:
    """Reads them; what is wrong goes to ``checker.found``.  ``families`` are those of the spec's devices."""

    def __init__(self, checker: Checker, families: Sequence[str]) -> None:
        self.checker = checker
        self.kinds = [*_EVERYWHERE, *families]

    def value(self, node: syntax.Expression, what: str, entries: Mapping[str, EntryKind] = _NODE) -> float:
        """The value of an entry in SI; 0 after reporting."""
        return self.measured(node, what, (entries[what].dimension,), entries)[0]

    def measured(
        self,
        node: syntax.Expression,
        what: str,
        allowed: Collection[Dimension | None],
        entries: Mapping[str, EntryKind] = _NODE,
    ) -> tuple[float, Dimension]:
        """The value of an entry in SI, of one of several dimensions; 0 after reporting."""
        example = f"as in {what} = {entries[what].example}"
        if isinstance(node, syntax.Number) and not node.problem:
            value, given, kind = node.value, node.dimension, "number"
        else:
            out, checked = self.checker.number(node)
            value, given, kind = 0.0, checked.dimension, checked.kind
            if isinstance(out, core.Constant) and not isinstance(out.value, str):
                value = float(out.value)
            elif kind != "error":
                self.checker.error(node, "a value known beforehand is expected here")
                kind = "error"
        if kind == "error":
            return 0.0, DATA
        if given not in allowed and not (value == 0.0 and given == NUMBER):
            self.checker.error(node, f"'{what}' is {entries[what].dimension}, this is {given}", example)
            return 0.0, DATA
        if value < 0:
            self.checker.error(node, f"'{what}' cannot be negative", example)
            return 0.0, DATA
        return value, given

    def times(self, value: syntax.Expression, entries: Mapping[str, EntryKind] = _NODE) -> dict[str, float]:
        """``time = 4 ms`` for every kind, or a map from kinds, families or devices."""
        if not isinstance(value, syntax.Braces):
            return dict.fromkeys(_EVERYWHERE, self.value(value, "time", entries))
        out: dict[str, float] = {}
        for key, amount in value.pairs:
            match key:
                case syntax.Name(name=kind):
                    pass
                case syntax.Index(base=syntax.Name(name=family), arguments=(syntax.Number(value=index),)):
                    kind = f"{family}[{index:g}]"
                case _:
                    kind = ""
            if amount is None:
                self.checker.error(key, "a kind of device and a time are expected", "as in {accelerator: 4 ms}")
            elif kind.partition("[")[0] not in self.kinds:
                self.checker.error(key, f"there is no device or kind '{kind}'", nearest(kind, self.kinds))
            elif kind in out:
                self.checker.error(key, f"the time on '{kind}' is given twice")
            else:
                out[kind] = self.value(amount, "time", entries)
        return out
