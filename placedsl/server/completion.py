"""What can be written at a place, by what stands before it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from placedsl.language.checking.vocabulary import LAYERS, PARTITIONS, types
from placedsl.language.elaboration.composition import AXES
from placedsl.language.elaboration.statement_entries import DEVICE_KINDS, STATEMENTS, schedule_entries
from placedsl.language.elaboration.variables import type_words
from placedsl.language.syntax.formatter import is_operand
from placedsl.language.syntax.keywords import KEYWORDS, RESERVED, SOFT_KEYWORDS
from placedsl.language.syntax.parser import terminals
from placedsl.language.syntax.printer import word
from placedsl.language.syntax.tokens import COMMENT, UNREADABLE, Token, beginnings, number_and_unit
from placedsl.problem.execution import SCHEDULES
from placedsl.problem.expressions import Sort
from placedsl.server.analysis import STAND_IN
from placedsl.server.blocks import CHOICES
from placedsl.server.built_in import built_in_constraints, parts, schedules
from placedsl.server.context import Frame, bound, cluster, frames, owner
from placedsl.server.document_state import DocumentState
from placedsl.server.hover import signature
from placedsl.server.reading import Place
from placedsl.units import Dimension, UnitError, parse_unit, unit_names

_MOST_NODES = 500
_FUNCTIONS = ("convex", "pipeline", "no_overlap", "readers", *PARTITIONS)
#: After these a name is made up, or nothing fits.
_NEW_NAME = ("device", "param", "set", "node", "var", "formulation", "constraint", "define", "part", "option")
_FORMULATIONS = ("formulation", "extend", "part")


@dataclass(frozen=True, slots=True)
class Completion:
    """One thing that can be written: what it is, a word on it, and the piece of the text that it takes the place of."""

    label: str
    kind: str
    detail: str
    at: Place


@dataclass(frozen=True)
class _Place:
    """The cursor: the tokens before the word that is being written, the open brackets, and where the word begins."""

    state: DocumentState
    offset: int
    start: int
    earlier: list[Token]
    frames: list[Frame]

    @property
    def innermost(self) -> Frame:
        return self.frames[-1]

    @property
    def before(self) -> str:
        """The last token."""
        return self.earlier[-1].text if self.earlier else ""

    @property
    def statement(self) -> list[Token]:
        """The tokens of the statement so far."""
        block = next(f for f in reversed(self.frames) if f.block)
        return self.earlier[block.start :]

    @property
    def begins_line(self) -> bool:
        text = self.state.reading.source.text
        return not text[text.rfind("\n", 0, self.start) + 1 : self.start].strip()

    def items(self, kind: str, named: Iterable[tuple[str, str]]) -> list[Completion]:
        return [Completion(n, kind, detail, (self.start, self.offset)) for n, detail in named if n != STAND_IN]


def complete(state: DocumentState, offset: int) -> list[Completion]:
    """Everything that can be written at an offset; what is there of a word already does not matter."""
    reading = state.reading
    under = next((t for t in reading.tokens if t.start < offset <= t.end), None)
    if under is not None and under.type == COMMENT:
        return []
    quoted = under is not None and under.text[0] == '"' and (offset < under.end or under.type == UNREADABLE)
    is_word = under is not None and (under.type == "NAME" or under.is_word)
    start = under.start if under is not None and (quoted or is_word or under.type == "QUANTITY") else offset
    earlier = [t for t in reading.before(start) if t.type != COMMENT]
    if quoted:
        return _in_quotes(_Place(state, offset, start + 1, earlier, frames(earlier)))
    if under is not None and under.type == "QUANTITY":
        number, _ = number_and_unit(reading.source.text[start:offset])
        typed = reading.source.text[start + len(number) : offset]
        first = offset - len(typed.lstrip())
        return _units(_Place(state, offset, first, earlier, frames(earlier)))
    place = _Place(state, offset, start, earlier, frames(earlier))
    if earlier and earlier[-1].type == "NUMBER" and not place.begins_line:
        return _units(place) if earlier[-1].end < offset else []
    return list(dict.fromkeys(_words(place)))


def _in_quotes(place: _Place) -> list[Completion]:
    """File names after ``graph from``, node ids after ``nodes[``."""
    texts = [t.text for t in place.earlier[-2:]]
    text = place.state.reading.source.text[place.start : place.offset]
    if texts == ["graph", "from"] or texts[-1:] == ["import"]:
        return place.items("file", _files(Path(place.state.folder), text, specs=texts[-1] == "import"))
    if texts == ["nodes", "["] or place.innermost.holder == "graph":
        return place.items("node", ((n, "node") for n in list(place.state.words.nodes)[:_MOST_NODES]))
    return []


def _files(folder: Path, typed: str, specs: bool) -> Iterator[tuple[str, str]]:
    """Files and folders that a half-written file name can become: specs, or anything else."""
    beginning = typed[: typed.rfind("/") + 1]
    try:
        found = sorted((folder / beginning).iterdir())
    except OSError:
        return
    for path in found:
        if path.name.startswith(".") or (not path.is_dir() and (path.suffix == ".place") != specs):
            continue
        yield (beginning + path.name + "/", "folder") if path.is_dir() else (beginning + path.name, "file")


def _units(place: _Place) -> list[Completion]:
    """Units; those of the dimension that is expected come first."""
    wanted = _expected(place)

    def fits(unit: str) -> bool:
        try:
            return wanted is not None and parse_unit(unit).dimension == wanted
        except UnitError:
            return False

    names = sorted(unit_names(), key=lambda unit: not fits(unit))
    return place.items("unit", ((n, str(parse_unit(n).dimension)) for n in names))


def _expected(place: _Place) -> Dimension | None:
    """The dimension of the entry that is being written."""
    block = next((f for f in reversed(place.frames) if f.block), None)
    tokens = [t.text for t in place.earlier[-40:]]
    if block is None or "=" not in tokens:
        return None
    at = len(tokens) - 1 - tokens[::-1].index("=")
    statement = STATEMENTS.get(block.holder)
    return None if statement is None else statement.dimensions.get(tokens[at - 1] if at else "")


def _words(place: _Place) -> Iterator[Completion]:
    """Keywords and names."""
    words, before, frame = place.state.words, place.before, place.innermost
    if before == ".":
        yield from _attributes(place)
        return
    if before in _NEW_NAME and not place.begins_line:
        return
    special = _special(place)
    if special is not None:
        yield from special
        return
    if frame.block and frame.holder in STATEMENTS and frame.holder != "graph":
        yield from _entries(place)
        return
    if frame.block and (place.begins_line or before in ("", "{")):
        yield from _beginnings(place)
        return
    in_graph = any(f.holder == "graph" for f in place.frames)
    if frame.opener == "{" and in_graph and before in ("{", ","):
        if [t.text for t in place.earlier[: frame.start][-3:-2]] in (["gather"], ["scatter"]):
            yield from _nodes(place)
            return
        yield from place.items("word", DEVICE_KINDS.items())
        yield from place.items("device", ((n, "device") for n in words.families))
        return
    if frame.holder == "graph" and frame.block:
        yield from _nodes(place)
        return
    yield from _expression(place)


def _special(place: _Place) -> list[Completion] | None:
    """Places that take one word of a few; None where this is no such place."""
    words, before = place.state.words, place.before
    head = next((f.head for f in reversed(place.frames) if f.head), "")
    second = place.earlier[-2].text if len(place.earlier) > 1 else ""
    if place.begins_line and place.innermost.block:
        return None
    if before == "graph":
        return place.items("keyword", [("from", "a graph file")])
    if before == "subject":
        return place.items("keyword", [("to", "constraints follow")])
    if before == "to" and second == "subject":
        return list(_constraints(place))
    if before == "schedule":
        return place.items("word", ((n, "schedule") for n in dict.fromkeys([*schedules(), *SCHEDULES])))
    if _fuses(place):
        by = [("by", "an attribute")] if before == "fuse" else []
        return [*place.items("keyword", by), *place.items("word", ((n, "operator type") for n in _types(place)))]
    if before == "by":
        node = words.attributes.get("node", {})
        return place.items("attribute", ((n, str(a.type)) for n, a in node.items() if not a.per_device))
    if before == "use" or (head == "use" and before == ","):
        return place.items("part", ((n, "part") for n in dict.fromkeys([*_declared(place, "part"), *parts()])))
    if before == "under" or (head == "under" and before == ","):
        return place.items("word", ((n, "choice of the execution model") for n in AXES))
    if before in AXES and (second == "under" or (head == "under" and second == ",")):
        return place.items("word", ((word(n), before) for n in AXES[before]))
    if before == "tight":
        return place.items(
            "decision", ((s.name, "variable") for s in place.state.names.symbols if s.kind == "decision")
        )
    if head == "link" and place.innermost.block and before in ("link", "<->", "->"):
        return place.items("device", ((n, "device") for n in words.families))
    if before == ":" and len(place.frames) == 1 and head == "device":
        return place.items("word", DEVICE_KINDS.items())
    if before == ":" and len(place.frames) == 1 and head == "param":
        return place.items("word", ((n, "type") for n in types()))
    if before == ":" and head == "var" and place.innermost.block:
        return place.items("word", ((n, "type") for n in type_words(types())))
    if before == "=" and second in CHOICES and place.innermost.holder in ("solve", "graph", "schedule"):
        quotes = '"' if second == "format" else ""
        return place.items("word", ((f"{quotes}{n}{quotes}", second) for n in CHOICES[second]()))
    return None


def _fuses(place: _Place) -> bool:
    """Whether an operator type can stand here: after ``fuse``, or after ``fuse conv +``."""
    tokens = [t.text for t in place.earlier]
    while tokens[-1:] == ["+"]:
        tokens = tokens[:-2]
    return tokens[-1:] == ["fuse"]


def _types(place: _Place) -> list[str]:
    """The operator types of the graph, as they are written."""
    known: set[str] = set()
    for meaning in place.state.meanings:
        column = meaning.elaborated.vocabulary.graph.written.attributes.get("type")
        known |= {text for text in column if isinstance(text, str)} if column is not None else set()
    return [word(text) for text in sorted(known)]


def _beginnings(place: _Place) -> Iterator[Completion]:
    """What a line can begin with: a keyword, and where rules stand, a constraint."""
    holder, head = place.innermost.holder, place.innermost.head
    rule = "_graph_item" if holder == "graph" else "_clause" if holder in _FORMULATIONS else "statement"
    texts = terminals()
    first = sorted(texts[t] for t in beginnings(rule) if texts.get(t) in (*KEYWORDS, *SOFT_KEYWORDS))
    labels = {"subject": "subject to"}
    if holder == "graph":
        yield from _nodes(place)
    elif head == "subject" and not holder:
        yield from _constraints(place)
    yield from place.items("keyword", ((labels.get(w, w), "statement") for w in first))


def _constraints(place: _Place) -> Iterator[Completion]:
    own = [(s.name, "constraint") for s in place.state.names.symbols if s.kind == "constraint"]
    yield from place.items("constraint", own)
    yield from place.items("constraint", ((n, "built-in constraint") for n in built_in_constraints()))


def _nodes(place: _Place) -> Iterator[Completion]:
    plain = [n for n in place.state.words.nodes if n.isidentifier() and n not in RESERVED]
    own = _declared(place, "node")
    yield from place.items("node", ((n, "node") for n in dict.fromkeys([*own, *plain[:_MOST_NODES]])))


def _declared(place: _Place, keyword: str) -> list[str]:
    """The names that the text declares with a keyword; also those in lines that cannot be read."""
    return [
        name.text
        for keyed, name in itertools.pairwise(place.state.reading.tokens)
        if keyed.text == keyword and name.type == "NAME" and name.end != place.offset
    ]


def _entries(place: _Place) -> Iterator[Completion]:
    """The entries of a block, or what can be the value of one."""
    known = STATEMENTS[place.innermost.holder].entries
    if place.innermost.holder == "schedule":
        tokens = [token.text for token in place.earlier]
        after = len(tokens) - tokens[::-1].index("schedule")
        known = schedule_entries(tokens[after].strip('"'))
    if place.before in ("{", ",") or place.begins_line:
        given = {t.text for t in place.innermost.tokens}
        yield from place.items("entry", ((n, e.meaning) for n, e in known.items() if n not in given))
        if place.innermost.holder == "node":
            yield from place.items("keyword", [("option", "a further way to run it")])
    else:
        yield from _expression(place)


def _attributes(place: _Place) -> Iterator[Completion]:
    """The attributes of the element before the dot; of all elements where it cannot be told what it is."""
    words = place.state.words
    known = bound(place.statement, words)
    sort = owner(place.earlier[:-1], known, words)
    inside = words.clusters.get(cluster(place.earlier[:-1], known, words), {})
    yield from place.items("device", ((n, s) for n, s in inside.items()))
    if sort.startswith("group:"):
        yield from place.items("attribute", [("first", "the first node of the group")])
        return
    for one in [sort] if sort in words.attributes else list(words.attributes):
        yield from _attributes_of(place, one)


def _attributes_of(place: _Place, sort: Sort) -> Iterator[Completion]:
    known = place.state.words.attributes[sort].items()
    yield from place.items(
        "attribute", ((n, f"of a {sort}, {a.type}{', a device in [ ]' if a.per_device else ''}") for n, a in known)
    )


def _expression(place: _Place) -> Iterator[Completion]:
    """Names in scope where an operand is expected, operators that are words after one."""
    texts = terminals()
    first = {texts[t] for t in beginnings("expr") if t in texts} & RESERVED
    if is_operand(place.earlier[-1] if place.earlier else None):
        others = RESERVED - first - set(KEYWORDS) - {"from", "to", "by"}
        yield from place.items("keyword", ((w, "operator") for w in sorted(others)))
        return
    words = place.state.words
    statement = place.statement
    yield from place.items("variable", ((n, s or "bound") for n, s in bound(statement, words).items()))
    if any(t.type == "WHERE" for t in statement):
        for sort in words.attributes:
            yield from _attributes_of(place, sort)
    if any(f.holder in _FORMULATIONS for f in place.frames):
        yield from place.items("decision", ((n, "variable") for n in _declared(place, "var")))
    known = [n for meaning in place.state.meanings for n in meaning.elaborated.parameters]
    yield from place.items("parameter", ((n, "parameter") for n in [*_declared(place, "param"), *known]))
    layers = [LAYERS] if "layer" in words.attributes.get("node", {}) else []
    sets = [*_declared(place, "set"), *(n for n in (*words.sets, *layers) if n not in words.families)]
    yield from place.items("set", ((n, "set") for n in sets))
    yield from place.items("device", ((n, "device") for n in [*_declared(place, "device"), *words.families]))
    quantities = [(n, f"{signature(n, q)}: {q.meaning}") for n, q in words.quantities.items() if n != "on"]
    yield from place.items("quantity", quantities)
    yield from place.items("function", ((n, "function") for n in _FUNCTIONS))
    yield from place.items("keyword", ((w, "expression") for w in sorted(first)))
    yield from _nodes(place)
