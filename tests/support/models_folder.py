"""Other texts in the place of some files of ``models/``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from placedsl.language.elaboration import model_library
from placedsl.system.installation import model_files


def changed_models(folder: Path, patch: pytest.MonkeyPatch, changes: Mapping[str, Callable[[str], str]]) -> None:
    """The files of ``models/`` with these changes, for the duration of a test."""
    files = []
    for path in model_files():
        text = path.read_text(encoding="utf-8")
        changed = changes.get(path.name, lambda same: same)(text)
        if changed == text:
            files.append(path)
            continue
        (folder / path.name).write_text(changed, encoding="utf-8")
        files.append(folder / path.name)
    patch.setattr(model_library, "model_files", lambda: files)
