"""The server: the protocol's requests and what answers them."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from placedsl.diagnostics import Diagnostic, InputError
from placedsl.language.syntax.formatter import formatted
from placedsl.server import conversion, navigation
from placedsl.server.completion import complete
from placedsl.server.document_state import DocumentState
from placedsl.server.documents import Documents
from placedsl.server.hover import hover
from placedsl.server.outline import outline
from placedsl.server.positions import Positions
from placedsl.server.reading import Reading
from placedsl.system.installation import versions

T = TypeVar("T")
#: What a character that asks for completions by itself may bring up; anything else would be in the way.
_AFTER = {" ": ("unit",), ".": ("attribute",), '"': ("file", "node"), "/": ("file", "unit")}
_REQUEST_FAILED = -32803


class _Place(Protocol):
    """A request about a place in a document."""

    text_document: types.TextDocumentIdentifier
    position: types.Position


def serve() -> int:
    """Speak the protocol over stdin and stdout until the client says exit; 0 if it said shutdown before, else 1."""
    told = logging.StreamHandler(sys.stderr)
    told.setFormatter(OneLine())
    logging.basicConfig(handlers=[told], level=logging.WARNING)
    server = Server()
    output: Any = Output(getattr(sys.stdout.buffer, "raw", sys.stdout.buffer))
    server.start_io(stdout=output)
    server.documents.stop()
    return 0 if server.ended else 1


class OneLine(logging.Formatter):
    """What is logged, each in a line: of an exception its type, its text and its last place."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line = f"{record.levelname.lower()}: {record.getMessage()}"
        problem = record.exc_info[1] if record.exc_info else None
        if problem is not None:
            places = traceback.extract_tb(problem.__traceback__)[-1:]
            at = "".join(f" ({Path(place.filename).name}:{place.lineno})" for place in places)
            line += f": {type(problem).__name__}: {problem}{at}"
        return " ".join(line.split())


class Output:
    """Where messages to the client go.  Once it takes no more, there is nothing left to do: the process ends."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def write(self, data: bytes) -> None:
        """Write all of it."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self.raw.write(rest) or 0 :]
        except BrokenPipeError:  # the client has gone
            os._exit(1)
        except OSError as problem:
            os.write(2, f"error: the output could not be written: {(problem.strerror or 'failed').lower()}\n".encode())
            os._exit(2)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """No more is written."""
        self.raw.close()


class Server(LanguageServer):
    """A language server for ``.place`` documents."""

    def __init__(self) -> None:
        super().__init__("placedsl", versions()["placedsl"], types.TextDocumentSyncKind.Full)
        self.documents = Documents(self.publish)
        self.ended = False
        _register(self)

    @property
    def encoding(self) -> str:
        """What is counted within a line, as agreed with the client."""
        return str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding))

    def publish(self, uri: str, version: int | None, reading: Reading, found: tuple[Diagnostic, ...]) -> None:
        """Publish the diagnostics of a document."""
        shown = conversion.diagnostics(reading, found, self.encoding)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, shown, version))

    async def about(self, at: _Place, question: Callable[[DocumentState, int, Positions], T]) -> T | None:
        """The answer to a question about a place in a document."""

        def asked(state: DocumentState) -> T:
            positions = Positions(state.reading.source.text, self.encoding)
            return question(state, positions.offset(at.position.line, at.position.character), positions)

        return await self.documents.ask(at.text_document.uri, asked)


def _register(server: Server) -> None:
    _register_documents(server)
    _register_answers(server)
    _register_navigation(server)
    _register_renaming(server)


def _register_documents(server: Server) -> None:
    """What the editor reports: opened, changed, saved and closed documents."""
    documents = server.documents

    @server.feature(types.SHUTDOWN)
    def shut_down(*_: object) -> None:
        server.ended = True

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        documents.change(document.uri, document.text, document.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        documents.change(uri, server.workspace.get_text_document(uri).source, params.text_document.version)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(_: types.DidSaveTextDocumentParams) -> None:
        documents.check_all()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(_: types.DidChangeWatchedFilesParams) -> None:
        documents.check_all()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        documents.close(params.text_document.uri)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))


