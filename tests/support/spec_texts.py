"""Specs to try the editor's tools on: those of the repository, of its documents, and what hypothesis makes of them."""

from __future__ import annotations

import random
import re
from pathlib import Path

from placedsl.diagnostics import InputError, Source
from placedsl.language.syntax.parser import parse
from placedsl.language.syntax.tokens import NEWLINE, tokens
from support.paths import ROOT

_FENCE = re.compile(r"^```place(?:-fragment)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def files() -> list[Path]:
    """Every ``.place`` file of the repository."""
    return sorted([*(ROOT / "examples").glob("*.place"), *(ROOT / "models").glob("*.place")])


def published() -> list[Path]:
    """Specs that lie beside the repository, if they do."""
    return [p for p in sorted((ROOT.parent / "shared" / "language").rglob("*.place")) if _readable(p)]


def _readable(path: Path) -> bool:
    try:
        parse(Source(path.name, path.read_text(encoding="utf-8")))
    except InputError:
        return False
    return True


def documented() -> list[str]:
    """The examples of the documents, whole specs and fragments."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [text for page in pages for text in _FENCE.findall(page.read_text(encoding="utf-8"))]


#: What no document has a reason to show.
ODD = (
    "",
    "# nothing but a comment",
    "\n\n\n   # one\n\n\n# two\n\n",
    "minimize load(gpu)",
    "minimize -load(gpu)-memory(cpu)* -2 then 1e-7*2.5e3s",
    'graph{node "a b"{time=3ms}\nnode c{time={"gpu x"[1]:4  ms}}\n"a b"->c}\ndevice "gpu x"[3]:accelerator{}',
    "subject to # first\n memory\n   # between\n\n\n contiguous # last\n # behind\nsolve{gap=1   %}",
    "formulation f{schedule gpipe\nvar x[v in nodes]in 0 .. 1\nsubject to\na(3):x[v]>=0\n# in\n# out\n"
    "tight x\nb:x[v]\n<=1\n}",
    "set a=nodes where(time[gpu]>1 s and\nnot backward)\nset b={a[1],\na[2],\n}".replace(",\n}", "\n}"),
    'subject to\n  a: forall (u,v) in edges,\n d in {gpu[1] , cpu}: (u on d)=>(v on d) # why\n  and name~"*#*"',
    "subject to\na: x <= (\n1 + # one\n(2 * 3\n) )\n\n# left over",
    "solve {\n# inside\n\n\n# and again\n}\n# ž\u2028ß\n",
)


def specs() -> list[str]:
    """Every text that parses."""
    read = [path.read_text(encoding="utf-8") for path in [*files(), *published()]]
    return [*read, *documented(), *ODD]


def respaced(text: str, seed: int, within: bool = False) -> str:
    """The same text with other blanks, and unless only ``within`` lines: indentation, empty lines, comments."""
    chance = random.Random(seed)
    out: list[str] = []
    end = 0
    first = True
    for token in [t for t in tokens(text) if t.type != NEWLINE]:
        gap = text[end : token.start]
        if "\n" in gap and within:
            pass
        elif "\n" in gap:
            comment = chance.choice(["", "", "", " # added", "\n  # on a line"])
            gap = comment + "\n" * chance.choice([1, 1, 2, 4]) + " " * chance.randrange(9)
        elif first or gap:
            gap = chance.choice([" ", "  ", "\t", "      "])
        elif _may_part(text, token.start):
            gap = chance.choice(["", "", " ", "   "])
        out += [gap, token.text + (chance.choice(["", "  "]) if token.type == "COMMENT" else "")]
        end, first = token.end, False
    return "".join(out) + chance.choice(["", "\n", "\n\n\n", "  "])


def _may_part(text: str, at: int) -> bool:
    """Whether a blank here would not make one token of two, or two of one."""
    return not (text[at - 1].isalnum() and text[at].isalnum()) and not text[at - 1].isdigit()


#: One that uses most of the language, with letters that take two units and more in UTF-16.
SPEC = """# Über 😀 the spec
graph {
    node a { time = {gpu: 1 ms, cpu: 2 ms}, memory = 1 GiB, output = 1 MiB, kind = "first" }
    node "b 1" { time = {accelerator: 1 ms, host: 2 ms}, memory = 1 GiB, output = 1 MiB }
    node c { time = 3 ms, memory = 512 MiB }
    a -> "b 1" -> c
}
param room = 4 GiB
param share = 25%
device gpu[2]: accelerator { memory = room, price = 2 USD/h }
device cpu: host
link gpu <-> cpu { bandwidth = 16 GB/s }
set big = nodes where memory > room / 8
minimize time_per_sample
subject to
    memory
    contiguous
    even: forall d in gpu, e in gpu: load(d) <= 2 * load(e)  # "😀"
    few: forall (t, v) in reads, d in devices where d.kind == "host": v on d => v.backward or t.producer.time[gpu] < 1 s
"""
