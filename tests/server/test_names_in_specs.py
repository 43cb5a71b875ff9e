"""Names: what each stands for, found everywhere, changed without a change of meaning."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.spec_texts import ROOT, specs

import placedsl
from placedsl.server.analysis import Graphs, analyse
from placedsl.server.completion import complete
from placedsl.server.document_state import DocumentState, Meaning
from placedsl.server.hover import hover
from placedsl.server.navigation import RenameError, definition, references, rename
from placedsl.server.outline import outline
from placedsl.server.reading import read

pytestmark = pytest.mark.rotates(2)

GRAPHS = Graphs()
FOLDER = ROOT / "docs" / "language"
SPECS = specs()
WHOLE = """
graph {
    node a { time = {gpu: 1 ms, cpu: 2 ms}, memory = 1 GiB, output = 1 MiB, kind = "first" }
    node "b 1" { time = {accelerator: 1 ms, host: 2 ms}, memory = 1 GiB, output = 1 MiB }
    a -> "b 1"
}
param room = 4 GiB
param factor = 2
device gpu[2]: accelerator { memory = room * factor }
device cpu: host
link gpu <-> cpu { bandwidth = 16 GB/s }
set big = nodes where memory > room / 8
constraint apart = forall v in big, d in gpu: v on d => not (nodes["b 1"] on d)
minimize time_per_sample
subject to
    memory
    apart
    even: forall d in gpu, e in gpu: load(d) <= factor * load(e)
    first: forall d in devices: a on d or sum(v in big: v on d) <= 1
    kept: forall d in gpu: memory(d) <= room * factor
