"""The colours of pages: by purpose, light and dark.

``tests/report/test_page.py`` computes their contrasts: texts 4.5 on all that they stand on, parts of charts 3 on the
ground beneath (Web Content Accessibility Guidelines 2.2, 1.4.3 and 1.4.11).  Parts of charts are told apart by words
and gaps too.
"""

from __future__ import annotations

#: Grounds and texts.  ``text``, ``muted``, ``accent`` and the verdicts stand on each of :data:`GROUNDS`.
LIGHT = {
    "background": "#ffffff", "surface": "#f5f7f9", "text": "#1b2430", "muted": "#4d5a68", "line": "#7d8a98",
    "accent": "#1a5fb4", "good": "#1e6b34", "warning": "#7d4b00", "bad": "#b3261e", "conflict": "#fde4e1",
    "binding": "#fdf0cc", "objective": "#e0eefc", "on-part": "#ffffff",
}  # fmt: skip
DARK = {
    "background": "#0f1419", "surface": "#171d24", "text": "#e6ebf0", "muted": "#aab6c2", "line": "#75828f",
    "accent": "#7db7f5", "good": "#7fd196", "warning": "#f0b860", "bad": "#ff9d93", "conflict": "#4a1f1c",
    "binding": "#42350f", "objective": "#17304a", "on-part": "#0b0f14",
}  # fmt: skip
GROUNDS = ("background", "surface")
MARKS = ("conflict", "binding", "objective")
#: Parts of charts; ``on-part`` is the text on them.  The light ones are what notebooks show, dark ones too.
LIGHT_PARTS = {
    "compute": "#2b6cb0", "compute2": "#1f5a99", "backward": "#5d6b1f", "backward2": "#4c5917", "receive": "#b1531a",
    "send": "#8150bd", "weights": "#14756a", "activations": "#b1531a", "kv_cache": "#8150bd", "other": "#647180",
    "streamed": "#a3286f", "critical": "#c62828",
}  # fmt: skip
DARK_PARTS = {
    "compute": "#6aabea", "compute2": "#8abff0", "backward": "#b5c25a", "backward2": "#c6d17c", "receive": "#eb9a62",
    "send": "#bd9bea", "weights": "#4fbcae", "activations": "#eb9a62", "kv_cache": "#bd9bea", "other": "#97a4b2",
    "streamed": "#ec8cc2", "critical": "#ff7b6e",
}  # fmt: skip


def variables(*tables: dict[str, str]) -> str:
    """Colours as custom properties of CSS."""
    return "".join(f"--{name}:{colour};" for table in tables for name, colour in table.items())


def classes() -> str:
    """A class for each part of charts: ``f-NAME`` fills, ``s-NAME`` draws lines."""
    names = [*LIGHT_PARTS, *LIGHT]
    return "".join(f".f-{name}{{fill:var(--{name})}}.s-{name}{{stroke:var(--{name})}}" for name in names)


def fill(name: str) -> str:
    """Attributes of an element that is filled; the colour itself is for notebooks, which have no style sheet."""
    return f'class="f-{name}" fill="{(LIGHT | LIGHT_PARTS)[name]}"'


def stroke(name: str) -> str:
    """Attributes of an element that is drawn as a line."""
    return f'class="s-{name}" stroke="{(LIGHT | LIGHT_PARTS)[name]}"'
