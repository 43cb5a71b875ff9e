"""The open documents: each read anew when it changes, checked in the background a moment later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pygls import uris

from placedsl.diagnostics import Diagnostic
from placedsl.server.analysis import Analysis, Graphs, analyse
from placedsl.server.document_state import DocumentState, Meaning
from placedsl.server.reading import Reading, read

T = TypeVar("T")
#: How long a text must stay as it is before it is checked, in seconds.
PAUSE = 0.2
#: How long an answer waits for the first check of a document, in seconds.
PATIENCE = 2.0
_LOG = logging.getLogger(__name__)
Publish = Callable[[str, int | None, Reading, tuple[Diagnostic, ...]], None]


def path_of(uri: str) -> Path | None:
    """The file that a URI names; None for what is no file."""
    path = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return None if path is None else Path(path)


@dataclass
class Document:
    """One open document: its text now, and what was found out of it last."""

    uri: str
    text: str
    version: int | None
    reading: Reading | None = None
    pending: tuple[str, asyncio.Future[Reading]] | None = None
    state: DocumentState | None = None
    now: Meaning | None = None
    good: Meaning | None = None
    task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """How messages call it."""
        path = path_of(self.uri)
        return str(path) if path is not None else self.uri

    @property
    def folder(self) -> Path:
        """Where its file names start from."""
        path = path_of(self.uri)
        return path.parent if path is not None else Path.cwd()


@dataclass
class Documents:
    """All open documents.  ``publish`` hears the diagnostics of a version of one.

    Reading and checking have a thread each: an answer never waits for a check of a large graph, and a check that is
    outdated before it begins is left out.
    """

    publish: Publish
    open: dict[str, Document] = field(default_factory=dict)
    graphs: Graphs = field(default_factory=Graphs)
    readers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "reading"))
    checkers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "checking"))

    def change(self, uri: str, text: str, version: int | None) -> None:
        """A document was opened or has another text now."""
        known = self.open.get(uri)
        if known is None:
            known = self.open[uri] = Document(uri, text, version)
        else:
            known.text, known.version, known.reading, known.state = text, version, None, None
        self.check_soon(known, PAUSE if known.now is not None else 0.0)

    def check_soon(self, document: Document, pause: float) -> None:
        """Check a document after a pause, unless it changes before."""
        if document.task is not None:
            document.task.cancel()
        document.task = asyncio.get_running_loop().create_task(self._check(document, pause))

    def check_all(self) -> None:
        """Check every open document: a file that some of them read may have changed."""
        for document in self.open.values():
            self.check_soon(document, PAUSE)

    def close(self, uri: str) -> None:
        """A document is not shown any more."""
        document = self.open.pop(uri, None)
        if document is not None and document.task is not None:
            document.task.cancel()

    def stop(self) -> None:
        """Begin nothing more."""
        for document in self.open.values():
            if document.task is not None:
                document.task.cancel()
        self.readers.shutdown(wait=False, cancel_futures=True)
        self.checkers.shutdown(wait=False, cancel_futures=True)

    async def ask(self, uri: str, question: Callable[[DocumentState], T]) -> T | None:
        """The answer to a question about a document as it is now; None for one that is not open."""
        document = self.open.get(uri)
        if document is None:
            return None
        if document.now is None and document.task is not None:
            # Right after opening nothing is known of the data yet; half a moment later it is.
            await asyncio.wait({document.task}, timeout=PATIENCE)
        state = document.state
        if state is None:
            reading = await self._read(document)
            meanings = tuple(dict.fromkeys(m for m in (document.now, document.good) if m is not None))
            state = DocumentState(reading, meanings, str(document.folder))
            if reading is document.reading:
                document.state = state
        return await self._run(self.readers, lambda: question(state))

    def _run(self, thread: ThreadPoolExecutor, work: Callable[[], T]) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(thread, work)

    async def _read(self, document: Document) -> Reading:
        """The text as it is now, read once a version."""
        while document.reading is None:
            text = document.text
            if document.pending is None or document.pending[0] != text:
                work = self._run(self.readers, lambda: read(document.text, document.name))
                document.pending = (text, asyncio.ensure_future(work))
            # Several may wait for it; that one of them is cancelled is nothing to the others.
            reading = await asyncio.shield(document.pending[1])
            if reading.source.text == document.text:
                document.reading = document.reading or reading
        return document.reading

    async def _check(self, document: Document, pause: float) -> None:
        await asyncio.sleep(pause)
        reading = await self._read(document)
        analysis = await self._run(self.checkers, lambda: _analysed(reading, document.folder, self.graphs))
        if analysis.elaborated is not None:
            document.now = Meaning(analysis.elaborated)
            document.good = document.good if analysis.diagnostics else document.now
        if reading is document.reading and document.uri in self.open:
            document.state = None
            self.publish(document.uri, document.version, reading, analysis.diagnostics)


def _analysed(reading: Reading, folder: Path, graphs: Graphs) -> Analysis:
    """The check of a text; a fault of our own is a diagnostic too, for an editor has nobody else to tell it to."""
    try:
        return analyse(reading, folder, graphs)
    except Exception as problem:  # noqa: BLE001 - told, not swallowed
        _LOG.exception("checking %s", reading.source.name)
        message = f"a fault of placedsl itself: {type(problem).__name__}: {problem}"
        return Analysis((*reading.errors, Diagnostic(message, None, "please report it with the spec")), None)
