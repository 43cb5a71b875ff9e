"""Every example of the documents does what stands beside it."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import pytest

from placedsl import InputError, loads
from placedsl.diagnostics import Source
from placedsl.language.parsing import RESERVED, parse
from placedsl.resources import model_files

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
LANGUAGE = ROOT / "docs" / "language"
FENCE = re.compile(
    r"^```([\w-]*)\n(.*?)^```\n(?:<!-- expect: (.*?) -->\n)?(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
VALUE = re.compile(r"(.+?) = (-?\d[\d.e+-]*)(?:, |$)")
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def fences(kind: str) -> list[tuple[Path, str, str]]:
    """Page, text of the example, and what it is expected to give."""
    return [
        (page, text, expected or shown)
        for page in PAGES
        for found, text, expected, shown in FENCE.findall(page.read_text(encoding="utf-8"))
        if found == kind
    ]


def named(cases: list[tuple[Path, str, str]]) -> list[str]:
    """Page and position of each case on it."""
    seen: dict[str, int] = {}
    out = []
    for page, _, _ in cases:
        seen[page.stem] = seen.get(page.stem, 0) + 1
        out.append(f"{page.stem}-{seen[page.stem]}")
    return out


SPECS = fences("place")
MALFORMED = fences("place-error")
FRAGMENTS = fences("place-fragment")


@pytest.mark.parametrize(("page", "text", "expected"), SPECS, ids=named(SPECS))
def test_example(page: Path, text: str, expected: str) -> None:
    """It is optimal with the values that the comment gives, or infeasible if the comment says so."""
    answer = loads(text, page.parent).solve()
    assert answer.termination == ("infeasible" if expected == "infeasible" else "optimal"), answer.message
    if expected in ("", "infeasible"):
        return
    values = dict(VALUE.findall(expected))
    assert answer.evaluation is not None
    found = dict(zip((o.name for o in answer.problem.objectives), answer.evaluation.objectives, strict=True))
    assert values.keys() == found.keys()
    for name, value in values.items():
        assert math.isclose(found[name], float(value), rel_tol=1e-5), (name, found[name])


@pytest.mark.parametrize(("page", "text", "expected"), MALFORMED, ids=named(MALFORMED))
def test_malformed_example(page: Path, text: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        loads(text, page.parent).check()
    shown = "\n\n".join(d.render() for d in caught.value.diagnostics)
    assert shown.replace("<text>", "spec.place").replace(f"{page.parent}{os.sep}", "") + "\n" == expected


@pytest.mark.parametrize(("page", "text", "expected"), FRAGMENTS, ids=named(FRAGMENTS))
def test_fragment(page: Path, text: str, expected: str) -> None:
    """What is no whole spec is at least made of statements."""
    assert not expected, "only whole specs have a result"
    assert parse(Source(page.name, text)).statements


def test_there_are_examples() -> None:
    assert len(SPECS) >= 40
    assert len(MALFORMED) >= 25
    without = {page.name for page in LANGUAGE.glob("*.md")} - {page.name for page, _, _ in SPECS}
    assert without == {"errors.md"}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda p: p.name)
def test_links(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_index_links_every_page_of_the_language() -> None:
    linked = set(LINK.findall((LANGUAGE / "README.md").read_text(encoding="utf-8")))
    assert {p.name for p in LANGUAGE.glob("*.md")} - {"README.md"} <= linked


def test_every_page_is_reached() -> None:
    """From the README, by links."""
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            waiting += [page.parent / t for t in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in t]
    assert set(PAGES) <= reached


def words(page: str) -> set[str]:
    """What stands between backquotes on a page of the language, cut into names."""
    quoted = re.findall(r"`([^`\n]+)`", (LANGUAGE / page).read_text(encoding="utf-8"))
    return set(re.findall(r"\w+", " ".join(quoted)))


def test_every_name_of_the_vocabulary_is_explained() -> None:
    text = "graph {\n    node a { time = 1 ms }\n}\ndevice cpu: host\nminimize time_per_sample\n"
    vocabulary = loads(text).elaborated.vocabulary
    assert vocabulary.quantities.keys() <= words("expressions.md")
    assert {name for sort in vocabulary.attributes.values() for name in sort} <= words("expressions.md")
    assert vocabulary.sets.keys() - vocabulary.families.keys() <= words("set.md")
    assert words("README.md") >= RESERVED


def test_the_meaning_of_built_in_constraints_is_quoted_word_for_word() -> None:
    (models,) = [p for p in model_files() if p.name == "constraints.place"]
    formulas = [line for line in models.read_text(encoding="utf-8").split("\n") if line.startswith("constraint ")]
    shown = "".join(text for _, text, _ in FRAGMENTS)
    assert [f for f in formulas if f not in shown] == []
