"""``python -m placedsl``."""

from placedsl.cli import run

run()
