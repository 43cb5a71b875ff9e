"""What the elements of a set are, as far as it can be told without checking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from placedsl.language.syntax import statements as syntax
from placedsl.problem.expressions import Sort
from placedsl.server.known_names import KnownNames
from placedsl.server.symbols import Symbol


@dataclass(frozen=True)
class Scope:
    """What is bound around an expression, and whose attributes go by their bare names."""

    bound: Mapping[str, Symbol] = field(default_factory=dict)
    decisions: Mapping[str, Symbol] = field(default_factory=dict)
    implicit: tuple[Sort, ...] = ()

    def with_symbol(self, symbol: Symbol) -> Scope:
        """The same with one more name bound."""
        return replace(self, bound={**self.bound, symbol.name: symbol})


@dataclass
class Ranges:
    """Sorts of sets and elements, by the words of the data and the tables of what the text declares."""

    words: KnownNames
    tables: Mapping[str, Mapping[str, Symbol]]
    own_attributes: set[str] = field(default_factory=set)

    def implied(self, name: str, scope: Scope, per_device: bool) -> Sort | None:
        """The sort that a bare name is an attribute of, under ``where``."""
        for sort in reversed(scope.implicit):
            found = self.words.attribute(sort, name)
            if found is not None and found.per_device == per_device:
                return sort
            if sort == "node" and found is None and not per_device and name in self.own_attributes:
                return sort
        return None

    def sorts(self, node: Any, scope: Scope, depth: int = 0) -> tuple[Sort, ...]:
        """What the elements of a set are; nothing where it cannot be told."""
        match node:
            case syntax.Name(name=name):
                if name in scope.bound:
                    inner = scope.bound[name].sort
                    if inner == "cluster":
                        return ("device",)
                    return ("node",) if inner == "part" or inner.startswith("group:") else ()
                if self.is_cluster(name):
                    return ("device",) if self._uncounted(name) else ("cluster",)
                if name in self.tables["device"]:
                    return ("device",)
                if name in self.tables["set"] and depth < 20:
                    return self.sorts(self.tables["set"][name].node.value, scope, depth + 1)
                return self.words.sets.get(name, ())
            case syntax.Index() | syntax.Attribute() if self.cluster(node, scope):
                return ("device",)
            case syntax.Call(name="readers"):
                return ("node",)
            case syntax.Call(name="partition" | "sections", arguments=(_, syntax.Name(name=key))):
                return (f"group:{key}",)
            case syntax.Braces(pairs=((first, _), *_)):
                if isinstance(first, syntax.Name) and first.name in ("forward", "backward"):
                    return ("part",)
                return (self.sort(first, scope),)
            case syntax.Where(item=item):
                return self.sorts(item, scope, depth)
            case syntax.Binary(left=left):
                return self.sorts(left, scope, depth)
        return ()

    def sort(self, node: Any, scope: Scope) -> Sort:
        """What one element is; empty where it cannot be told."""
        if self.cluster(node, scope):
            return "cluster"
        match node:
            case syntax.Name(name=name):
                if name in scope.bound:
                    return scope.bound[name].sort
                if name in self.tables["device"]:
                    return "device"
                return "node" if name in self.tables["node"] or name in self.words.nodes else ""
            case syntax.Index(base=syntax.Name() as base):
                return next(iter(self.sorts(base, scope)), "")
            case syntax.Index(base=syntax.Attribute() as base):
                return self.member(base, scope)
            case syntax.Attribute() if self.member(node, scope):
                return self.member(node, scope)
            case syntax.Attribute(name=name, base=base):
                owner = self.sort(base, scope)
                if owner.startswith("group:"):
                    return "node"
                found = self.words.attribute(owner, name)
                return next(iter(found.type.sorts), "") if found is not None else ""
        return ""

    def is_cluster(self, name: str) -> bool:
        """Whether a name is that of a family of clusters."""
        symbol = self.tables["device"].get(name)
        return isinstance(symbol.node, syntax.Cluster) if symbol is not None else name in self.words.clusters

    def _uncounted(self, name: str) -> bool:
        symbol = self.tables["device"].get(name)
        return symbol.node.count is None if symbol is not None else name in self.words.uncounted

    def cluster(self, node: Any, scope: Scope) -> str:
        """The family of the cluster that ``pod``, ``pod[1]`` or ``site.pod[1]`` is; empty for anything else."""
        match node:
            case syntax.Name(name=name):
                return name if name not in scope.bound and self.is_cluster(name) else ""
            case syntax.Index(base=syntax.Name() | syntax.Attribute() as base):
                return self.cluster(base, scope)
            case syntax.Attribute(name=name):
                return name if self.member(node, scope) == "cluster" else ""
        return ""

    def member(self, node: syntax.Attribute, scope: Scope) -> Sort:
        """What ``pod[1].gpu`` is, a device or a cluster in a cluster; empty for an attribute."""
        if not self.cluster(node.base, scope) or self.words.attribute("cluster", node.name) is not None:
            return ""
        if self.is_cluster(node.name):
            return "cluster"
        return "device" if node.name in self.tables["device"] or node.name in self.words.families else ""
