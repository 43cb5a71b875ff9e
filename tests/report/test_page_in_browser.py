"""Pages in a headless Chromium without a network: no error, search, zoom, copy, themes, keys, print.

Needs the extra ``browser`` and a Chromium of the system; skipped where either is absent.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.commands import finished, run, started
from support.pages import large_answer
from support.paths import ROOT

from placedsl.api.pages import answer_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()


class Opened:
    """A page of a file, what its console said, and what it asked for."""

    def __init__(self, browser: Any, file: Path, **settings: Any) -> None:
        self.context = browser.new_context(offline=True, viewport={"width": 1360, "height": 1000}, **settings)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())
        assert self.said == []
        assert self.asked == [file.as_uri()]

    def number(self, selector: str) -> int:
        return int(self.page.locator(selector).count())


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("page")
    spec = folder / "s.place"
    spec.write_text((ROOT / "examples" / "quickstart.place").read_text(encoding="utf-8"), encoding="utf-8")
    ended = run("solve", spec, "--html", folder / "p.html", "--json", folder / "a.json", "--quiet")
    assert ended.returncode == 0, ended.stderr
    return folder / "p.html", json.loads((folder / "a.json").read_text(encoding="utf-8"))


def test_stages_devices_and_nodes_are_those_of_the_answer(browser: Any, solved: tuple[Path, dict[str, Any]]) -> None:
    file, told = solved
    opened = Opened(browser, file)
    assert opened.number("g.stage") == opened.number("[data-stage-row]") == len(told["plan"]["stages"])
    rows = opened.page.locator("[data-devices]").evaluate_all("rows => rows.map(r => Number(r.dataset.devices))")
    assert sum(rows) == len(told["devices"])
    assert opened.number("#node-table tbody tr") == len(told["placement"])


@pytest.mark.parametrize("width", [1100, 700])
def test_legends_are_within_the_page(browser: Any, solved: tuple[Path, dict[str, Any]], width: int) -> None:
    page = Opened(browser, solved[0]).page
    page.set_viewport_size({"width": width, "height": 900})
    ends = page.locator(".legend span").evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")
    assert len(ends) > 10
    assert max(ends) <= width


def test_search(browser: Any, solved: tuple[Path, dict[str, Any]]) -> None:
    file, told = solved
    page = Opened(browser, file).page
    page.fill("#search", "attention gpu[3]")
    found = [node for node, device in told["placement"].items() if "attention" in node and device == "gpu[3]"]
    assert found
    assert page.locator("#node-table tbody tr td:first-child").all_inner_texts() == found
    page.fill("#search", "no such node")
    assert page.locator("#found").inner_text() == f"0 of {len(told['placement'])}"


def test_zoom_by_buttons_and_keys(browser: Any, solved: tuple[Path, dict[str, Any]]) -> None:
    opened = Opened(browser, solved[0])
    page, plot = opened.page, opened.page.locator("#plot")
    whole = page.locator("svg.timeline .ticks text").all_text_contents()
    page.click("[data-zoom=in]")
    assert float(plot.get_attribute("data-span")) == 0.5
    assert page.locator("svg.timeline .ticks text").all_text_contents() != whole
    plot.focus()
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    assert float(plot.get_attribute("data-span")) == 0.25
    assert float(plot.get_attribute("data-from")) == 0.375 + 0.0625
    page.keyboard.press("0")
    assert page.locator("svg.timeline .ticks text").all_text_contents() == whole
    box = page.locator("svg.timeline svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 12)
    assert "gpu[1]" in page.locator("#bar").inner_text()
    assert opened.said == []


def test_copy(browser: Any, solved: tuple[Path, dict[str, Any]]) -> None:
    file, told = solved
    opened = Opened(browser, file)
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.page.click("[data-copy=answer]")
    assert json.loads(opened.page.evaluate("navigator.clipboard.readText()")) == told
    opened.page.click("[data-copy=spec-text]")
    text = (ROOT / "examples" / "quickstart.place").read_text(encoding="utf-8")
    assert opened.page.evaluate("navigator.clipboard.readText()") == text
    assert opened.page.locator("#copied").inner_text() == "Copied."


def test_themes(browser: Any, solved: tuple[Path, dict[str, Any]]) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    white, black = "rgb(255, 255, 255)", "rgb(15, 20, 25)"
    for scheme, one, other in (("light", white, black), ("dark", black, white)):
        page = Opened(browser, solved[0], color_scheme=scheme).page
        assert page.evaluate(ground) == one
        page.click("#theme")
        assert page.evaluate(ground) == other
        page.emulate_media(media="print")
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        assert not page.locator("#theme").is_visible()


def test_without_a_placement(browser: Any, tmp_path: Path) -> None:
    spec = ROOT / "examples" / "too-small.place"
    assert run("solve", spec, "--html", tmp_path / "p.html", "--quiet").returncode == 3
    opened = Opened(browser, tmp_path / "p.html")
    assert "exit code 3" in opened.page.locator("header").inner_text()
    assert opened.number(".conflicts tbody tr") >= 1
    assert opened.number(".repairs li") >= 1
    assert opened.number("#node-table") == opened.number("#stages") == opened.number("#timeline") == 0
    line = opened.page.locator(".conflicts a").first
    line.click()
    marked = opened.page.locator(line.get_attribute("href"))
    assert "conflict" in marked.get_attribute("class").split()
    assert opened.said == []


def hard_spec(folder: Path) -> Path:
    """Forty nodes on four devices: an answer at once, and no proof for a long time."""
    source, nodes = random.Random(7), 40
    lines = ["graph {"]
    for k in range(nodes):
        time, output, memory = source.randint(100, 999), source.randint(1, 9), source.randint(10, 90)
        lines.append(f"    node n{k} {{ time = {time} us, output = {output} MiB, memory = {memory} MiB }}")
    for k in range(1, nodes):
        lines += [f"    n{j} -> n{k}" for j in sorted(source.sample(range(max(0, k - 6), k), min(k, 2)))]
    lines += ["}", "device gpu[4]: accelerator { memory = 700 MiB }", "interconnect { bandwidth = 10 GiB/s }"]
    spec = folder / "hard.place"
    spec.write_text("\n".join([*lines, "minimize time_per_sample", "subject to", "    memory", ""]), encoding="utf-8")
    return spec


def shown_unproven(browser: Any, folder: Path, ended: str) -> None:
    """The page p.html beside a.json: what was found is there, with its gap, and nothing says that it is the best."""
    told = json.loads((folder / "a.json").read_text(encoding="utf-8"))
    assert told["status"]["termination"] == ended.replace(" ", "_")
    opened = Opened(browser, folder / "p.html")
    head = opened.page.locator("header").inner_text()
    assert ended in head
    assert "exit code 4" in head
    assert opened.page.locator(".ended").get_attribute("class") == "ended warning"
    tiles = opened.page.locator(".tile").all_inner_texts()
    assert f"{told['objective']['gap']:.2%}" in tiles[2]
    assert "proven optimal" not in tiles[0]
    assert opened.number("g.stage") == len(told["plan"]["stages"]) >= 4
    assert opened.number("#node-table tbody tr") == len(told["placement"]) == 40
    assert opened.number("svg.progress path") >= 3
    assert opened.said == []


def test_an_answer_at_the_limit_of_time(browser: Any, tmp_path: Path) -> None:
    words = ("--html", tmp_path / "p.html", "--json", tmp_path / "a.json", "--quiet")
    assert run("solve", hard_spec(tmp_path), "--time-limit", "2s", *words).returncode == 4
    shown_unproven(browser, tmp_path, "time limit")


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_an_answer_of_an_interrupted_search(browser: Any, tmp_path: Path) -> None:
    words = ("--time-limit", "120s", "--html", tmp_path / "p.html", "--json", tmp_path / "a.json")
    child = started("solve", hard_spec(tmp_path), *words)
    try:
        found = next((line for line in child.stderr if re.search(r"best \d", line)), "")
        child.send_signal(signal.SIGINT)
        ended = finished(child)
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()
    assert found
    assert ended.returncode == 4, ended.stderr
    shown_unproven(browser, tmp_path, "interrupted")


def test_two_thousand_nodes(browser: Any, tmp_path: Path) -> None:
    spec, answer = large_answer(tmp_path, 2000)
    (tmp_path / "p.html").write_text(answer_page(spec, answer), encoding="utf-8")
    opened = Opened(browser, tmp_path / "p.html")
    assert opened.number("g.stage") == 8
    assert opened.page.locator("#found").inner_text().startswith("2000 of 2000, the first ")
    opened.page.fill("#search", "layers.77.operator3")
    assert opened.page.locator("#node-table tbody tr td:first-child").all_inner_texts() == ["model.layers.77.operator3"]
    opened.page.click("[data-zoom=in]")
    assert opened.said == []


def test_what_is_streamed_is_drawn_beyond_the_limit(browser: Any, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "language" / "streamed-parameters.md").read_text(encoding="utf-8")
    (tmp_path / "s.place").write_text(text.split("```place\n")[1].split("```")[0], encoding="utf-8")
    assert run("solve", tmp_path / "s.place", "--html", tmp_path / "p.html", "--quiet").returncode == 0
    opened = Opened(browser, tmp_path / "p.html")
    place = "bars => bars.map(b => b.getBoundingClientRect()).map(r => [r.left, r.right])"
    streamed = opened.page.locator("#device-table tr:first-child .f-streamed").evaluate_all(place)
    ((_, limit),) = opened.page.locator("#device-table tr:first-child .s-line").evaluate_all(place)
    assert streamed  # in the bar of the load, and in that of the memory
    assert max(left for left, _ in streamed) >= limit - 2
    assert "2.5 GiB streamed" in opened.page.locator("#device-table").inner_text()
    assert opened.number("g.stage .f-streamed") >= 1


def test_names_run_no_script(browser: Any, tmp_path: Path) -> None:
    name = "</script><script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"
    nodes = [{"id": name, "time": 1.0, "output": 4}, {"id": "b", "time": 1.0}]
    graph = {"format": "placedsl-graph", "version": 1, "nodes": nodes, "edges": [{"from": name, "to": "b"}]}
    (tmp_path / "g.json").write_text(json.dumps(graph), encoding="utf-8")
    text = 'graph from "g.json"\ndevice gpu[2]: accelerator\ninterconnect { bandwidth = 1 GiB/s }\n'
    text += "minimize time_per_sample\nsubject to\n    contiguous\n"
    (tmp_path / "s.place").write_text(text, encoding="utf-8")
    assert run("solve", tmp_path / "s.place", "--html", tmp_path / "p.html", "--quiet").returncode == 0
    page = Opened(browser, tmp_path / "p.html").page
    assert page.title() != "ran"
    assert name in page.locator("#node-table").inner_text()
