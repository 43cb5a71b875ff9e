"""Records are dataclasses: the same as those of the standard library in all that can be seen of them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from placedsl import records

OPTIONS = [
    {},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"eq": False},
]


def classes(decorator: Any, options: dict[str, bool]) -> tuple[type, type]:
    """A class and one that it is the base of, each with fields of all kinds."""

    @decorator(**options)
    class Base:
        """A point."""

        x: int
        names: tuple[str, ...] = ()

        @property
        def twice(self) -> int:
            return 2 * self.x

    @decorator(**options)
    class Further(Base):
        """A point with more."""

        found: list[int] = dataclasses.field(default_factory=list, compare=False)
        hidden: int = dataclasses.field(default=3, repr=False)
        only: str = dataclasses.field(default="k", kw_only=True)
        made: int = dataclasses.field(init=False, default=7)

    return Base, Further


def told(options: dict[str, bool], decorator: Any) -> list[object]:
    """What can be seen of such classes."""
    base, further = classes(decorator, options)
    one, same = further(1, ("a",), [4], only="z"), further(1, ("a",), [5], only="z")
    out: list[object] = [
        repr(one).replace(f"{told.__qualname__}", ""), repr(base(2)), one == same, one == further(2), one == base(1),
        base(1).__eq__(3), one.twice, one.made, [f.name for f in dataclasses.fields(further)], further.__match_args__,
        repr(dataclasses.replace(one, x=5)), repr(copy.copy(one)), further(1).found is further(1).found,
        hasattr(one, "__dict__"), isinstance(one, base),
    ]  # fmt: skip
    out.append(hash(one) == hash(same) if options.get("eq", True) and options.get("frozen") else None)
    for wrong in (lambda: setattr(one, "x", 2), lambda: delattr(one, "x"), further, lambda: further(1, y=2),
                  lambda: hash(one) and 0):  # fmt: skip
        try:
            out.append(wrong())
        except (dataclasses.FrozenInstanceError, AttributeError, TypeError) as problem:
            out.append(type(problem))
    return out


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_they_are_as_dataclasses(options: dict[str, bool]) -> None:
    assert told(options, records.dataclass) == told(options, dataclasses.dataclass)


@records.dataclass(frozen=True, slots=True)
class Kept:
    """One that can be pickled."""

    x: int
    y: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("below zero")


@records.dataclass
class Plain:
    """One without options."""

    x: int = 1

    def __repr__(self) -> str:
        return "own"

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 5


@pytest.mark.parametrize("first", [records.dataclass, dataclasses.dataclass])
@pytest.mark.parametrize("second", [records.dataclass, dataclasses.dataclass])
@pytest.mark.parametrize("slots", [False, True])
def test_either_is_the_base_of_the_other(first: Any, second: Any, slots: bool) -> None:
    @first(frozen=True, slots=slots)
    class Base:
        """One."""

        x: int

    @second(frozen=True, slots=slots)
    class Further(Base):
        """Another."""

        y: int = 2

    one = Further(1)
    assert (one.x, one.y, one) == (1, 2, dataclasses.replace(Further(3), x=1))
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.y = 3
    with pytest.raises(TypeError):
        second(frozen=False)(type("Thawed", (Base,), {"__annotations__": {"z": int}, "__doc__": "No."}))


def test_they_are_pickled_and_checked() -> None:
    assert pickle.loads(pickle.dumps(Kept(1, (2,)))) == Kept(1, (2,))
    assert copy.deepcopy(Kept(3)) == Kept(3)
    with pytest.raises(ValueError, match="below zero"):
        Kept(-1)
    with pytest.raises(ValueError, match="below zero"):
        dataclasses.replace(Kept(1), x=-1)


def test_what_a_class_says_itself_stays() -> None:
    assert (repr(Plain()), Plain(1) == Plain(2), hash(Plain())) == ("own", True, 5)


def test_methods_are_compiled_for_the_first_instance() -> None:
    base, _ = classes(records.dataclass, {"frozen": True})
    before = base.__init__
    base(1)
    assert base.__init__ is not before
    assert base.__init__.__code__.co_varnames[:3] == ("self", "x", "names")
