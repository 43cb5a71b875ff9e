"""Inputs that nobody would write: every one ends in an answer, or in diagnostics with places.

    python benchmarks/fuzzing.py grammar --count 100000 [--seed 1]     specs generated from the grammar
    python benchmarks/fuzzing.py mutation --seconds 1800               specs of this checkout with pieces changed
    python benchmarks/fuzzing.py tokens --seconds 1800 [--solve]       the same with tokens changed: most can be parsed
    python benchmarks/fuzzing.py onnx --count 20000                    files beside a spec; so for all kinds of files
    python benchmarks/fuzzing.py onnx --seed 1 --number 17             one input again, with its traceback

Kinds of files: ``json`` (the three formats of graphs in JSON), ``text`` (PipeDream's profiles, and graphs within a
spec), ``onnx``, ``pt2``, ``profile`` (measured times, JSON and CSV), ``placement`` (what evaluate, timeline and export
read), ``data`` (values of parameters, JSON and TOML) and ``plan`` (sweeps, TOML and CSV).

What counts as found: anything raised but InputError and UsageError, a warning of Python, a diagnostic without a place
(the name of a file that is no text is one), an input that takes more than ten seconds of a processor or more than two
gigabytes of address space, and the end of the process.  The shortest input of each kind of trouble is written to the
folder of --out.
Inputs are read, checked and grounded (as ``placedsl check`` does); of files, one in seven is grounded.  With --solve
those in order are solved as well, for a second each; what counts as found then is also an answer that ends with an
error.

Each input follows from the seed and its number alone.  Child processes deal with a thousand inputs each.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import mmap
import os
import random
import resource
import select
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import mutated_files
import mutated_specs

import placedsl
from placedsl import plugins
from placedsl.api import spec as spec_module
from placedsl.diagnostics import PlacedslError, Source
from placedsl.language.syntax import parser as parser_of_specs

ROOT = Path(__file__).resolve().parents[1]
#: Seconds of a processor for one input, and for one that is solved: kernels are compiled.
LONGEST, LONGEST_SOLVED = 10, 60
#: Seconds of a clock after which a child that waits for something is ended.
STUCK = 600
MOST_MEMORY = 2 * 10**9
BATCH = 1000
OUTCOMES = ("accepted", "refused")


@dataclass(frozen=True)
class Case:
    """One input: a spec, files beside it, and what is done with them."""

    text: str
    files: dict[str, bytes] = field(default_factory=dict)
    run: Callable[[str, Path], None] | None = None

    @property
    def size(self) -> int:
        """Characters and bytes."""
        return len(self.text) + sum(map(len, self.files.values()))


class Overdue(BaseException):
    """An input took too long; nothing that is tried catches this."""


def overdue(*_: object) -> None:
    """The handler of the alarm."""
    raise Overdue


@functools.cache
def makers() -> dict[str, Callable[[random.Random], Case]]:
    """What makes an input of each kind."""
    generator = mutated_specs.Generator()
    texts = mutated_specs.seeds()
    files = {kind: functools.partial(_of_files, make) for kind, make in mutated_files.MAKERS.items()}
    return {
        "grammar": lambda rng: Case(generator.spec(rng)),
        "mutation": lambda rng: Case(mutated_specs.mutated(rng, texts)),
        "tokens": lambda rng: Case(mutated_specs.altered(rng, texts)),
        **files,
    }


def _of_files(make: Callable[[random.Random], mutated_files.Made], rng: random.Random) -> Case:
    text, files, run = make(rng)
    if run is None and rng.random() < 0.85:  # reading is what differs from one to the next
        run = _read_only
    return Case(text, files, run)


def _read_only(*_: object) -> None:
    """What has been read is not grounded."""


def case(make: Callable[[random.Random], Case], seed: int, number: int) -> Case:
    """The input of a number."""
    return make(random.Random(f"{seed} {number}"))


def outcome(one: Case, folder: Path, solve: bool) -> str:
    """``accepted``, ``refused``, or what is wrong with how an input was dealt with.

    Raises what placedsl raises where it should not.
    """
    longest = LONGEST_SOLVED if solve else LONGEST
    for name, data in one.files.items():
        (folder / name).write_bytes(data)
    # Compiled code is not interrupted by the first of the alarms; the second ends the process.
    signal.setitimer(signal.ITIMER_PROF, longest)
    signal.setitimer(signal.ITIMER_VIRTUAL, longest + 2)
    try:
        data = next((folder / name for name in one.files if name.startswith("data.")), None)
        spec = placedsl.loads(one.text, folder if one.files else ROOT / "examples", data=data)
        if one.run is not None:
            one.run(spec, folder)
        else:
            spec.check()
        if solve:
            answer = spec.solve(time_limit=1, workers=1)
            return f"error: {answer.message}" if answer.termination == "error" else "accepted"
    except placedsl.InputError as problem:
        # A file that is no text has no lines: its name is the place.
        bare = [d.message for d in problem.diagnostics if d.span is None and not any(n in d.message for n in one.files)]
        return f"a diagnostic without a place: {bare[0]}" if bare else "refused"
    except placedsl.UsageError:
        return "refused"
    except PlacedslError as problem:
        return "refused" if problem.exit_code != PlacedslError.exit_code else f"{type(problem).__name__}: {problem}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return "accepted"


def told(one: Case, folder: Path, solve: bool) -> str:
    """As :func:`outcome`; what is raised is named by its type and the last place in its traceback."""
    try:
        return outcome(one, folder, solve)
    except Overdue:
        return "longer than is allowed"
    except Exception as problem:  # noqa: BLE001 - this is what is looked for
        where = traceback.extract_tb(problem.__traceback__)[-1]
        return f"{type(problem).__name__} ({Path(where.filename).name}:{where.lineno})"


class Shared:
    """What a child tells its parent without a word: the number of its input, and counts of outcomes."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 8 * (1 + len(OUTCOMES)))

    def begin(self, number: int) -> None:
        """The child has come to this input."""
        self.memory[:8] = struct.pack("q", number)

    def count(self, what: str) -> None:
        """One more of an outcome."""
        at = 8 * (1 + OUTCOMES.index(what))
        (known,) = struct.unpack("q", self.memory[at : at + 8])
        self.memory[at : at + 8] = struct.pack("q", known + 1)

    @property
    def number(self) -> int:
        """The input that the child is at."""
        return int(struct.unpack("q", self.memory[:8])[0])

    @property
    def counts(self) -> Counter[str]:
        """The outcomes so far, of all children."""
        return Counter(dict(zip(OUTCOMES, struct.unpack(f"{len(OUTCOMES)}q", self.memory[8:]), strict=True)))


