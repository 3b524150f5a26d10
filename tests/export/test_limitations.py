"""Every limitation has a text."""

from __future__ import annotations

import re
from pathlib import Path

import rotorid.export
from rotorid.export import text


def test_every_limitation_has_a_text() -> None:
    folder = Path(rotorid.export.__file__).parent
    source = "".join(path.read_text() for path in folder.rglob("*.py"))
    codes = set(re.findall(r'limitation\(\s*"(\w+)"', source)) | {
        "inputs_are_thrusts",
        "inputs_without_limit",
    }
    assert codes == set(text._TEXTS)
