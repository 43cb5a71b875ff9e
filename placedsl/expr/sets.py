"""Elements, sets, and what binds variables: a generator ranges over a set once, with a name for the elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Integral
from types import GeneratorType
from typing import Any

from placedsl.expr.terms import (
    AND,
    ATOM,
    COMPARISON,
    LOOSE,
    SUM,
    ExpressionError,
    Names,
    Term,
    as_condition,
    logic,
    named,
    term,
    text,
)
from placedsl.language.syntax.keywords import RESERVED

#: What the sets that a generator ranges over are told to, while it runs.
_GATHERING: ContextVar[list[Binder] | None] = ContextVar("_GATHERING", default=None)


class Element(Term):
    """One node, device or tensor; its attributes are attributes in Python: ``v.memory``, ``v.time[d]``."""

    def __getattr__(self, name: str) -> Attribute:
        if name.startswith("_"):
            raise AttributeError(name)
        return Attribute(self, name)

    def on(self, device: Any) -> Term:
        """``v on d``: the node is placed there; of a family: on one of it."""
        return Term(COMPARISON, (self, SUM), " on ", (term(device), SUM), condition=True)

    def isin(self, of: Any) -> Term:
        """``v in set``."""
        if isinstance(of, Set) and of.narrowed:
            raise ExpressionError(f"'{of}' has no name: declare it with model.set(…) first")
        return Term(COMPARISON, (self, SUM), " in ", (term(of), SUM), condition=True)


class Attribute(Element):
    """``owner.name``; with a device in brackets, ``owner.name[d]``, where it depends on one."""

    def __init__(self, owner: Element, name: str) -> None:
        super().__init__(ATOM, (owner, ATOM), f".{name}", condition=None)
        self._owner, self._name = owner, name

    def _render(self, names: Names) -> str:
        if isinstance(self._owner, Slot) and names.get(id(self._owner)) == "":
            return self._name
        return super()._render(names)

    def _words(self) -> Iterator[str]:
        yield self._name  # where the owner goes unnamed
        if isinstance(self._owner, Slot):
            yield f".{self._name}"  # no name of the language: what Set.asked_for looks for
        yield from super()._words()

    def __getitem__(self, device: Any) -> Term:
        return Term(ATOM, (self, ATOM), "[", (term(device), LOOSE), "]", condition=None)


class Slot(Element):
    """A bound variable: what a set yields within ``forall``, ``total`` and their like.

    A group of a partition can be ranged over in its turn: ``for group in partition("layer") for v in group``.
    """

    def __init__(self, of: Set) -> None:
        super().__init__(ATOM, condition=None)
        self._of, self._preferred = of, "x"

    def _render(self, names: Names) -> str:
        name = names.get(id(self))
        if name is None:
            raise ExpressionError(
                "a variable is used outside of the forall(…), total(…) or count(…) that its set was ranged over in; "
                "Python's own sum, max, min, any and all do not do: write total, largest, smallest, ~forall(~…), forall"
            )
        if not name:
            raise ExpressionError(
                "the condition of a set that is declared or counted can ask for attributes of its elements and for "
                "nothing else: v.memory, v.time[d]"
            )
        return name

    def __iter__(self) -> Iterator[Any]:
        return Set(self)._range()


class Set(Term):
    """A set: to be ranged over (``for d in gpu`` within ``forall`` …), narrowed by ``where``, indexed from 1."""

    def __init__(
        self, source: Term | str, pairs: bool = False, conditions: tuple[Callable[..., Any], ...] = ()
    ) -> None:
        super().__init__(ATOM, (named(source) if isinstance(source, str) else source, ATOM))
        self._source: Term = self._parts[0][0]  # type: ignore[assignment]
        self.pairs, self._conditions = pairs, conditions

    @property
    def narrowed(self) -> bool:
        """There is a ``where``."""
        return bool(self._conditions)

    def asked_for(self) -> set[str]:
        """The attributes that the conditions ask for."""
        return {word[1:] for word in self._words() if word.startswith(".")}

    def _words(self) -> Iterator[str]:
        yield from super()._words()
        condition = self._condition_on(self._slots())
        if condition is not None:
            yield from condition._words()

    def _slots(self) -> tuple[Slot, ...]:
        return tuple(Slot(self) for _ in range(2 if self.pairs else 1))

    def where(self, condition: Callable[..., Any]) -> Set:
        """The elements that satisfy a condition, a function of the element (of both, for pairs)."""
        if not callable(condition):
            raise ExpressionError('where takes a function of the element: nodes.where(lambda v: v.memory > "1 GiB")')
        return Set(self._source, self.pairs, (*self._conditions, condition))

    def __getitem__(self, index: Any) -> Element:
        if isinstance(index, str) and str(self._source) == "nodes":
            index = text(index)
        elif isinstance(index, Integral) and not isinstance(index, bool) and int(index) < 1:
            raise IndexError(f"{self}[{index}]: elements are counted from 1, as in answers")
        return Element(ATOM, (self._source, ATOM), "[", (term(index), LOOSE), "]", condition=None)

    def __iter__(self) -> Iterator[Any]:
        return self._range()

    def _range(self) -> Iterator[Any]:
        gathering = _GATHERING.get()
        if gathering is None:
            raise ExpressionError(
                f"the set '{self._source}' is known to the language and not to Python: range over it in a generator "
                "within forall(…), total(…), count(…), largest(…) or smallest(…)"
            )
        slots = self._slots()
        gathering.append(Binder(slots, self._source, self._condition_on(slots)))
        yield slots if self.pairs else slots[0]

    def _condition_on(self, slots: tuple[Slot, ...]) -> Term | None:
        parts = [as_condition("where", condition(*slots)) for condition in self._conditions]
        out = parts[0] if parts else None
        for part in parts[1:]:
            out = logic("and", AND, out, part)
        return out

    def _render(self, names: Names) -> str:
        if not self._conditions:
            return super()._render(names)
        slots = self._slots()
        condition = self._condition_on(slots)
        assert condition is not None
        # Bare attributes of a pair would be those of its second element alone.
        unnamed = names | ({} if self.pairs else {id(slots[0]): ""})
        return f"{self._source._render(names)} where {condition._render(unnamed)}"


class Family(Set, Element):
    """A device family: the set of its devices, ``gpu[1]`` one of them; without a count, the one device itself."""


@dataclass(frozen=True)
class Binder:
    """``v in set where condition``: the variables that a set has yielded."""

    slots: tuple[Slot, ...]
    source: Term
    condition: Term | None


class Quantified(Term):
    """What binds variables: ``opening binders: body closing``."""

    def __init__(
        self, level: int, opening: str, binders: tuple[Binder, ...], body: Term, closing: str, condition: bool
    ) -> None:
        super().__init__(level, condition=condition)
        self._opening, self._binders, self._body, self._closing = opening, binders, body, closing

    def _words(self) -> Iterator[str]:
        yield from self._body._words()
        for binder in self._binders:
            yield from binder.source._words()
            if binder.condition is not None:
                yield from binder.condition._words()

    def _render(self, names: Names) -> str:
        inner, taken = dict(names), {*names.values(), *self._words(), *RESERVED}
        texts = []
        for binder in self._binders:
            source = binder.source._render(inner)
            for slot in binder.slots:
                inner[id(slot)] = _free(slot._preferred, taken)
                taken.add(inner[id(slot)])
            left = ", ".join(inner[id(slot)] for slot in binder.slots)
            where = "" if binder.condition is None else f" where {binder.condition._render(inner)}"
            texts.append(f"({left}) in {source}{where}" if len(binder.slots) > 1 else f"{left} in {source}{where}")
        return f"{self._opening}{', '.join(texts)}: {self._body._render(inner)}{self._closing}"


def _free(preferred: str, taken: set[str]) -> str:
    if preferred not in taken:
        return preferred
    return next(name for i in range(1, len(taken) + 2) if (name := f"{preferred}{i}") not in taken)


def ranged(generator: Any, what: str) -> tuple[tuple[Binder, ...], Any]:
    """The sets that a generator ranges over, with the names of its variables, and the one thing that it gives."""
    if not isinstance(generator, GeneratorType):
        raise ExpressionError(f"{what} takes a generator, as in {what}(… for v in nodes), this is {generator!r}")
    gathered: list[Binder] = []
    token = _GATHERING.set(gathered)
    try:
        body = next(generator)
        variables = dict(generator.gi_frame.f_locals) if generator.gi_frame is not None else {}
        further = next(generator, None)
    except StopIteration:
        raise ExpressionError(f"{what}: the generator ranges over nothing") from None
    finally:
        _GATHERING.reset(token)
    own = {}
    for name, value in variables.items():
        for i, part in enumerate(value if isinstance(value, tuple) else (value,)):
            if isinstance(part, Slot):
                own[id(part)] = name if not isinstance(value, tuple) else f"{name}{i + 1}"
    foreign = [b for b in gathered if any(id(s) not in own for s in b.slots)]
    if foreign:
        raise ExpressionError(
            f"{what}: '{foreign[0].source}' is ranged over by something else inside of it; Python's own sum, max "
            "and min do not know the language: write total, largest, smallest"
        )
    if further is not None or not gathered:
        raise ExpressionError(f"{what} ranges over sets of the language and nothing else: for d in gpu, for v in nodes")
    for binder in gathered:
        for slot in binder.slots:
            slot._preferred = own[id(slot)]
    return tuple(gathered), body
