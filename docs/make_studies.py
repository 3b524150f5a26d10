"""Run the studies of `rotorid reproduce`, keep their numbers in docs/studies, and write docs/studies.md from them.

    python docs/make_studies.py                        all five studies in full, and the page
    python docs/make_studies.py nemo lpv --quick       some of them, in their quick form
    python docs/make_studies.py --page                 the page only, from the numbers that are there

docs/studies/STUDY.parquet has the rows of a full study, STUDY-quick.parquet those of its quick form; their metadata have the
form, the date, the duration, the processor time, the machine and the version of rotorid. The page shows the full form of a
study, if there is one. Every number of the page is read from these files; the published numbers are those of the rows, which a
test compares with the documents.
"""

# ruff: noqa: RUF001

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

DOCS = Path(__file__).parent
PAGE, FOLDER = DOCS / "studies.md", DOCS / "studies"
STUDIES = {
    "sesame": "Run-time identification of a changing mass (document 000)",
    "nemo": "External wrench with model errors (document 001)",
    "lpv": "LPV and Bayesian identification (document 002)",
    "loop": "Closed-loop control with the mass estimated in flight",
    "identify": "Calibration of `rotorid identify`",
}
DOCUMENTS = {
    "000": "SESAME project, deliverable D2.2, Model Identification",
    "001": "A. Alharbat et al., External-wrench estimation for aerial robots exploiting a learned model, ICUAS 2025",
    "002": "A. Torren Larroya, Modeling and identification of a quadrotor using LPV techniques, UPC, 2014",
}
_KEY = b"study"
_WIDTH = "10000"  # of the terminal: a headline is one line
_KEYS = ("part", "method", "quantity", "trajectory", "mass_profile", "setting")


def run(study: str, folder: Path, *, quick: bool) -> None:
    """Run a study in a folder, and keep its rows."""
    command = [sys.executable, "-m", "rotorid", "reproduce", study, "-o", str(folder / study)]
    start, before = time.monotonic(), _processor_seconds()
    result = subprocess.run(
        [*command, *(["--quick"] if quick else [])],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": _WIDTH},
    )
    lines = [line for line in result.stdout.splitlines() if line and not line.startswith("Report:")]
    keep(
        study,
        folder / study / "results.parquet",
        quick=quick,
        seconds=time.monotonic() - start,
        processor_seconds=_processor_seconds() - before,
        headline=lines,
    )


def _processor_seconds() -> float:
    """Processor time of the ended child processes, s."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def keep(
    study: str,
    results: Path,
    *,
    quick: bool,
    seconds: float,
    processor_seconds: float | None,
    headline: Sequence[str],
    part: str = "",
) -> None:
    """Copy the rows of a study to docs/studies, with the circumstances of its run. processor_seconds: None where unknown.
    part: the only one that was run."""
    from importlib.metadata import version

    circumstances = {
        "form": "quick" if quick else "full",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "seconds": round(seconds),
        "processor_seconds": None if processor_seconds is None else round(processor_seconds),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "version": version("rotorid"),
        "headline": list(headline),
        "part": part,
    }
    rows = parquet.read_table(results)
    FOLDER.mkdir(exist_ok=True)
    parquet.write_table(
        rows.replace_schema_metadata({_KEY: json.dumps(circumstances).encode()}),
        FOLDER / f"{study}{'-quick' if quick else ''}.parquet",
        compression="zstd",
    )


def _processor() -> str:
    """The name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def source(study: str) -> Path | None:
    """The file with the rows of the full study, else of its quick form."""
    paths = (FOLDER / f"{study}.parquet", FOLDER / f"{study}-quick.parquet")
    return next((path for path in paths if path.exists()), None)


def about(path: Path) -> dict[str, Any]:
    """The circumstances of a run."""
    metadata = parquet.read_schema(path).metadata or {}
    return json.loads(metadata.get(_KEY, b"{}"))


