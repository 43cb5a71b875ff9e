"""The whole process of a warm ``placedsl solve`` and ``placedsl check``, and which packages their start goes into.

    python benchmarks/start.py
    python benchmarks/start.py --against ../before    the same of another checkout, in turns
    python benchmarks/start.py --modules              what is imported

Seconds of wall clock and of the processor, the least of seven runs after one that is not counted, of the README's
example and of a layer graph of 32 operators on six accelerators; "edited": the spec has changed before each run, so
that it has to be parsed.  Each checkout has a cache folder of its own.  On a machine that is busy the seconds of the
processor tell more.  The second table adds up ``python -X importtime`` by package: milliseconds in modules themselves,
without what they import.  `$PLACEDSL_WORKLOADS` names the folder of the published inputs; without it there is the
example alone.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("PLACEDSL_WORKLOADS", ROOT.parent / "shared" / "workloads"))
GRAPH = FOLDER / "dnn-partitioning" / "throughput-inputs" / "LayerGraphs" / "bert24_inference.json"
SPEC = (
    f'graph from "{GRAPH}"\ndevice acc[6]: accelerator {{ memory = 16 GiB }}\ndevice cpu: host\n'
    "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n"
)
EDITED = "edited.place"
#: Where each checkout keeps what it has parsed.
_CACHES = Path(tempfile.gettempdir()) / "placedsl-start"
#: Packages that are told by themselves; the rest of a row is the standard library.
_PACKAGES = ("placedsl", "numba", "llvmlite", "numpy", "lark", "click", "rich")


def run(checkout: Path, command: list[str], *flags: str) -> tuple[float, float, str]:
    """Seconds of wall clock and processor of one process, and what it wrote to standard error."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(checkout), "PLACEDSL_KERNELS": "compiled"}
    environment["PLACEDSL_CACHE"] = str(_CACHES / str(checkout).replace(os.sep, "-"))
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *flags, "-m", "placedsl", *command], capture_output=True, text=True, check=True,
        env=environment, cwd=checkout,
    )  # fmt: skip
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, busy, done.stderr


def imported(stderr: str) -> Iterator[tuple[float, str]]:
    """Milliseconds and name of each module, as ``python -X importtime`` tells them."""
    for line in stderr.splitlines():
        parts = line.removeprefix("import time:").split("|")
        if line.startswith("import time:") and parts[0].strip().isdigit():
            yield int(parts[0]) / 1000, parts[2].strip()


def by_package(stderr: str) -> Counter[str]:
    """Milliseconds of imports by package."""
    out: Counter[str] = Counter()
    for milliseconds, module in imported(stderr):
        package = module.partition(".")[0]
        out[package if package in _PACKAGES else "others"] += milliseconds  # type: ignore[assignment]
    return out


def modules(checkout: Path, commands: dict[str, list[str]]) -> None:
    """For each command the parts of placedsl that it imports, and how many modules of other packages."""
    for name, command in commands.items():
        names = [module for _, module in imported(run(checkout, command, "-X", "importtime")[2])]
        own = {module for module in names if module.startswith("placedsl.")}
        others = Counter(module.partition(".")[0] for module in names if module.partition(".")[0] != "placedsl")
        print(f"{name}: {len(names)} modules, {len(own)} of placedsl")
        print("  " + ", ".join(sorted({".".join(module.split(".")[1:3]) for module in own})))
        print("  " + ", ".join(f"{package} {count}" for package, count in others.most_common() if count > 1))


def edit(command: list[str]) -> None:
    """Change the spec of a command that checks an edited one."""
    path = Path(command[1])
    if path.name == EDITED:
        path.write_text(f"{path.read_text()}# {time.monotonic_ns()}\n")


def seconds(checkouts: dict[str, Path], commands: dict[str, list[str]]) -> None:
    """Both tables, of each checkout."""
    print("| command | checkout | s | processor s |\n| --- | --- | ---: | ---: |")
    for name, command in commands.items():
        for checkout in checkouts.values():
            run(checkout, command)
        runs: dict[str, list[tuple[float, float]]] = {}
        for _ in range(7):
            for place, checkout in checkouts.items():
                edit(command)
                runs.setdefault(place, []).append(run(checkout, command)[:2])
        for place, found in runs.items():
            wall, busy = (min(column) for column in zip(*found, strict=True))
            print(f"| {name} | {place} | {wall:.3f} | {busy:.3f} |", flush=True)
    heads = (*_PACKAGES, "others")
    print("\n| command | checkout |", " | ".join(heads), "|\n| --- | ---", "| ---:" * len(heads), "|")
    for name, command in commands.items():
        for place, checkout in checkouts.items():
            edit(command)
            spent = by_package(run(checkout, command, "-X", "importtime")[2])
            print(f"| {name} | {place} |", " | ".join(f"{spent[one]:.0f}" for one in heads), "|", flush=True)


def main() -> None:
    """The tables, or the modules."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="another checkout, with its own caches of kernels")
    parser.add_argument("--modules", action="store_true", help="what is imported")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "spec.place"
        spec.write_text(SPEC)
        specs = {"example": ROOT / "examples" / "quickstart.place"} | ({"layers": spec} if GRAPH.exists() else {})
        edited = Path(folder) / EDITED
        edited.write_text(specs["example"].read_text())
        commands = {f"check {name}": ["check", str(path)] for name, path in specs.items()}
        commands["check example, edited"] = ["check", str(edited)]
        commands |= {f"solve {name}": ["solve", str(path), "--quiet"] for name, path in specs.items()}
        if arguments.modules:
            modules(ROOT, {name: command for name, command in commands.items() if "example" in name})
            return
        before = {} if arguments.against is None else {"other": arguments.against.resolve()}
        seconds({**before, "this": ROOT}, commands)


if __name__ == "__main__":
    main()
