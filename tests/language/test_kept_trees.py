"""Trees of specs that are kept in the cache folder: the same as parsed anew, whatever has become of what is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from placedsl.diagnostics import InputError, Source
from placedsl.language.syntax import kept_trees, parser
from placedsl.language.syntax.kept_trees import tree
from placedsl.language.syntax.parser import parse
from placedsl.language.syntax.statements import At, Module

ROOT = Path(__file__).resolve().parents[2]
TEXT = 'graph from "a.json"\ndevice gpu[2]: accelerator\nminimize time_per_sample\n'
DEEP = TEXT + "subject to\n    deep: " + "(" * 30 + "load(gpu[1])" + ")" * 30 + " <= 1 s\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder, empty."""
    monkeypatch.setenv("PLACEDSL_CACHE", str(tmp_path))
    return tmp_path / "placedsl"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that have been parsed."""
    texts: list[str] = []

    def told(source: Source) -> Module:
        texts.append(source.text)
        return parse(source)

    monkeypatch.setattr(parser, "parse", told)
    return texts


def plain(part: object) -> object:
    """A tree as texts and positions: its parts are compared by what they are made of."""
    if isinstance(part, tuple):
        return tuple(plain(p) for p in part)
    if isinstance(part, At):
        return part.start, part.end, part.source.name
    if hasattr(part, "__slots__"):
        return type(part).__name__, *(plain(getattr(part, name)) for name in part.__slots__)
    return part


def read(source: Source) -> object:
    """What the tree of a text is."""
    return plain(tree(source).statements)


def anew(source: Source) -> object:
    """The same, parsed."""
    return plain(parse(source).statements)


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("spec-*.tree")) if folder.exists() else []


def test_every_example_and_model(folder: Path, parsed: list[str]) -> None:
    files = [*sorted((ROOT / "examples").glob("*.place")), *sorted((ROOT / "models").rglob("*.place"))]
    assert len(files) > 20
    for file in files:
        source = Source(str(file), file.read_text())
        first = read(source)
        known = len(parsed)
        assert read(source) == first == anew(source)
        assert len(parsed) == known
    assert 1 <= len(kept(folder)) <= min(256, len(files))


def test_a_text_that_has_changed_is_parsed(folder: Path, parsed: list[str]) -> None:
    for text in (TEXT, TEXT, TEXT + "# more\n", TEXT + "# more\n", TEXT):
        assert read(Source("a.place", text)) == anew(Source("a.place", text))
    assert parsed == [TEXT, TEXT + "# more\n", TEXT]
    assert len(kept(folder)) == 1


def test_places_are_those_of_the_file(folder: Path, parsed: list[str]) -> None:
    """The same text under another name is another tree: messages name the file."""
    for name in ("a.place", "b.place", "a.place", "b.place"):
        module = tree(Source(name, TEXT))
        assert {module.source.name, module.statements[0].at.source.name} == {name}
    assert len(parsed) in (2, 4)  # four where both names share a file


def test_a_tree_is_one_of_the_very_source(folder: Path, parsed: list[str]) -> None:
    """What a file says is told from what it imports by that."""
    for _ in range(2):
        source = Source("a.place", TEXT)
        module = tree(source)
        assert module.source is source
        assert all(statement.at.source is source for statement in module.statements)
    assert len(parsed) == 1


@pytest.mark.parametrize("content", [b"", b"no pickle", b"\x80\x05N."])
def test_whatever_stands_there_is_made_anew(content: bytes, folder: Path, parsed: list[str]) -> None:
    source = Source("a.place", TEXT)
    first = read(source)
    (file,) = kept(folder)
    file.write_bytes(content)
    assert read(source) == first
    assert read(source) == first
    assert len(parsed) == 2


def test_errors_are_found_every_time(folder: Path) -> None:
    for _ in range(2):
        with pytest.raises(InputError) as caught:
            tree(Source("a.place", TEXT + "minimise\n"))
        assert "minimize" in str(caught.value.diagnostics[0].hint)
    assert not kept(folder)


def test_a_lower_limit_holds_for_what_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source("a.place", DEEP)
    tree(source)
    monkeypatch.setenv("PLACEDSL_LIMITS", "nesting=5")
    with pytest.raises(InputError, match="nested more than 5 deep"):
        tree(source)
    assert len(kept(folder)) == 1


def test_texts_of_no_file_and_long_ones_are_not_kept(folder: Path, parsed: list[str]) -> None:
    long = TEXT + "#" * kept_trees._LONGEST
    for source in (Source("<text>", TEXT), Source("a.place", long)):
        assert read(source) == read(source)
    assert len(parsed) == 4
    assert not kept(folder)


def test_without_a_folder_that_can_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PLACEDSL_CACHE", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    assert read(Source("a.place", TEXT)) == anew(Source("a.place", TEXT))
