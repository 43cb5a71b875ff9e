"""Random specs without a placement, and what the enumeration of all placements says of parts of them."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator
from dataclasses import replace

import placedsl
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem
from support.brute_force import allowed, placements
from support.random_specs import random_spec

_MOST = 800
_FURTHER = (
    "{v} on {a}", "not ({v} on {a})", "({v} on {a}) == ({w} on {a})", "({v} on {a}) => ({w} on {b})",
    "memory({a}) <= {m} MiB", "devices_used <= {k}", "devices_used >= {k}", "load({a}) <= {m} ms",
    "count(v in nodes: v on {a}) >= {k}", "forall v in nodes where memory >= 2 MiB: v on {a} or v on {b}",
    "forall d in devices: count(v in nodes: v on d) <= {k}", "forall v in {{{v}, {w}}}: v on {a}",
    "forall d in devices: memory(d) <= {m} MiB", "({v} on {a}) or ({w} on {a})", "time_per_sample <= {m} ms",
    "forall v in nodes, d in accelerators where v.memory >= 3 MiB: not (v on d)", "memory({a}) >= {m} MiB",
)  # fmt: skip


def infeasible_specs(first: int, last: int) -> Iterator[tuple[int, str]]:
    """Seeds and texts of the infeasible ones, each with some further constraints."""
    for seed in range(first, last):
        text = with_further(seed)
        problem = placedsl.loads(text).problem
        if len(problem.machine.devices) ** problem.graph.nodes <= _MOST and not feasible(text, None):
            yield seed, text


def with_further(seed: int) -> str:
    """A random spec with up to four further constraints."""
    rng = random.Random(5000 + seed)
    text = random_spec(seed).rstrip()
    if "subject to" not in text:
        text += "\nsubject to"
    names = re.findall(r"node (\w+) ", text)
    families = re.findall(r"device (\w+)\[(\d+)\]", text)
    devices = [f"{name}[{i + 1}]" for name, count in families for i in range(int(count))]
    gpipe = "schedule gpipe" in text
    for i in range(rng.randint(1, 4)):
        template = rng.choice([t for t in _FURTHER if not (gpipe and "devices_used" in t)])
        (v, w), (a, b) = rng.sample(names, 2), rng.choices(devices, k=2)
        values = {"v": v, "w": w, "a": a, "b": b, "m": rng.choice([0, 2, 4, 9]), "k": rng.randint(1, 3)}
        text += f"\n    further{i}: " + template.format(**values)
    return text + "\n"


def lines_of(text: str) -> dict[str, str]:
    """The line of each constraint by its name."""
    lines = text[text.index("subject to\n") :].splitlines()[1:]
    return {line.partition(":")[0].strip(): line for line in lines}


def feasible(text: str, names: Collection[str] | None) -> bool:
    """Whether the spec with only these of its constraints (None: all) has a placement."""
    known = lines_of(text)
    kept = "\n".join(line for name, line in known.items() if names is None or name in names)
    shorter = text[: text.index("subject to\n")] + (f"subject to\n{kept}\n" if kept else "")
    return satisfiable(placedsl.loads(shorter).problem)


def satisfiable(problem: Problem) -> bool:
    """Whether any placement of the problem violates nothing."""
    return next(satisfying(problem), None) is not None


def satisfying(problem: Problem) -> Iterator[list[int]]:
    """Every placement that violates nothing: the built-in constraints by arrays, then the evaluator."""
    every = placements(problem)
    built_in = replace(problem, constraints=tuple(r for r in problem.constraints if r.built_in))
    for placement in every[allowed(built_in, every)].tolist():
        if not evaluate(problem, placement).violations:
            yield placement
