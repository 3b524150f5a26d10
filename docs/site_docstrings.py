"""Docstrings as the site's parser needs them: with an empty line before each section (see mkdocs.yml)."""

from __future__ import annotations

import re
from typing import Any

import griffe

SECTION = re.compile(r"(?<!\n)\n(?=(Args|Returns|Raises|Source|Yields|Attributes):)")


class Sections(griffe.Extension):
    """Separates the sections of every docstring, which the sources write without empty lines."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object that was read from the sources."""
        if obj.docstring is not None:
            obj.docstring.value = SECTION.sub("\n\n", obj.docstring.value)
