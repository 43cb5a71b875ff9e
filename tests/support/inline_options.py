"""Graphs of the project's own JSON format written as inline graphs, and random ones that share tensors."""

from __future__ import annotations

import json
import random
from typing import Any


def inline(graph: dict[str, Any], rng: random.Random) -> str:
    """``graph { … }`` for a JSON graph in seconds; entries in any order, over one line or several."""
    size = {node["id"]: node.get("output") for node in graph["nodes"]}
    lines = [f"node {_name(node)}{_block(_node(node, size, graph), rng)}" for node in graph["nodes"]]
    for edge in graph["edges"]:
        own = f" {{ output = {edge['output']} B }}" if "output" in edge else ""
        lines.append(f'"{edge["from"]}" -> "{edge["to"]}"{own}')
    return "graph {\n" + "\n".join(lines) + "\n}\n"


def _name(node: dict[str, Any]) -> str:
    return json.dumps(str(node["id"]))


def _node(node: dict[str, Any], size: dict[Any, Any], graph: dict[str, Any]) -> list[str]:
    out = [f"{key} = {node[key]!r} B" for key in ("memory", "stash", "sharded", "output") if key in node]
    out += [f"time = {_time(node['time'])}"] if "time" in node else []
    for key, value in node.get("attributes", {}).items():
        out.append(f"{key} = {value!r} B" if key == "parameters" else f"{key} = {json.dumps(value)}")
    options = node.get("options", [])
    return out + [f"option {json.dumps(o.get('name', ''))} {{ {', '.join(_option(o))} }}" for o in options]


def _option(option: dict[str, Any]) -> list[str]:
    out = [f"{key} = {option[key]!r} B" for key in ("parameters", "stash", "memory", "sharded") if key in option]
    out += [f"tensor = {option['tensor']}"] if "tensor" in option else []
    out += [f"time = {_time(option['time'])}"] if "time" in option else []
    for key in ("gather", "scatter"):
        given = option.get(key, {})
        if isinstance(given, dict):
            moved = ", ".join(f"{json.dumps(str(other))}: {amount!r} B" for other, amount in given.items())
            out += [f"{key} = {{{moved}}}"] if given else []
        else:
            out.append(f"{key} = {given!r} B")
    return out


def _time(time: Any) -> str:
    if isinstance(time, dict):
        return "{" + ", ".join(f"{kind}: {value!r} s" for kind, value in time.items()) + "}"
    return f"{time!r} s"


def _block(entries: list[str], rng: random.Random) -> str:
    options = iter([entry for entry in entries if entry.startswith("option ")])
    rng.shuffle(entries)
    entries = [next(options) if entry.startswith("option ") else entry for entry in entries]  # these in their order
    gap = rng.choice((", ", "\n    ", ",\n"))
    return f" {{ {gap.join(entries)} }}" if entries else ""


def sharing_tensors(seed: int) -> dict[str, Any]:
    """A random graph whose nodes have one output for all readers, or some, and options that leave things out."""
    rng = random.Random(seed)
    count = rng.randint(1, 4)
    edges: list[dict[str, Any]] = []
    for u in range(count):
        for v in range(u + 1, count):
            if rng.random() < 0.7:
                edges.append({"from": u, "to": v} | ({"output": 256 * rng.randint(0, 3)} if rng.random() < 0.3 else {}))
    nodes = []
    for v in range(count):
        node: dict[str, Any] = {"id": v, "output": 256 * rng.randint(0, 4)}
        if rng.random() < 0.7:
            node["time"] = rng.choice((rng.randint(0, 12) / 4, {"accelerator": rng.randint(1, 9) / 8}))
        node |= {key: rng.randint(0, 6) for key in ("memory", "stash", "sharded") if rng.random() < 0.5}
        node["attributes"] = {"parameters": 256 * rng.randint(0, 3)} if rng.random() < 0.5 else {}
        options: list[dict[str, Any]] = []
        for degree in (1, 2, 3):
            for name in rng.sample(("lean", "fast", "third way"), rng.randint(0, 2)):
                option: dict[str, Any] = {"name": name} | ({"tensor": degree} if degree > 1 else {})
                if "time" not in node or rng.random() < 0.8:
                    option["time"] = rng.randint(0, 12) / 8
                option |= {k: rng.randint(0, 6) for k in ("memory", "stash", "sharded") if rng.random() < 0.5}
                option |= {"parameters": 256 * rng.randint(0, 3)} if rng.random() < 0.5 else {}
                # One tensor, one amount: all of a side, as bytes.
                option |= {key: 128 * degree for key in ("gather", "scatter") if degree > 1 and rng.random() < 0.8}
                options.append(option)
        if not options and "time" not in node:
            options.append({"name": "only", "time": 1})
        if options:
            node["options"] = options
        nodes.append(node)
    if not any("options" in node for node in nodes):
        nodes[0]["options"] = [{"name": "only", "time": 0.5}]
    return {"format": "placedsl-graph", "time_unit": "s", "nodes": nodes, "edges": edges}
