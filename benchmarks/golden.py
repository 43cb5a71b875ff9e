"""Behaviour before and after a refactoring: what the commands say of every example, document and published workload.

    python benchmarks/golden.py record before/                         # of this checkout
    python benchmarks/golden.py record after/ --root ../other --group examples --only 'kv-*'
    python benchmarks/golden.py compare before/ after/                 # exit code 1 where anything differs
    python benchmarks/golden.py digest before/ -o tests/golden/digest.json

``record`` runs ``explain`` of a checkout on each spec, then ``solve`` (one worker, seed 0), or ``check`` where the spec
is wrong or takes too long: the commands of ``examples/README.md``, the fences of ``docs/``, and the inputs of
$PLACEDSL_WORKLOADS (else ../shared/workloads).  Only the command line is used, nothing of the package.  What differs
between two runs of the same code is left out or set apart:

seconds, versions    of ``solve``, and the seconds of each part of ``explain``
paths                of the checkout and of the scratch folder are ``<checkout>`` and ``<scratch>``
without a proof      (a time limit) all but the termination, for what was found by then hangs on the machine's load
raced                an answer that is not dynamic programming's is given by whichever of several processes is first:
                     its placement and what follows from it, message and notes, of one sample method and solver are
                     kept under ``raced``, compared with ``--raced`` only; no gap; values and bounds to 2e-6
conflicts            repairs (searched for until a deadline), and whether what always holds is named: under ``raced``
compilation          a run during which numba compiled is repeated, as that counts towards its time limit
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = Path(os.environ.get("PLACEDSL_WORKLOADS", ROOT.parent / "shared" / "workloads")).resolve()
#: Compiled kernels and bytecode of the checkouts, so that nothing is written into them.
STATE = Path(tempfile.gettempdir()) / "placedsl-golden"
GROUPS = ("examples", "documents", "workloads")
SOLVE = ("--quiet", "--seed", "0", "--workers", "1", "--time-limit", "60s")
#: Seconds after which a command is killed, and how often one is repeated during which kernels were compiled.
KILL_AFTER, REPEATS = 180.0, 4
FENCE = re.compile(r"^(?:<!-- data: (\S+) -->\n)?```(place|place-error)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"`placedsl (?:solve|check) ([^`]+)`")
#: Not solved within 20 s by one worker (or not with a margin): explained and checked only.
UNSOLVED = (
    "workloads/free-LayerGraphs-[ir]*", "workloads/free-OperatorGraphs-bert_[lL]-[61]*", "workloads/moirai-[!e]*",
    "workloads/calls*-LayerGraphs-i*", "workloads/calls-twice-Op*", "workloads/pipedream-inception_v3-10-Gbit-s-8",
)  # fmt: skip
#: Ends of a run that do not hang on its seconds; what the winner decides where several processes race for an answer.
PROVEN = ("optimal", "infeasible", "unbounded", "error")
RACED = ("placement", "fused", "devices", "variables", "schedule", "soft", "notes")
#: Relative: what is computed, and bounds and values that a solver calls optimal.
EXACT, OPTIMAL = 1e-9, 2e-6


@dataclass(frozen=True)
class Case:
    """A spec as a user has it: the file ``spec`` in a folder of the scratch folder, where the commands run.

    ``text``: what it holds (empty: it is there already); or ``imported``: arguments of ``placedsl import`` that write
    it, with a text in it ``changed`` to another.  ``options``: data and parameters, for every command.
    """

    group: str
    name: str
    folder: str
    spec: str
    text: str = ""
    options: tuple[str, ...] = ()
    imported: tuple[str, ...] = ()
    changed: tuple[str, str] = ("", "")

    @property
    def key(self) -> str:
        """Group and name."""
        return f"{self.group}/{self.name}"


def slug(text: str) -> str:
    """A text as part of a file's name."""
    return re.sub(r"[^\w.=-]+", "-", text).strip("-")


