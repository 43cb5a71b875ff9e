"""The language server as an editor meets it: a process, spoken to by the protocol."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.lsp_client import ROOT, Client, Opened
from support.spec_texts import SPEC

import placedsl
from placedsl import InputError, loads
from placedsl.cli import main as cli
from placedsl.diagnostics import Diagnostic
from placedsl.server.analysis import Graphs
from placedsl.server.positions import Positions

pytestmark = pytest.mark.rotates(2)


def checked(text: str, folder: Path) -> list[Diagnostic]:
    """What ``placedsl check`` tells."""
    try:
        loads(text, folder).check()
    except InputError as problem:
        return list(problem.diagnostics)
    return []


def told(document: Opened) -> list[tuple[str, str]]:
    """Each diagnostic: its text, and the piece of the document that it is about."""
    return [(d["message"], document.piece(d["range"])) for d in document.diagnostics()]


WRONG = [
    ("1 GiB, output", "1 Gib, output"),
    ("    memory\n", "    memry\n"),
    ("load(d)", "laod(d)"),
    ("room / 8", "share / 8"),
    ("load(e)  #", "load(gpu)  #"),
    ("t.producer.time[gpu] < 1 s", 't.producer.name ~ "é😀" and t.producer.tim[gpu] < 1 s'),
    ("minimize time_per_sample\n", ""),
    ("16 GB/s }", "16 GB/s"),
    ("set big =", "set big"),
    ("minimize time", 'minimize "time'),
    ("gpu[2]", "gpu[room]"),
    ("2 * load(e)", "load(d) * load(e)"),
    ("host\n", "hostt\n"),
    ("= room,", "= \t rom,"),
]


@pytest.mark.parametrize(("old", "new"), WRONG)
def test_diagnostics_are_those_of_check(document: Opened, tmp_path: Path, old: str, new: str) -> None:
    """The same messages with the same hints, about the same characters (the protocol counts UTF-16)."""
    text = SPEC.replace(old, new, 1)
    assert text != SPEC
    document.change(text)
    expected = checked(text, tmp_path)
    assert expected
    found = told(document)
    assert [m for m, _ in found] == [f"{d.message}\n{d.hint}" if d.hint else d.message for d in expected]
    for (_, piece), one in zip(found, expected, strict=True):
        assert one.span is not None
        lines = text.split("\n")
        start = sum(len(line) + 1 for line in lines[: one.span.line - 1]) + one.span.column - 1
        assert piece == text[start : start + one.span.length]
    document.change(SPEC)
    assert document.diagnostics() == []


def test_characters_beyond_the_basic_plane_count_twice(document: Opened) -> None:
    document.change(SPEC.replace('"host": v on d', '"😀é" and dd == d: v on d'))
    assert [piece for _, piece in told(document)] == ["dd"]
    (found,) = document.diagnostics()
    line = document.text.split("\n")[found["range"]["start"]["line"]]
    assert found["range"]["start"]["character"] == line.index("dd ==") + 1
    assert found["severity"] == 1


def test_a_client_that_counts_bytes(tmp_path: Path) -> None:
    client = Client(["utf-8"])
    try:
        assert client.capabilities["capabilities"]["positionEncoding"] == "utf-8"
        document = client.open(tmp_path / "x.place", SPEC.replace('"host": v on d', '"😀é" and dd == d: v on d'))
        (found,) = document.diagnostics()
        line = document.text.split("\n")[found["range"]["start"]["line"]]
        assert found["range"]["start"]["character"] == len(line.partition("dd ==")[0].encode("utf-8"))
    finally:
        client.kill()


def test_a_graph_file_is_read_beside_the_document(client: Client, tmp_path: Path) -> None:
    graph = json.loads((ROOT / "docs" / "language" / "three-nodes.json").read_text(encoding="utf-8"))
    (tmp_path / "graph.json").write_text(json.dumps(graph), encoding="utf-8")
    text = 'graph from "graph.json"\n' + SPEC[SPEC.index("param room") :].replace("v.backward", "not v.backward")
    text = text[: text.index("    even:")]
    document = client.open(tmp_path / "from-file.place", text)
    assert document.diagnostics() == []
    assert "3 elements" in document.hover("set big = no|des")

    (tmp_path / "graph.json").write_text("{]", encoding="utf-8")
    document.change(text + "\n")
    (found,) = document.diagnostics()
    assert document.piece(found["range"]) == '"graph.json"'
    assert f"{tmp_path / 'graph.json'}:1:2" in found["message"]
    assert found["relatedInformation"][0]["location"]["uri"] == (tmp_path / "graph.json").as_uri()
    assert "3 elements" in document.hover("set big = no|des"), "what it meant before is still known"

    document.change(text.replace("graph.json", "graf.json"))
    (found,) = document.diagnostics()
    assert "did you mean 'graph.json'?" in found["message"]
    assert document.completions('graph from "|graf') == ["graph.json"]


def test_a_graph_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    text = (ROOT / "docs" / "language" / "three-nodes.json").read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    graphs = Graphs(most=2)
    first = graphs.read(path)
    assert graphs.read(path) is first
    os.utime(path, ns=(1, 1))
    second = graphs.read(path)
    assert second is not first
    assert graphs.read(path) is second
    path.unlink()
    with pytest.raises(InputError):
        graphs.read(path)
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        graphs.read(tmp_path / name)
    assert len(graphs.known) == 2


def test_every_beginning_of_a_spec(client: Client, tmp_path: Path) -> None:
    """As if it were typed: after each letter everything has an answer."""
    text = placedsl.format((ROOT / "examples" / "inline.place").read_text(encoding="utf-8"))
    document = client.open(tmp_path / "typed.place", "")
    for end in range(1, len(text) + 1):
        document.change(text[:end])
        last = text[:end].rpartition("\n")[2]
        place = {"line": text.count("\n", 0, end), "character": len(last)}
        assert isinstance(document.ask("completion", None, position=place)["items"], list)
        if end % 5 == 0:
            document.ask("hover", None, position=place)
            document.ask("definition", None, position=place)
            assert isinstance(document.ask("documentSymbol"), list)
            assert isinstance(document.ask("formatting", options={"tabSize": 4, "insertSpaces": True}), list)
    assert document.diagnostics() == []


def test_odd_documents(client: Client, tmp_path: Path) -> None:
    for text in (
        "",
        "\n\n",
        "\x00\ud7ff\u2028@@@",
        "((((((",
        "}",
        '"',
        "# only this",
        "(" * 400 + "1" + ")" * 400,
        "minimize " + "-" * 300 + "1",
    ):
        document = client.open(tmp_path / f"odd{abs(hash(text))}.place", text)
        assert isinstance(document.diagnostics(), list)
        end = {"line": text.count("\n"), "character": 3}
        assert document.ask("completion", None, position=end) is not None
        document.ask("hover", None, position=end)
        document.ask("hover", None, position={"line": 999, "character": 999})
    unsaved = client.open("untitled:Untitled-1", SPEC)
    assert unsaved.diagnostics() == []


def test_the_models_are_not_taken_for_specs(client: Client) -> None:
    for path in sorted((ROOT / "models").glob("*.place")):
        document = client.open(path, path.read_text(encoding="utf-8"))
        assert document.diagnostics() == [], path.name


def test_a_document_that_is_not_open(client: Client, tmp_path: Path) -> None:
    document = Opened(client, (tmp_path / "closed.place").as_uri(), SPEC)
    assert document.ask("hover", "param ro|om") is None
    assert document.completions("param ro|om") == []


def test_closing_takes_the_diagnostics_away(client: Client, tmp_path: Path) -> None:
    document = client.open(tmp_path / "closing.place", "param = 1")
    assert document.diagnostics() != []
    client.tell("textDocument/didClose", {"textDocument": document.name})
    assert document.ask("hover", "para|m") is None
    assert client.published[document.uri] == []


def test_shutdown_and_exit(tmp_path: Path) -> None:
    client = Client()
    try:
        document = client.open(tmp_path / "x.place", SPEC)
        assert document.diagnostics() == []
        assert client.end() == 0
        assert client.log == b""
    finally:
        client.kill()


def test_exit_without_shutdown() -> None:
    client = Client()
    try:
        client.tell("exit", None)
        assert client.process.wait(60) == 1
    finally:
        client.kill()


def test_no_solver_is_loaded(tmp_path: Path) -> None:
    """Nothing that the server does solves anything."""
    (tmp_path / "spec.place").write_text(SPEC, encoding="utf-8")
    code = """
