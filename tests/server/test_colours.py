"""Highlighting knows every word of the language: Pygments for documents and terminals, TextMate for editors."""

from __future__ import annotations

import importlib.util
import json
import re
from typing import Any

import pytest
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, String
from support.spec_texts import ROOT, SPEC, specs

from placedsl.language.syntax.keywords import KEYWORDS, RESERVED
from placedsl.language.syntax.pygments_lexer import PlaceLexer, coloured
from placedsl.units import UnitError, parse_unit, unit_names

CODE = ROOT / "editors" / "vscode"
UNITS = sorted({*unit_names(), "ns", "TiB", "kbit", "Gbit/s", "MiB/s", "PFLOP/s", "USD/min", "B/ms"} - {"%"})


def kinds(text: str) -> dict[str, Any]:
    """What Pygments calls each piece of a text."""
    return {piece: kind for kind, piece in PlaceLexer().get_tokens(text)}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("text", specs())
def test_no_example_has_an_unknown_token(text: str) -> None:
    found = list(PlaceLexer(stripnl=False, ensurenl=False).get_tokens(text))
    assert [piece for kind, piece in found if kind in Error] == []
    assert "".join(piece for _, piece in found) == text


def test_kinds_of_tokens() -> None:
    found = kinds(
        'param room = 16 GiB  # why\nset a = nodes where name ~ "*x*" and v.time[d] <= sum(v in a: load(1e-7))\n'
    )
    assert found["param"] in Keyword
    assert found["room"] in Name.Variable
    assert found["16"] in Number
    assert found["1e-7"] in Number
    assert found["GiB"] in Keyword.Type
    assert found["# why"] in Comment.Single
    assert found['"*x*"'] in String
    assert found["and"] in Keyword
    assert found["sum"] in Name.Builtin
    assert found["load"] in Name.Function
    assert found["time"] in Name.Attribute
    assert found["<="] in Operator
    assert found["("] in Punctuation


def test_every_word_of_the_language_is_told_from_a_name() -> None:
    found = kinds(" ".join(sorted(RESERVED)) + " nothing")
    assert [word for word in RESERVED if found[word] is Name] == []
    assert [word for word in KEYWORDS if found[word] is not Keyword] == []
    assert found["nothing"] is Name


@pytest.mark.parametrize("unit", [*UNITS, "%"])
def test_every_unit_is_told_from_its_number(unit: str) -> None:
    found = kinds(f"param a = 16 {unit}")
    assert (found["16"], found[unit]) == (Number, Keyword.Type)


def test_what_cannot_be_read_is_an_error() -> None:
    assert Error in {kind for kind, _ in PlaceLexer().get_tokens("param a @ 3\n")}


def test_pygments_knows_the_lexer_by_name() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, name = project["entry-points"]["pygments.lexers"]["place"].partition(":")
    assert (module, name) == (PlaceLexer.__module__, PlaceLexer.__name__)
    assert PlaceLexer.aliases == ["place"]


def test_colours_on_a_terminal() -> None:
    shown = coloured(SPEC)
    assert "\x1b[" in shown
    assert re.sub(r"\x1b\[[\d;]*m", "", shown) == SPEC


# the editor's folder


def read(name: str) -> Any:
    return json.loads((CODE / name).read_text(encoding="utf-8"))


def scopes(line: str) -> dict[str, str]:
    """What the TextMate grammar calls each piece of a line: the first pattern that fits earliest wins."""
    patterns = read("syntaxes/place.tmLanguage.json")["patterns"]
    out: dict[str, str] = {}
    at = 0
    while at < len(line):
        found: list[tuple[int, int, re.Match[str], Any]] = []
        for i, pattern in enumerate(patterns):
            expression = pattern.get("match") or '"(?:[^"\\\\]|\\\\.)*(?:"|$)'
            match = re.compile(expression).search(line, at)
            if match is not None:
                found.append((match.start(), i, match, pattern))
        if not found:
            break
        _, _, match, pattern = min(found, key=lambda f: f[:2])
        if "captures" in pattern:
            out |= {match[int(i)]: scope["name"] for i, scope in pattern["captures"].items()}
        else:
            out[match[0]] = pattern["name"]
        at = max(match.end(), at + 1)
    return out


