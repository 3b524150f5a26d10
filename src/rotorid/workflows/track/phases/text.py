"""Text of the course of a quantity over a flight, from its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rotorid.results.text import plus_minus
from rotorid.workflows.track.phases.course import Course

_MOST_JUMPS: Final = 4


def course_values(course: Course) -> dict[str, Any]:
    """The numbers of a course, for a finding, an event or a file. Keys are those of `Course`; gradual only where
    significant."""
    values = {
        name: getattr(course, name)
        for name in (
            "take_off_time",
            "take_off",
            "take_off_std",
            "landing_time",
            "landing",
            "landing_std",
            "change",
            "change_std",
            "has_landed",
        )
    }
    values["jumps"] = [{"time": j.time, "size": j.size, "size_std": j.size_std} for j in course.jumps]
    if course.has_gradual_change:
        values["gradual"], values["gradual_std"] = course.gradual
    return values


def course_text(values: Mapping[str, Any], unit: str) -> str:
    """At take-off, changes and at landing: "1.00 ± 0.02 kg at take-off; +0.25 ± 0.02 kg at 72.5 s; 1.25 ± 0.02 kg at
    landing"."""
    end = "at landing" if values["has_landed"] else f"at {values['landing_time']:.1f} s"
    take_off, landing = (
        plus_minus(values[name], values[f"{name}_std"], unit) for name in ("take_off", "landing")
    )
    return f"{take_off} at take-off; {', '.join(changes_text(values, unit))}; {landing} {end}"


def changes_text(values: Mapping[str, Any], unit: str) -> list[str]:
    """The changes of a course, one by one; many jumps are counted."""
    jumps = values["jumps"]
    texts = [
        f"{plus_minus(j['size'], j['size_std'], unit, signed=True)} at {j['time']:.1f} s"
        for j in jumps[:_MOST_JUMPS]
    ]
    if len(jumps) > _MOST_JUMPS:
        texts.append(f"{len(jumps) - _MOST_JUMPS} more jumps")
    if "gradual" in values:
        texts.append(f"{plus_minus(values['gradual'], values['gradual_std'], unit, signed=True)} gradually")
    return texts or ["no significant change"]
