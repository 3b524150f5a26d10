"""Plain characters where the encoding of the output lacks those of units and numbers.

Python writes UTF-8 to terminals, but on Windows the code page of the system to files and pipes.
"""

from __future__ import annotations

import codecs
import io
import sys
from typing import Final

_PLAIN: Final = {
    "\N{MINUS SIGN}": "-", "\N{EN DASH}": "-", "─": "-", "│": "|", "├": "|", "└": "|",
    "±": "+-", "\N{MULTIPLICATION SIGN}": "x", "·": " ", "≤": "<=", "≥": ">=", "√": "root ", "°": " deg", "µ": "u", "Ω": "ohm",
    "⁻": "^-", **{power: f"^{digit}" for digit, power in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
}  # fmt: skip


def use_plain_characters() -> None:
    """Let stdout and stderr write a character that their encoding lacks as a plain one, or as "?" without one."""
    codecs.register_error("plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in lacking), error.end
