"""Pages in a headless Chromium without a network: no error, search, zoom, copy, themes, keys, print.

Needs the extra ``browser`` and a Chromium of the system; skipped where either is absent.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.commands import run
from support.paths import ROOT

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
    assert opened.number(".conflicts tbody tr") >= 1
    assert opened.number(".repairs li") >= 1
    assert opened.number("#node-table") == 0


def test_names_run_no_script(browser: Any, tmp_path: Path) -> None:
    name = "</script><script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"
    nodes = [{"id": name, "time": 1.0, "output": 4}, {"id": "b", "time": 1.0}]
    graph = {"format": "placedsl-graph", "version": 1, "nodes": nodes, "edges": [{"from": name, "to": "b"}]}
    (tmp_path / "g.json").write_text(json.dumps(graph), encoding="utf-8")
    text = 'graph from "g.json"\ndevice gpu[2]: accelerator\ninterconnect { bandwidth = 1 GiB/s }\nminimize time_per_sample\nsubject to\n    contiguous\n'  # noqa: E501
    (tmp_path / "s.place").write_text(text, encoding="utf-8")
    assert run("solve", tmp_path / "s.place", "--html", tmp_path / "p.html", "--quiet").returncode == 0
    page = Opened(browser, tmp_path / "p.html").page
    assert page.title() != "ran"
    assert name in page.locator("#node-table").inner_text()
