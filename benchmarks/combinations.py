"""Execution models x transfers x sharing x clusters x graph x objective x path: what works, what a message refuses.

    python benchmarks/combinations.py                      count the cells
    python benchmarks/combinations.py --root CHECKOUT      of another checkout, by its public interface
    python benchmarks/combinations.py --before OLD --page docs/combinations.md      and write the page

Each cell is a small spec that the path solves; the result is compared with enumeration by the evaluator
(``tests/support/combinations.py``).  A cell that is neither right nor refused by a message ends the command with 1.
``--keep FILE`` keeps what came of each cell, and takes from there what is known already; ``--before FILE`` is such a
file of another checkout.  ``--stride N`` runs every N-th group of cells, ``--jobs N`` so many processes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from support import combination_paths  # noqa: E402
from support.combinations import (  # noqa: E402
    PATHS,
    Cell,
    Fault,
    Outcome,
    cells,
    outcome,
)

HEAD = """# What can be combined

`python benchmarks/combinations.py --page docs/combinations.md` writes this page. Each cell stands for {per_cell} small
specs: inference and training, each with three objectives (the time, the peak memory, and the time followed by the
number of devices). A cell *works* if the path finds the optimum of all of them; enumeration of all placements by the
evaluator gives the optimum. Transfers go through RAM, from device to device, or to all readers at once. Some paths
are checked otherwise:

- **search**: a [method](methods.md) by name finds nothing better than the optimum, and states no bound above it; it may
  find no placement. The method is `local-search` (1F1B) or `m-etf` (operators) for the time where each stage is on one
  device, and `greedy` for all else.
- **timeline**: the [simulation](timelines.md) of the optimum measures its latency or largest load, and in a stream of
  samples the interval between them.
- **why**: values after one more device, more memory or one constraint less that are proven are those of enumeration.
- **conflict**: a constraint that nothing satisfies is found.

A cell is *refused* if a message says why; the numbers refer to the messages below. The tests run some of the cells on
every commit. [Plans](combinations-of-plans.md), with options, copies and tensor parallelism, have a page of their own.

Devices that [stream what does not fit](language/streamed-parameters.md#how-it-is-solved) are known under 1F1B where
each stage is alone; every other execution is refused at the entry `streams`.

Of {total:,} specs {works:,} work and {refused:,} are refused.{before}

"""
#: Why a combination means nothing, or what is missing, by what its message says.
REMARKS = (
    ("devices that share a stage take different samples", "It means nothing: there is only one sample."),
    ("method dp: it (minimises time_per_sample or peak_memory, not latency|knows .*, not (calls|dataflow))",
     "One sample does not run as a chain of stages. `auto` has other dynamic programs and bounds for it."),
    ("method dp: it minimises time_per_sample or peak_memory, not",
     "Its states hold one number, the largest load so far. The program states every objective."),
    ("method dp", "Not written for this combination. The program solves it."),
    ("chunks are not known over clusters", "Not written for this combination."),
    ("method", "Methods by name are not written for this. `auto` searches here."),
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Run the cells group by group, print the counts, write the page."""
    parser = argparse.ArgumentParser(description="What can be combined, and what is refused.")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args(arguments)
    if asked.page and (asked.root or asked.stride > 1):
        parser.error("the page is about all cells of this checkout")
    groups = _groups()[:: asked.stride]
    found = _run(groups, asked.root, asked.keep, asked.jobs)
    for cell, said in found.items():
        if isinstance(said, str) and asked.root is None:
            print("fault:", f"{cell}: {said}", file=sys.stderr)
    print(_counts(found))
    faults = any(isinstance(said, str) for said in found.values())
    if asked.page and not faults:
        outcomes = {cell: said for cell, said in found.items() if isinstance(said, Outcome)}
        asked.page.write_text(page(outcomes, _kept(asked.before) if asked.before else None), encoding="utf-8")
    return 1 if faults and asked.root is None else 0


def _groups() -> list[list[Cell]]:
    """Cells that share an enumeration."""
    key = lambda cell: (cell.execution, cell.transfers, cell.sharing, cell.levels, cell.graph)  # noqa: E731
    return [list(own) for _, own in itertools.groupby(cells(), key)]


def _run(groups: Sequence[list[Cell]], root: Path | None, keep: Path | None, jobs: int) -> dict[Cell, Outcome | str]:
    """What came of each cell; a text where it neither works nor is refused.  A line on stderr tells how far it is."""
    known = _kept(keep) if keep else {}
    left = [group for group in groups if not all(cell in known for cell in group)]
    found = {cell: known[cell] for group in groups for cell in group if cell in known}
    began = time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        running = {pool.submit(_of_group, group, root): group for group in left}
        for number, done in enumerate(as_completed(running), 1):
            group = running[done]
            told = dict(zip(group, done.result(), strict=True))
            found |= told
            if keep:
                with keep.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps([asdict(cell), _plain(said)]) + "\n" for cell, said in told.items())
            faults = sum(isinstance(said, str) for said in found.values())
            seconds = time.monotonic() - began
            far = f"{number} of {len(left)} groups, {len(found)} cells, {faults} neither, {seconds:.0f} s"
            print(f"\r{far}", end="", file=sys.stderr, flush=True)
    if left:
        print(file=sys.stderr)
    return {cell: found[cell] for group in groups for cell in group}


