"""The progress line: on a terminal one line that renews itself and vanishes, elsewhere plain lines, or nothing."""

from __future__ import annotations

import io
import math
import re
import sys

import pytest

import placedsl
from placedsl.report.text.progress import ProgressLine

SPEC = "graph {\n    node a { time = 1 ms }\n}\ndevice gpu: accelerator\ninterconnect { bandwidth = 1 GB/s }\n"
GOAL = placedsl.loads(SPEC + "minimize time_per_sample\n").problem.objectives[0]


class Terminal(io.StringIO):
    """What looks like a terminal."""

    def isatty(self) -> bool:
        return True


def shown(paper: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, quiet: bool = False) -> str:
    monkeypatch.setattr(sys, "stderr", paper)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with ProgressLine(GOAL, quiet) as line:
        for value, bound, seconds in ((math.inf, 1e-3, 0.1), (4e-3, 1e-3, 0.2), (4e-3, 1e-3, 0.3), (2e-3, 2e-3, 0.4)):
            line.update(value, bound, seconds)
    return paper.getvalue()


def test_a_terminal_has_one_line_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    written = shown(Terminal(), monkeypatch)
    states = ["best -  bound 1 ms  gap -  0.1 s", "best 4 ms  bound 1 ms  gap 75.00%  0.2 s",
              "best 2 ms  bound 2 ms  gap 0.00%  0.4 s"]  # fmt: skip
    assert [state for state in states if state in written] == states
    assert "0.3 s" not in written, "what has not changed is not shown again"
    assert written.index(states[0]) < written.index(states[1]) < written.index(states[2])
    screen = re.split(r"\x1b\[2K", written)[-1]
    assert re.sub(r"\x1b\[[?\d;]*[A-Za-z]|\r|\n", "", screen) == "", "the line is erased"
    assert written.count("\n") == 0 or "\x1b[1A" in written, "nothing scrolls"


def test_a_file_has_plain_lines_at_most_one_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(io.StringIO(), monkeypatch).splitlines()
    assert lines[0] == "best -  bound 1 ms  gap -  0.1 s"
    assert lines[1] == "best 4 ms  bound 1 ms  gap 75.00%  0.2 s", "the first value at once"
    assert lines[2:] == ["best 2 ms  bound 2 ms  gap 0.00%  0.4 s"], "the last when it ends"
    assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize("paper", [io.StringIO(), Terminal()])
def test_quiet_is_quiet(paper: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(paper, monkeypatch, quiet=True) == ""
