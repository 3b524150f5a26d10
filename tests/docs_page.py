"""Run the code of pages of documentation: `python docs_page.py`.

Each line that it reads names a page and a scratch folder in JSON; it runs the page there, in order, and answers with a line of
JSON: what went wrong, with the page's own lines, or "".

```python blocks of a page share one namespace. In ```console blocks, every line that starts with `$ ` is a command that must
exit with 0. A block whose fence says `norun` after its language is left out. A plain `rotorid` command is called in this
process, so that what one has compiled the others do not compile again, and leaves the page as it found it; the shell runs any
other.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import traceback
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


def called(command: str) -> tuple[int, str]:
    """Exit code and output of a command."""
    import jax
    from typer.testing import CliRunner

    from rotorid.cli import app

    words = shlex.split(command, comments=True)
    if words[0] != "rotorid" or set(command) & set("|&;<>()$`*?"):
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr
    wide = jax.config.read("jax_enable_x64")
    try:
        result = CliRunner().invoke(app, words[1:], prog_name="rotorid")
    finally:
        jax.config.update("jax_enable_x64", wide)
    return result.exit_code, result.output


def run(page: Path) -> str:
    """What goes wrong in a page, "" if nothing does."""
    import jax

    jax.config.update("jax_enable_x64", False)
    module = sys.modules["page"] = types.ModuleType("page")
    for line, language, marks, code in blocks(page.read_text()):
        if "norun" in marks:
            continue
        if language == "python":
            try:
                exec(compile("\n" * line + code, str(page), "exec", dont_inherit=True), vars(module))
            except (Exception, SystemExit):
                return traceback.format_exc()
        elif language == "console":
            for offset, command in commands(code):
                exit_code, output = called(command)
                if exit_code:
                    return f"{page}:{line + 1 + offset}: $ {command}\n{output}"
    return ""


if __name__ == "__main__":
    del sys.path[0]  # this folder: its packages have names that a page may import from elsewhere
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for request in sys.stdin:
        page, folder = json.loads(request)
        os.chdir(folder)
        with contextlib.redirect_stdout(io.StringIO()):
            wrong = run(Path(page))
        print(json.dumps(wrong), flush=True)
        gc.freeze()  # what was compiled lives long: not worth looking through again
    os._exit(0)  # without taking it to pieces
