"""Make the README's links and pictures absolute, for the page on PyPI: `python docs/absolute_links.py URL`.

URL is that of the repository on GitHub. The release does it before it builds the distributions; `twine check` does not look at
links.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
LINK = re.compile(r"(!?)\[((?:[^][]|!\[[^]]*\]\([^)]*\))*)\]\((?![a-z]+:|#)([^)\s]+)\)")


def absolute(text: str, url: str) -> str:
    """A Markdown text whose relative links lead to files of a repository, and whose pictures are those files."""

    def link(match: re.Match[str]) -> str:
        kind = "raw" if match[1] else "blob"
        return f"{match[1]}[{LINK.sub(link, match[2])}]({url.rstrip('/')}/{kind}/HEAD/{match[3]})"

    return LINK.sub(link, text)


if __name__ == "__main__":
    README.write_text(absolute(README.read_text(), sys.argv[1]))
