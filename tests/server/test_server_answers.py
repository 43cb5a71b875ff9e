"""What the language server answers to questions about a document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.lsp_client import Client, Failed, Opened
from support.spec_texts import SPEC

import placedsl
from placedsl import plugins
from placedsl.graph.readers.sizes import SETTINGS
from placedsl.language.elaboration.statement_entries import STATEMENTS
from placedsl.language.syntax import statements
from placedsl.server.blocks import CHOICES, HOLDERS
from placedsl.units import parse_quantity, unit_names


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        ("param ro|om", ["parameter `room` = 4 GiB", "data"]),
        ("param sha|re", ["`share` = 0.25, a plain number"]),
        ("room = 4 G|iB", ["4294967296 B (data)"]),
        ("share = 25|%", ["0.25"]),
        ("price = 2 US|D/h", ["price per time"]),
        ("time = 3 m|s", ["0.003 s (time)"]),
        ("set bi|g", ["a set of nodes", "2 elements: a, b 1"]),
        ("(t, v) in rea|ds", ["a set of pairs", "(tensor of a, b 1)"]),
        ("device gp|u", ["2 accelerators", "memory 4 GiB", "price"]),
        ("device cp|u", ["1 host", "not limited"]),
        ("node |a", ["gpu 1 ms", "memory: 1 GiB", "kind: first"]),
        ('node "b| 1"', ["node `b 1`", "host 2 ms"]),
        ("minimize time_per|_sample", ["the largest load", "time"]),
        (": loa|d(d)", ["`load(device)`", "busy time", "(time)"]),
        ("    mem|ory\n", ["built-in constraint", "memory(d) <= d.memory"]),
        ("v.back|ward", ["attribute of a node", "condition"]),
        ("t.produ|cer", ["attribute of a tensor", "a node"]),
        ("t.producer.ti|me", ["`time[device]`", "(time)"]),
        ("where mem|ory > room", ["attribute of a node", "data"]),
        ("even: forall |d", ["`d`: a device"]),
        ("forall (|t, v)", ["`t`: a tensor"]),
        ("{ bandwi|dth", ["bandwidth"]),
        ("accele|rator { memory", ["`accelerator`"]),
    ],
)
def test_hover(document: Opened, marked: str, words: list[str]) -> None:
    text = document.hover(marked)
    assert [w for w in words if w not in text] == [], text


def test_hover_over_nothing(document: Opened) -> None:
    assert document.hover("# Ü|ber") == ""
    assert document.hover("    a| -> ") != ""
    assert document.hover("even|: forall") == ""


def test_hover_over_entries_of_further_statements(document: Opened) -> None:
    document.change(SPEC + "schedule calls { pieces = 2 }\nparallelism { data = 1..2 }\n")
    assert "how many an accelerator may have" in document.hover("{ pie|ces")
    assert "share the samples of a stage" in document.hover("{ da|ta")


def test_hover_while_the_text_has_errors(document: Opened) -> None:
    """What cannot be read now means what it meant last."""
    assert document.diagnostics() == []
    document.change(SPEC.replace("set big =", "set big = (") + "    half: room +\n")
    assert len(document.diagnostics()) >= 1
    assert "4 GiB" in document.hover("half: ro|om")
    assert "2 accelerators" in document.hover("device gp|u")
    assert "2 elements" in document.hover("set bi|g = (")
    assert "busy time" in document.hover(": loa|d(d)")


COMPLETED: list[tuple[str, str, list[str], list[str]]] = [
    ("", "", ["device", "minimize", "subject to", "graph"], ["load", "room", "node"]),
    ("graph {\n    ", "\n}\n", ["node"], ["device", "load"]),
    ("graph {\n    node x { ", " }\n}\n", ["time", "memory", "output"], ["compute", "load"]),
    ("graph {\n    node x { time = {", "} }\n}\n", ["accelerator", "host", "gpu"], ["load"]),
    ("device ", "\n", [], ["gpu", "load"]),
    ("device x: ", "\n", ["accelerator", "host"], ["gpu"]),
    ("device x: host { ", " }\n", ["memory", "price"], ["bandwidth"]),
    ("device x: host { memory = 3 ", " }\n", ["GiB", "ms"], ["room"]),
    ("device x: host { memory = 3 G", " }\n", ["GiB"], ["room"]),
    ("device x: host { memory = ", " }\n", ["room", "share"], ["GiB"]),
    ("link ", "\n", ["gpu", "cpu"], ["load"]),
    ("link gpu -> ", "\n", ["gpu", "cpu"], ["load"]),
    ("link gpu -> cpu { ", " }\n", ["bandwidth", "latency"], ["memory"]),
    ("fuse ", "\n", ["by"], ["gpu", "kind"]),
    ("fuse by ", "\n", ["kind", "name"], ["time", "gpu"]),
    ("schedule ", "\n", ["pipedream", "gpipe"], ["gpu"]),
    ("schedule calls { ", " }\n", ["slots", "pieces"], ["memory", "gpu", "communication"]),
    ("schedule gpipe { ", " }\n", ["communication"], ["memory", "slots"]),
    ("schedule gpipe { communication = ", " }\n", ["sequential", "overlapped", "full_duplex"], ["memory", "slots"]),
    ("parallelism { ", " }\n", ["data", "weights"], ["memory"]),
    ("solve { ", " }\n", ["time_limit", "gap", "solver"], ["memory"]),
    ("solve { solver = ", " }\n", ["highs", "cp-sat", "auto", "mip:cbc", "pyomo:scip"], ["dp"]),
    ("solve { method = ", " }\n", ["auto", "dp", "program", "greedy"], ["highs"]),
    ("param x: ", " = 1\n", ["int", "data", "real", "bandwidth", "money", "price", "text"], ["room"]),
    ("var x: ", "\n", ["binary", "integer", "real", "bandwidth", "data"], ["text", "bool"]),
    ("param x = ro", "\n", ["room", "share"], ["device"]),
    ("minimize ", "\n", ["time_per_sample", "load", "max"], ["device", "and"]),
    ("minimize load(gpu[1]) ", "\n", ["then", "and"], ["load", "room"]),
    ("set x = nodes where ", "\n", ["memory", "backward", "not", "room"], ["device"]),
    ("set x = nodes ", "\n", ["where"], ["room"]),
    ("subject to\n    ", "\n", ["memory", "contiguous", "colocated", "solve"], ["load"]),
    ("subject to\n    colocated by ", "\n", ["kind", "name"], ["time", "gpu"]),
    (
        "subject to\n    x: forall (p, q) in reads, s in devices: ",
        "\n",
        ["p", "q", "s", "big", "room", "gpu", "load"],
        ["device"],
    ),
    ("subject to\n    x: sum(z in nodes: 1) <= ", "\n", ["room"], ["z"]),
    ("subject to\n    x: forall p in tensors: p.", "\n", ["producer", "size"], ["kind", "price"]),
    ("subject to\n    x: forall p in tensors: p.producer.", "\n", ["backward", "kind"], ["size"]),
    ("subject to\n    x: gpu[1].", "\n", ["price", "memory"], ["producer"]),
    ("subject to\n    x: big[1].", " > 3\n", ["time", "kind"], ["price"]),
    ("subject to\n    x: forall g in partition(nodes, kind): g.", "\n", ["first"], ["price"]),
    ('subject to\n    x: nodes["', '"] on cpu\n', ["a", "b 1", "c"], ["load"]),
    ("formulation f {\n    ", "\n}\n", ["var", "provides", "tight"], ["device"]),
    ("formulation f {\n    var pos[v in nodes]\n    provides load(w) = ", "\n}\n", ["pos", "w", "room"], ["device"]),
    ("graph {\n    node n { ", "}\n}\n", ["time", "stash", "option"], ["tensor", "device"]),
    ("graph {\n    node n { time = 1 s, option o { ", "} }\n}\n", ["tensor", "gather", "stash"], ["option", "name"]),
    ("graph {\n    node n { option o { scatter = {", "} } }\n}\n", ["a"], ["accelerator"]),
    ("graph {\n    node n { option o { time = {", "} } }\n}\n", ["accelerator", "gpu"], ["a"]),
    ("# a comment ", "\n", [], ["device"]),
]


def test_what_plug_ins_bring_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    def names(kind: str) -> tuple[str, ...]:
        return (f"one of {kind}",)

    monkeypatch.setattr(plugins, "names", names)
    offered = {entry: choices() for entry, choices in CHOICES.items()}
    assert "one of solvers" in offered["solver"]
    assert "one of algorithms" in offered["method"]
    assert "one of readers" in offered["format"]


def test_entries_of_graph_files_are_those_that_readers_keep_apart_from_sizes() -> None:
    assert tuple(STATEMENTS["graph"].entries) == SETTINGS


def test_every_syntax_node_with_a_block_has_its_row() -> None:
    """A new statement with entries cannot be left out of hover."""
    with_block = {
        name
        for name, node in vars(statements).items()
        if isinstance(node, type) and "block" in getattr(node, "__slots__", ())
    }
    # The entries of 'use' are rows of the part, by whatever names these have.
    assert with_block - {"Use"} == set(HOLDERS)
    assert set(HOLDERS.values()) == set(STATEMENTS)


@pytest.mark.parametrize("name", [n for n in STATEMENTS if n not in ("graph", "parallelism")])
def test_examples_of_entries_have_their_dimension(name: str) -> None:
    for entry, kind in STATEMENTS[name].entries.items():
        if kind.dimension is not None:
            assert parse_quantity(kind.example).dimension == kind.dimension, entry


@pytest.mark.parametrize(("typed", "rest", "there", "not_there"), COMPLETED)
def test_completion(document: Opened, typed: str, rest: str, there: list[str], not_there: list[str]) -> None:
    """What fits at a place is offered, what does not is not; here the line is new and the rest of the spec stands."""
    document.change(f"{SPEC}\n{typed}{rest}")
    place = {"line": (SPEC + "\n" + typed).count("\n"), "character": len(typed.rpartition("\n")[2])}
    found = document.ask("completion", None, position=place)["items"]
    labels = [item["label"] for item in found]
    assert [w for w in there if w not in labels] == []
    assert [w for w in not_there if w in labels] == []
    assert len(set(labels)) == len(labels) or "where" in typed


def test_operator_types_are_offered_where_they_are_fused(document: Opened) -> None:
    typed = SPEC.replace('kind = "first"', 'type = "Conv"').replace("= 512 MiB", '= 512 MiB, type = "max"')
    document.change(typed)
    assert document.diagnostics() == []
    for fuse, there in (("fuse ", {"Conv", '"max"', "by"}), ("fuse conv + ", {"Conv", '"max"'})):
        document.change(f"{typed}{fuse}\n")
        place = {"line": typed.count("\n"), "character": len(fuse)}
        assert {item["label"] for item in document.ask("completion", None, position=place)["items"]} == there


def test_units_that_fit_come_first_and_take_the_place_of_what_is_typed(document: Opened) -> None:
    document.change(SPEC.replace("16 GB/s", "16 G"))
    found = document.ask("completion", "16 G|")["items"]
    assert {item["label"] for item in found} == set(unit_names())
    assert min(found, key=lambda item: item["sortText"])["label"] == "GB/s"
    (chosen,) = [item["textEdit"] for item in found if item["label"] == "GB/s"]
    assert document.edited([chosen]) == SPEC


def test_characters_that_ask_by_themselves(document: Opened) -> None:
    """A blank brings up units and nothing else."""
    by_blank = {"context": {"triggerKind": 2, "triggerCharacter": " "}}
    assert document.completions("minimize |time", **by_blank) == []
    document.change(SPEC.replace("16 GB/s", "16 "))
    assert "GB/s" in document.completions("bandwidth = 16 |", **by_blank)


def test_files_in_folders(client: Client, tmp_path: Path) -> None:
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "one.json").write_text("{}", encoding="utf-8")
    (tmp_path / "other.place").write_text("", encoding="utf-8")
    document = client.open(tmp_path / "files.place", 'graph from "\n')
    assert document.completions('from "|') == ["graphs/"]
    document.change('graph from "graphs/o"\n')
    assert document.completions("graphs/o|") == ["graphs/one.json"]


def test_definition(document: Opened) -> None:
    for marked, name in (
        ("memory = r|oom", "room = 4"),
        ("link g|pu", "gpu[2]"),
        ("load(|e)", "e in gpu: load"),
        ('a -> "b| 1', '"b 1" {'),
        ("v |on d", ""),
        ("(t, v) in reads, d in dev|ices", ""),
    ):
        found = document.ask("definition", marked)
        if not name:
            assert found is None
            continue
        assert found["uri"] == document.uri
        start = found["range"]["start"]
        rest = (
            document.text.split("\n")[start["line"]].encode("utf-16-le")[2 * start["character"] :].decode("utf-16-le")
        )
        assert rest.startswith(name)


def test_definition_in_the_models(document: Opened) -> None:
    for marked, file in (("    contig|uous", "constraints.place"), (": loa|d(d)", "loads.place")):
        found = document.ask("definition", marked)
        path = Path(found["uri"].removeprefix("file://"))
        assert path.name == file
        line = path.read_text(encoding="utf-8").split("\n")[found["range"]["start"]["line"]]
        assert marked.replace("|", "").strip(" :(d)") in line


def test_references(document: Opened) -> None:
    found = document.ask("references", "param ro|om", context={"includeDeclaration": True})
    assert [document.piece(f["range"]) for f in found] == ["room"] * 3
    assert len(document.ask("references", "param ro|om", context={"includeDeclaration": False})) == 2
    assert len(document.ask("documentHighlight", "even: forall |d")) == 2
    assert document.ask("references", "# Ü|ber", context={"includeDeclaration": True}) == []


def test_rename(document: Opened) -> None:
    asked = document.ask("prepareRename", "param ro|om")
    assert (asked["placeholder"], document.piece(asked["range"])) == ("room", "room")
    edits = document.ask("rename", "param ro|om", newName="space")["changes"][document.uri]
    assert document.edited(edits) == SPEC.replace("room", "space")
    for marked, new, why in (
        ("param ro|om", "set", "word of the language"),
        ("param ro|om", "gpu", "a device already"),
        ("even: forall |d", "e", "something else"),
        ("minimize ti|me", "x", "not declared"),
    ):
        with pytest.raises(Failed, match=why):
            document.ask("rename", marked, newName=new)
    with pytest.raises(Failed, match="no name"):
        document.ask("prepareRename", "# Ü|ber")


def test_document_symbols(document: Opened) -> None:
    found = document.ask("documentSymbol")
    assert [(s["name"], s["detail"]) for s in found] == [
        ("graph", "statement"),
        ("room", "parameter"),
        ("share", "parameter"),
        ("gpu", "device"),
        ("cpu", "device"),
        ("link gpu <-> cpu", "statement"),
        ("big", "set"),
        ("minimize time_per_sample", "statement"),
        ("subject to", "statement"),
    ]
    assert [s["name"] for s in found[0]["children"]] == ["a", "b 1", "c"]
    assert [s["name"] for s in found[-1]["children"]] == ["memory", "contiguous", "even", "few"]
    assert document.piece(found[0]["range"]) == SPEC[SPEC.index("graph {") : SPEC.index("\nparam room")]

    def inside(inner: dict[str, Any], outer: dict[str, Any]) -> bool:
        (a, b), (c, d) = (
            ((r["start"]["line"], r["start"]["character"]), (r["end"]["line"], r["end"]["character"]))
            for r in (inner, outer)
        )
        return c <= a <= b <= d

    for symbol in [*found, *found[0]["children"], *found[-1]["children"]]:
        assert inside(symbol["selectionRange"], symbol["range"])
    assert all(inside(child["range"], found[0]["range"]) for child in found[0]["children"])


def test_layout(document: Opened) -> None:
    options = {"options": {"tabSize": 8, "insertSpaces": False}}
    assert document.edited(document.ask("formatting", **options)) == placedsl.format(SPEC)
    document.change(placedsl.format(SPEC))
    assert document.ask("formatting", **options) == []
    untidy = SPEC.replace("param room = 4 GiB", "param   room=4GiB").replace("    memory\n", "memory\n\n\n\n")
    document.change(untidy)
    edits = document.ask("formatting", **options)
    assert document.edited(edits) == placedsl.format(untidy)
    assert edits[0]["range"]["start"]["line"] > 5, "lines that stay as they are are left alone"
    document.change(untidy.replace("\n", "\r\n"))
    (edit,) = document.ask("formatting", **options)
    assert "\r\n" in edit["newText"]
    document.change(SPEC + "param = \n")
    assert document.ask("formatting", **options) == []
