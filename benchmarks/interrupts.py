"""What a command leaves behind when it is ended at a random moment: its exit, its last words, processes, files.

    python benchmarks/interrupts.py --times 200 [--within 2] [--seed 1] [--spec examples/latency-calls.place]

Each run is ``placedsl solve SPEC --json FILE``, by the console script or by ``python -m placedsl`` in turn.  It gets
Ctrl-C, SIGTERM or a kill (SIGKILL) after a random time of at most ``--within`` seconds.  The table counts the outcomes:

    done          it had ended before
    answer        the best placement so far, exit code 0, 4 or 5, and a whole file
    one line      ``stopped``, exit code 5, and no file
    killed        ended by SIGKILL, without a part of a file
    interpreter   a traceback, or a death by the signal, before any line of placedsl has run
    TRACEBACK     a traceback of placedsl
    FILE, CHILD   a file that is no whole JSON, or any other file; a process that lives on a second later
    OTHER         anything else

The last four are defects, and make the exit code 1.  What imports before the first line of placedsl is Python's own
start and that of the environment (``site``), and answers Ctrl-C as Python does.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIGNALS = {"Ctrl-C": signal.SIGINT, "SIGTERM": signal.SIGTERM, "kill": signal.SIGKILL}
#: What the script of a wheel runs, as installers write it.
SCRIPT = "import re, sys; from placedsl.__main__ import run; sys.argv[0] = 'placedsl'; sys.exit(run())"
FORMS = {"script": ("-c", SCRIPT), "module": ("-m", "placedsl")}
DEFECTS = ("TRACEBACK", "FILE", "CHILD", "OTHER")


def left_alive(group: int) -> list[int]:
    """Processes of a session, a second after its leader has gone."""
    for _ in range(20):
        alive = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if int(words[3]) == group and words[0] != "Z":
                alive.append(int(entry.name))
        if not alive:
            return []
        time.sleep(0.05)
    return alive


def outcome(form: str, number: signal.Signals, moment: float, spec: Path) -> tuple[str, str]:
    """How one run ends, and its last words."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "answer.json"
        command = [sys.executable, *FORMS[form], "solve", str(spec), "--quiet", "--json", str(target)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                output, words = process.communicate(timeout=moment)
                ended = "done"
            except subprocess.TimeoutExpired:
                process.send_signal(number)
                output, words = process.communicate(timeout=120)
                ended = ""
        alive = left_alive(process.pid)
        for one in alive:
            os.kill(one, signal.SIGKILL)
        files = sorted(Path(folder).iterdir())
        if alive:
            return "CHILD", f"{len(alive)} processes"
        if any(file != target for file in files) or (files and not whole(target)):
            return "FILE", ", ".join(file.name for file in files)
    return kind(ended, process.returncode, number, output, words, bool(files)), words


def kind(ended: str, code: int, number: signal.Signals, output: str, words: str, written: bool) -> str:
    """The outcome by what is said and left."""
    if "Traceback" in words or code == -number:
        if number == signal.SIGKILL and not written:
            return "killed"
        return "TRACEBACK" if "placedsl/" in words.replace("placedsl/__init__", "") else "interpreter"
    if ended:
        return ended if code == 0 and written else "OTHER"
    if code in (0, 4, 5) and output and written:
        return "answer"
    return "one line" if (code, words, written) == (5, "stopped\n", False) else "OTHER"


def whole(file: Path) -> bool:
    """Whether a file is complete JSON."""
    try:
        json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return True


def main() -> int:
    """Count, and print the table; the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--within", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spec", type=Path, default=ROOT / "examples" / "latency-calls.place")
    wanted = parser.parse_args()
    rng, counts = random.Random(wanted.seed), Counter[tuple[str, str, str]]()
    latest = 0.0
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for k in range(wanted.times):
        form, (name, number) = list(FORMS)[k % 2], list(SIGNALS.items())[k // 2 % 3]
        moment = rng.uniform(0.0, wanted.within)
        found, words = outcome(form, number, moment, wanted.spec)
        counts[form, name, found] += 1
        if found == "interpreter":
            latest = max(latest, moment)
        if found in DEFECTS:
            print(f"{form}, {name} after {moment:.3f} s: {found}\n{words}", flush=True)
    columns = sorted({found for _, _, found in counts})
    print(f"{'form':8} {'signal':8} " + " ".join(f"{column:>12}" for column in columns))
    for form in FORMS:
        for name in SIGNALS:
            row = " ".join(f"{counts[form, name, column]:12}" for column in columns)
            print(f"{form:8} {name:8} {row}")
    print(f"the interpreter answered by itself up to {latest:.3f} s")
    return int(any(found in DEFECTS for _, _, found in counts))


if __name__ == "__main__":
    sys.exit(main())