"""


def state_of(text: str) -> DocumentState:
    reading = read(text, "spec.place")
    found = analyse(reading, FOLDER, GRAPHS)
    return DocumentState(reading, (Meaning(found.elaborated),) if found.elaborated else (), str(FOLDER))


def at(text: str, marked: str) -> int:
    before, after = marked.split("|")
    assert text.count(before + after) == 1, marked
    return text.index(before + after) + len(before)


def pieces(text: str, places: list[tuple[int, int]]) -> list[str]:
    return [text[slice(*p)] for p in places]


def renamed(text: str, offset: int, new: str) -> str:
    for (start, end), replacement in sorted(rename(state_of(text), offset, new), reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def test_the_spec_is_a_spec() -> None:
    assert analyse(read(WHOLE, "x"), FOLDER, GRAPHS).diagnostics == ()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", SPECS)
def test_every_name_is_where_it_is_said_to_be(text: str) -> None:
    for name in state_of(text).names.occurrences:
        written = text[slice(*name.at)]
        assert written == name.name or (not name.plain and written.strip('"') == name.name)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("text", SPECS)
def test_every_symbol_can_have_a_name_that_nothing_has(text: str) -> None:
    """And it does not matter by which way it came to it."""
    state = state_of(text)
    assert not state.reading.errors
    declared = [s for s in state.names.symbols if s.at == state.names.of(s)[0].at]
    for symbol in declared[:: 1 + len(declared) // 8]:
        other = renamed(text, symbol.at[0], "something_new")
        assert other != text
        assert renamed(other, symbol.at[0], "another") == renamed(text, symbol.at[0], "another")
        assert len(read(other, "x").tokens) == len(state.reading.tokens)


@pytest.mark.parametrize(
    ("marked", "count"),
    [
        ("param roo|m", 4),
        ("param |factor", 4),
        ("set b|ig", 3),
        ("device g|pu", 7),
        ("device cpu|", 3),
        ("node |a", 3),
        ('node "|b 1"', 3),
        ("even: forall |d", 2),
        ("e in gpu: load(d) <= factor * load(|e)", 2),
        ("constraint a|part", 2),
    ],
)
def test_references(marked: str, count: int) -> None:
    found = references(state_of(WHOLE), at(WHOLE, marked))
    assert len(found) == count
    assert len({p.strip('"') for p in pieces(WHOLE, found)}) <= 1


def test_nodes_that_options_send_to_are_renamed() -> None:
    text = """graph {
    node a { time = 1 s, output = 1 MiB, option two { tensor = 2, scatter = {b: 1 MiB, "c d": 1 MiB} } }
    node b { time = 1 s, option two { tensor = 2, gather = {a: 1 MiB} } }
    node "c d" { time = {gpu: 1 s} }
    a -> b
    a -> "c d"
}""" + WHOLE[WHOLE.index("\ndevice") : WHOLE.index("link")].replace("room * factor", "1 GiB")
    for marked, count in (("node |a", 4), ("node |b", 3), ('node "|c d"', 3)):
        place = at(text, marked)
        assert len(references(state_of(text), place)) == count
        new = renamed(text, place, "e f")
        assert len(references(state_of(new), new.index('node "e f"') + len("node "))) == count


def test_references_without_the_declaration() -> None:
    state = state_of(WHOLE)
    place = at(WHOLE, "param roo|m")
    assert set(references(state, place)) - set(references(state, place, declaration=False)) == {
        (at(WHOLE, "param |room"), at(WHOLE, "param room| "))
    }


def test_what_binds_two_variables_of_one_name_keeps_them_apart() -> None:
    found = references(state_of(WHOLE), at(WHOLE, "even: forall |d"))
    assert all(WHOLE.index("even:") < start < WHOLE.index("first:") for start, _ in found)


@pytest.mark.parametrize(
    ("marked", "new", "gives"),
    [
        ("param roo|m", "space", ["param space =", "memory = space * factor", "> space / 8", "<= space * factor"]),
        ("device g|pu", "tpu", ["{tpu: 1 ms", "device tpu[2]", "link tpu <->", "e in tpu: load"]),
        ('node "|b 1"', "b", ["node b {", "a -> b", 'nodes["b"]']),
        ('node "|b 1"', 'b "2"', ['node "b \\"2\\"" {', 'nodes["b \\"2\\""]']),
        ("node |a", "embed", ["node embed {", 'embed -> "b 1"', "embed on d"]),
        ("even: forall |d", "f", ["even: forall f in gpu, e in gpu: load(f)", "first: forall d in"]),
        ("constraint a|part", "split", ["constraint split =", "    split\n"]),
    ],
)
def test_rename(marked: str, new: str, gives: list[str]) -> None:
    text = renamed(WHOLE, at(WHOLE, marked), new)
    assert [piece for piece in gives if piece not in text] == []
    assert analyse(read(text, "x"), FOLDER, GRAPHS).diagnostics == ()


@pytest.mark.parametrize(
    ("marked", "new", "why"),
    [
        ("param roo|m", "device", "word of the language"),
        ("param roo|m", "factor", "a parameter already"),
        ("param roo|m", "gpu", "a device already"),
        ("param roo|m", "nodes", "has a meaning already"),
        ("param roo|m", "two words", "no plain word"),
        ("param roo|m", "", "no plain word"),
        ("param roo|m", "1st", "no plain word"),
        ("node |a", "b 2", "no plain word"),
        ("device g|pu", "host", "has a meaning already"),
        ("set b|ig", "load", "has a meaning already"),
        ("param roo|m", "memory", "has a meaning already"),
        ("even: forall |d", "e", "taken for something else"),
        ("even: forall |d", "gpu", "a device already"),
        ("constraint a|part", "memory", "has a meaning already"),
        ("set big = nodes where mem|ory", "x", "not declared"),
        ("minimize |time", "x", "not declared"),
        ("minim|ize", "x", "no name here"),
        ('node "|b 1"', "b\n1", "one line"),
    ],
)
def test_refused_names(marked: str, new: str, why: str) -> None:
    with pytest.raises(RenameError, match=why):
        rename(state_of(WHOLE), at(WHOLE, marked), new)


def test_a_text_with_syntax_errors_is_not_renamed_in() -> None:
    with pytest.raises(RenameError, match="syntax errors"):
        rename(state_of(WHOLE + "    a: b +\n"), at(WHOLE, "param roo|m"), "x")


def test_definitions_in_the_models() -> None:
    state = state_of(WHOLE)
    for marked, file, line in (
        ("subject to\n    mem|ory", "constraints.place", "constraint memory"),
        ("minimize |time", "quantities.place", "define time_per_sample"),
        ("e in gpu: l|oad(d)", "loads.place", "provides load(d)"),
    ):
        target = definition(state, at(WHOLE, marked))
        assert target is not None
        assert Path(target.source.name).name == file
        assert line in target.source.text[target.at[0] - 20 : target.at[1]].replace("\n", " ")
    gpipe = WHOLE + "schedule gpipe\n"
    target = definition(state_of(gpipe), at(gpipe, "minimize |time"))
    assert target is not None
    assert Path(target.source.name).name == "stages.place"


@pytest.mark.parametrize(
    ("text", "step"), [(WHOLE, 1), ((ROOT / "models" / "transfers.place").read_text(encoding="utf-8"), 29)]
)
def test_every_beginning_of_a_text_has_answers(text: str, step: int) -> None:
    """While it is typed, each question has an answer; nothing is ever too broken to be asked about."""
    whole = state_of(text)
    for end in range(0, len(text), step):
        reading = read(text[:end], "spec.place")
        state = DocumentState(reading, whole.meanings, str(FOLDER))
        assert isinstance(complete(state, end), list)
        for offset in (end, end // 2):
            hover(state, offset)
            definition(state, offset)
            assert isinstance(references(state, offset), list)
        assert [e for e in outline(reading) if not e.at[0] <= e.name_at[0] <= e.name_at[1] <= e.at[1]] == []


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("room = 4 GiB", "room = (4 GiB", "room"), ("gpu[2]: accelerator {", "gpu[2]: accelerator", "gpu"),
        ("set big =", "set big", "big"), ("param factor = 2", "param factor = = 2", "factor"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_one_place_hides_nothing_elsewhere(old: str, new: str, lost: str) -> None:
    state = state_of(WHOLE.replace(old, new))
    assert state.reading.errors
    declared = {s.name for s in state.names.symbols}
    assert {"a", "b 1", "room", "factor", "gpu", "cpu", "big", "apart"} - declared == {lost}


ALGEBRA = """
import "shared.place"
param weight[v in nodes]: number = 2
set both = {a, c} union (nodes except {a})
define heavy(v in nodes) = v.memory > room
define total = sum(v in nodes: weight[v])
constraint apart(u in nodes, w in nodes) = forall d in gpu: u on d => not (w on d)
var spare[d in gpu] in 0..4
minimize time_per_sample
subject to
    apart(a, c)
    soft near at 3 ms: a on cpu <=> c on cpu
    kept: forall d in gpu, i in 1..3: spare[d] + i <= total + count(v in both: heavy(v))
