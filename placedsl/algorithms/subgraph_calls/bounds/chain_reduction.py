"""Chains made shorter: in u -> w -> r, with no other readings among them, w becomes part of r.

Whatever the placement, what is left takes no longer than before.  Let ``in`` and ``out`` be what a call pays for the
tensor of u or of w; u and r are joined by a tensor with

* ``out' = min(out_u, fast_w + out_w)``: the call of u pays one or the other, where it does not hold r;
* ``in' = min(in_w, in_u + fast_w) - more``, where ``more = min(fast_w, in_w)`` is added to the time of r on an
  accelerator: a call of r without w pays ``in_w``; with w and without u, ``in_u + fast_w``; with u it holds w as well,
  for calls would wait for one another otherwise, and pays ``fast_w``;
* and ``wait = min(slow_w, fast_w + out_w - out')`` is added to the time of r on the host: it waits for w, which takes
  ``slow_w`` on the host; in the call of u, this ends so much later than with ``out'`` alone; in another, later still.

The memory of w counts where r is, as its ``part``: a call of r and u holds it, a call of r without u may not have had
it.
"""

from __future__ import annotations

from placedsl.algorithms.subgraph_calls.bounds.reduction import ReducedInstance, ReducedTensor


def shorten_chains(problem: ReducedInstance, most: float) -> bool:
    """Shorten all chains, as long as what becomes part of one node has no more memory than ``most`` rooms.

    Returns whether there were any.
    """
    makers = problem.makers()
    shortened = False
    pairs = set(problem.pairs())
    for w in problem.order():
        if len(makers[w]) != 1 or len(problem.made[w]) != 1 or len(problem.made[w][0].readers) != 1:
            continue
        u, r = next(iter(makers[w])), next(iter(problem.made[w][0].readers))
        if problem.readers(u) != {w} or len(problem.made[u]) != 1 or makers[r] != {w}:
            continue
        if problem.memory[w] > most * problem.capacity or {(u, w), (w, r)} & pairs:
            continue
        _become_part(problem, u, w, r)
        makers[r] = {u}
        makers.pop(w)
        problem.part.pop(w, None)
        problem.part[r] = problem.memory[w]
        problem.memory[r] += problem.memory.pop(w)
        shortened = True
    return shortened


def _become_part(problem: ReducedInstance, u: int, w: int, r: int) -> None:
    first, second = problem.made[u][0], problem.made[w][0]
    fast, slow = problem.fast.pop(w), problem.slow.pop(w)
    out = min(first.out, fast + second.out)
    more = min(fast, second.into)
    wait = min(slow, fast + second.out - out)
    problem.made[u] = [ReducedTensor(out, min(second.into, first.into + fast) - more, {r})]
    problem.fast[r] += more
    problem.slow[r] += wait
    # From the start of r alone it may take so much less.
    problem.charged[r] = problem.charged.get(r, 0.0) + max(more, wait)
    problem.held[r] += problem.held.pop(w)
    problem.made.pop(w)
    problem.label.pop(w)
