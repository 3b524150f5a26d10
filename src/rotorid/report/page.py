"""HTML pages: their parts, the sections that they share, and the page, one self-contained file."""

# ruff: noqa: RUF001

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from string import Template
from typing import Final

from rotorid.estimators.registry import SHOWN_ESTIMATORS
from rotorid.logs.flight import Flight
from rotorid.report.charts import Figure
from rotorid.report.plotly_js import plotly_js
from rotorid.results.text import Tone, Verdict, label, unit_text

_UNBROKEN = re.compile(r"(?<=\d) (?=(?:±|%|kg|N|m|s|min|rad|V|Hz)(?:\b|\W))|(?<=±) ")
_CODE = re.compile("`([^`]+)`")

MODEL_TONES: Final[Mapping[Tone, str]] = {
    "good": "Model can be used", "caution": "Model to be used with care", "bad": "Model not to be used",
}  # fmt: skip
"""Labels of the verdict on a model."""


def escape(text: str) -> str:
    """Escape text for HTML; lines do not break between a number and its unit."""
    return _UNBROKEN.sub("\u00a0", html.escape(text)).replace("N s/m", "N\u00a0s/m")


def style_sheet() -> str:
    """The CSS of all pages: page.css with the colours of the registered estimators."""
    text = (resources.files("rotorid.report") / "page.css").read_text("utf-8")
    for k, dress in enumerate(("light", "dark")):
        colours = (f"--{name}: {entry.colours[k]};" for name, entry in SHOWN_ESTIMATORS.items())
        text = text.replace(f"/* {dress} colours of estimators */", " ".join(colours))
    return text


