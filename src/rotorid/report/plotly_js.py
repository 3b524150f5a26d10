"""The part of plotly.js that a page needs, compressed.

The whole of plotly.js has 4.8 MB. A page has one of its partial bundles as gzip in base64, 0.7 MB, which `page.js` unpacks.
`report/plotly/` has them as published in the npm packages plotly.js-cartesian-dist-min and plotly.js-gl3d-dist-min.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable
from importlib import resources
from typing import Final

from rotorid.report.charts import Figure

_TRACES: Final = {"cartesian": {"scatter", "bar", "box", "heatmap"}, "gl3d": {"scatter", "scatter3d"}}
"""Trace types that our figures use, by the bundle that draws them."""


def plotly_js(figures: Iterable[Figure]) -> str:
    """The smallest bundle that draws the figures, as base64 of gzip; empty where there is no figure."""
    used = {trace["type"] for figure in figures for trace in figure.traces}
    if not used:
        return ""
    bundle = next((name for name, types in _TRACES.items() if used <= types), None)
    assert bundle is not None, f"no bundle of plotly.js draws {sorted(used)} on one page"
    source = resources.files("rotorid.report") / "plotly" / f"plotly-{bundle}.min.js"
    return base64.b64encode(gzip.compress(source.read_bytes(), mtime=0)).decode()
