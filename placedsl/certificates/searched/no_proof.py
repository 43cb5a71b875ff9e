"""Why there is no certificate."""

from __future__ import annotations


class NoProofError(Exception):
    """There is no proof of this kind, or none that is small enough; the message says why, a clause."""
