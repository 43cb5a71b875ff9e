"""Exported programs of PyTorch that nobody would write: that of the documents, in parts, with changes."""

from __future__ import annotations

import copy
import functools
import io
import json
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mutation import PLAIN, Made, changed, encoded, places, scrambled

ROOT = Path(__file__).resolve().parents[1]
_MEMBERS = ("graph_module", "schema_version", "opset_version", "range_constraints")


@functools.cache
def _programs() -> tuple[str, ...]:
    """The exported program of the documents in parts: its first operators, and all of it."""
    with zipfile.ZipFile(ROOT / "docs" / "encoder.pt2") as archive:
        name = next(n for n in archive.namelist() if n.endswith("model.json"))
        whole = json.loads(archive.read(name))
    out = []
    for count in (4, 9, 16, 10**6):
        root = copy.deepcopy(whole)
        graph = root["graph_module"]["graph"]
        graph["nodes"] = graph["nodes"][:count]
        for node in graph["nodes"]:
            node["metadata"] = {k: v for k, v in node["metadata"].items() if k == "nn_module_stack"}
        if count < 10**6:
            used = set(_names(graph["nodes"]))
            graph["tensor_values"] = {k: v for k, v in graph["tensor_values"].items() if k in used}
            signature = root["graph_module"]["signature"]
            signature["input_specs"] = [s for s in signature["input_specs"] if used & set(_names(s))]
            root = {key: root[key] for key in _MEMBERS if key in root}
        out.append(json.dumps(root))
    return tuple(out)


def _names(root: Any) -> Iterator[str]:
    """Every name that stands in a JSON value."""
    for holder, key in places(root):
        if key == "name" and isinstance(holder[key], str):
            yield holder[key]


def _region(rng: random.Random, root: Any) -> None:
    """Put some operators into a region, as ``torch.no_grad()`` makes one."""
    graph = root["graph_module"]["graph"]
    at = rng.randrange(len(graph["nodes"]))
    inside = graph["nodes"][at : at + 2]
    outputs = [output for node in inside for output in node["outputs"]]
    region = {"inputs": [], "outputs": outputs, "nodes": inside, "tensor_values": {}}
    graph["nodes"][at : at + 2] = [
        {
            "target": "torch.ops.higher_order."
            + rng.choice(["wrap_with_set_grad_enabled", "wrap_with_autocast", "cond"]),
            "inputs": [
                {"name": "", "arg": {"as_bool": True}},
                {"name": "", "arg": {"as_graph": {"name": "r", "graph": region}}},
            ],
            "outputs": outputs,
            "metadata": {},
        }
    ]


def torch_program(rng: random.Random) -> Made:
    """An exported program of PyTorch: JSON in an archive."""
    programs = _programs()
    root = json.loads(programs[rng.choices(range(len(programs)), [8, 5, 5, 1])[0]])
    if rng.random() < 0.15:
        _region(rng, root)
    whole = rng.random() < 0.25
    if not whole:
        parts = [root, root["graph_module"]["graph"]["nodes"], root["graph_module"]["graph"]["tensor_values"]]
        part = rng.choice([*parts, root["graph_module"]["signature"]])
        if rng.random() < 0.25:
            _sizes(rng, root)
        elif changed(rng, part) is not part:
            root = part
    text = encoded(rng, root)
    members = {"encoder/models/model.json": text, "encoder/archive_format": b"pt2", "encoder/byteorder": b"little"}
    if whole:
        members = dict(rng.sample(list(members.items()), rng.randint(0, 3)))
        for name in rng.sample(["models/a.json", "b/models/x.json", "serialized_exported_program.json", "../x"], 1):
            if rng.random() < 0.4:
                members[name] = rng.choice([b"", b"{}", b"[]", text])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    data = out.getvalue()
    data = scrambled(rng, data) if whole and rng.random() < 0.7 else data
    dimension = rng.choice([""] * 12 + [' { "x[0]" = 3 }', " { s0 = 4 }", " { batch = 2 }"])
    return PLAIN.replace('"FILE"', '"graph.pt2"' + dimension), {"graph.pt2": data}, None


def _sizes(rng: random.Random, root: Any) -> None:
    """Other sizes of tensors, symbolic ones among them."""
    tensors = list(root["graph_module"]["graph"]["tensor_values"].values())
    for meta in rng.sample(tensors, min(len(tensors), rng.randint(1, 4))):
        sizes = [
            {"as_int": rng.choice([0, 1, 7, -1, 2**31, 2**62, 10**30])},
            {
                "as_expr": {
                    "expr_str": rng.choice(
                        [
                            "s0",
                            "2*s0",
                            "s0**8",
                            "Pow(s0, 8)",
                            "s0//0",
                            "Mod(s0, 3)",
                            "(" * 200,
                            "9**9**9",
                            "Max()",
                            "1e5",
                            "-s0",
                            "~s0",
                            "f(s0)",
                            "Symbol('s1')",
                            "s0 + s1",
                            "",
                        ]
                    ),
                    "hint": rng.choice([None, {"as_int": rng.choice([0, 3, -2, 10**400, "x"])}, {}]),
                }
            },
        ]
        meta["sizes"] = [copy.deepcopy(rng.choice(sizes)) for _ in range(rng.randint(0, 4))]


#: Specs whose answers are changed, with an inline graph.
