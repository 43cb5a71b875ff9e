"""Texts of specs that nobody would write: generated from the grammar, or specs of this checkout with changes."""

from __future__ import annotations

import random
import re
from pathlib import Path

from lark import Lark
from lark.grammar import NonTerminal, Terminal

from placedsl.system.installation import grammar_text

ROOT = Path(__file__).resolve().parents[1]
BASE = """
graph {
    node a { time = {accelerator: 4 ms, host: 9 ms}, memory = 2 GiB, output = 8 MiB, layer = 1 }
    node b { time = {accelerator: 6 ms, host: 30 ms}, memory = 3 GiB, output = 8 MiB, layer = 2 }
    a -> b
}
device gpu[2]: accelerator { memory = 6 GiB }
device cpu: host
interconnect { bandwidth = 16 GiB/s }
"""
_WORDS = """
nodes devices gpu cpu edges tensors reads accelerators load memory traffic time_per_sample devices_used on v d u t e i j
a b layer time transfer name id producer size x y z s k w heavy partition readers convex pipeline abs first number
backward forward true false binary integer real data int max_load contiguous colocated
"""
NAMES = tuple(_WORDS.split())
TEXTS = ['"\\ud800"', '"a"', '"*"', '"layer"', '"no such"', '"gpu[1]"', '""', '"\\u00e9"']
NUMBERS = ("0", "1", "2", "3", "0.5", "1e-7", "1e300", "7", "12", "1000000", "1e400", "-1", "1e18",
    "9223372036854775807", "18446744073709551616", "1e99999999999", "9" * 5000, "0." + "0" * 400 + "1",
)  # fmt: skip
QUANTITIES = (
    "1 ms", "2 GiB", "10%", "3 GB/s", "1e9 B", "0 s", "5 USD/h", "1 parsec", "4 TFLOP/s", "1e308 s", "1e-300 B/s",
    "1e400 B",
)  # fmt: skip


class Generator:
    """Random sentences of the grammar, no deeper than is asked for."""

    def __init__(self) -> None:
        self.rng = random.Random()
        parser = Lark(grammar_text(), parser="lalr", lexer="basic", maybe_placeholders=False, start="start")
        self.rules: dict[str, list[list[NonTerminal | Terminal]]] = {}
        for rule in parser.rules:
            self.rules.setdefault(rule.origin.name, []).append(list(rule.expansion))
        self.patterns = {t.name: t.pattern for t in parser.terminals}
        self.depth: dict[str, int] = {}
        while len(self.depth) < len(self.rules):
            for name, expansions in self.rules.items():
                depths = [self._depth(e) for e in expansions]
                known = [d for d in depths if d is not None]
                if known:
                    self.depth[name] = 1 + min(known)
        #: The expansions of each rule with how deep each is at least.
        self.deep = {name: [(self._depth(e) or 0, e) for e in every] for name, every in self.rules.items()}

    def _depth(self, expansion: list[NonTerminal | Terminal]) -> int | None:
        depths = [self.depth.get(s.name) if isinstance(s, NonTerminal) else 0 for s in expansion]
        return None if any(d is None for d in depths) else max((d for d in depths if d is not None), default=0)

    def sentence(self, name: str, depth: int) -> list[str]:
        """Words of a sentence of a rule."""
        fitting = [e for least, e in self.deep[name] if least < depth]
        expansion = self.rng.choice(fitting or [min(self.deep[name], key=lambda pair: pair[0])[1]])
        out: list[str] = []
        for symbol in expansion:
            out += (
                self.sentence(symbol.name, depth - 1) if isinstance(symbol, NonTerminal) else [self.word(symbol.name)]
            )
        return out

    def word(self, name: str) -> str:
        """A text of a terminal."""
        rng = self.rng
        if name == "NAME":
            return rng.choice(NAMES)
        if name == "NUMBER":
            return rng.choice(NUMBERS)
        if name == "QUANTITY":
            return rng.choice(QUANTITIES)
        if name == "STRING":
            return rng.choice(TEXTS)
        if name == "_NL":
            return "\n"
        if name == "COMPARE":
            return rng.choice(["<=", ">=", "==", "!=", "<", ">"])
        return str(self.patterns[name].value)

    def spec(self, rng: random.Random) -> str:
        """Some statements, mostly beside a graph and devices that are in order."""
        self.rng = rng
        kinds = (
            "param", "set", "minimize", "subject", "rule", "soft", "constraint", "define", "variable", "formulation",
            "extend", "device", "link", "solve", "schedule", "graph_inline", "import_",
        )  # fmt: skip
        parts = [BASE] if rng.random() < 0.9 else []
        for _ in range(rng.randint(1, 5)):
            parts.append(" ".join(self.sentence(rng.choice(kinds), rng.randint(4, 16))))
        if rng.random() < 0.7:
            parts.append("minimize time_per_sample")
        for k in range(rng.randint(0, 3)):
            head = "subject to\n" if k == 0 else ""
            parts.append(f"{head}    r{k}: " + " ".join(self.sentence("expr", rng.randint(4, 16))))
        return "\n".join(parts) + "\n"


