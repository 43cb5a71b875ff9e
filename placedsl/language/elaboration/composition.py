"""``part``, ``use`` and ``under``: formulations put together from parts, for one execution model.

What comes out is a formulation whose clauses are its parts' and its own, in this order; each part stands in it once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace

from placedsl.diagnostics import Diagnostic, nearest
from placedsl.language.elaboration.extension import extended
from placedsl.language.syntax import statements as syntax
from placedsl.problem.execution import COMMUNICATIONS, ORDERS, RUNS, SCHEDULES, STREAMS, TRANSFERS, Execution
from placedsl.problem.formulation import Scope, choices
from placedsl.records import dataclass

#: A value for each choice of the execution model, by the name of the choice.
Choices = Mapping[str, str]
#: The choices of an execution model that ``under`` asks for, and the values of each.
AXES: Mapping[str, tuple[str, ...]] = {
    "run": RUNS, "order": ORDERS, "communication": COMMUNICATIONS, "transfers": TRANSFERS,
    "parallelism": ("none", "data", "plan", "chunks", "clusters"), "streams": STREAMS,
}  # fmt: skip


def within(scope: Scope, chosen: Choices) -> bool:
    """Whether conditions hold for an execution model."""
    return all(chosen[axis] in values for axis, values in scope.items())


def scopes(statement: syntax.Formulation) -> tuple[Scope, ...]:
    """The execution models that a formulation is for: those that one of these holds for.

    Clauses ``schedule`` and ``under`` say so; without any it is a pipeline's, as ``schedule pipedream`` is.
    """
    data = any(isinstance(clause, syntax.Parallel) for clause in statement.clauses)
    models = [model for c in statement.clauses if isinstance(c, syntax.Schedule) and (model := _model(c)) is not None]
    stated = [scope_of(c.conditions) for c in statement.clauses if isinstance(c, syntax.Under) and c.clause is None]
    if not any(isinstance(c, syntax.Schedule) for c in statement.clauses) and not stated:
        models = [Execution()]
    chosen = [{**choices(model), "parallelism": "data" if data else "none"} for model in models]
    return (*({axis: (value,) for axis, value in model.items()} for model in chosen), *stated)


def _model(statement: syntax.Schedule) -> Execution | None:
    """The execution model of a clause ``schedule``; None for what is none."""
    model = SCHEDULES.get(statement.name.text)
    for entry in statement.block:
        said = getattr(entry.value, "name", getattr(entry.value, "value", ""))
        for known in COMMUNICATIONS if entry.name.text == "communication" else ():
            model = replace(model, communication=known) if model is not None and said == known else model
        for where in TRANSFERS if entry.name.text == "transfers" else ():
            model = replace(model, transfers=where) if model is not None and said == where else model
    return model


def scope_of(conditions: Iterable[syntax.Condition]) -> Scope:
    """Conditions as data."""
    out: dict[str, tuple[str, ...]] = {}
    for condition in conditions:
        values = tuple(value.text for value in condition.values)
        axis = condition.axis.text
        if axis in AXES:
            out[axis] = tuple(value for value in values if value in out.get(axis, AXES[axis]))
    return out


def model_for(statement: syntax.Formulation, chosen: Choices) -> Choices:
    """The choices that a formulation is composed for: those of the spec if it is for them, else some that it is for."""
    known = scopes(statement)
    if not known or any(within(scope, chosen) for scope in known):
        return chosen
    return {**chosen, **{axis: values[0] for axis, values in known[0].items() if values}}


def renamed(alias: syntax.Alias, of: syntax.Formulation) -> syntax.Formulation:
    """The formulation that another name stands for."""
    heads = [c for c in of.clauses if isinstance(c, syntax.Under) and c.clause is None]
    others = tuple(c for c in of.clauses if c not in heads)
    conditions = (*(condition for head in heads for condition in head.conditions), *alias.conditions)
    return replace(of, name=alias.name, clauses=(syntax.Under(alias.at, conditions, None), *others))


@dataclass
class Composition:
    """Formulations composed from parts; what is wrong goes to ``found``.

    ``parts``: those that can be used, by name; ``chosen``: the execution model; ``derived``: quantities that follow
    from others; ``used``: the parts so far.
    """

    parts: Mapping[str, syntax.Part]
    chosen: Choices
    found: list[Diagnostic]
    derived: Collection[str] = ()
    used: set[str] = field(default_factory=set)

    def formulation(self, statement: syntax.Formulation) -> syntax.Formulation:
        """The formulation with the clauses of its parts."""
        return self._joined(replace(statement, clauses=()), statement.clauses)

    def extension(self, base: syntax.Formulation, statement: syntax.Formulation) -> syntax.Formulation:
        """A composed formulation with the clauses of an extension, and of the parts that this uses."""
        return self._joined(base, statement.clauses, replaces=True)

    def _joined(
        self, base: syntax.Formulation, clauses: Sequence[syntax.Clause], *, replaces: bool = False
    ) -> syntax.Formulation:
        """More clauses for a formulation: first those of parts, then the others."""
        own: list[syntax.Clause] = []
        uses: list[syntax.Use] = []
        for clause in clauses:
            kept = self._chosen(clause)
            if isinstance(kept, syntax.Use):
                uses.append(kept)
            elif kept is not None:
                own.append(kept)
        for use in uses:
            base = self._with_parts(base, use)
        if not base.clauses and not replaces:
            return replace(base, clauses=tuple(own))
        return extended(base, replace(base, clauses=tuple(own)), self.found, self.derived)

    def _chosen(self, clause: syntax.Clause) -> syntax.Clause | None:
        """What a clause is under this execution model."""
        if not isinstance(clause, syntax.Under):
            return clause
        self.check(clause.conditions)
        if clause.clause is None:
            return clause
        return clause.clause if within(scope_of(clause.conditions), self.chosen) else None

    def check(self, conditions: Iterable[syntax.Condition]) -> None:
        """Report choices and values that no execution model has."""
        for condition in conditions:
            axis = condition.axis
            if axis.text not in AXES:
                self._error(axis, f"an execution model has no '{axis.text}'", nearest(axis.text, AXES))
                continue
            for value in condition.values:
                if value.text not in AXES[axis.text]:
                    self._error(value, f"'{axis.text}' is never '{value.text}'", nearest(value.text, AXES[axis.text]))

    def _with_parts(self, base: syntax.Formulation, use: syntax.Use) -> syntax.Formulation:
        for name in use.names:
            part = self.parts.get(name.text)
            if part is None:
                self._error(name, f"there is no part '{name.text}'", nearest(name.text, self.parts))
            elif name.text not in self.used:
                self.used.add(name.text)
                before = len(self.found)
                base = self._joined(base, [c for c in part.clauses if self._of_a_part(c)])
                if len(self.found) > before:  # what is told of the part's own text is enough
                    return base
        return self._numbered(base, use) if use.block else base

    def _of_a_part(self, clause: syntax.Clause) -> bool:
        """Report clauses that say what a whole formulation is for."""
        word = {syntax.Schedule: "schedule", syntax.Parallel: "parallelism", syntax.Minimize: "minimize"}
        whole = word.get(type(clause), "under" if isinstance(clause, syntax.Under) and clause.clause is None else "")
        if whole:
            hint = "a part holds variables, quantities and rows"
            self.found.append(Diagnostic(f"'{whole}' stands in a formulation", clause.at.span, hint))
        return not whole

    def _numbered(self, base: syntax.Formulation, use: syntax.Use) -> syntax.Formulation:
        """Rows under the numbers that another paper gives them."""
        labels: dict[str, str] = {}
        rows = {
            rule.name.text for c in base.clauses if isinstance(c, syntax.Subject | syntax.Tight) for rule in c.rules
        }
        for entry in use.block:
            if entry.name.text not in rows:
                hint = nearest(entry.name.text, rows)
                self._error(entry.name, f"the parts have no row '{entry.name.text}'", hint)
            value = entry.value
            labels[entry.name.text] = value.value if isinstance(value, syntax.Text) else value.at.text
        return replace(base, clauses=tuple(_labelled(clause, labels) for clause in base.clauses))

    def _error(self, word: syntax.Word, message: str, hint: str) -> None:
        self.found.append(Diagnostic(message, word.at.span, hint))


def _labelled(clause: syntax.Clause, labels: Mapping[str, str]) -> syntax.Clause:
    if not isinstance(clause, syntax.Subject | syntax.Tight):
        return clause
    rules = tuple(replace(rule, label=labels.get(rule.name.text, rule.label)) for rule in clause.rules)
    return replace(clause, rules=rules)
