"""What docs/formats.md says that tables hold."""

from __future__ import annotations

import re
from pathlib import Path

_PAGE = Path(__file__).parents[1] / "docs" / "formats.md"


def documented(heading: str) -> dict[str, str]:
    """Units of the columns of the table under a heading, in order."""
    (section,) = re.findall(
        rf"^### {re.escape(heading)}\n(.*?)(?=^##|\Z)", _PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    return {
        name: unit.strip()
        for names, unit in re.findall(r"^\| (`[^|]+) \|([^|]*)\|", section, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", names)
    }