def work(
    make: Callable[[random.Random], Case], seed: int, numbers: range, end: float, solve: bool, shared: Shared, pipe: int
) -> None:
    """A child: deals with some inputs, and writes a line of JSON for each that is found."""
    limit_memory()
    gc.set_threshold(200_000, 20, 20)  # as commands set it
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            if time.monotonic() >= end:
                break
            shared.begin(number)
            one = case(make, seed, number)
            what = told(one, Path(folder), solve)
            if what in OUTCOMES:
                shared.count(what)
            else:
                os.write(pipe, json.dumps([number, what, one.size]).encode() + b"\n")
        else:
            shared.begin(numbers.stop)


def limit_memory() -> None:
    """Of this process, and its alarms."""
    signal.signal(signal.SIGPROF, overdue)
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("error", RuntimeWarning)
    warnings.simplefilter("error", SyntaxWarning)


def run(kind: str, seed: int, count: int, seconds: float, solve: bool = False) -> tuple[Counter[str], dict[str, int]]:
    """Deal with inputs until there are enough of them or the time is over.

    Counts of outcomes, and for each kind of trouble the number of the shortest input with it.
    """
    make = makers()[kind]
    end = time.monotonic() + seconds
    found: dict[str, tuple[int, int]] = {}
    shared = Shared()
    troubles = next_number = 0
    case(make, seed, 0)  # what inputs are made of is made once, and not in each child
    gc.freeze()
    while next_number < count and time.monotonic() < end:
        numbers = range(next_number, min(count, next_number + BATCH))
        shared.begin(next_number)
        lines, ended = _in_child(lambda pipe, given=numbers: work(make, seed, given, end, solve, shared, pipe), shared)
        if ended and shared.number < numbers.stop:
            one = case(make, seed, shared.number)
            lines.append([shared.number, f"the process ended: {ended}", one.size])
            shared.begin(shared.number + 1)
        for number, what, size in lines:
            troubles += 1
            if what not in found or size < found[what][1]:
                found[what] = number, size
                print(f"{kind} --seed {seed} --number {number}: {what}", file=sys.stderr, flush=True)
        if not ended and shared.number < numbers.stop:
            break  # the time is over
        next_number = shared.number
    return shared.counts + Counter({"in trouble": troubles}), {what: number for what, (number, _) in found.items()}


