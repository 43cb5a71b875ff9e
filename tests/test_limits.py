"""Every limit on the size of what is asked for has a name, is told with how it is raised, and is raised by that."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

import placedsl
from placedsl import InputError, UsageError, limits, loads

DOCS = Path(__file__).parents[1] / "docs" / "limits.md"
GRAPH = """
graph {
    node a { time = 4 ms, memory = 2 GiB, output = 8 MiB }
    node b { time = 6 ms, memory = 3 GiB }
    a -> b
}
"""
MACHINE = "device gpu[4]: accelerator\ninterconnect { bandwidth = 16 GB/s }\n"
CLUSTERS = "cluster c[4] {\n    device gpu: accelerator\n    interconnect { bandwidth = 1 GB/s }\n}\n"
OUTSIDE = "interconnect { bandwidth = 16 GB/s }\n"
GOAL = "minimize time_per_sample\n"
RULES = GRAPH + MACHINE + "%s\n" + GOAL + "subject to\n    r: %s\n"
#: A small value for a limit, and a text that is over it and within the default.
OVER = {
    "devices": (3, GRAPH + MACHINE + GOAL),
    "clusters": (3, GRAPH + CLUSTERS + OUTSIDE + GOAL),
    "pieces": (1, GRAPH + MACHINE + "schedule calls { pieces = 2 }\nminimize latency\n"),
    "copies": (2, GRAPH + MACHINE + "parallelism { data = 1..4 }\n" + GOAL),
    "nesting": (10, RULES % ("", "abs(" * 12 + "load(gpu[1])" + ")" * 12 + " <= 1 s")),
    "definitions": (2, RULES % ("define f(d in devices) = load(d)", "f(gpu[1]) + f(gpu[2]) + f(gpu[3]) <= 1 s")),
    "parts": (3, RULES % ("define f = load(gpu[1]) + load(gpu[2]) + load(gpu[3])", "f <= 1 s")),
    "combinations": (15, RULES % ("", "forall d in devices, e in devices: load(d) <= load(e) + 1 s")),
    "cells": (31, RULES % ("", "forall d in devices, e in devices: load(d) <= load(e) + 1 s")),
    "visited": (15, RULES % ("", "forall d in devices, e in devices where d.number < e.number: load(d) <= 1 s")),
    "indices": (15, RULES % ("var w[d in devices, e in devices]: binary", "forall d in devices: w[d, d] == 1")),
    "cost": (1e6, GRAPH + MACHINE + GOAL),
}


@pytest.mark.parametrize("name", OVER)
def test_a_message_names_the_limit_and_how_it_is_raised(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    low, text = OVER[name]
    loads(text).check()
    monkeypatch.setenv(limits.VARIABLE, f"{name}={low}")
    with pytest.raises(InputError) as caught:
        loads(text).check()
    for found in caught.value.diagnostics:
        told = re.search(rf"the limit '{name}' is raised by the environment variable (\w+)=({name}=\S+)$", found.hint)
        assert told is not None, found
        assert found.span is not None
        assert told[1] == limits.VARIABLE
    monkeypatch.setenv(limits.VARIABLE, told[2])
    for _ in range(8):  # by steps, where what is needed is not known at once
        try:
            loads(text).check()
        except InputError as problem:
            told = re.search(rf"{limits.VARIABLE}=(\S+)$", problem.diagnostics[0].hint)
            assert told is not None
            monkeypatch.setenv(limits.VARIABLE, told[1])
        else:
            return
    pytest.fail("what the message says does not raise the limit far enough")


@pytest.mark.parametrize(("name", "suffix"), [("spec-bytes", "place"), ("graph-bytes", "json"), ("data-bytes", "toml")])
def test_files_are_read_up_to_a_limit(name: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, graph, data = (tmp_path / f"file.{end}" for end in ("place", "json", "toml"))
    node = {"id": 0, "supportedOnFpga": 1, "cpuLatency": 1, "fpgaLatency": 1, "size": 1}
    graph.write_text(json.dumps({"nodes": [node], "edges": []}))
    spec.write_text(f'graph from "{graph.name}"\nparam k = 1\n' + MACHINE + GOAL)
    data.write_text("k = 2\n")
    file = {"place": spec, "json": graph, "toml": data}[suffix]
    monkeypatch.setenv(limits.VARIABLE, f"{name}={file.stat().st_size - 1}")
    with pytest.raises(InputError) as caught:
        placedsl.load(spec, data=data)
    (found,) = caught.value.diagnostics
    assert found.hint.endswith(f"{limits.VARIABLE}={name}={file.stat().st_size}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("devcies=1e6", "there is no limit 'devcies'; did you mean 'devices'"),
        ("devices", "'devices' is not name=value"),
        ("devices=-3", "'-3' is no value of devices"),
        ("devices=4 GiB", "'4 GiB' is no value of devices"),
        ("devices=inf", "'inf' is no value of devices"),
        ("nesting=1e5", "nesting is 300 at most"),
    ],
)
def test_a_setting_that_cannot_be_is_a_usage_error(text: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.VARIABLE, text)
    with pytest.raises(UsageError, match=re.escape(message)):
        loads(GRAPH + MACHINE + GOAL)


def test_several_settings_and_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.VARIABLE, "graph-bytes = 4 GiB, devices=1e6,")
    assert limits.count("graph-bytes") == 2**32
    assert limits.count("devices") == 10**6
    assert limits.count("clusters") == limits.LIMITS["clusters"].value


@pytest.mark.parametrize("needed", [17.0, 10_001.0, 123_456_789.0, 99_999_999.0, 1e8, 2.000_1e9, 7.3e299])
def test_what_is_suggested_is_enough(needed: float) -> None:
    shown = float(limits.raising("elements", needed * 1e18 if needed < 1e200 else needed).rpartition("=")[2])
    assert shown >= (needed * 1e18 if needed < 1e200 else needed)


def test_the_page_lists_every_limit() -> None:
    """Name, value and unit, and meaning, in the order of the table."""
    rows = re.findall(r"^\| `([\w-]+)` \| (.+?) \| (.+?) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(one.name, limits.shown(one), one.meaning) for one in limits.LIMITS.values()]


def test_no_limit_is_unbounded() -> None:
    assert all(1.0 <= one.value <= one.highest and math.isfinite(one.value) for one in limits.LIMITS.values())
