"""Execution models x sharing x clusters x graph x objective x path: what works, and what is refused with which message.

    python benchmarks/combinations.py                            count the cells
    python benchmarks/combinations.py docs/combinations.md       and write the page

Each cell is a small spec that the path solves; the result is compared with enumeration by the evaluator
(``tests/support/combinations.py``).  A cell that is neither right nor refused by a message ends the command with 1.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from support.combinations import EXECUTIONS, MACHINES, PATHS, SHARING, Cell, Fault, Outcome, cells, outcome  # noqa: E402

HEAD = """# What can be combined

`python benchmarks/combinations.py docs/combinations.md` writes this page. Each cell stands for {per_cell} small specs:
inference and training, each with three objectives (the time, the peak memory, and the time followed by the number of
devices). A cell *works* if the path finds the optimum of all of them; enumeration by the evaluator gives the optimum. A
cell is *refused* if a message says why; the numbers refer to the messages below. The tests run some of the cells on
every commit.

Of {total:,} specs {works:,} work and {refused:,} are refused.

"""


def main(target: str | None) -> int:
    """Run all cells on all processors, print the counts, write the page."""
    outcomes: dict[Cell, Outcome] = {}
    faults = 0
    every = list(cells())
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for cell, found in zip(every, pool.map(_of, every, chunksize=4), strict=True):
            if isinstance(found, str):
                faults += 1
                print("fault:", found, file=sys.stderr, flush=True)
            else:
                outcomes[cell] = found
    works = sum(found.works for found in outcomes.values())
    print(f"{len(every)} cells: {works} work, {len(outcomes) - works} are refused, {faults} faults")
    if target is not None and not faults:
        Path(target).write_text(page(outcomes), encoding="utf-8")
    return 1 if faults else 0


def _of(cell: Cell) -> Outcome | str:
    """The outcome of a cell, or what is wrong with it."""
    try:
        return outcome(cell)
    except Fault as fault:
        return str(fault)
    except Exception as fault:  # noqa: BLE001
        return f"{cell}: {type(fault).__name__}: {fault}"


def page(outcomes: Mapping[Cell, Outcome]) -> str:
    """The page as Markdown."""
    works = sum(found.works for found in outcomes.values())
    per_cell = len(outcomes) // (len(EXECUTIONS) * len(SHARING) * len(MACHINES) * len(PATHS))
    lines = [HEAD.format(per_cell=per_cell, total=len(outcomes), works=works, refused=len(outcomes) - works)]
    lines += [
        f"| execution | stages | levels of clusters | {' | '.join(PATHS)} |\n",
        "| --- " * (3 + len(PATHS)) + "|\n",
    ]
    messages: dict[str, int] = {}
    for execution in EXECUTIONS:
        for sharing in SHARING:
            for levels in range(len(MACHINES)):
                row = {cell: found for cell, found in outcomes.items()
                       if (cell.execution, cell.sharing, cell.levels) == (execution, sharing, levels)}  # fmt: skip
                shown = [_shown([row[cell] for cell in row if cell.path == path], messages) for path in PATHS]
                lines.append(f"| {execution} | {sharing} | {levels} | {' | '.join(shown)} |\n")
    lines.append("\n## Messages\n\n")
    lines += [f"{number}. {message}\n" for message, number in messages.items()]
    return "".join(lines)


def _shown(found: list[Outcome], messages: dict[str, int]) -> str:
    """One cell of the page: works, or how many are refused and by which messages."""
    refused = [one.message for one in found if not one.works]
    numbers = sorted({messages.setdefault(message, len(messages) + 1) for message in refused})
    by = ", ".join(map(str, numbers))
    if not refused:
        return "works"
    return f"refused ({by})" if len(refused) == len(found) else f"{len(found) - len(refused)} of {len(found)} ({by})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
