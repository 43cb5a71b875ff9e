"""``placedsl export``: the files of a runtime from an answer."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from placedsl.diagnostics import UsageError
from placedsl.system import files, interruption, paths


@click.command()
@click.argument("answer", type=click.Path(path_type=Path))
@click.option("--to", "name", metavar="RUNTIME", required=True, help="vllm, or an exporter of a plug-in.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FOLDER", help="Output folder (default: stdout)."
)
def export(answer: Path, name: str, output: Path | None) -> int:
    """Write the configuration of a runtime for the plan in ANSWER, a file from solve --json."""
    from placedsl.export.registry import files as files_of
    from placedsl.export.registry import known
    from placedsl.graph.readers import load
    from placedsl.problem.plan_document import read_plan

    known(name)
    if output is not None and paths.exists(output) and not paths.is_folder(output):
        raise UsageError(f"-o {output}: this is a file; a folder is expected")
    source = load(answer)
    made = files_of(read_plan(source), name, source)
    if output is None:
        for file, text in made.items():
            click.echo((f"==> {file} <==\n" if len(made) > 1 else "") + text, nl=False)
        return 0
    write_folder(output, made)
    return 0


def write_folder(folder: Path, texts: Mapping[str, str]) -> None:
    """All texts in a folder, or none: they are written beside it first; other files of the folder stay."""
    with interruption.finishing():
        _write_folder(folder, texts)


def _write_folder(folder: Path, texts: Mapping[str, str]) -> None:
    partial: Path | None = None
    try:
        if not folder.parent.is_dir():
            raise UsageError(f"-o {folder}: there is no folder '{folder.parent}'")
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.partial-", dir=folder.parent))
        for name, text in texts.items():
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            files.write(partial / name, text)
        blocked = next((name for name in texts if (folder / name).is_dir()), None)
        if blocked is not None:
            raise UsageError(f"'{folder / blocked}' cannot be written: this is a folder")
        for name, text in texts.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_symlink() or (target.exists() and not target.is_file()):
                files.write(target, text)
            else:
                (partial / name).replace(target)
    except OSError as problem:
        raise UsageError(f"'{folder}' cannot be written: {(problem.strerror or 'failed').lower()}") from None
    finally:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)
