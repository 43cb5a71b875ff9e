"""Members of a portfolio for tests on a cluster; their processes import them from here."""

from __future__ import annotations

import itertools
import time

import numpy as np

from placedsl.algorithms.partitions.search import run, search_from


def tells_its_number(channel, number):
    """Say a number as a bound, and go on until the end."""
    channel.report(None, float(number))
    time.sleep(600)


def repeats_what_is_known(channel):
    """Say the sum of value and bound whenever one of them is new."""
    last = (np.inf, -np.inf)
    while True:
        if (now := (channel.best, channel.bound)) != last and np.isfinite(sum(now)):
            last = now
            channel.report(None, sum(now))
        time.sleep(0.01)


def searches_for_steps(channel, units, seed, steps):
    """A search for splits that ends after so many steps, and says its best partition."""
    search = search_from(units.instance, None, seed)
    for _ in itertools.islice(run(search), steps):
        pass
    channel.report(units.placement(search.best), -np.inf)


class Ear:
    """A member's channel in this process."""

    best, bound = np.inf, -np.inf

    def __init__(self):
        self.placements = []

    def report(self, placement, bound, values=None, by="", certificate=None):
        self.placements.append(placement)


def tells_and_repeats(channel, key, number):
    """Tell the others of a number, and say the sum of the numbers that they have told whenever one of them is news."""
    channel.tell({("own", key): number})
    known = {}
    while True:
        if heard := dict(channel.heard()):
            known |= heard
            channel.report(None, float(sum(known.values())))
        time.sleep(0.01)


class Hub:
    """Lines between members of one process: what one tells the others hear."""

    def __init__(self, members):
        self.lines = [Line(self) for _ in range(members)]
        self.told = {}


class Line:
    """The line of one member, as :class:`placedsl.algorithms.exchange.Exchange`."""

    def __init__(self, hub):
        self.hub, self.news = hub, {}

    def tell(self, found):
        for key, number in found.items():
            if number > self.hub.told.get(key, -np.inf):
                self.hub.told[key] = number
                for line in self.hub.lines:
                    if line is not self:
                        line.news[key] = number

    def heard(self):
        news, self.news = self.news, {}
        return news
