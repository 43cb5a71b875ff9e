"""The checker of certificates, in rational numbers: an account of its own, which imports nothing of the rest."""

from __future__ import annotations

from placedsl.certificates.checked.checking import Checked, check
from placedsl.certificates.checked.numbers import RefusedError

__all__ = ["Checked", "RefusedError", "check"]
