"""A proven lower bound, with what proves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class Bound:
    """``value`` seconds that no placement is below; ``by``: what proves that, in words.

    ``certificate``   the proof as JSON data, for those who check it without the problem's algorithms, or how it begins:
                      trees of cases are left to ``certificates.searched``; None: there is none of this kind
    """

    value: float
    by: str
    certificate: Mapping[str, Any] | None = field(default=None)
