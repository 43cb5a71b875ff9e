"""Child processes that do what the tests of processes need; run as ``python -m support.echo_process``."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import time

from placedsl.processes.worker import ParentChannel, serve


def work(channel: ParentChannel) -> None:
    """Follow the instructions of the parent: a word and an argument."""
    inbox: queue.SimpleQueue = queue.SimpleQueue()
    channel.listen(inbox.put)
    while True:
        word, argument = inbox.get()
        match word:
            case "echo":
                channel.send(argument)
            case "print":
                print(argument, flush=True)  # noqa: T201
            case "stdin":
                channel.send(sys.stdin.read())
            case "raise":
                raise ValueError(argument)
            case "exit":
                os._exit(argument)
            case "start":
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
                channel.send((os.getpid(), child.pid))
                time.sleep(600)
            case "end":
                return


if __name__ == "__main__":
    sys.exit(serve(work))
