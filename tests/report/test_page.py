"""Pages of answers without a browser: they parse, hold the answer, fetch nothing, and can be read in both themes."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
from itertools import pairwise
from pathlib import Path

import pytest
from support.commands import run
from support.pages import Page, large_answer
from support.paths import ROOT

import placedsl
from placedsl.api.pages import answer_page, document_page
from placedsl.planner.incumbent import thinned
from placedsl.report.html import palette
from placedsl.report.html.bar_charts import device_rows
from placedsl.report.html.memory_bar import memory_parts, memory_width
from placedsl.report.html.stage_picture import runs
from placedsl.report.json.answer_document import device_list, document

EVIL = "</script><img src=x onerror=alert(1)>&amp;<!--\u2028"
SPEC = """
graph {
    node a { time = 2 ms, output = 4 MiB, memory = 2 GiB, parameters = 1 GiB, layer = 0 }
    node b { time = 4 ms, output = 4 MiB, memory = 3 GiB, parameters = 2 GiB, layer = 1 }
    node c { time = 2 ms, memory = 1 GiB, layer = 2 }
    a -> b -> c
}
device gpu[3]: accelerator { memory = 4 GiB }
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
subject to
    memory
    contiguous
"""


def linear(channel: int) -> float:
    share = channel / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours (WCAG 2.2, relative luminance)."""
    levels = []
    for colour in (one, other):
        red, green, blue = (linear(int(colour[k : k + 2], 16)) for k in (1, 3, 5))
        levels.append(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    return (max(levels) + 0.05) / (min(levels) + 0.05)


def solved(text: str = SPEC) -> tuple[placedsl.api.spec.Spec, placedsl.planner.answer.Answer]:
    spec = placedsl.loads(text)
    return spec, spec.solve(method="dp")


def test_contrast_of_black_on_white() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)


