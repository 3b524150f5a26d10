"""How pages begin: those with a verdict, and those of studies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from rotorid.report.html import Page, escape
from rotorid.results.verdict import Tone, Verdict

MODEL_TONES: Final[Mapping[Tone, str]] = {
    "good": "Model can be used", "caution": "Model to be used with care", "bad": "Model not to be used",
}  # fmt: skip
"""What the verdict on a model comes to."""


def add_header(
    page: Page, subject: str, about: Iterable[str | None], verdict: Verdict, tones: Mapping[Tone, str]
) -> None:
    """What the page is of, and the verdict. about: said beside the subject, where there is something to say. tones: the
    verdict in three words, by its tone."""
    page.add(
        f'<p class="overline"><b>{escape(subject)}</b> · {" · ".join(escape(a) for a in about if a)}</p>',
        f'<p class="tone {verdict.tone}">{tones[verdict.tone]}</p>',
        f"<h1>{escape(verdict.headline)}</h1>",
        f'<p class="detail">{escape(" ".join(verdict.details))}</p>' if verdict.details else "",
    )


def add_study_header(page: Page, study: str, about: Iterable[str], headline: str, *details: str) -> None:
    """Which study it is, and what it comes to. about: said beside its name. details: a paragraph each."""
    page.add(
        f'<p class="overline"><b>rotorid reproduce {study}</b> · {" · ".join(about)}</p>',
        f"<h1>{escape(headline)}</h1>",
        *(f'<p class="detail">{escape(text)}</p>' for text in details),
    )
