"""Random specs whose options come from rules, and the same options worked out node by node for the enumeration.

Nothing here is placedsl's: each rule is a text of the language and a function in Python beside it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from support.piper_workloads import Asked

#: What a rule says of a node and a number of devices: the option's fields, or None.
Made = Callable[[dict[str, Any], int], dict[str, Any] | None]


@dataclass(frozen=True)
class Rule:
    """The text of a rule, its name, the numbers of devices that it ranges over, and what it makes."""

    text: str
    name: str
    degrees: tuple[int, ...]
    made: Made


def _split(node: dict[str, Any], t: int) -> dict[str, Any] | None:
    if node["kind"] != "block" or node["heads"] % t:
        return None
    shares = {key: node[key] // t for key in ("parameters", "stash", "memory")}
    return {"time": node["time"] / t + Fraction(t - 1, 4), **shares}


def _spread(node: dict[str, Any], t: int) -> dict[str, Any] | None:
    time = Fraction(1, 2) if node["kind"] == "head" else node["time"]
    return {"time": time, "memory": max(node["memory"] - 2 * t, 0), "parameters": 512 if node["heads"] > 2 else 0}


def _recomputed(node: dict[str, Any], _: int) -> dict[str, Any] | None:
    return {"time": node["time"] * Fraction(3, 2), "stash": 0} if node["stash"] > 6 else None


def _slim(node: dict[str, Any], _: int) -> dict[str, Any] | None:
    if node["id"] % 2:
        return None
    return {"memory": 0, "stash": node["stash"] + node["inputs"]}


RULES = (
    Rule('option split(v in nodes where kind == "block", t in 2..3, d in devices where v.heads mod t == 0) {\n'
         "    tensor = t, time = v.time[d] / t + (t - 1) * 250 ms, gather = 1, scatter = 512 B\n"
         "    parameters = v.parameters / t, stash = v.stash / t, memory = v.memory / t }", "split", (2, 3), _split),
    Rule("define weights(v in nodes) = if v.heads > 2 then 512 B else 0 B\n"
         "option spread(t in {2, 3}, v in nodes) {\n"
         '    tensor = t, time = if v.kind == "head" then 500 ms else v.time[gpu[1]], gather = 1, scatter = 512 B\n'
         "    memory = max(v.memory - 2 B * t, 0 B), parameters = weights(v) }", "spread", (2, 3), _spread),
    Rule("set stashing = {v in nodes: v.stash > 6 B}\nparam slower = 1.5\n"
         "option recomputed(v in stashing, d in gpu) { time = v.time[d] * slower, stash = 0 B }",
         "recomputed", (1,), _recomputed),
    Rule("define inputs(v in nodes) = sum(u in tensors where (u, v) in reads: u.size)\n"
         "option slim(v in nodes where v.number mod 2 == 0) { memory = 0 B, stash = v.stash + inputs(v) }",
         "slim", (1,), _slim),
)  # fmt: skip


def drawn(seed: int) -> tuple[Asked, str]:
    """What is planned for, with every option written out, and the spec that makes them by rules."""
    rng = random.Random(seed)
    count, devices = rng.randint(1, 4), rng.randint(1, 4)
    edges = {(u, v): 256 * rng.randint(0, 3) for u in range(count) for v in range(u + 1, count) if rng.random() < 0.6}
    nodes = [
        {
            "id": v, "kind": rng.choice(("block", "block", "head")), "heads": rng.randint(1, 6),
            "time": Fraction(rng.randint(0, 12), 4), "memory": 6 * rng.randint(0, 3), "stash": 6 * rng.randint(0, 2),
            "parameters": 1536 * rng.randint(0, 2), "sharded": rng.choice((0, 4, 12)),
            "inputs": sum(2 * size for (_, reader), size in edges.items() if reader == v),
        }
        for v in range(count)
    ]  # fmt: skip
    rules = rng.sample(RULES, rng.randint(1, len(RULES)))
    exchange, batch = rng.choice(("sample", "round", "batch")), rng.choice((1, 2, 4, 6))
    able = [d for d in (1, 2, 3, 4) if d <= devices and (exchange != "batch" or batch % d == 0)]
    copies = tuple(sorted({1, *rng.sample(able, rng.randint(1, len(able)))}))
    listed = [{"id": node["id"], "name": node["kind"], "TMPCs": _options(node, rules, edges)} for node in nodes]
    there = {int(t) for node in listed for t in node["TMPCs"]}
    tensor = tuple(t for t in sorted(there) if t <= devices)
    arcs = [{"sourceId": u, "destId": v, "communicationCost": size} for (u, v), size in edges.items()]
    held = rng.choice(("pipeline", "pipeline", "batch", "sample"))
    asked = Asked(
        {"nodes": listed, "edges": arcs}, devices, rng.randint(4, 60), batch, exchange, copies, tensor, False, held
    )
    lines = ["graph {"]
    for node in nodes:
        lines.append(
            f"    node n{node['id']} {{ time = {node['time'] * 1000} ms, memory = {node['memory']} B, "
            f'kind = "{node["kind"]}", heads = {node["heads"]}, number = {node["id"]}, '
            f"stash = {node['stash']} B, sharded = {node['sharded']} B, parameters = {node['parameters']} B }}"
        )
    lines += [f"    n{u} -> n{v} {{ output = {2 * size} B }}" for (u, v), size in edges.items()]
    text = "\n".join([*lines, "}", *(rule.text for rule in rules)])
    return asked, text + asked.spec("").split("\n", 2)[2].join(("\n", ""))


def _options(
    node: dict[str, Any], rules: list[Rule], edges: dict[tuple[int, int], int]
) -> dict[str, list[dict[str, Any]]]:
    """The options of a node in the format of Piper."""
    plain = {key: node[key] for key in ("time", "parameters", "stash", "memory")}
    out: dict[str, list[dict[str, Any]]] = {}
    for name, t, made in (("", 1, {}), *((r.name, t, r.made(node, t)) for r in rules for t in r.degrees)):
        if made is None:
            continue
        own = plain | made
        moved = {
            "syncTimeFw": {str(u): size if t > 1 else 0 for (u, v), size in edges.items() if v == node["id"]},
            "syncTimeBw": {str(v): 256 if t > 1 else 0 for u, v in edges if u == node["id"]},
        }
        out.setdefault(str(t), []).append(
            {
                "id": name, "timePerSample": own["time"], "parameterSize": own["parameters"],
                "memoryUsageA": own["stash"], "memoryUsageB": own["memory"], "sharded": node["sharded"], **moved,
            }
        )  # fmt: skip
    return out