import sys
from pathlib import Path
from placedsl.server.analysis import Graphs, analyse
from placedsl.server.protocol import Server
from placedsl.server.reading import read
Server()
found = analyse(read(Path("spec.place").read_text(encoding="utf-8"), "spec.place"), Path(), Graphs())
assert found.diagnostics == ()
print(sorted({"highspy", "ortools", "pyomo", "mip", "cvxpy", "numba"} & sys.modules.keys()))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=100,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_without_the_libraries_it_is_told_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pygls", None)
    monkeypatch.delitem(sys.modules, "placedsl.server.protocol", raising=False)
    for name in [n for n in sys.modules if n.startswith("pygls.")]:
        monkeypatch.delitem(sys.modules, name)
    assert cli.main(["lsp"]) == 2
    assert "pip install 'placedsl[editor]'" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_positions_and_offsets(encoding: str) -> None:
    text = "aé😀b\r\nž\r\n\n\u2028x"
    positions = Positions(text, encoding)
    for offset in range(len(text) + 1):
        if text[max(0, offset - 1) : offset + 1] != "\r\n":
            assert positions.offset(*positions.position(offset)) == offset
    units = {"utf-8": 7, "utf-16": 4, "utf-32": 3}[encoding]
    assert positions.position(3) == (0, units)
    assert positions.offset(0, 99) == 4
    assert positions.offset(99, 0) == len(text)
    assert positions.position(len(text)) == (3, positions.units("\u2028x"))