@pytest.mark.parametrize(
    ("colours", "charts"), [(palette.LIGHT, palette.LIGHT_PARTS), (palette.DARK, palette.DARK_PARTS)]
)
def test_contrasts(colours: dict[str, str], charts: dict[str, str]) -> None:
    for ground in palette.GROUNDS:
        for name in ("text", "muted", "accent", "good", "warning", "bad"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
        for name, colour in {**charts, "line": colours["line"]}.items():
            assert contrast(colour, colours[ground]) >= 3.0, (name, ground)
    for mark in palette.MARKS:
        assert contrast(colours["text"], colours[mark]) >= 4.5, mark
        assert contrast(colours["muted"], colours[mark]) >= 4.5, mark
    for name in ("compute", "compute2", "backward", "backward2", "weights"):
        assert contrast(colours["on-part"], charts[name]) >= 4.5, name


def test_the_page_holds_the_answer_and_fetches_nothing() -> None:
    spec, answer = solved()
    text = answer_page(spec, answer, why=spec.why(answer, time_limit=20.0))
    page = Page(text)
    told = page.island("answer")
    assert told == json.loads(json.dumps(document(answer, None, None))) | {"why": told["why"]}
    assert sorted(map(int, page.named("data-stage-row"))) == [stage["stage"] for stage in told["plan"]["stages"]]
    assert len(page.named("data-stage")) == len(told["plan"]["stages"])
    assert sum(map(int, page.named("data-devices"))) == len(told["devices"])
    for tag, attributes in page.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base"}
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        for name, value in attributes.items():
            assert name == "xmlns" or not re.search(r"https?://", value), (tag, name)
    identifiers = page.named("id")
    assert len(identifiers) == len(set(identifiers))
    assert {link[1:] for link in page.named("href")} <= set(identifiers)
    assert set(page.named("data-copy")) <= set(identifiers)
    assert "one more gpu" in page.words()
    assert "2.5 GiB" not in page.words()
    assert {"f-weights", "f-other"} <= {name for value in page.named("class") for name in value.split()}


def test_the_policy_lets_this_script_and_this_style_run_and_nothing_else() -> None:
    text = answer_page(*solved())
    policy = next(a["content"] for tag, a in Page(text).elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ")
    for pattern, name in ((r"<script>(.*?)</script>", "script-src"), (r"<style>(.*?)</style>", "style-src")):
        found = re.findall(pattern, text, re.DOTALL)
        assert len(found) == 1
        digest = base64.b64encode(hashlib.sha256(found[0].encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_names_are_texts(tmp_path: Path) -> None:
    nodes = [{"id": f"{k}{EVIL}", "time": 1.0, "output": 4} for k in range(3)]
    edges = [{"from": a["id"], "to": b["id"]} for a, b in pairwise(nodes)]
    graph = {"format": "placedsl-graph", "version": 1, "nodes": nodes, "edges": edges}
    (tmp_path / "g.json").write_text(json.dumps(graph), encoding="utf-8")
    text = 'graph from "g.json"\ndevice gpu[2]: accelerator\ninterconnect { bandwidth = 1 GiB/s }\n'
    text += "minimize time_per_sample\n"
    spec = placedsl.loads(text, tmp_path)
    answer = spec.solve()
    page = Page(answer_page(spec, answer))
    assert page.island("answer") == json.loads(json.dumps(document(answer)))
    assert not [tag for tag, _ in page.elements if tag == "img"]


def test_exit_codes_and_the_conflict(tmp_path: Path) -> None:
    spec = tmp_path / "s.place"
    spec.write_text(SPEC.replace("4 GiB }", "1 GiB }"), encoding="utf-8")
    ended = run("solve", spec, "--html", tmp_path / "p.html", "--json", tmp_path / "a.json", "--quiet")
    assert ended.returncode == 3, ended.stderr
    page = Page((tmp_path / "p.html").read_text(encoding="utf-8"))
    told = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert page.island("answer") == told
    assert "exit code 3" in page.words()
    assert page.words().startswith("s: infeasible")
    assert told["conflict"]["unfinished"] is False
    assert told["conflict"]["constraints"]
    for one in told["conflict"]["constraints"]:
        assert one["name"] in page.words()
    for repair in told["conflict"]["repair"]:
        assert " ".join(repair.split()) in page.words()
    lines = [
        a for _, a in page.elements if "conflict" in a.get("class", "").split() and a.get("id", "").startswith("L")
    ]
    assert [int(a["id"][1:]) for a in lines] == sorted(
        one["line"] for one in told["conflict"]["constraints"] if one["line"] is not None
    )


def test_report_makes_the_page_of_solve(tmp_path: Path) -> None:
    spec, answer, page = tmp_path / "s.place", tmp_path / "a.json", tmp_path / "p.html"
    spec.write_text(SPEC, encoding="utf-8")
    assert run("solve", spec, "--method", "dp", "--json", answer, "--html", page, "--quiet").returncode == 0
    again = tmp_path / "again.html"
    ended = run("report", answer, "--spec", spec, "--html", again)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert again.read_bytes() == page.read_bytes()
    assert run("report", answer, "--html", again).returncode == 0
    alone = Page(again.read_text(encoding="utf-8"))
    assert alone.island("answer") == json.loads(answer.read_text(encoding="utf-8"))
    assert "timeline" not in alone.named("id")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"seed": 0', '"seed": "x"', "'seed' is a text"),
        ('"verified"', '"objectives_"', ""),
        ('"objective"', '"objectiv"', "'objective' is missing"),
        ('"largest"', "", ""),
        ('"kind": "accelerator"', '"kind": 3', "one of"),
    ],
)
def test_files_that_are_no_answers_are_refused_at_their_place(tmp_path: Path, old: str, new: str, told: str) -> None:
    _, answer = solved()
    text = json.dumps(document(answer), indent=2).replace(old, new)
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    ended = run("report", tmp_path / "a.json", "--html", tmp_path / "p.html")
    assert "Traceback" not in ended.stderr
    if told:
        assert ended.returncode == 1, ended.stderr
        assert told in ended.stderr
        assert re.search(r"a\.json:\d+:\d+: error", ended.stderr)
        assert not (tmp_path / "p.html").exists()
    else:
        assert ended.returncode == 0


def test_values_of_any_type_give_a_page_or_a_diagnostic(tmp_path: Path) -> None:
    """Each value of an answer in turn is replaced by one of another type."""
    spec, answer = solved()
    whole = json.loads(json.dumps(document(answer, None, spec.why(answer, time_limit=20.0))))
    chosen = random.Random(5)

    def paths(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return [path, *(p for key, held in inner for p in paths(held, (*path, key)))]

    for path in chosen.sample([p for p in paths(whole) if p], 60):
        changed = json.loads(json.dumps(whole))
        place = changed
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = chosen.choice([None, [], {}, "x", 3, True, [[]], {"x": None}])
        (tmp_path / "a.json").write_text(json.dumps(changed), encoding="utf-8")
        ended = run("report", tmp_path / "a.json", "--html", tmp_path / "p.html")
        assert ended.returncode in (0, 1), (path, place[path[-1]], ended.stderr)


@pytest.mark.parametrize(("nodes", "drawn"), [(2000, 2000), (3001, 301)])
def test_large_pages(tmp_path: Path, nodes: int, drawn: int) -> None:
    """2,000 nodes stay below a megabyte; above 3,000 layers are named."""
    page = answer_page(*large_answer(tmp_path, nodes))
    assert len(page.encode()) < 1_000_000
    told = Page(page).island("answer")
    held = [node for stage in told["plan"]["stages"] for node in stage["nodes"]]
    assert sum(node.get("count", 1) for node in held) == nodes
    assert len({str(node["id"]) for node in held}) == drawn
    assert ("above 3,000" in Page(page).words()) == (nodes > 3000)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name", ["latency-calls", "critical-path", "training-gpipe", "recomputation", "replicas-apart", "batch-size"]
)
def test_pages_of_examples(name: str, tmp_path: Path) -> None:
    """Schedules of one sample, training, plans, graphs without units."""
    ended = run("solve", ROOT / "examples" / f"{name}.place", "--html", tmp_path / "p.html", "--time-limit", "20s")
    assert ended.returncode in (0, 4), ended.stderr
    page = Page((tmp_path / "p.html").read_text(encoding="utf-8"))
    told = page.island("answer")
    assert len(page.named("data-stage-row")) == len(told["plan"]["stages"])
    assert sum(map(int, page.named("data-devices"))) == len(told["devices"])
    chart = page.island("chart")
    ends = [bar[0] + bar[1] for row in chart["rows"] for bar in row["bars"]]
    assert max(ends) == 1_000_000
    for device in told["devices"]:
        assert sum(device["memory_parts"].values()) == pytest.approx(device["memory"] if device["memory_parts"] else 0)


def test_progress_only_improves_and_ends_with_the_answer() -> None:
    _, answer = solved()
    told = document(answer)
    moments = told["progress"]
    values = [m["value"] for m in moments if m["value"] is not None]
    bounds = [m["bound"] for m in moments if m["bound"] is not None]
    assert values == sorted(values, reverse=True)
    assert bounds == sorted(bounds)
    assert [m["seconds"] for m in moments] == sorted(m["seconds"] for m in moments)
    assert (moments[-1]["value"], moments[-1]["bound"]) == (told["objective"]["value"], told["objective"]["bound"])
    page = Page(document_page(told))
    assert "Moments of the search" in page.words()


def test_thinned_moments_keep_the_last_and_say_nothing_too_early() -> None:
    moments = [(float(k), 100.0 - k, float(k)) for k in range(401)]
    kept = thinned(moments)
    assert set(kept) <= set(moments)
    assert kept[-1] == moments[-1]
    assert len(kept) == 201


def test_parts_of_loads_and_memory_add_up() -> None:
    _, answer = solved(SPEC.replace("memory = 4 GiB", "memory = 6 GiB"))
    for device in document(answer)["devices"]:
        assert sum(device["busy"].values()) == pytest.approx(device["load"])
    held = {kind for device in document(answer)["devices"] for kind in device["memory_parts"]}
    assert held == {"weights", "other"}


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["layers.0", "layers.1", "layers.2", "norm"], ["layers.0..2", "norm"]),
        (["0", "1", "3"], ["0..1", "3"]),
        (["a01", "a02"], ["a01", "a02"]),
        (["x9", "x10", "y11"], ["x9..10", "y11"]),
        ([], []),
    ],
)
def test_runs_of_names(names: list[str], told: list[str]) -> None:
    assert runs(names) == told


