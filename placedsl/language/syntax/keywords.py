"""The words of the language."""

from __future__ import annotations

KEYWORDS = (
    "graph", "fuse", "device", "cluster", "link", "interconnect", "param", "set", "schedule", "parallelism", "minimize",
    "subject", "solve", "formulation", "constraint", "define", "extend", "import", "var", "soft", "node",
    "provides", "tight", "replace",
)  # fmt: skip
#: Keywords where a name follows at once, and names everywhere else: a spec may call a variable ``part``.
SOFT_KEYWORDS = ("part", "use", "under", "option")
#: Those that begin a statement of a spec.
STATEMENTS = KEYWORDS[:19]
#: Words that cannot be names without quotes.
RESERVED = frozenset((
    *KEYWORDS, "forall", "exists", "if", "then", "else", "or", "and", "not", "on", "in", "sum", "count", "max", "min",
    "mean", "by", "to", "from", "where", "union", "intersect", "except", "at", "mod",
))  # fmt: skip