def _in_child(task: Callable[[int], None], shared: Shared) -> tuple[list[tuple[int, str, int]], str]:
    """Run a task in a child process: the lines that it wrote, and how it ended where not in order."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            task(writing)
        except BaseException:  # noqa: BLE001 - a child never goes on as its parent
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    text, at, since = b"", -1, time.monotonic()
    while True:
        ready, _, _ = select.select([reading], [], [], 10.0)
        if ready:
            piece = os.read(reading, 65536)
            if not piece:
                break
            text += piece
        if shared.number != at:
            at, since = shared.number, time.monotonic()
        elif time.monotonic() - since > STUCK:
            os.kill(child, signal.SIGKILL)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    ended = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else ""
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        ended = f"exit code {os.WEXITSTATUS(status)}"
    return [tuple(json.loads(line)) for line in text.splitlines()], ended


def _remember_texts() -> None:
    """Parse each text once: the specs beside files are the same again and again."""
    parsed = functools.lru_cache(1000)(lambda text: parser_of_specs.parse(Source("<text>", text)))
    spec_module.parse = lambda source: parsed(source.text)


def keep(folder: Path, kind: str, number: int, one: Case, what: str) -> None:
    """Write an input to a folder."""
    home = folder / f"{kind}-{number}"
    home.mkdir(parents=True, exist_ok=True)
    (home / "spec.place").write_text(one.text, encoding="utf-8", errors="backslashreplace")
    (home / "trouble.txt").write_text(what + "\n", encoding="utf-8")
    for name, data in one.files.items():
        (home / name).write_bytes(data)


def main() -> int:
    """See the text above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made = makers()
    parser.add_argument("kinds", nargs="+", choices=list(made), metavar="KIND", help=", ".join(made))
    parser.add_argument("--count", type=int, default=10**9, help="of each kind")
    parser.add_argument("--seconds", type=float, help="for each kind")
    parser.add_argument("--seed", type=int, help="default: a new one every run")
    parser.add_argument("--number", type=int, help="deal with this input only")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--solve", action="store_true")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(10**9) if given.seed is None else given.seed
    # Which plug-ins are installed is looked up again and again; here it does not change.
    plugins._all = functools.cache(plugins._all)
    if given.number is not None:
        one = case(made[given.kinds[0]], seed, given.number)
        limit_memory()
        with tempfile.TemporaryDirectory() as folder:
            if given.out is not None:
                keep(given.out, given.kinds[0], given.number, one, "")
            print(outcome(one, Path(folder), given.solve))
        return 0
    seconds = given.seconds or (60.0 if given.count == 10**9 else float("inf"))
    return max([_whole_run(kind, seed, given.count, seconds, given.solve, given.out) for kind in given.kinds])


def _whole_run(kind: str, seed: int, count: int, seconds: float, solve: bool, out: Path | None) -> int:
    """All inputs of a kind, with a line about them; 1 where something was found, else 0."""
    spec_module.parse = parser_of_specs.parse
    if kind in mutated_files.MAKERS:
        _remember_texts()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    counts, found = run(kind, seed, count, seconds, solve)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    for what, number in found.items():
        if out is not None:
            keep(out, kind, number, case(makers()[kind], seed, number), what)
    time_used = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    outcomes = ", ".join(f"{counts[what]:,} {what}" for what in (*OUTCOMES, "in trouble"))
    total = sum(counts.values())
    print(f"{kind}: {total:,} inputs, {time_used:.0f} s of a processor, seed {seed}: {outcomes} ({len(found)} kinds)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
