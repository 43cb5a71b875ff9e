"""HTML from the templates beside this file; whatever is filled in is escaped, but for what is marked as HTML."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: object) -> str:
    """The HTML of a template; a value that it needs and does not get is an error."""
    return _environment().get_template(template).render(values).rstrip("\n")


def html(text: str) -> str:
    """A text that is HTML already, as pictures are, to be filled in as it is."""
    from markupsafe import Markup

    return Markup(text)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from placedsl.report.html import palette

    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, undefined=StrictUndefined
    )
    made.globals |= {"fill": lambda name: html(palette.fill(name)), "stroke": lambda name: html(palette.stroke(name))}
    return made
