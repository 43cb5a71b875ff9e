"""The readers stand beside the tests; random specs beside those of the planner."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "planner"))
sys.path.insert(0, str(Path(__file__).parent))
