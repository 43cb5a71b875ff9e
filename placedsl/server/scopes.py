"""What each name in a text stands for: where it is declared, and everywhere it is used.

Names are resolved in the order of checking.  Syntax that is not known here is walked over part by part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from placedsl.language.syntax import statements as syntax
from placedsl.problem.expressions import Sort
from placedsl.server.known_names import KnownNames
from placedsl.server.ranges import Ranges, Scope
from placedsl.server.reading import Place, Reading, place
from placedsl.server.symbols import Names, Occurrence, Symbol


def names(reading: Reading, words: KnownNames) -> Names:
    """Resolve every name of a text."""
    walk = _Walk(reading, words)
    walk.declare()
    for statement in reading.module.statements:
        walk.statement(statement, Scope(decisions=walk.tables["decision"]))
    order = sorted(dict.fromkeys(walk.found), key=lambda o: o.at)
    # A second declaration of a name, under another choice say, is an occurrence of the first.
    named = {occurrence.symbol for occurrence in order}
    symbols = [symbol for symbol in dict.fromkeys(walk.symbols) if symbol in named]
    return Names(tuple(sorted(symbols, key=lambda s: s.at)), tuple(order))


#: What the statements declare, by their syntax.
_DECLARED = {
    "Param": "parameter", "SetOf": "set", "DeviceFamily": "device", "Node": "node", "Variable": "decision",
    "ConstraintDefinition": "constraint", "Formulation": "formulation", "Define": "definition", "Cluster": "device",
    "Part": "part", "Alias": "formulation",
}  # fmt: skip


def _clustered(cluster: syntax.Cluster) -> Iterator[Any]:
    """A cluster with all that lies in it."""
    yield cluster
    for item in cluster.items:
        yield from _clustered(item) if isinstance(item, syntax.Cluster) else (item,)


class _Walk:
    def __init__(self, reading: Reading, words: KnownNames) -> None:
        self.reading, self.words = reading, words
        self.symbols: list[Symbol] = []
        self.found: list[Occurrence] = []
        self.tables: dict[str, dict[str, Symbol]] = {kind: {} for kind in _DECLARED.values()}
        self.ranges = Ranges(words, self.tables)

    # declarations

    def declare(self) -> None:
        """Collect what the text declares; the order of statements means nothing."""
        for statement in self.reading.module.statements:
            parts: Iterable[Any] = statement.items if isinstance(statement, syntax.GraphInline) else (statement,)
            if isinstance(statement, syntax.Cluster):
                parts = _clustered(statement)
            for part in parts:
                kind = _DECLARED.get(type(part).__name__)
                if kind is not None:
                    self.symbol(kind, part.name, part)
                if isinstance(part, syntax.Node):
                    self.ranges.own_attributes.update(e.name.text for e in part.block)

    def symbol(self, kind: str, word: syntax.Word, node: Any) -> None:
        """A new symbol; of two by one name the first one counts."""
        self.symbols.append(Symbol(kind, word.text, place(word.at), node))
        self.tables[kind].setdefault(word.text, self.symbols[-1])

    def mark(self, word: syntax.Word, kind: str, symbol: Symbol | None = None, sort: Sort = "") -> None:
        """A name outside of expressions, which may stand in quotes."""
        self.found.append(Occurrence(place(word.at), word.text, kind, symbol, sort, plain=False))

    def known(self, kind: str, word: syntax.Word) -> None:
        """A name of one of the tables, outside of expressions."""
        self.mark(word, kind, self.tables[kind].get(word.text))

    # statements

    def statement(self, node: Any, scope: Scope) -> None:
        """Any statement, clause, rule or graph item."""
        kind = _DECLARED.get(type(node).__name__)
        if kind is not None and not isinstance(node, syntax.Variable):
            self.known(kind, node.name)
        match node:
            case syntax.GraphInline(items=items) | syntax.Node(options=items):
                for item in items:
                    self.statement(item, scope)
            case syntax.Chain(names=chained):
                for word in chained:
                    self.known("node", word)
            case syntax.GraphFile(path=path):
                self.mark(path, "file")
            case syntax.Cluster(count=count, items=inside):
                self.expressions((count,), scope)
                for part in inside:
                    self.statement(part, scope)
            case syntax.Fuse(types=types, by=by):
                for word in types:
                    self.mark(word, "word")
                if by is not None:
                    self.mark(by, "attribute", None, "node")
            case syntax.Parallel(name=word):
                self.mark(word, "word")
            case syntax.DeviceFamily(count=count, kind=word):
                self.expressions((count,), scope)
                if word is not None:
                    self.mark(word, "word")
            case syntax.LinkBetween(source=source, target=target):
                for end in (source, target):
                    self.known("device", end.name)
                    self.expressions((end.index,), scope)
            case syntax.Param(type=word, value=value):
                scope = self.bind(getattr(node, "items", ()), scope)
                if word is not None:
                    self.mark(word, "word")
                self.expressions((value,), scope)
            case syntax.Option(items=items):
                scope = self.bind(items, scope)
            case syntax.Schedule(name=word):
                self.mark(word, "word")
            case syntax.Subject(rules=rules):
                for rule in rules:
                    self.rule(rule, scope)
            case syntax.Tight(variables=words, rules=rules):
                for word in words:
                    self.mark(word, "decision", scope.decisions.get(word.text))
                for rule in rules:
                    self.rule(rule, scope)
            case syntax.ConstraintDefinition():
                self.constraint_definition(node, scope)
            case syntax.Formulation(clauses=clauses) | syntax.Part(clauses=clauses):
                self.formulation(clauses, scope)
            case syntax.Alias(of=word, conditions=conditions):
                self.known("formulation", word)
                self.conditions(conditions)
            case syntax.Use(names=words):
                for word in words:
                    self.known("part", word)
            case syntax.Under(conditions=conditions, clause=clause):
                self.conditions(conditions)
                if clause is not None:
                    self.statement(clause, scope)
            case syntax.Variable(items=items, type=word, low=low, high=high):
                self.mark(node.name, "decision", scope.decisions.get(node.name.text))
                inner = self.bind(items, scope)
                self.expressions((low, high), inner)
                if word is not None:
                    self.mark(word, "word")
            case syntax.Provides(pattern=pattern, value=value):
                self.provides(pattern, value, scope)
            case syntax.Interconnect(name=word):
                if word is not None:
                    self.mark(word, "word")
            case _ if not isinstance(node, syntax.Solve):
                self.parts(node, self.given(node, scope), ("parameters",))
        for entry in getattr(node, "block", ()):
            self.entry(node, entry, scope)

    def constraint_definition(self, node: syntax.ConstraintDefinition, scope: Scope) -> None:
        """A definition; the attribute that it is given ``by`` and its parameters are known in its body."""
        if node.by is not None:
            key = Symbol("key", node.by.text, place(node.by.at), node)
            self.symbols.append(key)
            self.mark(node.by, "key", key)
            scope = scope.with_symbol(key)
        self.expression(node.body, self.given(node, scope))

    def given(self, node: Any, scope: Scope) -> Scope:
        """The parameters of a definition, known in its body."""
        for one in getattr(node, "parameters", ()):
            self.expressions((one.set,), scope)
            sort = next(iter(self.ranges.sorts(one.set, scope)), "") if one.set is not None else ""
            symbol = Symbol("variable", one.name.text, place(one.name.at), one, sort)
            self.symbols.append(symbol)
            self.occurrence(symbol.at, symbol.name, "variable", symbol)
            scope = scope.with_symbol(symbol)
        return scope

    def conditions(self, conditions: Iterable[syntax.Condition]) -> None:
        """``communication overlapped``."""
        for condition in conditions:
            for one in (condition.axis, *condition.values):
                self.mark(one, "word")

    def formulation(self, clauses: Iterable[Any], scope: Scope) -> None:
        """The clauses of a formulation; its variables are known in all of them."""
        own = dict(scope.decisions)
        for each in clauses:
            clause = each.clause if isinstance(each, syntax.Under) else each
            if isinstance(clause, syntax.Variable):
                made = Symbol("decision", clause.name.text, place(clause.name.at), clause)
                self.symbols.append(made)
                own.setdefault(made.name, made)
        for clause in clauses:
            self.statement(clause, replace(scope, decisions=own))

    def provides(self, pattern: syntax.Expression, value: syntax.Expression, scope: Scope) -> None:
        """``provides load(d) = …``: the names of the pattern are bound in the value."""
        slots: tuple[Any, ...] = ()
        sorts: tuple[Sort, ...] = ()
        match pattern:
            case syntax.Binary(operator="on", left=left, right=right):
                slots, sorts = (left, right), ("node", "device")
            case syntax.Call(name=name, arguments=slots):
                self.occurrence(self.reading.first(pattern.at, "NAME"), name, "quantity")
                sorts = self.words.quantities[name].arguments if name in self.words.quantities else ()
            case _:
                self.expression(pattern, scope)
        for slot, sort in zip(slots, (*sorts, *[""] * len(slots)), strict=False):
            if isinstance(slot, syntax.Name):
                scope = self.variable(slot, sort, scope)
        self.expression(value, scope)

    def rule(self, rule: syntax.Rule, scope: Scope) -> None:
        """One rule; without a formula it names a constraint."""
        if rule.body is None:
            self.mark(rule.name, "constraint", self.tables["constraint"].get(rule.name.text))
        else:
            self.mark(rule.name, "rule")
        if rule.by is not None:
            self.mark(rule.by, "attribute", None, "node")
        self.parts(rule, scope, ("name", "by", "label"))

    def entry(self, holder: Any, entry: syntax.Entry, scope: Scope) -> None:
        """``name = value`` in the block of a statement."""
        self.mark(entry.name, "entry", None, type(holder).__name__)
        if isinstance(entry.value, syntax.Braces):
            # A map from kinds, families or devices; of what options move, from nodes.
            kind = "node" if entry.name.text in ("gather", "scatter") else "device"
            for key, value in entry.value.pairs:
                self.key(key, scope, kind)
                self.expressions((value,), scope)
            return
        settings = isinstance(holder, syntax.Solve | syntax.GraphFile)
        if settings and isinstance(entry.value, syntax.Name):
            self.occurrence(self.reading.first(entry.value.at, "NAME"), entry.value.name, "word")
        else:
            self.expression(entry.value, scope)

    def key(self, key: syntax.Expression, scope: Scope, kind: str) -> None:
        """The key of a map: a kind, a family or a device, or a node."""
        match key:
            case syntax.Name(name=name) | syntax.Text(value=name):
                symbol, quoted = self.tables[kind].get(name), isinstance(key, syntax.Text)
                plain = kind == "device" and not quoted
                if symbol is not None or not quoted:
                    known = kind if symbol else "word"
                    at = place(key.at) if quoted else self.reading.first(key.at, "NAME")
                    self.found.append(Occurrence(at, name, known, symbol, "", plain, quoted and kind == "device"))
            case syntax.Index(base=base, arguments=arguments):
                self.key(base, scope, kind)
                self.expressions(arguments, scope)
            case _:
                self.expression(key, scope)

    # expressions

    def occurrence(self, at: Place, name: str, kind: str, symbol: Symbol | None = None, sort: Sort = "") -> None:
        """A name in an expression, where no quotes can stand."""
        self.found.append(Occurrence(at, name, kind, symbol, sort))

    def parts(self, node: Any, scope: Scope, but: tuple[str, ...] = ()) -> None:
        """Every expression within a node."""
        for name in getattr(node, "__slots__", ()):
            if name != "at" and name not in but:
                self.expressions((getattr(node, name),), scope)

    def expressions(self, nodes: Iterable[Any], scope: Scope) -> None:
        """Each that is one, also within tuples; None is nothing."""
        for node in nodes:
            if isinstance(node, tuple):
                self.expressions(node, scope)
            elif hasattr(node, "at") and not isinstance(node, syntax.Word):
                self.expression(node, scope)

    def expression(self, node: Any, scope: Scope) -> None:
        """Any expression."""
        match node:
            case syntax.Name(name=name):
                self.name(self.reading.first(node.at, "NAME"), name, scope)
            case syntax.Attribute(base=base, name=name):
                self.expression(base, scope)
                at = self.reading.last(node.at, name)
                if self.ranges.member(node, scope):
                    self.occurrence(at, name, "device", self.tables["device"].get(name))
                else:
                    self.occurrence(at, name, "attribute", None, self.ranges.sort(base, scope))
            case syntax.Index(base=syntax.Name(name="nodes") as base, arguments=(syntax.Text() as text,)):
                self.expression(base, scope)
                at = self.reading.first(text.at, "STRING")
                symbol = self.tables["node"].get(text.value)
                self.found.append(Occurrence(at, text.value, "node", symbol, "", plain=False, quoted=True))
            case syntax.Index(base=syntax.Name(name=name) as base, arguments=arguments):
                self.indexed(self.reading.first(base.at, "NAME"), name, scope)
                self.expressions(arguments, scope)
            case syntax.Call(name="partition" | "sections" as function, arguments=(of, syntax.Name(name=name) as key)):
                self.occurrence(self.reading.first(node.at, "NAME"), function, "function")
                self.expression(of, scope)
                bound = scope.bound.get(name)
                at = self.reading.first(key.at, "NAME")
                self.occurrence(at, name, "key" if bound else "attribute", bound, "" if bound else "node")
            case syntax.Call(name=name, arguments=arguments, body=body):
                kind = "quantity" if name in self.words.quantities else "function"
                symbol = self.tables["definition"].get(name)
                at = self.reading.first(node.at, "NAME")
                self.occurrence(at, name, "definition" if symbol else kind, symbol)
                self.ranged(arguments, body, scope)
            case syntax.Aggregate(items=items, body=body) | syntax.Forall(items=items, body=body):
                self.ranged(items, body, scope)
            case syntax.Braces(pairs=pairs):
                for item, value in pairs:
                    self.ranged((item,), value, scope)
            case syntax.Where(item=item, condition=condition):
                self.expression(item, scope)
                self.expression(condition, replace(scope, implicit=(*scope.implicit, *self.ranges.sorts(item, scope))))
            case _:
                self.parts(node, scope)

    def ranged(self, items: tuple[Any, ...], body: Any, scope: Scope) -> None:
        """Items and what follows their colon; only with a colon they bind."""
        if body is None:
            self.expressions(items, scope)
        else:
            self.expression(body, self.bind(items, scope))

    def bind(self, items: Iterable[Any], scope: Scope) -> Scope:
        """``v in nodes where …``: each is known in what follows."""
        for item in items:
            inner, condition = (item.item, item.condition) if isinstance(item, syntax.Where) else (item, None)
            if not isinstance(inner, syntax.Binary) or inner.operator != "in":
                self.expression(item, scope)
                continue
            self.expression(inner.right, scope)
            sorts = self.ranges.sorts(inner.right, scope)
            targets = inner.left.items if isinstance(inner.left, syntax.TupleOf) else (inner.left,)
            for target, sort in zip(targets, (*sorts, *[""] * len(targets)), strict=False):
                if isinstance(target, syntax.Name):
                    scope = self.variable(target, sort, scope)
            if condition is not None:
                self.expression(condition, replace(scope, implicit=(*scope.implicit, *sorts)))
        return scope

    def variable(self, target: syntax.Name, sort: Sort, scope: Scope) -> Scope:
        """A bound variable where it is introduced."""
        at = self.reading.first(target.at, "NAME")
        symbol = Symbol("variable", target.name, at, target, sort)
        self.symbols.append(symbol)
        self.occurrence(at, target.name, "variable", symbol)
        return scope.with_symbol(symbol)

    def name(self, at: Place, name: str, scope: Scope) -> None:
        """A bare name."""
        tables, words = self.tables, self.words
        if name in scope.bound:
            self.occurrence(at, name, scope.bound[name].kind, scope.bound[name])
        elif name in tables["parameter"]:
            self.occurrence(at, name, "parameter", tables["parameter"][name])
        elif (sort := self.ranges.implied(name, scope, per_device=False)) is not None:
            self.occurrence(at, name, "attribute", None, sort)
        elif name in tables["device"]:
            self.occurrence(at, name, "device", tables["device"][name])
        elif name in words.families and name not in tables["set"]:
            self.occurrence(at, name, "device")
        elif name in tables["definition"]:
            self.occurrence(at, name, "definition", tables["definition"][name])
        elif name in words.quantities:
            self.occurrence(at, name, "quantity")
        elif name in scope.decisions:
            self.occurrence(at, name, "decision", scope.decisions[name])
        elif name in tables["set"]:
            self.occurrence(at, name, "set", tables["set"][name])
        elif name in tables["node"]:
            self.occurrence(at, name, "node", tables["node"][name])
        elif name in words.sets:
            self.occurrence(at, name, "set")
        elif name in ("true", "false"):
            self.occurrence(at, name, "word")
        else:
            self.occurrence(at, name, "node" if name in words.nodes else "unknown")

    def indexed(self, at: Place, name: str, scope: Scope) -> None:
        """A name with brackets behind it."""
        if name in scope.decisions:
            self.occurrence(at, name, "decision", scope.decisions[name])
            return
        sort = self.ranges.implied(name, scope, per_device=True)
        if sort is not None:
            self.occurrence(at, name, "attribute", None, sort)
        elif name in self.tables["device"]:
            self.occurrence(at, name, "device", self.tables["device"][name])
        else:
            self.name(at, name, replace(scope, bound={}, implicit=()))
