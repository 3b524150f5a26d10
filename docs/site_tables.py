"""Tables and inline code that are readable on a phone: MkDocs calls this hook (see mkdocs.yml).

A column gets a least width by the length of its texts, so that a column of sentences is not squeezed beside one of units.
Options of commands, and numbers with their units, are not broken between lines; long names in tables are.
"""

from __future__ import annotations

import html
import re
from itertools import zip_longest
from typing import Any

TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
CELL = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.DOTALL)
HEAD = re.compile(r"<th(?: style=\"([^\"]*)\")?>")
INLINE_CODE = re.compile(r"(?<!<pre>)(?<!</span>)<code>([^<\n]*)</code>")
OPTION = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")
NUMBER_AND_UNIT = re.compile(r"(?<=\d)[ \n](?=(?:%|[kmµu]?[gms]|k?Hz|[kMG]i?B|[mk]?N|m?V|A|W|rad|min|h)\b|%)")
TEXT_OR_MARKUP = re.compile(
    r"(<pre\b.*?</pre>|<(?:code|script|svg|math)\b.*?</(?:code|script|svg|math)>|<[^>]*>)", re.DOTALL
)

WIDTHS = ((28, 6.0), (60, 7.5), (120, 9.0), (10_000, 11.0))
"""Greatest length of the texts of a column, in characters, and its least width in rem."""

SHORT, PADDING, LETTER = 12, 1.9, 0.38
"""Texts of at most so many characters are in one line; the padding of a cell and the width of a character in rem."""

LONG = 24
"""Code of more characters than this may be broken in the first column of a table."""


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Set the widths of the columns of a page's tables, and where lines are not broken."""
    content = TABLE.sub(lambda match: with_widths(match[0]), content)
    content = INLINE_CODE.sub(lambda match: f"<code>{whole_options(match[1])}</code>", content)
    parts = TEXT_OR_MARKUP.split(content)
    parts[::2] = [NUMBER_AND_UNIT.sub("\N{NO-BREAK SPACE}", part) for part in parts[::2]]
    return "".join(parts)


def with_widths(table: str) -> str:
    """A table with the least width of each column at its head, and with breakable names."""
    rows = [[text_of(cell) for cell in CELL.findall(row)] for row in ROW.findall(table)]
    widths = iter([least_width(column) for column in zip_longest(*rows, fillvalue="")])
    table = HEAD.sub(lambda match: f'<th style="{match[1] or ""}--least: {next(widths)}rem">', table)
    return INLINE_CODE.sub(lambda match: breakable(match[1]), table)


def text_of(cell: str) -> str:
    """The text of a cell without its markup."""
    return html.unescape(re.sub(r"<[^>]+>", "", cell)).strip()


def least_width(column: tuple[str, ...]) -> float:
    """The least width of a column in rem."""
    length = max(map(len, column[1:]), default=0)
    if length <= SHORT:
        return round(PADDING + LETTER * length, 1)
    return next(width for limit, width in WIDTHS if length <= limit)


def breakable(code: str) -> str:
    """Inline code of a table; a long one may be broken after its separators."""
    if len(html.unescape(code)) <= LONG:
        return f"<code>{code}</code>"
    parts = OPTION.split(code)
    parts[::2] = [re.sub(r"(::|[/_.,-])(?=\w)", r"\1<wbr>", part) for part in parts[::2]]
    parts[1::2] = [whole_options(option) for option in parts[1::2]]
    return f'<code class="long">{"".join(parts)}</code>'


def whole_options(code: str) -> str:
    """Inline code whose options of a command are not broken after their hyphens."""
    return OPTION.sub(lambda match: f'<span class="option">{match[0]}</span>', code)
