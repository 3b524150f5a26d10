"""Fill the numbers of docs/how-to-choose.md in from the rows of the study, so that no number is typed by hand.

A number stands before the name of its row: **1.23 %** (`part / method / quantity`), with `trajectory=`, `mass_profile=` and
`setting=` in it where the row has them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as parquet

DOCS = Path(__file__).parent
PAGE, ROWS = DOCS / "how-to-choose.md", DOCS / "studies" / "sesame.parquet"

_NUMBER = re.compile(r"\*\*[^*\n]+\*\* \(`([^`]+ / [^`]+ / [^`]+)`\)")
_SHARES = (
    "coverage",
    "healthy",
    "undetected_errors",
    "missed",
    "detected jumps",
    "cells within 5 % of the best",
)
_KEYS = ("part", "method", "quantity", "trajectory", "mass_profile", "setting")


def filled(text: str) -> str:
    """The text with every number as the study has it. Raises KeyError for a row that is not there."""
    rows = {tuple(row[k] for k in _KEYS): row for row in parquet.read_table(ROWS).to_pylist()}

    def number(found: re.Match[str]) -> str:
        names = found[1].split(" / ")
        more = dict(name.split("=", 1) for name in names[3:])
        row = rows[(*names[:3], *(more.get(k, "") for k in _KEYS[3:]))]
        return f"**{_text(row['quantity'], row['value'], row['unit'])}** (`{found[1]}`)"

    return _NUMBER.sub(number, text)


def _text(quantity: str, value: float, unit: str) -> str:
    if quantity == "update time":
        value, unit = 1e6 * value, "µs"
    elif quantity in _SHARES:
        value, unit = 100.0 * value, "%"
    return f"{value:.3g} {'' if unit == '1' else unit}".strip()


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
