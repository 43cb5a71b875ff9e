"""Errors as objects."""

from __future__ import annotations

import pickle

import pytest

import placedsl
from placedsl.diagnostics import InputError


def test_errors_go_from_process_to_process() -> None:
    """With all diagnostics and their places: whoever solves specs in several processes hears what is wrong."""
    with pytest.raises(InputError) as raised:
        placedsl.loads("graph {\n    node a { time = 1 furlong }\n}\nminimise latency\n")
    again = pickle.loads(pickle.dumps(raised.value))
    assert isinstance(again, InputError)
    assert again.diagnostics == raised.value.diagnostics
    assert str(again) == str(raised.value)
