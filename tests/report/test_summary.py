"""The lines that ``solve`` prints."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from placedsl import loads
from placedsl.report.text.summary import print_answer

SPEC = """
graph {
    node a { time = 1 s }
}
device gpu: accelerator
minimize time_per_sample
"""


def test_where_there_is_nothing_to_say_the_line_ends_without_a_colon() -> None:
    answer = replace(loads(SPEC).solve(), message="")
    said = io.StringIO()
    print_answer(answer, Console(file=said, width=100))
    assert said.getvalue().splitlines()[0].endswith(" s)")
