"""A process that steps back lets others go first, in its session and among sessions."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_STEPS_BACK = """
import os
from placedsl.processes.priority import step_back
step_back()
print(os.nice(0))
print(open("/proc/self/autogroup").read() if os.path.exists("/proc/self/autogroup") else "")
"""


_IN_A_CHILD = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "from placedsl.processes.priority import step_back; step_back()"], check=True)
print(open("/proc/self/autogroup").read())
"""


@pytest.mark.skipif(not os.access("/proc/self/autogroup", os.R_OK), reason="there are no groups of sessions")
def test_it_leaves_the_session_of_others_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IN_A_CHILD], capture_output=True, text=True, check=True, start_new_session=True
    )
    assert done.stdout.split()[-1] == "0"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such priorities")
def test_it_lets_others_go_first() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STEPS_BACK], capture_output=True, text=True, check=True, start_new_session=True
    )
    own, session = done.stdout.split("\n", 1)
    assert int(own) >= 10
    if os.access("/proc/self/autogroup", os.W_OK):
        assert session.split()[-1] == "10"