def _plain(said: Outcome | str) -> dict[str, object]:
    return {"fault": said} if isinstance(said, str) else asdict(said)


def _kept(file: Path) -> dict[Cell, Outcome | str]:
    """What an earlier run has kept."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {
        Cell(**cell): said["fault"] if "fault" in said else Outcome(**said) for cell, said in map(json.loads, lines)
    }


def _of_group(group: list[Cell], root: Path | None) -> list[Outcome | str]:
    """The outcome of each cell, or what is wrong with it."""
    if root is None:
        return [_of(cell) for cell in group]
    environment = os.environ | {"PYTHONPATH": str(root)}
    asked = [{"text": cell.text(), "path": cell.path, "method": cell.method} for cell in group]
    script = [sys.executable, "-P", combination_paths.__file__]
    done = subprocess.run(
        script, input="".join(json.dumps(one) + "\n" for one in asked), capture_output=True, text=True,
        check=True, env=environment, cwd=root,
    )  # fmt: skip
    return [_of(cell, json.loads(line)) for cell, line in zip(group, done.stdout.splitlines(), strict=True)]


def _of(cell: Cell, told: dict[str, object] | None = None) -> Outcome | str:
    try:
        return outcome(cell, told, alone=True)
    except Fault as fault:
        return str(fault)
    except Exception as fault:  # noqa: BLE001
        return f"{type(fault).__name__}: {fault}"


def _counts(found: Mapping[Cell, Outcome | str]) -> str:
    works = sum(isinstance(said, Outcome) and said.works for said in found.values())
    faults = sum(isinstance(said, str) for said in found.values())
    return f"{len(found)} cells: {works} work, {len(found) - works - faults} are refused, {faults} neither"


def page(outcomes: Mapping[Cell, Outcome], before: Mapping[Cell, Outcome | str] | None = None) -> str:
    """The page as Markdown; ``before``: what came of the same cells at an earlier version."""
    works = sum(found.works for found in outcomes.values())
    rows = list(dict.fromkeys((cell.execution, cell.transfers, cell.sharing, cell.levels) for cell in outcomes))
    per_cell = len(outcomes) // (len(rows) * len(PATHS))
    earlier = ""
    if before is not None:
        worked = sum(isinstance(said, Outcome) and said.works for said in before.values())
        neither = sum(isinstance(said, str) for said in before.values())
        earlier = (
            f" Of the {len(before):,} that a spec could state at commit 4a0f44d, before execution models were data, "
            f"{worked:,} worked, {len(before) - worked - neither:,} were refused, and {neither:,} neither "
            "(`python benchmarks/combinations.py --root CHECKOUT`)."
        )
    lines = [
        HEAD.format(per_cell=per_cell, total=len(outcomes), works=works, refused=len(outcomes) - works, before=earlier)
    ]
    lines += [
        f"| execution | transfers | stages | levels of clusters | {' | '.join(PATHS)} |\n",
        "| --- " * (4 + len(PATHS)) + "|\n",
    ]
    messages: dict[str, int] = {}
    for row in rows:
        own = {c: o for c, o in outcomes.items() if (c.execution, c.transfers, c.sharing, c.levels) == row}
        shown = [shown([own[cell] for cell in own if cell.path == path], messages) for path in PATHS]
        lines.append(f"| {' | '.join(map(str, (*row, *shown)))} |\n")
    lines.append("\n## Messages\n\n")
    lines += [f"{number}. {message}{remark(message)}\n" for message, number in messages.items()]
    lines.append(
        "\nA message about a statement carries its place in the spec; one about a named method has no place there.\n"
    )
    return "".join(lines)


def remark(message: str) -> str:
    """Why the combination means nothing, or what is missing."""
    remark = next((text for pattern, text in REMARKS if re.search(pattern, message)), "")
    return f"  \n   *{remark}*" if remark else ""


def shown(found: list[Outcome], messages: dict[str, int]) -> str:
    """One cell of the page: works, or how many are refused and by which messages."""
    refused = [message for one in found if not one.works for message in clauses(one.message)]
    numbers = sorted({messages.setdefault(message, len(messages) + 1) for message in refused})
    by = ", ".join(map(str, numbers))
    works = sum(one.works for one in found)
    if works == len(found):
        return "works"
    return f"{works} of {len(found)} ({by})" if works else f"refused ({by})"


def clauses(message: str) -> list[str]:
    """The reasons in a message, each by itself."""
    text = re.sub(r"[.;] [Uu]se --method .*$", "", message)
    method, fits, reasons = text.partition(" does not fit: ")
    return [f"{method}: {reason}" for reason in reasons.split("; ")] if fits else [text]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