class Rows:
    """The rows of a file by their keys."""

    def __init__(self, path: Path) -> None:
        self.rows = parquet.read_table(path).to_pylist()
        self._by_key = {tuple(row[k] for k in _KEYS): row for row in self.rows}

    def get(self, *names: str, **more: str) -> dict[str, Any]:
        """The row of a part, method and quantity; more: its conditions. Without a value if it does not exist."""
        key = (*names, *(more.get(k, "") for k in _KEYS[3:]))
        return self._by_key.get(key, {"value": None, "standard_error": None, "published": None})

    def value(self, *names: str, **more: str) -> float:
        value = self.get(*names, **more)["value"]
        return math.nan if value is None else value

    def mean(self, *names: str, **conditions: str) -> float:
        """The mean over all rows of a part, method and quantity with these conditions and a mass profile."""
        values = [
            r["value"]
            for r in self.rows
            if (r["part"], r["method"], r["quantity"]) == names
            and r["mass_profile"]
            and all(r[k] == v for k, v in conditions.items())
        ]
        return sum(values) / len(values) if values else math.nan


def text(value: float | None, scale: float = 1.0) -> str:
    """A number with three digits; a dash if there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    value *= scale
    if value and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.2e}"
    leading = math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{max(0, 2 - leading)}f}"


def row_text(row: Mapping[str, Any], scale: float = 1.0) -> str:
    """The value of a row, with its standard error if it has one."""
    error = row["standard_error"]
    if row["value"] is None or error is None or error <= 0.0:
        return text(row["value"], scale)
    places = max(0, 1 - math.floor(math.log10(scale * error)))
    return (
        f"{scale * row['value']:.{places}f} ± {scale * error:.{places}f}"
        if places < 5
        else text(row["value"], scale)
    )


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *body]
    return [*("| " + " | ".join(cells) + " |" for cells in lines), ""]


def figures(lines: Sequence[tuple[str, str, str]]) -> list[str]:
    """Figures of a document: what its text says of them, and our numbers."""
    return table(["figure", "in the document", "ours"], lines)


def sesame(rows: Rows) -> list[str]:
    """Tables 1 to 3 and Figures 6 to 16 of document 000."""
    lines = _elm_tables(rows)
    path = FOLDER / "sesame-quick.parquet"
    quick = Rows(path) if path.exists() else None
    if rows.get("constant", "constant", "rmspe")["value"] is None and quick:
        lines += [
            "### Tables 1 to 3 with plain inputs",
            "",
            _circumstances("sesame", path),
            "",
            *_elm_tables(quick, "####"),
        ]
    lines += _mass_figures(rows)
    if rows.get("methods", "ekf", "overshoot")["value"] is not None:
        return [*lines, *_steps(rows)]
    return [*lines, *(_steps(quick, _circumstances("sesame", path)) if quick else [])]


def _steps(rows: Rows, circumstances: str = "") -> list[str]:
    """How the methods follow steps of the mass. circumstances: of these rows, where the figures have others."""
    if rows.get("methods", "ekf", "overshoot")["value"] is None:
        return []
    body = [
        [
            name,
            *(text(rows.value("methods", name, q)) for q in ("rmspe", "rmspe_late", "overshoot", "delay")),
            text(rows.value("methods", name, "missed"), 100),
        ]
        for name in _METHODS
    ]
    head = [
        "method",
        "RMSPE (%)",
        "from 1 s on (%)",
        "largest overshoot (%)",
        "delay (s)",
        "missed steps (%)",
    ]
    lines = ["### Steps of the mass", ""]
    if circumstances:
        lines += [
            circumstances
            + " The figures above are of an earlier version, in which EKF, UKF, MSCKF and SWLS did not take over "
            "the estimate of an agile filter after a step.",
            "",
        ]
    return [
        *lines,
        "The overshoot is the error beyond the new mass within 2 s after a step, in % of the new mass.",
        "",
        *table(head, body),
    ]


_ELM_QUANTITIES = {
    "rmspe": "Root mean square percentage error (RMSPE), %",
    "norm of the weights": "Norm of the output weights",
    "training time": "Training time, s",
}


def _elm_tables(rows: Rows, level: str = "###") -> list[str]:
    """Tables 1 to 3 by the inputs of the networks."""
    lines = [
        "Tables 1 to 3 have the published numbers, and ours for three kinds of inputs of the network: the states, inputs and "
        "measurements of one row; the same of all rows of 0.32 s; and the slopes in windows of `rotorid.learning`.",
        "",
    ]
    tables = {
        "Table 1: hidden nodes": ("table 1", [("relm", f"hidden={h}") for h in (50, 100, 300, 500, 1000)]
                                  + [("elm", f"hidden={h}") for h in (50, 100, 300, 500, 1000)]),
        "Table 2: regularisation of 500 nodes": ("table 2", [("relm", f"lambda={a}") for a in
                                  ("1e-07", "1e-05", "0.001", "0.1", "0.3", "0.5", "0.8", "1", "10", "100", "1000", "10000")]),
        "Table 3: training flights of each cell": ("table 3", [("relm", f"flights={n}") for n in (1, 3, 5, 7, 10)]),
    }  # fmt: skip
    for heading, (part, keys) in tables.items():
        lines += [f"{level} {heading}", ""]
        shown = [k for k in keys if rows.get(part, k[0], "rmspe", setting=k[1])["value"] is not None]
        head = ["method", keys[0][1].split("=")[0], "published", "one row", "rows of 0.32 s", "windows"]
        for quantity, caption in _ELM_QUANTITIES.items():
            body = []
            for method, setting in shown:
                ours = [
                    rows.get(name, method, quantity, setting=setting)
                    for name in (f"{part}, instant", f"{part}, history", part)
                ]
                published = next((r["published"] for r in ours if r["published"] is not None), None)
                cells = [text(published), *(text(r["value"]) for r in ours)]
                body.append([method.upper(), setting.split("=")[1], *cells])
            lines += [f"{caption}:", "", *table(head, body)]
    guess = rows.get("constant", "constant", "rmspe")
    if guess["value"] is not None:
        lines += [
            f"The mean of the training masses as a constant estimate has an RMSPE of {row_text(guess)} %.",
            "",
        ]

    return lines


def _mass_figures(rows: Rows) -> list[str]:
    """Figures 6 to 16."""
    methods = _METHODS

    def errors(trajectory: str) -> str:
        means = (f"{m} {text(rows.mean('methods', m, 'rmspe', trajectory=trajectory))}" for m in methods)
        return f"RMSPE in %: {', '.join(means)}"

    def elm(trajectory: str) -> str:
        return f"RMSPE {text(rows.mean('elm cells', 'relm', 'rmspe', trajectory=trajectory, setting=''))} %"

    def control(trajectory: str) -> str:
        rate = rows.value("figure 11", "control", "body rate, root mean square", trajectory=trajectory)
        thrust = rows.value("figure 11", "control", "thrust, standard deviation", trajectory=trajectory)
        return f"{trajectory}: body rate {text(rate)} rad/s rms, thrust {text(thrust)} N std"

    times = ", ".join(f"{m} {text(rows.value('methods', m, 'update time'), 1e6)}" for m in methods)
    difference = next(
        (r["value"] for r in rows.rows if r["quantity"] == "largest difference from RELM"), math.nan
    )
    body = [
        ("6, loop", "EKF fastest; SWLS most accurate except for repeated changes", errors("loop")),
        ("7, zigzag", "as Figure 6", errors("zigzag")),
        ("8, square", "EKF fastest, SWLS most accurate", errors("square")),
        ("9, random", "changes are captured", errors("random")),
        ("10, lemniscate", "methods fail, since the control inputs are near their limits", errors("lemniscate")),
        ("6 to 10, update", "EKF fastest; times in ms", f"µs: {times}"),
        ("11", "inputs of the lemniscate larger and less smooth", f"{control('lemniscate')}; {control('loop')}"),
        ("12, ELM, lemniscate", "accurate", elm("lemniscate")),
        ("13, ELM, random", "poor", elm("random")),
        ("14, ELM, zigzag", "accurate", elm("zigzag")),
        ("15 and 16, OS-ELM", "smaller variance than ELM; fails on random",
         f"largest difference from regularised ELM after the same flights {text(difference)} kg"),
    ]  # fmt: skip
    return ["### Figures", "", *figures(body)]


_METHODS = ("ekf", "ukf", "msckf", "swls", "adaptive")
_SCENARIOS = ("hover", "free-flight", "hover-wrench", "free-flight-wrench", "all")
_KINDS = ("G", "MG-1", "MG-2", "MGD")


def nemo(rows: Rows) -> list[str]:
    """Table II and Figures 5 to 8 of document 001."""
    has_errors = any(r["part"] == "exact" for r in rows.rows)
    return [*(_wrench_errors(rows) if has_errors else []), *_axes(rows)]


def _axes(rows: Rows) -> list[str]:
    """Force errors by axis (Figure 8), by the frame of the residual."""
    found = [r for r in rows.rows if r["part"] == "axes"]
    if not found:
        return []
    body = []
    for kind in dict.fromkeys(r["setting"] for r in found):
        for scenario in ("training", "free-flight", "free-flight-wrench"):
            for method in dict.fromkeys(r["method"] for r in found):
                cells = [
                    row_text(
                        rows.get("axes", method, f"{what} force_{axis}", trajectory=scenario, setting=kind)
                    )
                    for what in ("rms", "ratio")
                    for axis in "xyz"
                ]
                body.append([kind, scenario, method, *cells])
    return [
        "### Figure 8: force error by axis",
        "",
        "In the document, NeMO reduces the error on all axes. Here residuals are fitted by least squares in two frames: in the "
        "world frame, without the attitude as an input (as in the document), and in the body frame. The lag of the observer is "
        f"not included. The numbers are means over {found[0]['flights']} seeds ± standard error.",
        "",
        "RMS error of the force, N:",
        "",
        *table(["type", "flights", "residual", *"xyz"], [cells[:6] for cells in body]),
        "Relative to MO:",
        "",
        *table(
            ["type", "flights", "residual", *"xyz"],
            [cells[:3] + cells[6:] for cells in body if cells[2] != "mo"],
        ),
    ]


def _wrench_errors(rows: Rows) -> list[str]:
    """Table II and Figures 5 to 8."""
    lines = [
        "### Table II", "",
        "G, MG-1, MG-2 and MGD are the document's sets of wrong parameters (M: mass and inertia, G: thrust and geometry, "
        "D: drag and rotor friction). mo is the momentum observer, nemo-N the neural one with α = N.", "",
        "Published numbers are sums of RMS errors over an unknown number of flights. Ours are means over the flights. The two "
        "can therefore be compared only relative to MO: these ratios, over all scenarios, are in brackets.", "",
    ]  # fmt: skip
    body = []
    for kind in _KINDS:
        for method in ("mo", "nemo-1", "nemo-25", "nemo-50"):
            ours = [rows.get("exact", method, "rms error", trajectory=s, setting=kind) for s in _SCENARIOS]
            if ours[-1]["value"] is None:
                continue
            mo = rows.get("exact", "mo", "rms error", trajectory="all", setting=kind)
            cells = [kind, method]
            for r in ours:
                cells += [text(r["published"]), row_text(r)]
            cells[-2] += f" ({text(ours[-1]['published'] / mo['published'])})"
            cells[-1] += f" ({text(ours[-1]['value'] / mo['value'])})"
            body.append(cells)
    for first, last in ((0, 2), (2, 4), (4, 5)):
        head = [f"{s}: {what}" for s in _SCENARIOS[first:last] for what in ("published", "ours")]
        part = [cells[:2] + cells[2 + 2 * first : 2 + 2 * last] for cells in body]
        lines += table(["type", "method", *head], part)

    def rms(method: str, kind: str, scenario: str) -> str:
        return text(rows.value("exact", method, "rms error", trajectory=scenario, setting=kind))

    def spread(what: str, scenario: str = "all", kind: str = "all") -> str:
        widths = []
        for method in ("mo", "nemo-50"):
            low, high = (
                rows.value("exact", method, f"{what} q{q}", trajectory=scenario, setting=kind)
                for q in (5, 95)
            )
            widths.append(text(high - low))
        return f"{widths[0]} → {widths[1]}"

    def spreads(names: Sequence[tuple[str, str, str]]) -> str:
        return "; ".join(f"{s if s != 'all' else k} {spread(w, s, k)}" for w, s, k in names)

    components = [f"{w}_{a}" for w in ("force", "torque") for a in "xyz"]
    both = [
        ("5, free flight, MG-1", "MO has large errors, NeMO (α = 1) nearly none",
         f"RMS error: MO {rms('mo', 'MG-1', 'free-flight')}, NeMO {rms('nemo-1', 'MG-1', 'free-flight')}"),
        ("6, hovering with pulses, MG-2", "torque of NeMO (α = 1) closer to zero; force z sometimes worse",
         f"RMS error: MO {rms('mo', 'MG-2', 'hover-wrench')}, NeMO {rms('nemo-1', 'MG-2', 'hover-wrench')}"),
        ("7a, by scenario", "smaller deviation of NeMO except in hovering",
         "width of 90 % of the force errors in N, MO → NeMO (α = 50): "
         + spreads([("force", s, "all") for s in _SCENARIOS[:-1]])),
        ("7b, by type", "smaller deviation of NeMO for every type",
         "the same: " + spreads([("force", "all", k) for k in _KINDS])),
        ("8, by axis", "NeMO reduces the error on all six axes",
         "width of 90 % of the errors in N, N m, MO → NeMO (α = 50): "
         + "; ".join(f"{c.replace('_', ' ')} {spread(c)}" for c in components)),
    ]  # fmt: skip
    return [*lines, "### Figures", "", *figures(both)]


def lpv(rows: Rows) -> list[str]:
    """Numbers and Figures 3.2 to 4.12 of document 002."""
    lines = ["### Numbers", ""]
    body = [
        [r["part"], r["method"], r["setting"], f"{r['quantity']} {r['trajectory']}".strip(), text(r["published"]), row_text(r)]
        for r in rows.rows
        if r["published"] is not None and r["part"] in ("first test", "standard: third order", "standard: time-varying")
    ]  # fmt: skip
    lines += table(["part", "method", "setting", "quantity", "published", "ours"], body)

    def lengths(part: str) -> str:
        found = [
            r
            for r in rows.rows
            if r["part"] == part and r["quantity"] == "relative error, median" and r["method"] != "measured"
        ]
        parts = []
        for method in dict.fromkeys(r["method"] for r in found):
            own = [
                (r["setting"].removeprefix("rows="), text(r["value"], 100))
                for r in found
                if r["method"] == method
            ]
            rows_, errors = (", ".join(column) for column in zip(*own, strict=True))
            parts.append(f"{method}: {errors} %")
        return f"median error with {rows_} rows; " + "; ".join(parts)

    def error(part: str, method: str, trajectory: str, quantity: str = "relative error, mean") -> str:
        return f"{text(rows.value(part, method, quantity, trajectory=trajectory), 100)} %"

    def forms(method: str) -> str:
        return ", ".join(f"{form} {error('changes', method, form)}" for form in ("ramp", "sine", "square"))

    each = "relative error, each"
    body = [
        ("4.1", "error of one parameter falls with the length of the data", lengths("figure 4.1")),
        ("4.2", "two parameters need more data", lengths("figure 4.2")),
        ("4.3", "converges quickly", f"error of alpha {error('figure 4.3', 'Liu and West', 'alpha', each)}"),
        ("4.4", "accurate with unknown variances",
         ", ".join(f"{p} {error('figure 4.4', 'Liu and West', p, each)}" for p in ("alpha", "V", "W"))),
        ("4.5 and 4.6", "variances stay accurate, the varying parameter is not followed",
         ", ".join(f"{p} {error('figure 4.5', 'Liu and West', p)}" for p in ("alpha", "V", "W"))),
        ("4.7", "identified, with peaks by assumed changes", error("figure 4.7", "normal, 5 %", "alpha")),
        ("4.8, 4.9 (β = 5 %)", "ramp really good; sharper forms too slow", forms("normal, 5 %")),
        ("4.10 (β = 10 %)", "peaks, some of them considerable", forms("normal, 10 %")),
        ("4.11 (narrower)", "as low probability", forms("narrower normal, 10 %")),
        ("4.12 (uniform)", "really good", forms("uniform, 10 %")),
    ]  # fmt: skip
    return [*lines, "### Figures", "", *figures(body)]


def identify(rows: Rows) -> list[str]:
    """Calibration by quantity."""
    names = [r["method"] for r in rows.rows if (r["part"], r["quantity"]) == ("quantities", "coverage")]
    body = []
    for name in names:

        def value(quantity: str, name: str = name) -> float:
            return rows.value("quantities", name, quantity)

        interval = f"{100 * value('coverage, low'):.0f} to {100 * value('coverage, high'):.0f}"
        mean = f"{value('mean of z'):+.2f} ± {value('standard error of z'):.2f}".replace("-", "−")
        body.append(
            [
                name.replace("_", " "),
                f"{100 * value('coverage'):.1f} ({interval})",
                mean,
                f"{value('std of z'):.2f}",
                f"{100 * value('information gain, median'):.0f}",
            ]
        )
    head = ["quantity", "coverage of the 95 % band (%)", "mean of z", "std of z", "information gain (%)"]
    return [
        "z is the error divided by the estimated standard deviation. Numbers after ± are standard errors.",
        "",
        *table(head, body),
    ]


_SECTIONS: Mapping[str, Callable[[Rows], list[str]]] = {
    "sesame": sesame,
    "nemo": nemo,
    "lpv": lpv,
    "identify": identify,
}


def page() -> str:
    """The page as Markdown, from the numbers in docs/studies."""
    lines = [
        "# The studies: published numbers and ours",
        "",
        "[`rotorid reproduce`](commands/reproduce.md) runs the methods of three documents on simulated data, and two studies "
        "of its own. This page compares the published tables and figures with our numbers. `make studies` runs the studies and "
        "writes this page; `make studies QUICK=1` runs them with few flights. All numbers are in `docs/studies/STUDY.parquet`.",
        "",
        "The documents are:",
        "",
        *(f"- {number}: {document}" for number, document in DOCUMENTS.items()),
        "",
        "The documents have no data for their figures. In the tables of figures, the second column therefore has the statement "
        "of their text.",
        "",
    ]
    for study, title in STUDIES.items():
        path = source(study)
        if path is None:
            continue
        lines += [f"## {title}", "", _circumstances(study, path), ""]
        lines += [f"- {line}" for line in about(path).get("headline", [])]
        lines += [""] if lines[-1] else []
        if study in _SECTIONS:
            lines += _SECTIONS[study](Rows(path))
    return "\n".join(lines).rstrip() + "\n"


def _circumstances(study: str, path: Path) -> str:
    run = about(path)
    if not run:
        return "Full study; date, duration and machine were not recorded."
    form = "**Quick study** with few flights." if run["form"] == "quick" else "Full study."
    if run["part"]:
        form += f" Only the part {run['part']} was run."
    return (
        f"{form} `rotorid reproduce {study}{' --quick' if run['form'] == 'quick' else ''}` of version {run['version']}, "
        f"{run['date']}, {run['seconds'] / 60.0:.1f} minutes{_processor_time(run)} on {run['machine']}."
    )


def _processor_time(run: Mapping[str, Any]) -> str:
    seconds = run.get("processor_seconds")
    return "" if seconds is None else f" ({seconds / 60.0:.1f} of processor time)"


def main() -> None:
    """Run what the command line names, and write the page."""
    parser = argparse.ArgumentParser(description="Run the studies and write docs/studies.md.")
    parser.add_argument("studies", nargs="*", help=f"of {', '.join(STUDIES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="the quick forms")
    parser.add_argument("--page", action="store_true", help="write the page only")
    parser.add_argument(
        "--folder", type=Path, help="of the studies, which are resumed there; a new one by default"
    )
    options = parser.parse_args()
    if unknown := set(options.studies) - set(STUDIES):
        parser.error(f"no study {', '.join(sorted(unknown))}; there are {', '.join(STUDIES)}")
    if not options.page:
        folder = options.folder or Path(tempfile.mkdtemp(prefix="rotorid-studies-"))
        for study in options.studies or STUDIES:
            run(study, folder, quick=options.quick)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