def sha(text: str) -> str:
    """The first digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def examples(specs: Path) -> Iterator[Case]:
    """Every command of ``examples/README.md``, and every spec of the folder that none of them names."""
    folder, seen = specs / "examples", set()
    for found in COMMAND.findall((folder / "README.md").read_text(encoding="utf-8")):
        spec, *options = shlex.split(found)
        seen.add(spec)
        name = slug(" ".join([spec.removesuffix(".place"), *options]))
        yield Case("examples", name, "examples", spec, options=(*options,))
    for path in sorted([*folder.glob("*.place"), *folder.glob("wrong/*.place")]):
        spec = path.relative_to(folder).as_posix()
        if spec not in seen:
            yield Case("examples", slug(spec.removesuffix(".place")), "examples", spec)


def documents(specs: Path) -> Iterator[Case]:
    """Every fence of kind place or place-error in ``docs/``, named by its page and its text."""
    for page in sorted((specs / "docs").rglob("*.md")):
        relative = page.relative_to(specs)
        for data, _, text in FENCE.findall(page.read_text(encoding="utf-8")):
            name = slug(f"{relative.with_suffix('').as_posix().removeprefix('docs/')}-{sha(data + text)[:8]}")
            options = ("--data", data) if data else ()
            yield Case("documents", name, relative.parent.as_posix(), "golden-spec.place", text, options)


def workloads() -> Iterator[Case]:
    """Published inputs: throughput with and without contiguity, latency, Moirai's and PipeDream's profiles."""

    def case(name: str, text: str = "", imported: tuple[str, ...] = (), changed: tuple[str, str] = ("", "")) -> Case:
        return Case("workloads", name, "specs", "workload.place", text, (), imported, changed)

    for path, file in published("dnn-partitioning/throughput-inputs/*/*.json"):
        name = f"{path.parent.name}-{path.stem}"
        yield case(f"contiguous-{name}", throughput_spec(path, file))
        yield case(f"free-{name}", imported=("dnn-partitioning", file, "--non-contiguous"))
    for path, file in published("dnn-partitioning/latency-inputs/*/*.json"):
        name, given = f"{path.parent.name}-{path.stem}", ("dnn-partitioning", file, "--objective", "latency")
        yield case(f"calls-{name}", imported=given)
        twice = ("schedule calls", "schedule calls { pieces = 2 }")
        yield case(f"calls-twice-{name}", imported=given, changed=twice)
    for path, file in published("moirai/*.json"):
        for reading in ("port", "link"):
            changed = ("    congestion\n", f"    congestion by {reading}\n")
            yield case(f"moirai-{path.stem}-{reading}", imported=("moirai", file), changed=changed)
    for path, file in published("pipedream/*.txt"):
        for link in ("10 Gbit/s", "12 GB/s"):
            for devices in (4, 8):
                text = (
                    f'graph from "{file}"\ndevice gpu[{devices}]: accelerator\n'
                    f"interconnect {{ bandwidth = {link} }}\n"
                    "minimize time_per_sample\nsubject to\n    contiguous\n    colocated by layer\n"
                )
                yield case(f"pipedream-{path.stem}-{slug(link)}-{devices}", text)


def published(pattern: str) -> Iterator[tuple[Path, str]]:
    """The published inputs of a pattern, and how a spec in the scratch folder names each."""
    for path in sorted(WORKLOADS.glob(pattern)):
        if "LICENSE" not in path.name:
            yield path, f"../workloads/{path.relative_to(WORKLOADS).as_posix()}"


def throughput_spec(path: Path, file: str) -> str:
    """A contiguous split of a published workload, which the spec names ``file``."""
    given = json.loads(path.read_text(encoding="utf-8"))
    accelerators = f"device acc[{given['maxFPGAs']}]: accelerator {{ memory = {given['maxSizePerFPGA']} B }}"
    return (
        f'graph from "{file}"\n{accelerators}\ndevice cpu[{given["maxCPUs"]}]: host\n'
        "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n    colocated by colorClass\n"
    )


@dataclass(frozen=True)
class Runner:
    """Runs ``python -m placedsl`` of a checkout; ``kernels`` is where numba keeps what it compiled."""

    root: Path
    scratch: Path
    kernels: Path

    def run(self, case: Case, command: str, *arguments: str) -> dict[str, Any]:
        """Exit code, stderr and what it wrote to stdout; repeated while kernels are compiled."""
        full = [sys.executable, "-m", "placedsl", command, *arguments]
        environment = {
            **{name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "PYTHONPATH": str(self.root), "PYTHONPYCACHEPREFIX": str(STATE / "bytecode"), "COLUMNS": "120",
            "NUMBA_CACHE_DIR": str(self.kernels), "PLACEDSL_CACHE": str(STATE),
        }  # fmt: skip
        for _ in range(REPEATS):
            before = sum(1 for _ in self.kernels.rglob("*"))
            try:
                done = subprocess.run(
                    full, cwd=self.scratch / case.folder, env=environment, capture_output=True, text=True, check=False,
                    timeout=KILL_AFTER,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return {"exit": -9, "stderr": f"killed after {KILL_AFTER:g} s"}
            if sum(1 for _ in self.kernels.rglob("*")) == before:
                break
        out, stdout = {"exit": done.returncode, "stderr": self.placed(done.stderr)}, self.placed(done.stdout)
        return out | ({"json": json.loads(stdout)} if stdout.startswith("{") else {"stdout": stdout})

    def placed(self, text: str) -> str:
        """A text without the paths of this machine."""
        return text.replace(str(self.scratch), "<scratch>").replace(str(self.root), "<checkout>")


def recorded(runner: Runner, case: Case) -> dict[str, Any]:
    """All that is kept of a spec."""
    spec = runner.scratch / case.folder / case.spec
    out: dict[str, Any] = {"command": shlex.join([case.spec, *case.options])}
    if case.imported:
        out["import"] = runner.run(case, "import", *case.imported, "-o", "-")
        spec.write_text(out["import"].get("stdout", "").replace(*case.changed), encoding="utf-8")
    elif case.text:
        spec.write_text(case.text, encoding="utf-8")
    out["explain"] = runner.run(case, "explain", case.spec, *case.options, "--json", "-")
    for part in out["explain"].get("json", {}).get("parts", ()):
        del part["seconds"]
    if out["explain"]["exit"] or any(fnmatch.fnmatch(case.key, pattern) for pattern in UNSOLVED):
        out["check"] = runner.run(case, "check", case.spec, *case.options)
    else:
        out["solve"] = answer(runner.run(case, "solve", case.spec, *case.options, "--json", "-", *SOLVE))
    return out


def answer(found: dict[str, Any]) -> dict[str, Any]:
    """What ``solve`` answers, without what differs between two runs of the same code."""
    if (said := found.get("json")) is None:
        return found
    del said["seconds"], said["versions"]
    if said["status"]["termination"] not in PROVEN:
        return {"json": {"status": {"termination": said["status"]["termination"]}}}
    raced: dict[str, Any] = {}
    if conflict := said.get("conflict"):
        raced = {name: conflict.pop(name) for name in ("repair", "unfinished")} | {"conflict": conflict["constraints"]}
        conflict["constraints"] = [part for part in raced["conflict"] if part["line"] is not None]
    if said["method"] != "dp":
        raced |= {name: said.pop(name) for name in RACED if name in said}
        raced["message"] = said["status"].pop("message", None)
        if raced.get("schedule") is not None:
            raced |= {name: said.pop(name) for name in ("method", "solver")}
        for goal in [said["objective"], *said["objectives"]]:
            goal.pop("gap", None)
    return found | ({"raced": raced} if raced else {})


def record(arguments: argparse.Namespace) -> int:
    """One file a spec under a folder, and how long that took."""
    root, specs = arguments.root.resolve(), (arguments.specs or arguments.root).resolve()
    cases = [*examples(specs), *documents(specs), *workloads()]
    chosen = [c for c in cases if arguments.group in (None, c.group) and fnmatch.fnmatch(c.name, arguments.only or "*")]
    if not WORKLOADS.is_dir() or not chosen:
        print(f"nothing to record, or '{WORKLOADS}' is not there", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder).resolve()
        for name in ("examples", "docs"):
            shutil.copytree(specs / name, scratch / name)
        shutil.copytree(WORKLOADS, scratch / "workloads")
        for path in (WORKLOADS / "dnn-partitioning" / "throughput-inputs").glob("*/bert_l-3_*.json"):
            shutil.copy(path, scratch / "examples")
        (scratch / "specs").mkdir()
        runner = Runner(root, scratch, kernels_of(root))
        for case in chosen:
            began = time.monotonic()
            out, found = arguments.folder / f"{case.key}.json", recorded(runner, case)
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            ends = found.get("solve", {}).get("json", {}).get("status", {}).get("termination", "")
            print(f"{time.monotonic() - began:6.1f} s  {case.key}  {ends}", flush=True)
    return 0


def kernels_of(root: Path) -> Path:
    """Where the compiled kernels of a checkout lie: another folder where one changed, as numba overlooks callees."""
    texts = (path.read_text(encoding="utf-8") for path in sorted((root / "placedsl").rglob("*.py")))
    folder = STATE / "kernels" / sha("".join(text for text in texts if "kernel(" in text))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def differences(before: Any, after: Any, path: str = "", near: float = EXACT) -> Iterator[tuple[str, Any, Any]]:
    """Where two records differ: the path and both values (``...``: there is none)."""
    if isinstance(before, list) and isinstance(after, list):
        before, after = by_name(before), by_name(after)
        if isinstance(before, dict) and isinstance(after, dict):
            order = [name for name in before if name in after], [name for name in after if name in before]
            if order[0] != order[1]:
                yield f"{path} (order)", order[0], order[1]
    if isinstance(before, dict) and isinstance(after, dict):
        near = OPTIMAL if "raced" in before or "raced" in after else near
        for name in [*before, *(name for name in after if name not in before)]:
            yield from differences(before.get(name, ...), after.get(name, ...), f"{path}.{name}", near)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (one, other) in enumerate(zip(before, after)):
            yield from differences(one, other, f"{path}[{i}]", near)
    elif isinstance(before, float | int) and isinstance(after, float | int):
        if not math.isclose(before, after, rel_tol=near, abs_tol=1e-12 if near == EXACT else 1e-9):
            yield path, before, after
    elif before != after:
        yield path, before, after


def by_name(items: list[Any]) -> Any:
    """A list of things with names by kind and name, so that one more does not shift the others."""
    named: dict[str, Any] = {}
    if not items or not all(isinstance(item, dict) and "name" in item for item in items):
        return items
    for item in items:
        name = " ".join(str(item[key]) for key in ("kind", "rewrite", "name") if key in item)
        while name in named:
            name += " again"
        named[name] = item
    return named


def shown(value: Any, other: Any) -> str:
    """A value beside another, in one line: of long texts the first line in which they differ."""
    if value is ...:
        return "(none)"
    if isinstance(value, str) and isinstance(other, str) and "\n" in value:
        lines, others = value.split("\n"), other.split("\n")
        at = next((i for i, (a, b) in enumerate(zip(lines, others)) if a != b), min(len(lines), len(others)))
        return f"line {at + 1} of {len(lines)}: {lines[at] if at < len(lines) else '(end)'}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:200] + " ..."


def compare(arguments: argparse.Namespace) -> int:
    """Print every difference; 1 if there is one."""
    before, after = read(arguments.before), read(arguments.after)
    found = 0
    for key in sorted(before.keys() | after.keys()):
        known = found
        for path, old, new in differences(before.get(key, ...), after.get(key, ...)):
            if (old is ... and arguments.added_keys_ok) or (".raced." in path and not arguments.raced):
                continue
            print("" if found > known else f"{key}\n", end="")
            print(f"  {path or 'all of it'}\n    before  {shown(old, new)}\n    after   {shown(new, old)}")
            found += 1
    print(f"{len(before)} specs before, {len(after)} after, {found} differences", file=sys.stderr)
    return int(found > 0)


def read(folder: Path) -> dict[str, Any]:
    """The records of a folder by group and name."""
    paths = [path for group in GROUPS for path in sorted((folder / group).glob("*.json"))]
    return {f"{path.parent.name}/{path.stem}": json.loads(path.read_text(encoding="utf-8")) for path in paths}


def digest(arguments: argparse.Namespace) -> int:
    """The essence of a folder of records in one file, a line a spec."""
    lines = [f'"{key}": {json.dumps(essence(one))}' for key, one in read(arguments.folder).items()]
    arguments.output.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return 0


def essence(one: dict[str, Any]) -> dict[str, Any]:
    """Exit codes, the size of the program, and the answer of one spec; texts and placements as a hash."""
    said = one["explain"].get("json", {})
    out: dict[str, Any] = {name: found["exit"] for name, found in one.items() if "exit" in found}
    if one["explain"].get("stderr"):
        out["stderr"] = sha(one["explain"]["stderr"])
    if program := said.get("program"):
        out["program"] = "{formulation}: {rows} rows, {columns} columns, {entries} non-zeros".format(**program)
    if found := one.get("solve", {}).get("json"):
        out["termination"] = found["status"]["termination"]
        for name, words in (("values", "value"), ("bounds", "bound")):
            numbers = [goal[words] for goal in found.get("objectives", ())]
            out[name] = [None if n is None else float(f"{n:.6g}") for n in numbers]
        out |= {name: found[name] for name in ("method", "solver") if name in found}
        if found.get("placement"):
            out["placement"] = sha(json.dumps(found["placement"], sort_keys=True))
    return out


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("record", help="run the commands on every spec, into an empty folder")
    one.set_defaults(run=record)
    one.add_argument("folder", type=Path)
    one.add_argument("--only", metavar="PATTERN", help="names of specs, as in 'kv-*'")
    one.add_argument("--group", choices=GROUPS)
    one.add_argument("--root", type=Path, default=ROOT, metavar="CHECKOUT", help="whose code runs")
    one.add_argument("--specs", type=Path, metavar="CHECKOUT", help="whose examples and documents (as --root)")
    one = commands.add_parser("compare", help="print what differs between two recordings")
    one.set_defaults(run=compare)
    one.add_argument("before", type=Path)
    one.add_argument("after", type=Path)
    one.add_argument("--added-keys-ok", action="store_true", help="what only AFTER has is no difference")
    one.add_argument("--raced", action="store_true", help="compare what a race decides as well")
    one = commands.add_parser("digest", help="write the essence of a recording into one file")
    one.set_defaults(run=digest)
    one.add_argument("folder", type=Path)
    one.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    return int(given.run(given))


if __name__ == "__main__":
    sys.exit(main())
