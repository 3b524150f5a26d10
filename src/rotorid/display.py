"""How results show themselves in Python: an overview as short text and as a small table in notebooks, and Arrow tables.

Figures and tables are made by the classes themselves, see `AbstractDisplay`. plotly and pyarrow are imported when one of their
objects is made, not before.
"""

from __future__ import annotations

import abc
import dataclasses
import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa

_TEXT_ROWS: Final = 6  # with heading, head and the number of the rows left out: 9 lines
_HTML_ROWS: Final = 40
_WIDEST: Final = 100  # characters of a line


@dataclasses.dataclass(frozen=True)
class Overview:
    """A result at a glance. heading: what it is. columns: head of the table. rows: its cells; numbers have their units."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class AbstractDisplay(abc.ABC):
    """A result that shows itself.

    `overview` gives the content of `repr` (at most 9 lines) and of the table that notebooks show.
    """

    @abc.abstractmethod
    def overview(self) -> Overview:
        """The result at a glance."""

    @abc.abstractmethod
    def plot(self) -> go.Figure:
        """The result as a plotly figure; the axes have units."""

    @abc.abstractmethod
    def to_frame(self) -> pa.Table:
        """The result as an Arrow table, which pandas, polars and DuckDB take as it is."""

    def __repr__(self) -> str:
        return overview_text(self.overview())

    def _repr_html_(self) -> str:
        return overview_html(self.overview())


def overview_text(overview: Overview) -> str:
    """An overview in at most 9 lines of at most 100 characters."""
    rows = overview.rows[:_TEXT_ROWS]
    lines = [overview.heading]
    if rows:
        table = (overview.columns, *rows)
        widths = [max(len(row[k]) for row in table) for k in range(len(overview.columns))]
        for row in table:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append(f"  {'  '.join(cells)}".rstrip())
    if len(overview.rows) > len(rows):
        lines.append(f"  ... and {len(overview.rows) - len(rows)} more")
    return "\n".join(
        _shortened(" ".join(lines[0].split()) if k == 0 else line) for k, line in enumerate(lines)
    )


def _shortened(line: str) -> str:
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 3]}..."


def overview_html(overview: Overview) -> str:
    """An overview as an HTML table of at most 40 rows; all text is escaped."""

    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    rows = overview.rows[:_HTML_ROWS]
    left_out = len(overview.rows) - len(rows)
    below = f"<p>... and {left_out} more</p>" if left_out else ""
    body = "".join(row(cells, "td") for cells in rows)
    head = row(overview.columns, "th") if rows else ""
    return f"<div><p>{html.escape(overview.heading)}</p><table>{head}{body}</table>{below}</div>"


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of an Arrow table.

    values: n numbers or texts; NaN becomes null. metadata: of the column's field, as its "unit" and "frame"; empty entries are
    left out.
    """

    values: np.ndarray | Sequence[str]
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)


def arrow_table(columns: Mapping[str, Column], metadata: Mapping[str, str]) -> pa.Table:
    """The Arrow table of columns of equal length. metadata: of the table; empty entries are left out."""
    import pyarrow as pa

    def array(values: np.ndarray | Sequence[str]) -> pa.Array:
        is_float = isinstance(values, np.ndarray) and values.dtype.kind == "f"
        return pa.array(values, mask=np.isnan(values) if is_float else None)

    def kept(entries: Mapping[str, str]) -> dict[str, str]:
        return {key: value for key, value in entries.items() if value}

    arrays = [array(column.values) for column in columns.values()]
    fields = [
        pa.field(name, values.type, metadata=kept(column.metadata) or None)
        for (name, column), values in zip(columns.items(), arrays, strict=True)
    ]
    return pa.table(arrays, schema=pa.schema(fields, metadata=kept(metadata) or None))
