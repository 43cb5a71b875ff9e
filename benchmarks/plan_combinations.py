"""Machines x chunks x samples in flight x exchanges x paths of plans: what works, what a message refuses.

    python benchmarks/plan_combinations.py                                          count the cells
    python benchmarks/plan_combinations.py --page docs/combinations-of-plans.md     and write the page

Each cell is a small spec that the path solves; the result is compared with enumeration
(``tests/support/plan_combinations.py``).  A cell that is neither right nor refused by a message ends the command with
1.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from combinations import remark, shown  # noqa: E402
from support.combinations import Fault, Outcome  # noqa: E402
from support.plan_combinations import PATHS, PlanCell, plan_cells, plan_outcome  # noqa: E402

HEAD = """# What can be combined in plans

`python benchmarks/plan_combinations.py --page docs/combinations-of-plans.md` writes this page.

[Plans](language/plans.md) of three nodes (four with chunks), which take options, copies and devices within memory, on
four devices (eight in racks). Each cell stands for three specs: weights are exchanged per sample, per round and per
batch. Enumeration of all plans, from the workload in fractions or by the evaluator, gives the optimum. A cell *works*
if the path finds it and proves it. Some paths are checked otherwise:

- **timeline**: it measures the largest load of the optimum; over whole batches that are held at once, no time per
  sample below that.
- **why**: what is proven of one more device is no worse than the optimum, and where devices are of one kind it is
  that of enumeration.
- **conflict**: a constraint that nothing satisfies is found.

A cell is *refused* if a message says why. The tests run some of the cells on every commit.

Of {total:,} specs {works:,} work and {refused:,} are refused.

"""


def main(arguments: Sequence[str]) -> int:
    """Run the cells group by group, print the counts, write the page."""
    parser = argparse.ArgumentParser(description="What can be combined in plans, and what is refused.")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args(arguments)
    groups = [list(own) for _, own in itertools.groupby(plan_cells(), _group)]
    found: dict[PlanCell, Outcome] = {}
    faults: list[str] = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        for number, (group, told) in enumerate(zip(groups, pool.map(_of_group, groups), strict=True), 1):
            for cell, said in zip(group, told, strict=True):
                if isinstance(said, Outcome):
                    found[cell] = said
                else:
                    faults.append(said)
                    print(f"\nfault: {said}", file=sys.stderr)
            print(f"\r{number} of {len(groups)} groups", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    works = sum(said.works for said in found.values())
    print(f"{len(found) + len(faults)} cells: {works} work, {len(found) - works} are refused, {len(faults)} neither")
    if asked.page and not faults:
        asked.page.write_text(page(found), encoding="utf-8")
    return 1 if faults else 0


def _group(cell: PlanCell) -> tuple[object, ...]:
    """Cells that share an enumeration."""
    return cell.machine, cell.chunks, cell.held, cell.exchange


def _of_group(group: list[PlanCell]) -> list[Outcome | str]:
    """The outcome of each cell, or what is wrong with it."""
    out: list[Outcome | str] = []
    for cell in group:
        try:
            out.append(plan_outcome(cell))
        except Fault as fault:
            out.append(str(fault))
        except Exception as fault:  # noqa: BLE001
            out.append(f"{cell}: {type(fault).__name__}: {fault}")
    return out


def page(outcomes: Mapping[PlanCell, Outcome]) -> str:
    """The page as Markdown."""
    works = sum(found.works for found in outcomes.values())
    lines = [
        HEAD.format(total=len(outcomes), works=works, refused=len(outcomes) - works),
        f"| machine | chunks | samples in flight | {' | '.join(PATHS)} |\n",
        "| --- " * (3 + len(PATHS)) + "|\n",
    ]
    messages: dict[str, int] = {}
    for row in dict.fromkeys((cell.machine, cell.chunks, cell.held) for cell in outcomes):
        own = {c: o for c, o in outcomes.items() if (c.machine, c.chunks, c.held) == row}
        cells = [shown([own[cell] for cell in own if cell.path == path], messages) for path in PATHS]
        lines.append(f"| {' | '.join(map(str, (*row, *cells)))} |\n")
    lines.append("\n## Messages\n\n")
    lines += [f"{number}. {message}{remark(message)}\n" for message, number in messages.items()]
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
