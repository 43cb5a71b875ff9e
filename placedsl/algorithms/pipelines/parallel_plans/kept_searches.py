"""Searches that are kept from problem to problem: where only the number of devices differs, they are one search.

A question about a load has the fewest devices for an answer, which is one for every number of devices up to that of the
question.  So the problems of a sweep over devices share the tables of their stages, and what each of them asked.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from placedsl.algorithms.pipelines.parallel_plans.instance import Plan, PlanInstance

#: Searches that are kept at most: of the rows of a sweep that differ in more than the number of devices.
MOST_KEPT = 4


@dataclass(frozen=True, eq=False)
class _Asked:
    """The plan with the fewest devices within a load, of up to ``devices``; None: there is none.  ``exact``: no plan
    has fewer."""

    load: float
    devices: int
    plan: Plan | None
    exact: bool


@dataclass(eq=False)
class AskedLoads:
    """What is known of loads from the questions so far."""

    questions: list[_Asked] = field(default_factory=list)

    def add(self, load: float, devices: int, plan: Plan | None, exact: bool) -> None:
        """A question's answer."""
        self.questions.append(_Asked(load, devices, plan, exact))

    def refuted(self, devices: int) -> float:
        """A load that no plan of so many devices stays within; 0 where nothing is known."""
        loads = (
            asked.load
            for asked in self.questions
            if asked.exact and devices <= (asked.devices if asked.plan is None else asked.plan.devices - 1)
        )
        return max(loads, default=0.0)

    def plan(self, devices: int) -> Plan | None:
        """The best plan so far of those with no more devices."""
        plans = (asked.plan for asked in self.questions if asked.plan is not None and asked.plan.devices <= devices)
        return min(plans, key=lambda plan: plan.value, default=None)


@dataclass(frozen=True, eq=False)
class KeptSearch:
    """The table of an instance, and what it was asked."""

    instance: PlanInstance
    table: object
    asked: AskedLoads


class KeptSearches:
    """The last few searches, by all that an instance says but for its number of devices."""

    def __init__(self) -> None:
        self._searches: dict[bytes, KeptSearch] = {}

    def of(self, instance: PlanInstance) -> KeptSearch | None:
        """The search of an instance with as many devices or more, and the same copies up to that number."""
        key = _key(instance)
        search = self._searches.get(key)
        if search is None or search.instance.devices < instance.devices:
            return None
        if _copies(search.instance, instance.devices) != _copies(instance, instance.devices):
            return None
        self._searches[key] = self._searches.pop(key)  # the last used is the last to be left out
        return search

    def keep(self, instance: PlanInstance, table: object) -> KeptSearch:
        """Keep a search in place of the one that has not been used for longest."""
        key = _key(instance)
        self._searches.pop(key, None)
        while len(self._searches) >= MOST_KEPT:
            del self._searches[next(iter(self._searches))]
        self._searches[key] = KeptSearch(instance, table, AskedLoads())
        return self._searches[key]


def _key(instance: PlanInstance) -> bytes:
    """A digest of all that does not depend on the number of devices."""
    return hashlib.blake2b(pickle.dumps(replace(instance, devices=0, copies=()))).digest()


def _copies(instance: PlanInstance, devices: int) -> list[int]:
    return [copies for copies in instance.copies if copies <= devices]


_KEPT: ContextVar[KeptSearches | None] = ContextVar("_KEPT", default=None)


@contextmanager
def searches_kept() -> Iterator[None]:
    """Within it, searches of this context are kept for those that follow.  It takes the memory of their tables."""
    token = _KEPT.set(KeptSearches())
    try:
        yield
    finally:
        _KEPT.reset(token)


def kept_searches() -> KeptSearches | None:
    """The searches that are kept in this context; None where none are."""
    return _KEPT.get()
