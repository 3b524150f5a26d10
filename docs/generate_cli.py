"""Write docs/cli.md, the reference of the commands, from the commands themselves: `make docs`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rotorid.cli import COMMANDS, command_of

PAGE = Path(__file__).parent / "cli.md"


def commands() -> dict[str, Any]:
    """Every command by name, in the order of the help."""
    return {name: command_of(name) for name in COMMANDS}


COMMON_OPTIONS = ("quiet", "verbose")
"""Parameters of every command, which `COMMON` describes."""

COMMON = """
## Options and exit codes

Every command has `-q` (`--quiet`: nothing but errors and what was asked for) and `-v` (`--verbose`: the stages of the work with
their durations and processor times on stderr; `-vv`: also when each begins). Both may also come before the command.

For scripts, `--json` prints the result as one JSON document, and nothing else, on stdout: the content of `summary.json` (of
`compare`: `comparison.json`, of `dataset`: `dataset.json`) where the command writes it. Errors are one line on stderr. With the
environment variable `ROTORID_PROGRESS=json`, progress is a JSON line on stderr for each step, such as
`{"stage": "Fitting", "done": 3, "total": 20}`, repeated each second of a long step; `total` is 0 where it is not known.
`--open` opens the report in the browser.

`rotorid --install-completion` installs completion for the shell that it is called in (bash, zsh, fish, PowerShell): commands,
options, names of airframes, estimators and other choices, and files. `_ROTORID_COMPLETE=source_bash rotorid` prints the script
instead.

| exit code | meaning |
|---|---|
| 0 | the command has done its work |
| 1 | `identify` or `fly-back` did not accept the model (its files are written), or an error in rotorid, named on stderr |
| 2 | wrong use, wrong input, no permission, a full disk: one line on stderr says what is wrong and what to do |
| 130 | interrupted by Ctrl-C |

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
        "Written by `make docs` from the commands themselves. Every command has a page with examples, and "
        "`--help`.\n\n"
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
    table = f"| name | meaning | default |\n|---|---|---|\n{rows}\n"
    return f"\n## rotorid {name}\n\n    {usage}\n\n{text(command.help)}\n\n{table if rows else ''}"


def row(parameter: Any) -> str:
    """One argument or option, as a row of the table."""
    if parameter.param_type_name == "argument":
        name = f"`{parameter.metavar}`"
    else:
        options = sorted(parameter.opts, key=len, reverse=True) + parameter.secondary_opts
        names = ", ".join(f"`{option}`" for option in options)
        kind = "" if getattr(parameter, "is_flag", False) else parameter.metavar or parameter.name.upper()
        name = f"{names} {kind}".strip()
    return f"| {name} | {text(parameter.help)} | {default(parameter)} |"


def default(parameter: Any) -> str:
    """The default of a parameter, empty where it is nothing that one could write."""
    if parameter.required:
        return "required"
    value = parameter.default
    if isinstance(value, bool) and parameter.secondary_opts:
        return f"`{(parameter.opts if value else parameter.secondary_opts)[-1]}`"
    return "" if value is None or value is False or value == "" else f"`{value}`"


def text(help_: str | None) -> str:
    """A help text with one line a paragraph."""
    paragraphs = (help_ or "").replace("|", "\\|").strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def first_sentence(help_: str | None) -> str:
    return text(help_).split("\n")[0].split(". ")[0].rstrip(".")


if __name__ == "__main__":
    PAGE.write_text(reference())
    print(PAGE)
