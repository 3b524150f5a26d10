"""Pieces of HTML, and the page that holds them: one file with all that it needs, which fetches nothing."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from string import Template

from rotorid.report.charts import Figure

_UNBROKEN = re.compile(r"(?<=\d) (?=(?:±|%|kg|N|m|s|min|rad|V|Hz)(?:\b|\W))|(?<=±) ")
_CODE = re.compile("`([^`]+)`")


def escape(text: str) -> str:
    """Text as HTML, in which no line breaks between a number and its unit."""
    return _UNBROKEN.sub("\u00a0", html.escape(text)).replace("N s/m", "N\u00a0s/m")


class Page:
    """Collects the parts of a page in order, and numbers its figures."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._parts: list[str] = []
        self._figures: dict[str, Figure] = {}

    def add(self, *parts: str) -> None:
        """Append HTML as it is."""
        self._parts += parts

    def section(self, heading: str, caption: str = "") -> None:
        """Begin a section; the one before ends."""
        self.add("</section>" if "<section>" in self._parts else "", "<section>")
        self.add(
            f"<h2>{escape(heading)}</h2>", f'<p class="caption">{escape(caption)}</p>' if caption else ""
        )

    def panel(self, figure: Figure, heading: str = "", aside: str = "", *, told: bool = True) -> str:
        """A framed figure. aside: what the heading adds at the right. told: False where the flight does not
        tell it."""
        name = f"figure{len(self._figures)}"
        self._figures[name] = figure
        head = f"<h3>{escape(heading)} <span>{escape(aside)}</span></h3>" if heading else ""
        box = f'<div class="chart" id="{name}" style="height:{figure.height}px"></div>'
        return f'<div class="panel{"" if told else " mute"}">{head}{box}</div>'

    def as_html(self) -> str:
        """The page."""
        from plotly.offline import get_plotlyjs

        body = "\n".join(part for part in self._parts if part)
        if "<section>" in self._parts:
            body += "\n</section>"
        figures = {name: figure.as_dict() for name, figure in self._figures.items()}
        folder = resources.files("rotorid.report")
        return Template((folder / "page.html").read_text("utf-8")).substitute(
            title=escape(self.title),
            style=(folder / "page.css").read_text("utf-8"),
            script=(folder / "page.js").read_text("utf-8"),
            plotly=get_plotlyjs(),
            body=body,
            figures=json.dumps(figures, separators=(",", ":")).replace("</", "<\\/"),
        )


def card(name: str, value: str, unit: str = "", note: str = "", *, told: bool = True) -> str:
    """A key number with its unit."""
    shown = f"{escape(value)} <small>{escape(unit)}</small>" if unit else escape(value)
    return (
        f'<div class="card{"" if told else " mute"}"><span class="name">{escape(name)}</span>'
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
    """A table, without its head where it has no rows. kinds: class of a column by its head: "number", "word", "long".
    heading, aside: over it, as of a panel. below: a line of text under it. tight: no wider than it has to be."""
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
    """Names with the tokens of their colours, for several figures."""
    keys = "".join(
        f'<span style="--key:var(--{token.removeprefix("@")})">{escape(name)}</span>' for name, token in names
    )
    return f'<p class="legend">{keys}</p>'


def grid(panels: Sequence[str], kind: str = "grid") -> str:
    """Panels side by side; below each other on a narrow screen."""
    return f'<div class="{kind}">{"".join(panels)}</div>'


def notes_list(texts: Iterable[str]) -> str:
    """Lines of text as a list; what is in backticks is code."""
    lines = [_CODE.sub(r"<code>\1</code>", escape(text)) for text in texts]
    return f'<ul class="notes">{"".join(f"<li>{line}</li>" for line in lines)}</ul>'
