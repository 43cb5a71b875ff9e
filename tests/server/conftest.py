"""A language server, and a document that is open in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lsp_client import Client, Opened
from support.spec_texts import SPEC


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    started = Client()
    yield started
    started.kill()


@pytest.fixture
def document(client: Client, tmp_path: Path) -> Iterator[Opened]:
    opened = client.open(tmp_path / "spec.place", SPEC)
    assert opened.diagnostics() == []
    yield opened
    client.tell("textDocument/didClose", {"textDocument": opened.name})
