"""The header of an exported file: which airframe, whether it was validated, and the limitations of the target."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from importlib.metadata import version

from rotorid.export.limitations import limitation
from rotorid.export.text import limitation_text
from rotorid.findings import Finding
from rotorid.models.airframe.acceptance import rejection_reason
from rotorid.models.airframe.airframe import MOTOR_LAG, Airframe
from rotorid.quoting import c_comment, docstring, markdown_text, one_line, xml_comment

_WIDTH = 110
_DEFAULTS = {
    "motor_time_constant": "motor lag",
    "drag": "linear drag",
    "rotor_drag": "rotor drag",
    "rotor_inflow": "rotor inflow",
    "translational_lift": "translational lift",
    "flapping_moment": "flapping moment",
    "drag_area": "drag area",
    "angular_drag": "angular drag",
    "rotor_momentum": "rotor momentum",
    "centre_of_mass": "centre of mass",
    "products_of_inertia": "products of inertia",
}
"""Quantities that default to 0 where the airframe lacks them, and the lag to MOTOR_LAG."""


def file_header(
    airframe: Airframe, target: str, limitations: Sequence[Finding], *, fills_missing: bool = True
) -> list[str]:
    """Write the header as paragraphs of plain text.

    Args:
        airframe: the exported airframe.
        target: what the file is, such as "parameters of PX4".
        limitations: what the target cannot represent, with the size of each error.
        fills_missing: whether the file has a default for a quantity that the airframe lacks.
    """
    paragraphs = [
        f"{airframe.name}: {target}, by rotorid {version('rotorid')}.",
        airframe.description,
        validation_text(airframe),
        "Standard deviations are propagated from the airframe file, whose parameters are treated as independent.",
    ]
    missing = {name: label for name, label in _DEFAULTS.items() if airframe.get(name) is None}
    lag = missing.pop("motor_time_constant", None)
    defaults = [f"{MOTOR_LAG:g} s for {lag}"] if lag else []
    defaults += [f"0 for {', '.join(missing.values())}"] if missing else []
    if defaults and fills_missing:
        paragraphs.append(f"Defaults for what the airframe lacks: {'; '.join(defaults)}.")
    if airframe.residual is not None:
        limitations = [*limitations, limitation("residual")]
    if limitations:
        paragraphs.append("Limitations:")
        paragraphs += [f"- {limitation_text(limitation)}" for limitation in limitations]
    return [" ".join(paragraph.split()) for paragraph in paragraphs if paragraph]


def validation_text(airframe: Airframe) -> str:
    """A sentence on the validation of an airframe by fly-back."""
    reason, record = rejection_reason(airframe), airframe.fly_back
    if reason is not None:
        return f"NOT VALIDATED, exported with --force: {reason}."
    assert record is not None
    return f"Accepted by fly-back on {', '.join(record.flights)}: {' '.join(record.reasons)}"


def as_hash_comments(paragraphs: Sequence[str]) -> str:
    """Format paragraphs as comments that begin with #."""
    return "".join(f"# {line}".rstrip() + "\n" for line in _quoted(paragraphs, one_line))


def as_xml_comment(paragraphs: Sequence[str], indent: str = "") -> str:
    """Format paragraphs as one XML comment."""
    lines = _quoted(paragraphs, xml_comment)
    return f"{indent}<!--\n" + "".join(f"{indent}  {line}\n" for line in lines) + f"{indent}-->\n"


def as_c_comment(paragraphs: Sequence[str]) -> str:
    """Format paragraphs as one C comment."""
    lines = _quoted(paragraphs, c_comment)
    return "/*\n" + "".join(f" * {line}".rstrip() + "\n" for line in lines) + " */\n"


def as_docstring(paragraphs: Sequence[str]) -> str:
    """Format paragraphs as the body of a docstring."""
    return "\n".join(_quoted(paragraphs, docstring)) + "\n"


def as_markdown(paragraphs: Sequence[str]) -> str:
    """Format paragraphs as Markdown, with their list."""
    text = ""
    for before, paragraph in zip(("", *paragraphs), paragraphs, strict=False):
        listed = paragraph.startswith("- ") and before.startswith("- ")
        mark, body = ("- ", paragraph[2:]) if paragraph.startswith("- ") else ("", paragraph)
        text += f"{'' if listed or not text else chr(10)}{mark}{markdown_text(body)}\n"
    return text


def _quoted(paragraphs: Sequence[str], quote: Callable[[str], str]) -> list[str]:
    """The lines of paragraphs, each quoted; indents of lists remain."""
    return [
        line[: len(line) - len(line.lstrip(" "))] + quote(line) if line.strip() else ""
        for line in _lines(paragraphs)
    ]


def _lines(paragraphs: Sequence[str]) -> list[str]:
    lines = []
    for paragraph in paragraphs:
        hang = "  " if paragraph.startswith("- ") else ""
        lines += textwrap.wrap(paragraph, _WIDTH, subsequent_indent=hang, break_long_words=False) or [""]
    return lines
