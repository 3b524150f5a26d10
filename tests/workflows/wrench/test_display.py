"""A wrench shows itself, with units and bands."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from rotorid.workflows.wrench.observe import COMPONENTS, WrenchTrack
from tests.workflows.wrench.wrenches_for_tests import STD, made_wrench, pulses


@pytest.fixture(scope="module")
def made() -> WrenchTrack:
    """A push of 5 N upwards, of 10 s that are else free."""
    return made_wrench(pulses(1000, (4.0, 5.0, (0.0, 0.0, 5.0, 0.0, 0.0, 0.0))))


def test_repr_and_html_are_short(made: WrenchTrack) -> None:
    lines = repr(made).splitlines()
    assert len(lines) < 10
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("Wrench by ")
    push = next(line for line in lines if "Force z" in line)
    assert "± 0.2 N" in push
    peak = float(push.rsplit("  ", 1)[1].split(" ± ")[0])
    assert peak == pytest.approx(5.0, abs=0.5)
    assert push.endswith(" s")
    assert "Torque z" in lines[-1]
    assert " N m" in lines[-1]
    html = made._repr_html_()
    assert len(html) < 2500
    assert html.count("<tr>") == 7


def test_figure_has_force_and_torque_with_bands_and_units(made: WrenchTrack) -> None:
    figure = made.plot()
    curves = {t.name: t for t in figure.data if t.name in ("east", "north", "up")}
    np.testing.assert_allclose(np.nanmax(curves["up"].y), np.max(made.wrench[:, 2]), rtol=1e-5)
    assert figure.layout.yaxis.title.text == "force (N)"
    titles = [figure.layout[key].title.text for key in ("yaxis11", "yaxis21", "yaxis31")]
    assert titles == ["N m"] * 3
    bands = [t for t in figure.data if t.fill == "toself"]
    assert len(bands) == len(COMPONENTS)
    torque = next(t for t in figure.data if t.yaxis == "y31" and t.fill is None)
    np.testing.assert_allclose(torque.customdata, STD[5], rtol=1e-5)


def test_frame_goes_into_polars(made: WrenchTrack) -> None:
    table = made.to_frame()
    for name in COMPONENTS:
        unit = b"N" if name.startswith("force") else b"N m"
        for column in (name, f"{name}_std"):
            assert table.schema.field(column).metadata[b"unit"] == unit
    frame = pl.DataFrame(table)
    np.testing.assert_array_equal(frame.select(COMPONENTS).to_numpy(), made.wrench)
    np.testing.assert_array_equal(frame["attitude_w"].to_numpy(), 1.0)
    np.testing.assert_array_equal(frame["usable"].to_numpy(), made.usable_rows)
