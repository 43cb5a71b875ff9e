"""Every example of the documents does what stands beside it."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from placedsl import InputError, loads

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
FENCE = re.compile(
    r"^```([\w-]*)\n(.*?)^```\n(?:<!-- expect: (.*?) -->\n)?(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def fences(kind: str) -> list[tuple[str, str, str]]:
    """Page, text of the example, and what it is expected to give."""
    return [
        (str(page.relative_to(ROOT)), text, expected or shown)
        for page in PAGES
        for found, text, expected, shown in FENCE.findall(page.read_text(encoding="utf-8"))
        if found == kind
    ]


SPECS = fences("place")
MALFORMED = fences("place-error")


@pytest.mark.parametrize("case", range(len(SPECS)))
def test_example(case: int) -> None:
    page, text, expected = SPECS[case]
    answer = loads(text).solve()
    if expected == "infeasible":
        assert answer.termination == "infeasible", page
        return
    assert answer.termination in ("optimal", "gap_reached"), (page, answer.message)
    values = dict(part.split(" = ") for part in expected.split(", "))
    assert answer.evaluation is not None
    found = dict(zip((o.name for o in answer.problem.objectives), answer.evaluation.objectives, strict=True))
    assert values.keys() == found.keys(), page
    for name, value in values.items():
        assert math.isclose(found[name], float(value), rel_tol=1e-5), (page, name, found[name])


@pytest.mark.parametrize("case", range(len(MALFORMED)))
def test_malformed_example(case: int) -> None:
    page, text, expected = MALFORMED[case]
    with pytest.raises(InputError) as caught:
        loads(text).check()
    assert str(caught.value).replace("<text>", "spec.place") + "\n" == expected, page


def test_there_are_examples() -> None:
    assert len(SPECS) >= 18
    assert len(MALFORMED) >= 8


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda p: p.name)
def test_links(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_page_is_reached() -> None:
    """From the README, by links."""
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            waiting += [page.parent / t for t in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in t]
    assert set(PAGES) <= reached


@pytest.mark.parametrize("name", ["quickstart.place", "inline.place"])
def test_example_files(name: str) -> None:
    path = ROOT / "examples" / name
    assert loads(path.read_text(encoding="utf-8"), path.parent).solve().termination == "optimal"
