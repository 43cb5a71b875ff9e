"""``python -m placedsl``."""

from placedsl.cli.main import run

run()
