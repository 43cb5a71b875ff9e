"""Where in a half-written text the cursor is: told by the tokens before it, for there may be no syntax yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from placedsl.language.checking.vocabulary import PARTITIONS
from placedsl.language.syntax.formatter import begins_rule, opens_block
from placedsl.language.syntax.keywords import KEYWORDS, SOFT_KEYWORDS
from placedsl.language.syntax.tokens import COMMENT, Token
from placedsl.problem.expressions import Sort
from placedsl.server.known_names import KnownNames


@dataclass
class Frame:
    """An open bracket, or the text as a whole.

    ``holder`` is the keyword of the statement that it belongs to, ``head`` that of the statement that is being
    written in it, ``tokens`` what stands there since the last line end that means something.
    """

    opener: str = ""
    block: bool = True
    holder: str = ""
    head: str = ""
    start: int = 0
    tokens: list[Token] = field(default_factory=list)


def frames(earlier: Sequence[Token]) -> list[Frame]:
    """The open brackets before the cursor, the text as a whole first."""
    out = [Frame()]
    previous: Token | None = None
    for i, token in enumerate(earlier):
        innermost = out[-1]
        if token.type == COMMENT:
            continue
        if innermost.block and _begins(token) and not begins_rule(token):
            innermost.head, innermost.tokens, innermost.start = token.text, [token], i
        elif innermost.block and (token.begins or previous is None):
            innermost.tokens, innermost.start = [token], i
        elif token.text in (")", "]", "}") and len(out) > 1:
            out.pop()
            out[-1].tokens.append(token)
        else:
            innermost.tokens.append(token)
        if token.text in ("(", "[", "{"):
            block = token.text == "{" and opens_block(previous)
            out.append(Frame(token.text, block, innermost.head or innermost.holder, start=i + 1))
        previous = token
    return out


def _begins(token: Token) -> bool:
    """Whether a statement or a clause can begin with it."""
    return token.text in KEYWORDS or (token.text in SOFT_KEYWORDS and token.type != "NAME")


def bound(statement: Sequence[Token], words: KnownNames) -> dict[str, Sort]:
    """The variables that are bound where a piece of a statement ends, and what they range over (empty: not known)."""
    scopes: list[dict[str, Sort]] = [{}]
    for i, token in enumerate(statement):
        if token.text in ("(", "[", "{"):
            scopes.append({})
        elif token.text in (")", "]", "}") and len(scopes) > 1:
            scopes.pop()
        elif token.type == "IN":
            known = {name: sort for scope in scopes for name, sort in scope.items()}
            sorts = _ranged_over(statement[i + 1 :], known, words)
            targets = _targets(statement[:i])
            for target, sort in zip(targets, (*sorts, *[""] * len(targets)), strict=False):
                scopes[-1].setdefault(target, sort)
    out = {name: sort for scope in scopes for name, sort in scope.items()}
    return _provided(statement, words) | out


def _targets(before: Sequence[Token]) -> list[str]:
    """The names right before ``in``: one, or a pair in brackets."""
    if before and before[-1].type == "NAME":
        return [before[-1].text]
    out: list[str] = []
    if before and before[-1].text == ")":
        for token in reversed(before[:-1]):
            if token.text == "(":
                return out[::-1]
            if token.type == "NAME":
                out.append(token.text)
            elif token.text != ",":
                break
    return []


def _ranged_over(after: Sequence[Token], known: dict[str, Sort], words: KnownNames) -> tuple[Sort, ...]:
    end = next((i for i, t in enumerate(after) if t.text in (":", ",", "where", "}")), len(after))
    if after[:1] and after[0].type == "NAME" and cluster(after[:end], known, words):
        alone = end == 1 and after[0].text not in words.uncounted
        return ("cluster",) if alone else ("device",)
    texts = [t.text for t in after[:4]]
    if not texts:
        return ()
    if texts[0] == "readers":
        return ("node",)
    if texts[0] in PARTITIONS:
        return ("group:",)
    name = texts[1] if texts[0] == "{" and len(texts) > 1 else texts[0]
    if texts[0] == "{" and name in ("forward", "backward"):
        return ("part",)
    if known.get(name, "") == "cluster":
        return ("device",)
    if known.get(name, "") == "part" or known.get(name, "").startswith("group:"):
        return ("node",)
    return ("device",) if name in words.families else words.sets.get(name, ())


def _provided(statement: Sequence[Token], words: KnownNames) -> dict[str, Sort]:
    """The names that ``provides load(d) =`` binds."""
    texts = [t.text for t in statement]
    if texts[:1] != ["provides"] or "=" not in texts:
        return {}
    pattern = [t for t in statement[1 : texts.index("=")] if t.type == "NAME"]
    if "on" in texts[: texts.index("=")]:
        return dict(zip([t.text for t in pattern], ("node", "device"), strict=False))
    quantity = words.quantities.get(pattern[0].text) if pattern else None
    sorts = quantity.arguments if quantity is not None else ()
    return dict(zip([t.text for t in pattern[1:]], sorts, strict=False))


def owner(chain: Sequence[Token], known: dict[str, Sort], words: KnownNames) -> Sort:
    """What the element before a final ``.`` is: ``v``, ``heavy[1]``, ``t.producer``; empty where it cannot be told."""
    if cluster(chain, known, words):
        return "cluster"
    parts, indexed = _without_index(chain)
    if not parts or parts[-1].type != "NAME":
        return ""
    name = parts.pop().text
    if parts and parts[-1].text == ".":
        outer = cluster(parts[:-1], known, words)
        if outer:
            return words.clusters[outer].get(name, "")
        if indexed:
            return ""
        inner = owner(parts[:-1], known, words)
        if inner.startswith("group:"):
            return "node"
        found = words.attribute(inner, name)
        return next(iter(found.type.sorts), "") if found is not None else ""
    if indexed:
        return "device" if name in words.families else next(iter(words.sets.get(name, ())), "")
    if name in known:
        return known[name]
    return "device" if name in words.families else "node" if name in words.nodes else ""


def cluster(chain: Sequence[Token], known: dict[str, Sort], words: KnownNames) -> str:
    """The family of the cluster that ``pod``, ``pod[1]`` or ``site.pod[1]`` is; empty for anything else."""
    parts, _ = _without_index(chain)
    if not parts or parts[-1].type != "NAME":
        return ""
    name = parts.pop().text
    if parts and parts[-1].text == ".":
        outer = cluster(parts[:-1], known, words)
        return name if outer and words.clusters[outer].get(name) == "cluster" else ""
    return name if name in words.clusters and name not in known else ""


def _without_index(chain: Sequence[Token]) -> tuple[list[Token], bool]:
    """What stands before brackets at the end, and whether there are any."""
    parts, depth = list(chain), 0
    if not parts or parts[-1].text != "]":
        return parts, False
    while parts:
        depth += {"]": 1, "[": -1}.get(parts.pop().text, 0)
        if not depth:
            break
    return parts, True