def test_the_textmate_grammar_is_that_of_the_language() -> None:
    """If not: python editors/vscode/textmate.py writes it anew."""
    spec = importlib.util.spec_from_file_location("textmate", CODE / "textmate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (CODE / "syntaxes" / "place.tmLanguage.json").read_text(encoding="utf-8") == module.text()


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_every_word_is_highlighted(word: str) -> None:
    assert re.match(r"keyword\.|support\.function", scopes(f"x {word} = {word}")[word])
    for longer in (f"{word}s", f"x{word}", f"_{word}"):
        assert not re.match(r"keyword\.|support\.function", scopes(f"x = {longer}").get(longer, ""))


@pytest.mark.parametrize("unit", [*UNITS, "%"])
def test_every_unit_is_highlighted(unit: str) -> None:
    parse_unit(unit)
    for text in (f"x = 2.5 {unit}", f"x = 2.5{unit},"):
        found = scopes(text)
        assert (found["2.5"], found[unit]) == ("constant.numeric.place", "keyword.other.unit.place")


def test_what_is_no_unit_is_not_highlighted() -> None:
    for text in ("GiBs", "sec", "Gib"):
        with pytest.raises(UnitError):
            parse_unit(text)
        assert text not in scopes(f"x = 3 {text}")


def test_a_line_in_colours() -> None:
    found = scopes('device gpu[3]: accelerator { memory = 16 GiB }  # "no" text')
    assert found["device"] == "keyword.control.place"
    assert found["gpu"] == "entity.name.type.place"
    assert found["accelerator"] == "constant.language.place"
    assert found['# "no" text'] == "comment.line.number-sign.place"
    found = scopes('set a = nodes where name ~ "# in" and t.producer.memory in 0..n => load(d) <= 1')
    assert found['"# in"'] == "string.quoted.double.place"
    assert found["producer"] == "variable.other.property.place"
    assert found["load"] == "entity.name.function.place"
    assert found["=>"] == "keyword.operator.place"
    assert "n" not in found


def test_the_extension_is_whole() -> None:
    package = read("package.json")
    contributed = package["contributes"]
    assert contributed["languages"][0]["extensions"] == [".place"]
    paths = [package["main"], contributed["languages"][0]["configuration"], contributed["grammars"][0]["path"]]
    assert [p for p in paths if not (CODE / p).is_file()] == []
    assert contributed["grammars"][0]["scopeName"] == read("syntaxes/place.tmLanguage.json")["scopeName"]
    settings = set(contributed["configuration"]["properties"])
    code = (CODE / package["main"]).read_text(encoding="utf-8")
    used = {f"place.{name}" for name in re.findall(r'settings\.get\("([\w.]+)"', code)}
    assert used <= settings
    for setting in settings:
        assert setting in (CODE / "README.md").read_text(encoding="utf-8")


def test_brackets_of_the_configuration() -> None:
    configuration = read("language-configuration.json")
    assert configuration["comments"]["lineComment"] == "#"
    assert [tuple(pair) for pair in configuration["brackets"]] == [("{", "}"), ("[", "]"), ("(", ")")]
    for rule in (*configuration["indentationRules"].values(), configuration["onEnterRules"][0]["beforeText"]):
        re.compile(rule)
    increase = re.compile(configuration["indentationRules"]["increaseIndentPattern"])
    assert [
        line for line in ("graph {", "subject to", "    tight x", "subject to  # why") if not increase.search(line)
    ] == []
    assert [line for line in ("device cpu: host {}", "# {", "memory") if increase.search(line)] == []