"""
SHARED = """
graph {
    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }
    node c { time = 1 ms, memory = 1 GiB, output = 1 MiB }
    a -> c
}
device gpu[2]: accelerator { memory = 4 GiB }
device cpu: host
interconnect { bandwidth = 16 GB/s }
param room = 2 GiB
"""


def importing(folder: Path) -> DocumentState:
    (folder / "shared.place").write_text(SHARED, encoding="utf-8")
    reading = read(ALGEBRA, str(folder / "spec.place"))
    found = analyse(reading, folder, GRAPHS)
    assert found.diagnostics == ()
    assert found.elaborated is not None
    return DocumentState(reading, (Meaning(found.elaborated),), str(folder))


def test_definitions_and_indexed_names(tmp_path: Path) -> None:
    state = importing(tmp_path)
    for marked, count in (
        ("param weig|ht", 2), ("define hea|vy", 2), ("define tot|al", 2), ("constraint ap|art", 2), ("var spa|re", 2),
        ("set bo|th", 2), ("heavy(|v in", 2), ("apart(|u", 2), ("i in 1..3: spare[d] + |i", 2),
    ):  # fmt: skip
        places = references(state, at(ALGEBRA, marked))
        assert len(places) == count, marked
        if "i in" not in marked:
            assert len(rename(state, at(ALGEBRA, marked), "other")) == count
    assert "define heavy(v in nodes) = v.memory > room" in said(state, "define hea|vy")
    assert "weight[v in nodes]" in said(state, "param weig|ht")
    assert "`u`: a node" in said(state, "apart(|u")
    assert "2 elements" in said(state, "set bo|th")


def said(state: DocumentState, marked: str) -> str:
    found = hover(state, at(ALGEBRA, marked))
    return found[0] if found is not None else ""


def test_what_is_imported_is_known(tmp_path: Path) -> None:
    state = importing(tmp_path)
    assert "2 GiB" in said(state, "v.memory > ro|om")
    assert "2 accelerators" in said(state, "spare[d in g|pu]")
    for marked, written in (("v.memory > ro|om", "room = 2 GiB"), ("spare[d in g|pu]", "gpu[2]")):
        target = definition(state, at(ALGEBRA, marked))
        assert target is not None
        assert Path(target.source.name).name == "shared.place"
        assert target.source.text[target.at[0] :].startswith(written)
    with pytest.raises(RenameError, match="not declared"):
        rename(state, at(ALGEBRA, "v.memory > ro|om"), "x")
    (tmp_path / "more.place").write_text("", encoding="utf-8")
    labels = [c.label for c in complete(state, at(ALGEBRA, 'import "|shared'))]
    assert labels == ["more.place", "shared.place"]


CLUSTERS = """graph {
    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }
    node b { time = 1 ms, memory = 1 GiB }
    a -> b
}
cluster slow[2] {
    device t4[4]: accelerator { memory = 16 GiB }
}
cluster site {
    cluster fast {
        device a100: accelerator { memory = 40 GiB }
    }
}
interconnect { bandwidth = 1 GB/s }
minimize time_per_sample
subject to
    one: a on slow[1].t4[1] or a on slow[2].t4[2]
    two: forall c in slow, d in c: load(d) <= 1 s
    three: b on site.fast.a100
