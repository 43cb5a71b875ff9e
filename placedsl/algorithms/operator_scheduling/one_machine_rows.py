"""Rows of the one-machine relaxation for CP-SAT: tasks of a device or a shared resource take place one after the other,
between the earliest that any of them can begin and what must follow each of them.

For each set of tasks with heads and tails of at least some length, the least of these and the lengths of the tasks
that take place are at most the latency (Carlier, The one-machine sequencing problem, 1982).  The rows say nothing about
times, so that they are strong before any time is decided.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from placedsl.arrays import Integers

#: The rows of one machine have about so many terms at most: of more tasks fewer heads and tails are looked at.
_MOST_TERMS = 200_000


class Task(NamedTuple):
    """What may occupy a machine, in steps of a grid.

    ``head``: before it can begin; ``length``; ``follows``: tails, the longest first, each with a literal: the task
    takes place, and at least so many steps follow it
    """

    head: int
    length: int
    follows: list[tuple[int, Any]]


def followed(model: Any, leaves: Any, readers: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """What follows a transfer (see :class:`Task`): ``leaves``: a literal that its producer is where it begins;
    ``readers``: steps from the begin of each to the end, and a literal that it is where the transfer ends.
    """
    out: list[tuple[int, Any]] = []
    for tail, literal in sorted(readers, key=lambda reader: -reader[0]):
        if not out or tail < out[-1][0]:
            moves = model.new_bool_var("")
            if out:
                model.add_implication(out[-1][1], moves)
            out.append((tail, moves))
        model.add_bool_or(~leaves, ~literal, out[-1][1])
    return out


def one_machine_rows(model: Any, tasks: list[Task], latency: Any, least: int) -> None:
    """Add the rows of one machine to a CP-SAT model; ``least``: a lower bound on the latency, in steps."""
    from ortools.sat.python import cp_model

    ends = [(tail, task, literal) for task in tasks if task.length for tail, literal in task.follows]
    ends.sort(key=lambda end: -end[0])
    most = max(math.isqrt(_MOST_TERMS // max(len(ends), 1)), 1)
    larger = np.inf
    for head in _some([task.head for _, task, _ in ends], most):
        among = [(tail, task, literal) for tail, task, literal in ends if task.head >= head]
        apart = -(-len(among) // most)
        chosen: dict[int, tuple[Any, int]] = {}
        work, begins, added = 0, np.inf, 0
        for place, (tail, task, literal) in enumerate(among, 1):
            work += 0 if id(task) in chosen else task.length
            chosen[id(task)] = literal, task.length
            begins = min(begins, task.head)
            # Rows of the same tasks with a shorter tail or head say less.
            last = place == len(among) or (among[place][0] < tail and place >= added + apart)
            if not last or begins >= larger or begins + work + tail <= least:
                continue
            added = place
            around = int(begins) + tail
            literals, lengths = zip(*chosen.values(), strict=True)
            row = cp_model.LinearExpr.weighted_sum(literals, lengths) + around <= latency
            if around <= least:
                model.add(row)
                continue
            for one in literals:  # where none of them takes place, nothing is around them
                model.add(row).only_enforce_if(one)
        larger = head


def _some(heads: list[int], most: int) -> list[int]:
    """The different heads, the largest first; an even share of them if there are more than so many."""
    every: Integers = np.unique(np.array(heads, dtype=np.int64))
    return [int(head) for head in every[:: max(-(-len(every) // most), 1)][::-1]]
