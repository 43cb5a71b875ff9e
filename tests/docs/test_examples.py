"""Every example of the documents does what stands beside it."""

from __future__ import annotations

import io
import json
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from lark import Lark
from lark.lexer import PatternStr
from rich.console import Console
from support.paths import ROOT

from placedsl import InputError, loads
from placedsl.api.spec import Spec
from placedsl.diagnostics import Source
from placedsl.language.syntax.keywords import RESERVED
from placedsl.language.syntax.parser import _LineEnds, parse
from placedsl.planner.answer import Answer
from placedsl.report.text.summary import print_answer
from placedsl.system.installation import grammar_text, model_files

pytestmark = pytest.mark.rotates(2)

PAGES = sorted((ROOT / "docs").rglob("*.md"))
LANGUAGE = ROOT / "docs" / "language"
FENCE = re.compile(
    r"^(?:<!-- data: (\S+) -->\n)?```([\w-]*)\n(.*?)^```\n(?:<!-- expect: (.*?) -->\n)?(?:```text\n(.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
FILE = re.compile(r"^<!-- file: (\S+) -->\n```\w*\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
PLACEMENT = re.compile(r"^<!-- placement -->\n```json\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
VALUE = re.compile(r"(.+?) = (-?\d[\d.e+-]*)(?:, |$)")
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


@dataclass(frozen=True)
class Example:
    """A text on a page: the values it is expected to give, what is shown beneath it, and its data file."""

    page: Path
    text: str
    expected: str
    shown: str
    data: str

    def load(self) -> Spec:
        """The spec that it is."""
        folder = self.page.parent
        return loads(self.text, folder, data=folder / self.data if self.data else None)


def fences(kind: str) -> list[Example]:
    """The examples of one kind."""
    return [
        Example(page, text, expected, shown, data)
        for page in PAGES
        for data, found, text, expected, shown in FENCE.findall(page.read_text(encoding="utf-8"))
        if found == kind
    ]


def named(cases: list[Example]) -> list[str]:
    """Page and position of each case on it."""
    seen: dict[str, int] = {}
    out = []
    for case in cases:
        stem = case.page.stem
        seen[stem] = seen.get(stem, 0) + 1
        out.append(f"{stem}-{seen[stem]}")
    return out


GRAMMAR = Lark(grammar_text(), parser="lalr", lexer="basic", postlex=_LineEnds(), maybe_placeholders=True)
SPECS = fences("place")
MALFORMED = fences("place-error")
FRAGMENTS = fences("place-fragment")


def printed(answer: Answer) -> str:
    """What a terminal shows of an answer, one space between words."""
    console = Console(file=io.StringIO(), width=200)
    print_answer(answer, console)
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().split())


@pytest.mark.parametrize("example", SPECS, ids=named(SPECS))
def test_example(example: Example) -> None:
    """It ends as the comment says: optimal with these values, or infeasible; what is shown of the answer is there."""
    answer = example.load().solve()
    expected = example.expected
    ends = expected if expected in ("infeasible", "unbounded") else "optimal"
    assert answer.termination == ends, answer.message
    for line in example.shown.splitlines():
        assert " ".join(line.split()) in printed(answer)
    if expected in ("", "infeasible", "unbounded"):
        return
    values = dict(VALUE.findall(expected))
    assert answer.evaluation is not None
    found = dict(zip((o.name for o in answer.problem.objectives), answer.evaluation.objectives, strict=True))
    assert values.keys() == found.keys()
    for name, value in values.items():
        assert math.isclose(found[name], float(value), rel_tol=1e-5), (name, found[name])


@pytest.mark.parametrize("example", MALFORMED, ids=named(MALFORMED))
def test_malformed_example(example: Example) -> None:
    with pytest.raises(InputError) as caught:
        example.load().check()
    shown = "\n\n".join(d.render() for d in caught.value.diagnostics)
    shown = shown.replace("<text>", "spec.place").replace(f"{example.page.parent}{os.sep}", "")
    assert shown + "\n" == example.shown


@pytest.mark.parametrize("example", FRAGMENTS, ids=named(FRAGMENTS))
def test_fragment(example: Example) -> None:
    """What is no whole spec is at least made of statements."""
    assert not example.expected, "only whole specs have a result"
    assert parse(Source(example.page.name, example.text)).statements


@pytest.mark.parametrize("page", [*sorted(LANGUAGE.glob("*.md")), ROOT / "docs" / "patterns.md"], ids=lambda p: p.name)
def test_files_shown_on_a_page(page: Path) -> None:
    """They are the files beside it."""
    for name, text in FILE.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / name).read_text(encoding="utf-8") == text, name


@pytest.mark.parametrize("page", [p for p in PAGES if PLACEMENT.search(p.read_text(encoding="utf-8"))], ids=str)
def test_placements_shown_on_a_page(page: Path) -> None:
    """They satisfy the spec above them."""
    text = page.read_text(encoding="utf-8")
    for found in PLACEMENT.finditer(text):
        above = [f[2] for f in FENCE.findall(text[: found.start()]) if f[1] == "place"][-1]
        given = json.loads(found[1])
        assert loads(above, page.parent).evaluate(given["placement"], given["variables"]).feasible


def test_there_are_examples() -> None:
    assert len(SPECS) >= 55
    assert len(MALFORMED) >= 45
    without = {page.name for page in LANGUAGE.glob("*.md")} - {example.page.name for example in SPECS}
    assert without == {"errors.md"}
    without = {page.name for page in LANGUAGE.glob("*.md")} - {example.page.name for example in MALFORMED}
    assert without == {"README.md"}


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


def constructs(text: str) -> set[str]:
    """The rules of the grammar (by their aliases) that a text uses."""
    found = {tree.data for tree in GRAMMAR.parse(text).iter_subtrees()}
    return {str(getattr(name, "value", name)) for name in found}


def test_every_construct_of_the_grammar_is_shown() -> None:
    """In an example that is run, whatever the grammar calls it; clauses that are wrong on purpose do not count."""
    every = {
        rule.alias or rule.origin.name
        for rule in GRAMMAR.rules
        if not rule.origin.name.startswith("_") and (rule.alias or not rule.options.expand1 or len(rule.expansion) > 1)
    }
    language = [example.text for example in SPECS if example.page.parent == LANGUAGE]
    assert every - set().union(*map(constructs, language)) == set()


def test_every_word_and_sign_of_the_grammar_is_in_the_index() -> None:
    """In the tables of constructs; that words are reserved says nothing of their meaning."""
    tables = [line for line in (LANGUAGE / "README.md").read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    quoted = " ".join(re.findall(r"`([^`\n]+)`", "\n".join(tables)))
    signs = {t.pattern.value for t in GRAMMAR.terminals if isinstance(t.pattern, PatternStr)}
    signs |= {"<=", ">=", "==", "!=", "<", ">"}
    missing = {sign for sign in signs if sign.isalpha() and sign not in re.findall(r"\w+", quoted)}
    missing |= {sign for sign in signs if not sign.isalpha() and sign not in quoted}
    assert missing == set()


def test_the_meaning_of_built_in_constraints_is_quoted_word_for_word() -> None:
    (models,) = [p for p in model_files() if p.name == "constraints.place"]
    formulas = [line for line in models.read_text(encoding="utf-8").split("\n") if line.startswith("constraint ")]
    shown = "".join(example.text for example in FRAGMENTS)
    assert [f for f in formulas if f not in shown] == []
