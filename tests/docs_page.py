"""Run the code of one page of documentation, in order: `python docs_page.py PAGE`, in a scratch folder.

```python blocks share one namespace. In ```console blocks, every line that starts with `$ ` is a command that must
exit with 0. A block whose fence says `norun` after its language is left out. Failures name the page's own lines.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path

FENCE = re.compile(r"^( *)```(\w+)? *(.*)$")


def blocks(text: str) -> Iterator[tuple[int, str, str, str]]:
    """Line of the fence, language, marks and code of every fenced block."""
    start, language, marks, code = 0, "", "", []
    for number, line in enumerate(text.splitlines(), 1):
        if match := FENCE.match(line):
            if start:
                yield start, language, marks, textwrap.dedent("\n".join(code)) + "\n"
                start, code = 0, []
            else:
                start, language, marks = number, match[2] or "", match[3]
        elif start:
            code.append(line)


def commands(code: str) -> Iterator[tuple[int, str]]:
    """Offset and text of every command of a console block."""
    for offset, line in enumerate(code.splitlines()):
        if line.startswith("$ "):
            yield offset, line[2:]


def run(page: Path) -> int:
    module = sys.modules["page"] = types.ModuleType("page")
    for line, language, marks, code in blocks(page.read_text()):
        if "norun" in marks:
            continue
        if language == "python":
            exec(compile("\n" * line + code, str(page), "exec", dont_inherit=True), vars(module))
        elif language == "console":
            for offset, command in commands(code):
                result = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
                if result.returncode:
                    print(f"{page}:{line + 1 + offset}: $ {command}\n{result.stdout}{result.stderr}")
                    return result.returncode
    return 0


if __name__ == "__main__":
    del sys.path[0]  # this folder: its packages have names that a page may import from elsewhere
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    sys.exit(run(Path(sys.argv[1])))
