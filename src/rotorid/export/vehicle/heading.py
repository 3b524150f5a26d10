"""What every exported file begins with: which airframe, whether it was proved, and what the target cannot say."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from importlib.metadata import version

from rotorid.models.airframe import MOTOR_LAG, Airframe
from rotorid.models.fly_back import refusal

_WIDTH = 110
_TAKEN = {
    "motor_time_constant": "motors' lag",
    "drag": "linear drag",
    "rotor_drag": "drag of the rotors",
    "drag_area": "drag area",
    "angular_drag": "angular drag",
    "centre_of_mass": "centre of mass",
    "products_of_inertia": "products of inertia",
}
"""What an export takes as 0 where the airframe says nothing; the lag as MOTOR_LAG."""


def heading(airframe: Airframe, what: str, mismatches: Sequence[str], *, fills: bool = True) -> list[str]:
    """Paragraphs of plain text.

    what: the target, in words. mismatches: what it cannot say, and how large that is. fills: whether the target has a number
    where the airframe has none.
    """
    refused = refusal(airframe)
    found = airframe.fly_back
    if refused is not None:
        proof = f"NOT ACCEPTED as a model, written all the same: {refused}."
    else:
        assert found is not None
        proof = f"Accepted by fly-back on {', '.join(found.flights)}: {' '.join(found.reasons)}"
    paragraphs = [
        f"{airframe.name}: {what}, by rotorid {version('rotorid')}.",
        airframe.description,
        proof,
        "Standard deviations are those of the airframe file, carried through as if its numbers were independent.",
    ]
    missing = {name: words for name, words in _TAKEN.items() if airframe.get(name) is None}
    lag = missing.pop("motor_time_constant", None)
    taken = [f"as {MOTOR_LAG:g} s: {lag}"] if lag else []
    taken += [f"as 0: {', '.join(missing.values())}"] if missing else []
    if taken and fills:
        paragraphs.append(f"Not in the airframe, and taken {'; '.join(taken)}.")
    if mismatches:
        paragraphs.append("What could not be said exactly:")
        paragraphs += [f"- {sentence}" for sentence in mismatches]
    return [" ".join(paragraph.split()) for paragraph in paragraphs if paragraph]


def left_out(names: Collection[str]) -> list[str]:
    """The sentence on parameters that were not written."""
    return [f"{', '.join(sorted(names))}: not written, the airframe says nothing of them"] if names else []


def hashed(paragraphs: Sequence[str]) -> str:
    """As comments that begin with #."""
    return "".join(f"# {line}".rstrip() + "\n" for line in _lines(paragraphs))


def in_xml(paragraphs: Sequence[str], indent: str = "") -> str:
    """As one comment of XML, in which two hyphens must not follow each other."""
    lines = [line.replace("--", "- -") for line in _lines(paragraphs)]
    return f"{indent}<!--\n" + "".join(f"{indent}  {line}\n" for line in lines) + f"{indent}-->\n"


def in_c(paragraphs: Sequence[str]) -> str:
    """As one comment of C."""
    lines = [line.replace("*/", "* /").replace("/*", "/ *") for line in _lines(paragraphs)]
    return "/*\n" + "".join(f" * {line}".rstrip() + "\n" for line in lines) + " */\n"


def in_python(paragraphs: Sequence[str]) -> str:
    """As the body of a docstring."""
    return "\n".join(_lines(paragraphs)).replace("\\", "\\\\").replace('"""', "'''") + "\n"


def in_markdown(paragraphs: Sequence[str]) -> str:
    """As paragraphs and a list."""
    text = ""
    for before, paragraph in zip(("", *paragraphs), paragraphs, strict=False):
        listed = paragraph.startswith("- ") and before.startswith("- ")
        text += f"{'' if listed or not text else chr(10)}{paragraph}\n"
    return text


def _lines(paragraphs: Sequence[str]) -> list[str]:
    lines = []
    for paragraph in paragraphs:
        hang = "  " if paragraph.startswith("- ") else ""
        lines += textwrap.wrap(paragraph, _WIDTH, subsequent_indent=hang, break_long_words=False) or [""]
    return lines
