"""The report of a comparison: the scores of the estimators, each cell of a data set, and what the scores mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rotorid.estimators.registry import estimator_label
from rotorid.findings import Finding, Severity
from rotorid.report.page import Page, add_header, notes_list, table
from rotorid.results.text import Tone, title
from rotorid.workflows.compare.display import score_figures
from rotorid.workflows.compare.score_text import cell_heading, cell_rows, comparison_verdict, score_rows
from rotorid.workflows.compare.scores import Comparison
from rotorid.workflows.compare.text import flights_text, to_text

_TONES: Final[Mapping[Tone, str]] = {
    "good": "Consistent estimates",
    "caution": "Estimates to be used with care",
    "bad": "No score",
}


def comparison_page(comparison: Comparison, findings: Sequence[Finding], source: str, airframe: str) -> str:
    """The report of a comparison, as the HTML of a self-contained page. source: name of the log or data set."""
    page = Page(f"{source}: comparison")
    about = [flights_text(comparison.flights), f"airframe {airframe}"]
    add_header(page, source, about, comparison_verdict(comparison), _TONES)
    names = [estimator_label(name) for name in comparison.estimators]
    numbers = dict.fromkeys(names, "number")
    page.section("Scores")
    page.add(table(["score", *names], score_rows(comparison), {"score": "word", **numbers}, tight=True))
    panels = [page.panel(figure, title(heading)) for heading, figure in score_figures(comparison)]
    page.add(f'<div class="pairs">{"".join(panels)}</div>')
    if len(comparison.cells) > 1:
        page.section("Trajectories and mass profiles", cell_heading(comparison))
        page.add(table(["cell", *names], cell_rows(comparison), {"cell": "word", **numbers}, tight=True))
    page.section("Definitions and findings")
    ordered = sorted(findings, key=lambda finding: finding.severity < Severity.WARNING)
    page.add(notes_list(line for finding in ordered for line in to_text(finding).splitlines()))
    return page.as_html()
