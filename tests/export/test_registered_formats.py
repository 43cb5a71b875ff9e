"""Every format that programs are written in is read back, or run, by the suite of this folder."""

from __future__ import annotations

import pytest
from support.exported_specs import SPECS
from support.suites import FILE_FORMATS, SCRIPTS

from placedsl import loads
from placedsl.export.programs.formats import FORMATS


def test_the_suite_has_every_format() -> None:
    assert set(FILE_FORMATS) | set(SCRIPTS) == set(FORMATS)
    assert not set(FILE_FORMATS) & set(SCRIPTS)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_format_says_what_it_is_and_writes_lines(name: str) -> None:
    assert FORMATS[name].description
    text = loads(SPECS["inline"]).emit(name)
    assert "written by placedsl" in text[:200]
    assert text.endswith("\n")