class Page:
    """Collects the parts of a page in order, and numbers its figures."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._parts: list[str] = []
        self._figures: dict[str, Figure] = {}

    def add(self, *parts: str) -> None:
        """Append HTML parts."""
        self._parts += parts

    def section(self, heading: str, caption: str = "") -> None:
        """Begin a section, which ends the one before."""
        self.add("</section>" if "<section>" in self._parts else "", "<section>")
        self.add(
            f"<h2>{escape(heading)}</h2>", f'<p class="caption">{escape(caption)}</p>' if caption else ""
        )

    def panel(self, figure: Figure, heading: str = "", aside: str = "", *, muted: bool = False) -> str:
        """A framed figure. aside: text at the right of the heading. muted: pale, for what the flight does not identify."""
        name = f"figure{len(self._figures)}"
        self._figures[name] = figure
        head = f"<h3>{escape(heading)} <span>{escape(aside)}</span></h3>" if heading else ""
        box = f'<div class="chart" id="{name}" style="height:{figure.height}px"></div>'
        return f'<div class="panel{" mute" if muted else ""}">{head}{box}</div>'

    def as_html(self) -> str:
        """The page."""
        body = "\n".join(part for part in self._parts if part)
        if "<section>" in self._parts:
            body += "\n</section>"
        figures = {name: figure.as_dict() for name, figure in self._figures.items()}
        folder = resources.files("rotorid.report")
        return Template((folder / "page.html").read_text("utf-8")).substitute(
            title=escape(self.title),
            style=style_sheet(),
            script=(folder / "page.js").read_text("utf-8"),
            plotly=plotly_js(self._figures.values()),
            body=body,
            figures=json.dumps(figures, separators=(",", ":")).replace("</", "<\\/"),
        )


def card(name: str, value: str, unit: str = "", note: str = "", *, muted: bool = False) -> str:
    """A key number with its unit. muted: drawn pale, for what the flight does not identify."""
    shown = f"{escape(value)} <small>{escape(unit)}</small>" if unit else escape(value)
    return (
        f'<div class="card{" mute" if muted else ""}"><span class="name">{escape(name)}</span>'
        f'<span class="value">{shown}</span><span class="note">{escape(note)}</span></div>'
    )


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    kinds: Mapping[str, str] | None = None,
    heading: str = "",
    aside: str = "",
    below: str = "",
    *,
    tight: bool = False,
) -> str:
    """A table; its head is omitted where it has no rows.

    kinds: class of a column by its head: "number", "word", "long". heading, aside: above it, as of a panel. below: a line of
    text under it. tight: only as wide as its content.
    """
    classes = [(kinds or {}).get(h, "") for h in head]
    cells = "".join(f'<th class="{c}">{escape(h)}</th>' for h, c in zip(head, classes, strict=True))
    lines = "".join(
        "<tr>"
        + "".join(f'<td class="{c}">{escape(v)}</td>' for v, c in zip(row, classes, strict=True))
        + "</tr>"
        for row in rows
    )
    kind = ' class="tight"' if tight else ""
    body = f"<table{kind}><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>" if rows else ""
    above = f"<h3>{escape(heading)} <span>{escape(aside)}</span></h3>" if heading else ""
    under = f'<p class="below">{escape(below)}</p>' if below else ""
    return f'<div class="panel scroll">{above}{body}{under}</div>'


def legend(names: Sequence[tuple[str, str]]) -> str:
    """A legend for several figures: names with the tokens of their colours."""
    keys = "".join(
        f'<span style="--key:var(--{token.removeprefix("@")})">{escape(name)}</span>' for name, token in names
    )
    return f'<p class="legend">{keys}</p>'


def grid(panels: Sequence[str], kind: str = "grid") -> str:
    """Panels side by side; below each other on a narrow screen."""
    return f'<div class="{kind}">{"".join(panels)}</div>'


def notes_list(texts: Iterable[str]) -> str:
    """Lines of text as a list; text in backticks is set as code."""
    lines = [_CODE.sub(r"<code>\1</code>", escape(text)) for text in texts]
    return f'<ul class="notes">{"".join(f"<li>{line}</li>" for line in lines)}</ul>'


def add_header(
    page: Page, subject: str, about: Iterable[str | None], verdict: Verdict, tones: Mapping[Tone, str]
) -> None:
    """Add what the page is about, and the verdict.

    Args:
        page: to add to.
        subject: the name of the log or model.
        about: properties of the subject; empty ones are left out.
        verdict: its headline becomes the title, its details the paragraph below.
        tones: the label of the verdict by its tone.
    """
    page.add(
        f'<p class="overline"><b>{escape(subject)}</b> · {" · ".join(escape(a) for a in about if a)}</p>',
        f'<p class="tone {verdict.tone}">{tones[verdict.tone]}</p>',
        f"<h1>{escape(verdict.headline)}</h1>",
        f'<p class="detail">{escape(" ".join(verdict.details))}</p>' if verdict.details else "",
    )


def add_study_header(page: Page, study: str, about: Iterable[str], headline: str, *details: str) -> None:
    """Add the name of a study and its main result. about: properties beside the name. details: a paragraph each."""
    page.add(
        f'<p class="overline"><b>rotorid reproduce {study}</b> · {" · ".join(about)}</p>',
        f"<h1>{escape(headline)}</h1>",
        *(f'<p class="detail">{escape(text)}</p>' for text in details),
    )


def add_log_section(page: Page, flight: Flight, notes: Sequence[str]) -> None:
    """Add the list of the signals of a log, and the notes of its reader."""
    page.section("Signals of the log")
    if notes:
        page.add(notes_list(notes))
    rows = [
        [
            label(s.name),
            f"{s.rate:.0f} Hz" if s.rate >= 1.0 and not s.name.startswith("true_") else "–",
            f"{len(s.times)}",
            unit_text(s.kind.unit) or "–",
            s.kind.frame,
            s.source,
        ]
        for s in flight.signals.values()
    ]
    kinds = {"signal": "word", "rate": "number", "samples": "number", "frame": "word", "source": "long"}
    page.add(table(["signal", "rate", "samples", "unit", "frame", "source"], rows, kinds))