def seeds() -> list[str]:
    """Texts to start from."""
    folders = (ROOT / "examples", ROOT / "models")
    texts = [p.read_text(encoding="utf-8") for folder in folders for p in sorted(folder.rglob("*.place"))]
    pages = [p.read_text(encoding="utf-8") for p in sorted((ROOT / "docs" / "language").glob("*.md"))]
    return texts + [block.split("```")[0] for page in pages for block in page.split("```place\n")[1:]]


def _short(rng: random.Random, texts: list[str]) -> str:
    """Any of the texts; the shorter the more likely."""
    return min(rng.choice(texts), rng.choice(texts), key=len)


def mutated(rng: random.Random, texts: list[str]) -> str:
    """A text with pieces cut out, doubled, swapped, replaced by pieces of others."""
    text = _short(rng, texts)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(text) + 1)
        size = rng.choice([1, 1, 2, 3, 5, 9, 20, 60])
        kind = rng.randrange(6)
        if kind == 0:
            text = text[:at] + text[at + size :]
        elif kind == 1:
            text = text[:at] + text[at : at + size] * 2 + text[at + size :]
        elif kind == 2:
            other = rng.choice(texts)
            start = rng.randrange(len(other) + 1)
            text = text[:at] + other[start : start + size] + text[at:]
        elif kind == 3:
            text = text[:at] + rng.choice([*NAMES, *NUMBERS, *QUANTITIES, *TEXTS]) + text[at + size :]
        elif kind == 4:
            text = text[:at] + rng.choice('(){}[]:,=<>-+*/.~"#\n\t \0é…') + text[at + 1 :]
        else:
            lines = text.split("\n")
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
            text = "\n".join(lines)
    return text


_TOKEN = re.compile(
    r'(?P<number>\d[\d.]*(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)|(?P<text>"[^"\n]*")|(?P<sign>[<>=!+*/-]=?)'
)


def altered(rng: random.Random, texts: list[str]) -> str:
    """A text with tokens in the place of others of their kind: extreme numbers, other names, other operators."""
    text = _short(rng, texts)
    for _ in range(rng.randint(1, 4)):
        tokens = [m for m in _TOKEN.finditer(text) if "#" not in text[text.rfind("\n", 0, m.start()) + 1 : m.start()]]
        if not tokens:
            break
        one = rng.choice(tokens)
        alike = [m[0] for m in tokens if m.lastgroup == one.lastgroup]
        if one.lastgroup == "number":
            alike += [n for n in NUMBERS for _ in range(1 + len(alike) // len(NUMBERS))]
        text = text[: one.start()] + rng.choice(alike) + text[one.end() :]
    return text
