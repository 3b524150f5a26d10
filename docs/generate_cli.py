"""Write docs/cli.md, the reference of the commands, from the commands themselves: `make docs`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rotorid.cli import COMMANDS, command_of

PAGE = Path(__file__).parent / "cli.md"


def commands() -> dict[str, Any]:
    """Every command by name, in the order of the help."""
    return {name: command_of(name) for name in COMMANDS}


OPTION = re.compile(r"(?<![\w`-])(--[a-z][a-z-]*[a-z])(?![^` ]*`)")
"""An option in a help text, outside of code."""

COMMON_OPTIONS = ("quiet", "verbose")
"""Parameters of every command, which `COMMON` describes."""

COMMON = """
## Options and exit codes

Every command has these two options, which may also come before the command:

- `-q`, `--quiet` prints only errors and the requested result.
- `-v`, `--verbose` prints each stage of the work with its duration and processor time on stderr. `-vv` also prints when each
  stage begins.

For scripts, `--json` prints the result as one JSON document on stdout, and nothing else. If the command also writes
`summary.json` (`compare`: `comparison.json`; `dataset`: `dataset.json`), the document has the same content. An error is one
line on stderr. With the environment variable `ROTORID_PROGRESS=json`, each step prints a JSON line on stderr, such as
`{"stage": "Fitting", "done": 3, "total": 20}`. The line is repeated every second of a long step. `total` is 0 if it is unknown.
`--open` opens the report in the browser.

`rotorid --install-completion` installs completion for the present shell (bash, zsh, fish, PowerShell). It completes commands,
options, names of airframes, estimators and other choices, and files. `_ROTORID_COMPLETE=source_bash rotorid` prints the script
instead.

| exit code | meaning |
|---|---|
| 0 | The command succeeded. |
| 1 | `identify` or `fly-back` did not accept the model (its files are written), or an error in rotorid occurred (see stderr). |
| 2 | Wrong use, wrong input, no permission or a full disk. One line on stderr states the error and what to do. |
| 130 | The command was interrupted by Ctrl-C. |

The verdicts of the other commands do not change the exit code.
"""


def reference() -> str:
    """The page."""
    listed = "\n".join(
        f"- [`rotorid {name}`](commands/{name}.md): {first_sentence(command.help)}"
        for name, command in commands().items()
    )
    head = (
        "# The commands\n\n"
        "This page has the text of `rotorid COMMAND --help` of all commands. The name of a command leads to its page with "
        "examples.\n\n"
    )
    return (
        head
        + listed
        + "\n"
        + COMMON
        + "".join(section(name, command) for name, command in commands().items())
    )


def section(name: str, command: Any) -> str:
    """One command: how to call it, what it does, what it takes."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    needed = [f"{p.opts[0]} {p.metavar}" for p in command.params if p.required and p not in arguments]
    taken = [p.metavar if p.required or p.metavar[0] == "[" else f"[{p.metavar}]" for p in arguments]
    last = [metavar for metavar in taken if metavar.startswith("[--")]
    first = [metavar for metavar in taken if metavar not in last]
    usage = " ".join(["rotorid", name, *first, *needed, "[OPTIONS]", *last])
    shown = [p for p in command.params if not getattr(p, "hidden", False) and p.name not in COMMON_OPTIONS]
    rows = "\n".join(row(p) for p in shown)
    table = f"| name | meaning |\n|---|---|\n{rows}\n"
    call = f"```console norun\n$ {usage}\n```"
    return f"\n## rotorid {name}\n\n{call}\n\n{text(command.help)}\n\n{table if rows else ''}"


def row(parameter: Any) -> str:
    """One argument or option, as a row of the table."""
    if parameter.param_type_name == "argument":
        name = f"`{parameter.metavar}`"
    else:
        options = sorted(parameter.opts, key=len, reverse=True) + parameter.secondary_opts
        names = ", ".join(f"`{option}`" for option in options)
        kind = "" if getattr(parameter, "is_flag", False) else parameter.metavar or parameter.name.upper()
        name = f"{names} {kind}".strip()
    return f"| {name} | {text(parameter.help)}{default(parameter)} |"


def default(parameter: Any) -> str:
    """The sentence on the default of a parameter, empty where its help has it or there is none."""
    if parameter.required:
        return " Required."
    value = parameter.default
    if isinstance(value, bool) and parameter.secondary_opts:
        return f" Default: `{(parameter.opts if value else parameter.secondary_opts)[-1]}`."
    stated = "Default: " in (parameter.help or "")
    return "" if stated or value is None or value is False or value == "" else f" Default: `{value}`."


def text(help_: str | None) -> str:
    """A help text with one line a paragraph, and its options as code."""
    paragraphs = (help_ or "").replace("|", "\\|").strip().split("\n\n")
    return "\n\n".join(OPTION.sub(r"`\1`", " ".join(paragraph.split())) for paragraph in paragraphs)


def first_sentence(help_: str | None) -> str:
    return text(help_).split("\n")[0].split(". ")[0].rstrip(".")


if __name__ == "__main__":
    PAGE.write_text(reference())
    print(PAGE)
