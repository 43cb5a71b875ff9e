"""Changes of files: values in the place of others, entries left out or doubled, bytes cut out or replaced."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: The text of a spec, the files beside it, and what is done with them (None: they are checked).
Made = tuple[str, dict[str, bytes], Callable[[Any, Path], None] | None]

#: Values in the place of others.  Some are no JSON: Python writes and reads them.
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e308, -1e308, 1e-320, float("inf"), float("nan"), 2**31, 2**53 + 1,
    2**63, -(2**63), 10**30, 10**400, "", "a", "0", "1", "-1", "1 ms", "gpu", "cpu", "gpu[1]", "é", "\ud800", "\0",
    "a" * 300, '"', "\n", "*", "[", [], {}, [[]], [None], [0, 1], {"": 0}, {"a": {}}, [1e308] * 3,
)  # fmt: skip
TAIL = """
device gpu[2]: accelerator { memory = 6 GiB, compute = 10 TFLOP/s, memory_bandwidth = 300 GB/s }
device cpu: host { compute = 500 GFLOP/s, memory_bandwidth = 40 GB/s }
interconnect { bandwidth = 16 GB/s }
minimize time_per_sample
subject to
    memory
    contiguous
"""
PLAIN = 'graph from "FILE"\n' + TAIL


def places(root: Any) -> list[tuple[Any, Any]]:
    """Every entry of a JSON value: what holds it, and its key or position."""
    out: list[tuple[Any, Any]] = []
    stack = [root]
    while stack:
        one = stack.pop()
        keys: list[Any] = list(one) if isinstance(one, dict) else list(range(len(one)))
        for key in keys:
            out.append((one, key))
            if isinstance(one[key], dict | list):
                stack.append(one[key])
    return out


def changed(rng: random.Random, root: Any) -> Any:
    """A JSON value with a few changes of structure; it may be changed in place."""
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        every = places(root) if isinstance(root, dict | list) else []
        if not every:
            return rng.choice(ODD)
        holder, key = rng.choice(every)
        other, its = rng.choice(every)
        match rng.randrange(10):
            case 0:
                del holder[key]
            case 1 | 2 | 3:
                holder[key] = copy.deepcopy(rng.choice(ODD))
            case 4:
                holder[key] = copy.deepcopy(other[its])
            case 5:
                holder[key], other[its] = copy.deepcopy(other[its]), copy.deepcopy(holder[key])
            case 6 if isinstance(holder, list):
                holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
            case 6:
                holder[rng.choice([*holder, "x", "", "time", "id"])] = copy.deepcopy(holder[key])
            case 7 if isinstance(holder, dict):
                holder[rng.choice(["x", key + "s", key[:-1], key.upper()])] = holder.pop(key)
            case 7:
                holder.reverse()
            case 8 if isinstance(holder[key], int | float) and abs(holder[key]) <= 1e308:
                holder[key] = rng.choice([-holder[key], holder[key] * rng.choice([0, 2, 1e6, 1e300]), holder[key] + 1])
            case 8:
                holder[key] = str(holder[key])
            case _:
                for _ in range(rng.choice([1, 1, 3, 200])):
                    holder[key] = rng.choice([[holder[key]], {"a": holder[key]}])
    return root


def encoded(rng: random.Random, root: Any) -> bytes:
    """A JSON value as a file, sometimes with changes of its characters."""
    text = json.dumps(root, indent=rng.choice([None, None, 1]), ensure_ascii=rng.random() < 0.8)
    data = text.encode("utf-8", "surrogatepass")
    return scrambled(rng, data) if rng.random() < 0.25 else data


def scrambled(rng: random.Random, data: bytes) -> bytes:
    """Bytes with pieces cut out, doubled, replaced, or cut off."""
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(data) + 1)
        size = rng.choice([1, 1, 2, 5, 20, 100])
        match rng.randrange(7):
            case 0:
                data = data[:at] + data[at + size :]
            case 1:
                data = data[:at] + data[at : at + size] * rng.choice([2, 2, 3, 50]) + data[at + size :]
            case 2:
                data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
            case 3:
                data = data[:at]
            case 4:
                odd = (
                    b"\0",
                    b"\xef\xbb\xbf",
                    b"\xff",
                    b"1e999",
                    b"NaN",
                    b"-",
                    b"null",
                    b"[[[[",
                    b'"',
                    b"\\ud800",
                    b"\r",
                )
                data = data[:at] + rng.choice(odd) + data[at:]
            case 5:
                other = rng.randrange(len(data) + 1)
                data = data[:at] + data[other : other + size] + data[at + size :]
            case _:
                data = data[:at] + rng.choice([b"9" * 5000, b"[" * 5000, b'{"a":' * 3000, b" " * 3000]) + data[at:]
    return data
