"""The site of the documents: README and changes are its pages; files outside of docs/ that pages link to are there."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
#: Pages of the site that stand at the top of the repository.
TOP = {"README.md": "index.md", "CHANGELOG.md": "changes.md"}
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")


def on_config(config: Any) -> Any:
    """Name the pages of the language in the order of their table."""
    table = (ROOT / "docs" / "language" / "README.md").read_text(encoding="utf-8")
    pages = dict.fromkeys(f"language/{target}" for target in LINK.findall(table) if "/" not in target)
    section = next(part for part in config.nav if "Language" in part)
    section["Language"] = ["language/README.md", *pages]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add what lies outside of the folder of the documents."""
    written = {file.src_uri: ROOT / "docs" / file.src_uri for file in files.documentation_pages()}
    written |= {page: ROOT / name for name, page in TOP.items()}
    for name, page in TOP.items():
        text = _moved((ROOT / name).read_text(encoding="utf-8"), name, page)
        files.append(File.generated(config, page, content=text))
    linked = {
        _from_root(target, source.relative_to(ROOT).as_posix())
        for source in written.values()
        for target in LINK.findall(source.read_text(encoding="utf-8"))
    }
    for path in sorted(path for path in linked if not path.startswith(("docs/", *TOP))):
        if (ROOT / path).is_file() and files.get_file_from_path(_on_site(path)) is None:
            files.append(File.generated(config, _on_site(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links of a page that lead out of the folder of the documents."""
    uri = page.file.src_uri
    return markdown if uri in TOP.values() else _moved(markdown, f"docs/{uri}", uri)


def _moved(text: str, source: str, page: str) -> str:
    """A text of the file ``source`` with its links as they are from a page of the site."""

    def link(match: re.Match[str]) -> str:
        path = _from_root(match[1], source)
        if not (ROOT / path).exists():
            return match[1]
        return os.path.relpath(_on_site(path), PurePosixPath(page).parent)

    return LINK.sub(link, text)


def _from_root(target: str, source: str) -> str:
    """What a link of a file leads to, as a path from the top of the repository."""
    return os.path.normpath(PurePosixPath(source).parent / target)


def _on_site(path: str) -> str:
    """Where a file of the repository is on the site: specs and programs as text, so that browsers show them."""
    if path in TOP:
        return TOP[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"files/{path}" if path.endswith((".txt", ".json", ".svg", ".png")) else f"files/{path}.txt"