"""


@pytest.mark.parametrize(
    ("line", "name", "words"),
    [
        ("    x: a on slow[1].t|4[1]\n", "t4", "device `t4`: 8 accelerators, 4 in each `slow`  \nmemory 16 GiB"),
        ("    x: a on slow.t|4\n", "t4", "device `t4`: 8 accelerators"),
        ("    x: a on slow.t|4[1]\n", "t4", "device `t4`: 8 accelerators"),
        ("    x: a on slow.t|4[1] or\n", "t4", "device `t4`: 8 accelerators"),
        ("    x: a on sl|ow.t4[1]\n", "slow", "cluster `slow`: 2 clusters  \n4 `t4` in each"),
        ("    x: a on site.fa|st.a100\n", "fast", "cluster `fast`: 1 cluster  \n1 `a100`"),
        ("    x: a on site.fast.a|100\n", "a100", "device `a100`: 1 accelerator"),
        ("    x: slow[1].t4[2].mem|ory <= 1 GiB\n", "", "`memory`, attribute of a device"),
        ("    x: site.fast.a100.mem|ory <= 1 GiB\n", "", "`memory`, attribute of a device"),
        ("    x: slow[1].lev|el == 1\n", "", "`level`, attribute of a cluster"),
        ("    x: forall k in slow: k.lev|el == 1\n", "", "`level`, attribute of a cluster"),
        ("    x: forall k in slow, |e in k: load(e) <= 1 s\n", "e", "`e`: a device"),
        ("    x: forall |e in slow[1]: load(e) <= 1 s\n", "e", "`e`: a device"),
        ("    x: forall |e in site: load(e) <= 1 s\n", "e", "`e`: a device"),
        ("    x: forall |k in slow: k.level == 1\n", "k", "`k`: a cluster"),
    ],
)
def test_members_of_clusters(line: str, name: str, words: str) -> None:
    """Also where the line cannot be read: what it meant last is known from the rest."""
    text = CLUSTERS + line
    state = state_of(text.replace("|", ""))
    assert state.meanings
    found = hover(state, len(CLUSTERS) + line.index("|"))
    assert found is not None
    assert found[0].startswith(words)
    declared = definition(state, len(CLUSTERS) + line.index("|"))
    if name and not state.reading.errors:
        assert declared is not None
        assert declared.source.text[slice(*declared.at)] == name


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("a on slow.", ["t4", "name", "level"]),
        ("a on slow[1].", ["t4", "name", "level"]),
        ("a on slow[1].t", ["t4", "name", "level"]),
        ("a on site.", ["a100", "fast", "name"]),
        ("a on site.fast.", ["a100", "name", "level"]),
        ("slow[1].t4[1].", ["name", "family", "kind"]),
        ("slow.t4[1].", ["name", "family", "kind"]),
        ("forall k in slow: k.", ["name", "level"]),
        ("forall k in slow, e in k: e.", ["name", "family", "kind"]),
        ("forall e in slow[1]: e.", ["name", "family", "kind"]),
        ("forall e in site: e.", ["name", "family", "kind"]),
    ],
)
def test_members_of_clusters_are_offered(typed: str, first: list[str]) -> None:
    text = CLUSTERS + "    x: " + typed
    assert [c.label for c in complete(state_of(text), len(text))][:3] == first


def test_a_family_is_renamed_in_clusters_too() -> None:
    new = renamed(CLUSTERS, at(CLUSTERS, "device t|4["), "slim")
    assert "one: a on slow[1].slim[1] or a on slow[2].slim[2]" in new
    assert placedsl.loads(new).problem.machine.devices[0].name == "slow[1].slim[1]"
