"""The wheel holds all that the package reads: grammar, models, templates.  It runs from where it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.paths import EXAMPLES, ROOT

#: What running leaves behind in a checkout.
_MADE = {".pyc", ".nbi", ".nbc"}

pytestmark = pytest.mark.xdist_group("wheel")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the wheel was unpacked into."""
    backend = pytest.importorskip("hatchling.build", reason="the package hatchling is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        name = backend.build_wheel(str(folder))
    with zipfile.ZipFile(folder / name) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


def files(folder: Path) -> set[str]:
    """Every file below a folder but those that running makes, as paths from there."""
    found = (
        path
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in _MADE and "__pycache__" not in path.parts
    )
    return {path.relative_to(folder).as_posix() for path in found}


def test_the_wheel_holds_every_file_of_the_package(installed: Path) -> None:
    wanted = files(ROOT / "placedsl")
    wanted |= {f"{folder}/{name}" for folder in ("models", "grammars") for name in files(ROOT / folder)}
    assert files(installed / "placedsl") == wanted


def test_an_installed_package_reads_an_example_from_anywhere(installed: Path, tmp_path: Path) -> None:
    code = (
        "import sys, placedsl\n"
        f"assert placedsl.__file__.startswith({str(installed)!r})\n"
        "from placedsl.cli.main import main\n"
        f"spec = {str(EXAMPLES / 'inline.place')!r}\n"
        "sys.exit(main(['check', spec]) or main(['emit', spec, '--to', 'lp']))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no errors" in done.stdout
    assert "Subject To" in done.stdout
