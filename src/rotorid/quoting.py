"""Names are data: how text of a file, a log or a user stands in each language that rotorid writes.

A name of an airframe may be any text. Comments, strings and markup hold it through one of these functions, and identifiers and
names of files are made of a plain alphabet, so that no name ends a comment or a string, or is run. HTML has
`rotorid.report.page.escape`.

| language | comment | string | name |
|---|---|---|---|
| terminal | | `printable` | |
| C | `c_comment` | | `plain_name` |
| Python, shell, parameter files, Lua | `one_line` behind the mark | | |
| Python docstring | `docstring` | | |
| XML | `xml_comment` | `xml_text` | `plain_name` |
| TOML | `one_line` behind the mark | `toml_string` | |
| Markdown | | `markdown_text` | |
"""

from __future__ import annotations

import json
import re


def printable(text: str) -> str:
    """The text in one line that a terminal prints as it is: control characters of a file or a link are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def one_line(text: str) -> str:
    """The text in one line, white space as single spaces, control characters escaped: a comment up to the end of a line."""
    return printable(" ".join(text.split()))


def c_comment(text: str) -> str:
    """One line inside of a block comment of C: it neither ends the comment nor begins one, and continues no line."""
    text = one_line(text)
    text = re.sub(r"\*(?=/)|/(?=\*)", lambda match: f"{match[0]} ", text)
    return re.sub(r"(\\|\?\?/)$", r"\1 .", text)


def xml_comment(text: str) -> str:
    """One line inside of an XML comment, in which two successive hyphens are not allowed."""
    return re.sub(r"-(?=-)", "- ", one_line(text))


def xml_text(text: str) -> str:
    """Text between two tags, or in an attribute with double quotes."""
    from xml.sax.saxutils import escape

    return escape(one_line(text), {'"': "&quot;"})


def docstring(text: str) -> str:
    """One line of a docstring of Python."""
    return one_line(text).replace("\\", "\\\\").replace('"', '\\"')


def toml_string(text: str) -> str:
    """A string of TOML, with its quotes. Half of a surrogate pair, which TOML does not have, becomes a question mark."""
    return json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False).replace("\x7f", "\\u007f")


def markdown_text(text: str) -> str:
    """One line of Markdown without link, picture, code, tag or column of its own."""
    return re.sub(r"([\\`\[\]<>|!])", r"\\\1", one_line(text))


def plain_name(text: str, also: str = "_.-") -> str:
    """A name of letters and digits of ASCII, and of the characters `also`; others become one underscore."""
    return re.sub(f"[^A-Za-z0-9{re.escape(also)}]+", "_", text)
