"""The report: one valid page that fetches nothing, equal for equal input."""

from __future__ import annotations

import base64
import html.parser
import json
import re
from typing import Any

import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.estimators.registry import TRACK_ESTIMATORS
from rotorid.report.charts import estimator_colour
from rotorid.workflows.track.changes import find_jumps
from rotorid.workflows.track.figures import main_figure, path_figure
from rotorid.workflows.track.motion import Motion
from rotorid.workflows.track.page import track_page
from rotorid.workflows.track.summary import Settings, summarise
from tests.workflows.tracks_for_tests import T, made_flight, made_motion, made_track, quantity

VOID = {"meta", "link", "br"}


def tracks():
    gap = np.concatenate([T[:1000], T[1000:] + 30.0])
    health = np.select([T < 1.0, (T > 20) & (T < 20.5)], [int(Health.NO_INFORMATION), int(Health.OUTLIER)], 0)
    others = {
        "drag": quantity(0.6, 0.3, "N s/m", informed=False, t=gap),
        "wind_x": quantity(np.sin(gap), 0.1, "m/s", t=gap),
        "wind_y": quantity(0.0, 0.1, "m/s", t=gap),
    }
    mass = quantity(np.where(T < 30.0, 1.2, 0.8), t=gap)
    return [made_track(mass, t=gap, health=health, truth=1.0, estimator=e, **others) for e in ("ekf", "ukf")]


def page(motion: Motion | None = None) -> str:
    flight, found = made_flight(), tracks()
    summary = summarise(found, flight, Settings("track", ("ekf", "ukf"), "multirotor", "made"), (), 3.0)
    return track_page(found, flight, motion or made_motion(), summary)


@pytest.fixture(scope="module")
def made() -> str:
    return page()


class Parser(html.parser.HTMLParser):
    """Checks that tags nest, and collects text and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.identifiers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.identifiers += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)


def parsed(text: str) -> Parser:
    parser = Parser()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def figures(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found.group(1))


def dressed(thing: Any) -> Any:
    """What the page's script makes of tokens, so that plotly can check the rest."""
    if isinstance(thing, str):
        return "#123456" if thing.startswith("@") else thing
    if isinstance(thing, list):
        return [dressed(t) for t in thing]
    if isinstance(thing, dict):
        return {k: dressed(v) for k, v in thing.items()}
    return thing


def test_it_is_a_page_whose_tags_nest(made: str) -> None:
    parser = parsed(made)
    assert len(set(parser.identifiers)) == len(parser.identifiers)
    assert set(figures(made)) | {"figures", "plotly"} == set(parser.identifiers)


def test_it_fetches_nothing(made: str) -> None:
    for tag, name, value in parsed(made).attributes:
        if name in ("src", "href", "action", "poster"):
            assert (tag, value) == ("link", "data:,")
    assert "default-src 'none'" in made
    assert "http:" not in made
    assert "https:" not in made
    assert "@import" not in made
    assert len(made) < 2e6


def test_the_verdict_comes_first_and_texts_are_escaped(made: str) -> None:
    words = " ".join(" ".join(parsed(made).words).split())
    assert "The mass fell from 1.200 ± 0.010 kg to 0.800 ± 0.010 kg in one step at about 60 s." in words
    assert "a note with <tags>" in words
    assert "made & <flown>.csv" in words
    assert "not identified by this flight" in words
    for heading in (
        "Mass over time",
        "Other quantities",
        "Signals of the log",
        "Settings",
        "All estimates",
    ):
        assert heading in words


def test_every_figure_is_one_that_plotly_knows(made: str) -> None:
    import plotly.graph_objects as go

    for spec in figures(made).values():
        layout = dressed(spec["layout"])
        layout["font"]["family"] = "sans-serif"
        go.Figure({"data": dressed(spec["data"]), "layout": layout})


def test_every_axis_has_a_unit_or_a_name(made: str) -> None:
    for spec in figures(made).values():
        for name, axis in spec["layout"].items():
            if name in ("xaxis", "yaxis"):
                assert axis["title"]["text"]


def test_curves_are_thin(made: str) -> None:
    for spec in figures(made).values():
        for trace in spec["data"]:
            if "bdata" in trace["x"]:
                assert len(base64.b64decode(trace["x"]["bdata"])) / 4 <= 3100