STREAMED = """
graph {
    node a { time = 4 ms, memory = 2 GiB, output = 8 MiB, parameters = 1.5 GiB, kv_cache = 256 MiB }
    node b { time = 6 ms, memory = 3 GiB, output = 8 MiB, parameters = 2 GiB, kv_cache = 512 MiB }
    node c { time = 5 ms, memory = 3 GiB, parameters = 2 GiB }
    a -> b -> c
}
device gpu[2]: accelerator { memory = 3 GiB, streams = 1 TiB/s, reserve = RESERVE }
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
"""


@pytest.mark.parametrize("reserve", ["512 MiB", "0 MiB", "7 GiB"])
def test_what_is_streamed_is_a_part_of_the_memory_and_of_the_load(reserve: str) -> None:
    """It is what does not fit beside the reserve, and drawn beyond the limit."""
    gib = 2**30
    spec = placedsl.loads(STREAMED.replace("RESERVE", reserve))
    placement = {"a": "gpu[1]", "b": "gpu[1]", "c": "gpu[2]"}
    found = spec.evaluate(placement)
    told = {device["name"]: device for device in device_list(spec.problem, found)}
    aside = {"512 MiB": 0.5, "0 MiB": 0.0, "7 GiB": 7.0}[reserve]
    for name, held in (("gpu[1]", 5.0), ("gpu[2]", 3.0)):
        parts, beyond = told[name]["memory_parts"], min(held, max(0.0, held + aside - 3.0))
        assert sum(parts.values()) == pytest.approx(held * gib)
        assert parts.get("streamed", 0.0) == pytest.approx(beyond * gib)
        drawn = list(memory_parts(told[name], held * gib, 1 / gib))
        assert max(left + width for _, left, width in drawn) <= memory_width(told[name], held * gib) / gib + 1e-9
        starts = [left for kind, left, _ in drawn if kind == "streamed"]
        assert all(left >= 3.0 - 1e-9 for left in starts)
        assert bool(starts) == (beyond > 0)
    first = told["gpu[1]"]["memory_parts"]
    if reserve == "512 MiB":  # of 3.5 GiB of weights, 2.5 GiB are streamed
        parts = {"weights": 1.0, "kv_cache": 0.75, "other": 0.75, "streamed": 2.5}
        assert first == pytest.approx({kind: gib * share for kind, share in parts.items()})
    row = device_rows({"devices": list(told.values()), "plan": None, "objectives": [], "time_unit": "s"})[0]
    (bar,) = row.engines
    assert sum(width for _, _, width in bar) == pytest.approx(row.load)