def _register_answers(server: Server) -> None:
    """Hover, completion, outline and layout."""
    documents = server.documents

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hovered(params: types.HoverParams) -> types.Hover | None:
        def asked(state: DocumentState, offset: int, positions: Positions) -> types.Hover | None:
            found = hover(state, offset)
            if found is None:
                return None
            text, at = found
            content = types.MarkupContent(types.MarkupKind.Markdown, text)
            return types.Hover(content, conversion.text_range(positions, at))

        return await server.about(params, asked)

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=list(_AFTER)))
    async def completed(params: types.CompletionParams) -> types.CompletionList:
        trigger = params.context.trigger_character if params.context is not None else None

        def asked(state: DocumentState, offset: int, positions: Positions) -> list[types.CompletionItem]:
            found = complete(state, offset)
            if trigger in _AFTER:
                found = [one for one in found if one.kind in _AFTER[trigger]]
            return conversion.completion_items(positions, found)

        return types.CompletionList(is_incomplete=False, items=await server.about(params, asked) or [])

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def outlined(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        def asked(state: DocumentState) -> list[types.DocumentSymbol]:
            positions = Positions(state.reading.source.text, server.encoding)
            return conversion.document_symbols(positions, outline(state.reading))

        return await documents.ask(params.text_document.uri, asked) or []

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    async def laid_out(params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        def asked(state: DocumentState) -> list[types.TextEdit]:
            positions = Positions(state.reading.source.text, server.encoding)
            try:
                return conversion.replaced(positions, formatted(positions.text))
            except InputError:
                return []  # its diagnostics are shown already

        return await documents.ask(params.text_document.uri, asked) or []


def _register_navigation(server: Server) -> None:
    """Where a name is declared and used."""

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def defined(params: types.DefinitionParams) -> types.Location | None:
        def asked(state: DocumentState, offset: int, positions: Positions) -> types.Location | None:
            target = navigation.definition(state, offset)
            if target is None:
                return None
            if target.source == state.reading.source:
                return types.Location(params.text_document.uri, conversion.text_range(positions, target.at))
            return conversion.location(target.source, target.at, server.encoding)

        return await server.about(params, asked)

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def referred(params: types.ReferenceParams) -> list[types.Location]:
        uri, whole = params.text_document.uri, params.context.include_declaration

        def asked(state: DocumentState, offset: int, positions: Positions) -> list[types.Location]:
            found = navigation.references(state, offset, whole)
            return [types.Location(uri, conversion.text_range(positions, at)) for at in found]

        return await server.about(params, asked) or []

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def highlighted(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
        def asked(state: DocumentState, offset: int, positions: Positions) -> list[types.DocumentHighlight]:
            found = navigation.references(state, offset)
            return [types.DocumentHighlight(conversion.text_range(positions, at)) for at in found]

        return await server.about(params, asked) or []


def _register_renaming(server: Server) -> None:
    """Renaming, refused where it would change what the spec means."""

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    async def rename_begun(params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
        def asked(state: DocumentState, offset: int, positions: Positions) -> types.PrepareRenamePlaceholder:
            found = _allowed(lambda: navigation.renamable(state, offset))
            return types.PrepareRenamePlaceholder(conversion.text_range(positions, found.at), found.name)

        return await server.about(params, asked)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def renamed(params: types.RenameParams) -> types.WorkspaceEdit | None:
        def asked(state: DocumentState, offset: int, positions: Positions) -> types.WorkspaceEdit:
            edits = _allowed(lambda: navigation.rename(state, offset, params.new_name))
            changes = [types.TextEdit(conversion.text_range(positions, at), text) for at, text in edits]
            return types.WorkspaceEdit(changes={params.text_document.uri: changes})

        return await server.about(params, asked)


def _allowed(change: Callable[[], T]) -> T:
    """What a change gives; why there can be none, in the words of the protocol."""
    try:
        return change()
    except navigation.RenameError as problem:
        raise JsonRpcException(str(problem), _REQUEST_FAILED) from None
