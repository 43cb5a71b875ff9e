"""A client of the language server protocol: a process of its own, JSON-RPC over its stdin and stdout."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from support.paths import ROOT

#: How long an answer may take before the test is given up, in seconds; nothing is measured.
_GIVEN_UP = 60.0


class Failed(Exception):
    """The server answered with an error."""


class Client:
    """Talks to ``placedsl lsp``."""

    def __init__(self, encodings: list[str] | None = None) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "placedsl", "lsp", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        self.messages: queue.Queue[dict[str, Any]] = queue.Queue()
        self.published: dict[str, list[dict[str, Any]]] = {}
        self.versions: dict[str, int | None] = {}
        self.numbers = itertools.count(1)
        self.log = b""
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._listen, daemon=True).start()
        general = {"general": {"positionEncodings": encodings}} if encodings else {}
        self.capabilities = self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": general})
        self.tell("initialized", {})

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while line := stream.readline():
            length = 0
            while line.strip():
                name, _, value = line.decode("ascii").partition(":")
                if name.lower() == "content-length":
                    length = int(value)
                line = stream.readline()
            self.messages.put(json.loads(stream.read(length)))

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log += line

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode("utf-8")
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def _next(self) -> dict[str, Any]:
        try:
            message = self.messages.get(timeout=_GIVEN_UP)
        except queue.Empty:
            raise AssertionError(f"the server says nothing; its log: {self.log.decode()}") from None
        if message.get("method") == "textDocument/publishDiagnostics":
            uri = message["params"]["uri"]
            self.published[uri] = message["params"]["diagnostics"]
            self.versions[uri] = message["params"].get("version")
        elif message.get("method") in ("window/showMessage", "window/logMessage"):
            raise AssertionError(message["params"])
        return message

    def tell(self, method: str, params: Any) -> None:
        """A notification."""
        self._send({"method": method, "params": params})

    def ask(self, method: str, params: Any = None) -> Any:
        """A request and its answer."""
        number = next(self.numbers)
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._next()
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise Failed(message["error"]["message"])
                return message["result"]

    def open(self, path: Path | str, text: str) -> Opened:
        """Show a document to the server; its file need not exist."""
        uri = path if isinstance(path, str) else path.as_uri()
        document = Opened(self, uri, text)
        item = {"uri": uri, "languageId": "place", "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": item})
        return document

    def end(self) -> int:
        """Shut the server down as the protocol wants it; its exit code."""
        self.ask("shutdown")
        self.tell("exit", None)
        return self.process.wait(_GIVEN_UP)

    def kill(self) -> None:
        """End a server that has not ended."""
        with contextlib.suppress(OSError):
            self.process.kill()
        self.process.wait(_GIVEN_UP)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class Opened:
    """A document that is shown to the server."""

    def __init__(self, client: Client, uri: str, text: str) -> None:
        self.client, self.uri, self.text, self.version = client, uri, text, 1

    @property
    def name(self) -> dict[str, str]:
        return {"uri": self.uri}

    def change(self, text: str) -> None:
        """Type another text."""
        self.text, self.version = text, self.version + 1
        document = {"uri": self.uri, "version": self.version}
        self.client.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def diagnostics(self) -> list[dict[str, Any]]:
        """What is wrong with the text as it is now."""
        while self.client.versions.get(self.uri) != self.version:
            self.client._next()
        return self.client.published[self.uri]

    def place(self, marked: str) -> dict[str, int]:
        """Line and character (UTF-16) of the ``|`` in a piece of the text."""
        before, after = marked.split("|")
        offset = self.text.index(before + after) + len(before)
        line = self.text[:offset].rpartition("\n")[2]
        return {"line": self.text.count("\n", 0, offset), "character": len(line.encode("utf-16-le")) // 2}

    def ask(self, what: str, marked: str | None = None, **more: Any) -> Any:
        """A request of ``textDocument/`` about the document, or about a place in it."""
        params: dict[str, Any] = {"textDocument": self.name, **more}
        if marked is not None:
            params["position"] = self.place(marked)
        return self.client.ask(f"textDocument/{what}", params)

    def hover(self, marked: str) -> str:
        """The text over a place; empty when there is none."""
        found = self.ask("hover", marked)
        return "" if found is None else found["contents"]["value"]

    def completions(self, marked: str, **more: Any) -> list[str]:
        """The labels of what can be written at a place."""
        return [item["label"] for item in self.ask("completion", marked, **more)["items"]]

    def piece(self, found: dict[str, Any]) -> str:
        """The text of a range (UTF-16)."""
        lines = self.text.split("\n")
        (a, b), (c, d) = ((p["line"], p["character"]) for p in (found["start"], found["end"]))
        units = [line.encode("utf-16-le") for line in lines]
        if a == c:
            return units[a][2 * b : 2 * d].decode("utf-16-le")
        inner = [units[a][2 * b :], *units[a + 1 : c], units[c][: 2 * d]]
        return "\n".join(part.decode("utf-16-le") for part in inner)

    def edited(self, edits: list[dict[str, Any]]) -> str:
        """The text after edits that do not overlap."""
        lines = self.text.split("\n")
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line.encode("utf-16-le")) // 2 + 1)
        units = self.text.encode("utf-16-le")
        spans = [
            tuple(starts[e["range"][k]["line"]] + e["range"][k]["character"] for k in ("start", "end")) for e in edits
        ]
        for (start, end), edit in sorted(zip(spans, edits, strict=True), key=lambda pair: pair[0], reverse=True):
            units = units[: 2 * start] + edit["newText"].encode("utf-16-le") + units[2 * end :]
        return units.decode("utf-16-le")