def test_gaps_are_shaded_and_break_the_line() -> None:
    figure = main_figure(tracks())
    (shape,) = figure.layout["shapes"]
    assert (shape["x0"], shape["x1"]) == (pytest.approx(19.98), pytest.approx(50.0))
    known = next(t for t in figure.traces if t.get("name") == "EKF")
    values = np.frombuffer(base64.b64decode(known["y"]["bdata"]), "<f4")
    assert np.isnan(values).sum() == 1


def detecting(mass, *changes: float) -> str:
    """The page of five estimators, of which the adaptive one detects changes."""
    names = ("ekf", "ukf", "msckf", "swls", "adaptive")
    found = [made_track(mass, estimator=e, changes=changes if e == "adaptive" else None) for e in names]
    flight = made_flight()
    summary = summarise(found, flight, Settings("track", names, "multirotor", "made"))
    return track_page(found, flight, made_motion(), summary)


def words_of(text: str) -> str:
    return " ".join(" ".join(parsed(text).words).split())


def test_jumps_are_drawn_and_listed() -> None:
    text = detecting(np.where(T < 30.0, 1.0, 1.25), 10.0, 30.0)
    words = words_of(text)
    assert "Jumps mass (kg)" in words
    assert "30.0 s 1.000 ± 0.010 1.250 ± 0.010 +0.250 ± 0.014" in words
    assert "1 more change detected but not confirmed" in words
    layout = figures(text)["figure0"]["layout"]
    assert [s["x0"] for s in layout["shapes"] if s["type"] == "line"] == [30.0]
    assert [a["text"] for a in layout["annotations"]] == ["+0.250 kg"]
    (marks,) = [t for t in figures(text)["figure0"]["data"] if t.get("name") == "jump"]
    assert marks["text"] == ["+0.250 ± 0.014 kg at 30.0 s"]


def test_no_jump_is_said_too(made: str) -> None:
    assert "Jumps mass (kg), adaptive estimator No jump was detected." in words_of(detecting(1.0))
    assert "Jumps mass" not in words_of(made)


def test_labels_of_many_jumps_do_not_cover_each_other() -> None:
    mass = 1.0 + 0.3 * (np.floor(T / 2.0) % 2)
    found = made_track(mass, estimator="adaptive", changes=tuple(np.arange(2.0, 58.0, 2.0).tolist()))
    some = find_jumps(found)
    assert some is not None
    assert len(some) > 20
    figure = main_figure([found], some)
    assert len([s for s in figure.layout["shapes"] if s["type"] == "line"]) == len(some)
    rows = {}
    for one in figure.layout["annotations"]:
        rows.setdefault(one["yshift"], []).append(one["x"])
    assert sorted(rows) == [-14, 0]
    assert min(np.diff(xs).min() for xs in rows.values()) >= 0.08 * 59.9


def test_every_estimator_has_its_own_colour_in_both_dresses(made: str) -> None:
    light, dark = made.split("prefers-color-scheme: dark)")[:2]
    for dress in (light, dark):
        colours = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", dress))
        own = [colours[estimator_colour(name).removeprefix("@")] for name in TRACK_ESTIMATORS]
        assert len(set(own)) == len(TRACK_ESTIMATORS)
    assert {estimator_colour(name) for name in TRACK_ESTIMATORS} == {f"@{name}" for name in TRACK_ESTIMATORS}


def test_every_colour_of_a_figure_is_one_of_the_page(made: str) -> None:
    known = set(re.findall(r"--([a-z0-9-]+):", made.split("</style>")[0]))
    for text in (made, detecting(np.where(T < 30.0, 1.0, 1.25), 30.0)):
        used = set(re.findall(r'"@([a-z0-9-]+)', json.dumps(figures(text))))
        assert used <= known


def test_equal_input_gives_equal_pages(made: str) -> None:
    assert page() == made


def test_a_log_without_position_or_motion_has_a_page() -> None:
    words = " ".join(parsed(page(Motion(()))).words)
    assert "no position" in words


def test_the_path_has_one_scale_on_all_axes() -> None:
    found = tracks()
    flight = made_flight()
    summary = summarise(found, flight, Settings("track", ("ekf", "ukf"), "multirotor", "made"))
    figure = path_figure(made_motion(), found[0], summary.estimators["ekf"].quantities["mass"])
    assert figure is not None
    scene = figure.layout["scene"]
    scales = [np.ptp(scene[f"{k}axis"]["range"]) / scene["aspectratio"][k] for k in "xyz"]
    np.testing.assert_allclose(scales, scales[0])