def test_the_memory_of_a_plan_has_weights_and_keys() -> None:
    """Of what stays with a node, attributes have the share that they have of its memory."""
    text = """
graph {
    node a { time = 4 ms, memory = 2 GiB, output = 8 MiB, stash = 64 MiB, parameters = 1 GiB, kv_cache = 512 MiB }
    node b { time = 4 ms, memory = 1 GiB, stash = 64 MiB, parameters = 1 GiB }
    a -> b
}
device gpu[4]: accelerator { memory = 6 GiB }
interconnect { bandwidth = 16 GiB/s }
option split(v in nodes, t in {2}, d in gpu) { tensor = t, time = v.time[d] / t, memory = v.memory / t, gather = 4 MiB }
parallelism { data = 1, tensor = {DEGREE}, microbatches = 4 }
minimize time_per_sample
subject to
    memory
    contiguous
"""
    for degree in (1, 2):
        answer = placedsl.loads(text.replace("DEGREE", str(degree))).solve(time_limit=30)
        assert answer.placement is not None
        total: dict[str, float] = {}
        for device in document(answer)["devices"]:
            assert sum(device["memory_parts"].values()) == pytest.approx(device["memory"])
            for kind, held in device["memory_parts"].items():
                total[kind] = total.get(kind, 0.0) + held
        assert total["weights"] == pytest.approx(2 * 2**30)
        assert total["kv_cache"] == pytest.approx(2**29)
        assert total["activations"] > 0


def test_exports_of_the_model_itself_have_their_command() -> None:
    """onnx-split makes its files of the model's: that is no reason against the plan."""
    page = Page(answer_page(*solved()))
    assert "onnx-split makes its files of an ONNX model: placedsl export SPEC ANSWER --to onnx-split" in page.words()
    assert "onnx-split cannot run" not in page.words()
    assert "onnxruntime cannot run this plan" in page.words()
