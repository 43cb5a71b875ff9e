"""Random small specs of the kind that the search for splits knows: memory and colocation, and no other rule."""

from __future__ import annotations

from support.random_specs import random_spec


def free_spec(seed: int) -> str:
    """One of the random specs without the rules that ask for more."""
    lines = random_spec(seed).splitlines()
    out = [line for line in lines if line.strip() not in ("contiguous", "convex")]
    return "\n".join(line for line in out if not line.strip().startswith(("custom", "schedule"))) + "\n"
