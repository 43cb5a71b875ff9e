"""Dataclasses whose methods are made when they are first needed.

``dataclasses.dataclass`` compiles up to seven functions a class when its module is imported: with the two hundred
classes of syntax trees, expressions and problems that was a fifth of a short command.  Here ``__init__`` is compiled
when the first instance is made, and the others are closures.  Type checkers see the decorator of the standard library,
and ``fields``, ``replace`` and ``asdict`` treat these classes as its own.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, fields
from dataclasses import dataclass as _dataclass
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - which makes it a name of this module
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """As ``dataclasses.dataclass``, with ``frozen``, ``slots``, ``eq`` and ``repr``."""
        return _made(cls) if cls is not None else lambda one: _made(one, **options)


def _made(cls: type, frozen: bool = False, slots: bool = False, eq: bool = True, repr: bool = True) -> Any:
    own = set(vars(cls))
    if "__eq__" in own and vars(cls)["__hash__"] is None:  # which Python has put there, and nobody else
        own.discard("__hash__")
    cls.__doc__ = cls.__doc__ or cls.__name__  # else a signature is worked out for it
    # A frozen class that has a base is made by the standard library, which asks that the base is frozen too.
    based = frozen and any(hasattr(base, "__dataclass_params__") for base in cls.__mro__[1:])
    made: Any = _dataclass(init=False, repr=False, eq=False, slots=slots, frozen=based)(cls)
    made.__dataclass_params__.frozen = frozen
    known = fields(made)
    methods: dict[str, Any] = {"__init__": _first_init(made, frozen)}
    if repr:
        methods["__repr__"] = _repr(tuple(f.name for f in known if f.repr))
    if eq:
        compared = _values(tuple(f.name for f in known if f.compare))
        methods |= {"__eq__": _equal(compared), "__hash__": _hash(compared) if frozen else None}
    if frozen and not based:
        methods |= {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
    if frozen and slots:
        names = tuple(f.name for f in known)
        methods |= {"__getstate__": _getstate(names), "__setstate__": _setstate(names)}
    for name in methods.keys() - own:
        setattr(made, name, methods[name])
    return made


def _first_init(cls: type, frozen: bool) -> Callable[..., None]:
    """What makes the real ``__init__`` and calls it."""

    def __init__(self: Any, *arguments: Any, **named: Any) -> None:  # noqa: N807
        init = _init(cls, frozen)
        cls.__init__ = init  # type: ignore[misc]
        init(self, *arguments, **named)

    return __init__


def _init(cls: type, frozen: bool) -> Callable[..., None]:
    """``__init__``, compiled."""
    known: dict[str, Any] = {"MISSING": MISSING, "set_": object.__setattr__}
    taken: list[str] = []
    named: list[str] = []
    body: list[str] = []
    for f in fields(cls):
        value = f.name
        parameter = f.name
        if f.default is not MISSING:
            known[f"default_{f.name}"] = f.default
            parameter += f"=default_{f.name}"
            value = value if f.init else f"default_{f.name}"
        elif f.default_factory is not MISSING:
            known[f"factory_{f.name}"] = f.default_factory
            parameter += "=MISSING"
            made = f"factory_{f.name}()"
            value = f"{made} if {f.name} is MISSING else {f.name}" if f.init else made
        elif not f.init:
            continue
        if f.init:
            (named if f.kw_only else taken).append(parameter)
        body.append(f"set_(self, {f.name!r}, {value})" if frozen else f"self.{f.name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(["self", *taken, *(["*", *named] if named else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]), known)
    init: Callable[..., None] = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    return init


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the values of these fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _equal(compared: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], Any]:
    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(compared: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    return lambda self: hash(compared(self))


def _repr(names: tuple[str, ...]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _getstate(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    values = _values(names)

    def __getstate__(self: Any) -> tuple[Any, ...]:  # noqa: N807
        return values(self)

    return __getstate__


def _setstate(names: tuple[str, ...]) -> Callable[[Any, tuple[Any, ...]], None]:
    put = object.__setattr__

    def __setstate__(self: Any, state: tuple[Any, ...]) -> None:  # noqa: N807
        for name, value in zip(names, state, strict=True):
            put(self, name, value)

    return __setstate__


def _refuse_assignment(self: Any, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r} of {type(self).__name__}")


def _refuse_deletion(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r} of {type(self).__name__}")
