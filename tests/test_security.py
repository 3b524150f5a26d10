"""SECURITY.md: each row of its table of threats names a test that there is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROW = re.compile(
    r"\| (?P<threat>[^|]+) \| (?P<defence>[^|]+) \| `(?P<file>tests/[\w/]+\.py)::(?P<test>test_\w+)` \|"
)


def test_every_threat_names_a_test():
    text = (ROOT / "SECURITY.md").read_text()
    table = text.partition("| threat |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(table) > 30
    for line in table:
        row = ROW.fullmatch(line)
        assert row is not None, line
        tree = ast.parse((ROOT / row["file"]).read_text())
        assert row["test"] in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)], line
