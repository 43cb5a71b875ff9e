"""Tables of a terminal: at most 80 columns wide where words allow it; what is wider goes on in the next line.

Words, and numbers with their units, are never divided.
"""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

#: Columns of the narrowest usual terminal.
WIDTH = 80


def table(*, indented: bool = True, headings: bool = True) -> Table:
    """An empty table without lines, with two blanks between columns and before the first where it is ``indented``."""
    return Table(box=None, padding=(0, 0, 0, 2), pad_edge=indented, show_header=headings)


def print_table(table: Table, console: Console) -> None:
    """Print it, within the width of the terminal and of :data:`WIDTH`; wider where a word, say a path, needs it."""
    for column in table.columns:
        whole = column.justify == "right"  # numbers
        cells = [Measurement.get(console, console.options, cell) for cell in column.cells]
        heading = Measurement.get(console, console.options, column.header).minimum
        column.min_width = max((one.maximum if whole else one.minimum for one in cells), default=0)
        column.min_width = max(column.min_width, heading)
    least = Measurement.get(console, console.options, table).minimum
    console.print(table, highlight=False, width=min(max(WIDTH, least), console.width))
