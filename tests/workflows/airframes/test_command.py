"""`rotorid airframes`: priors and the register under headings of their own, and an entry as JSON."""

from __future__ import annotations

import functools
import json

import numpy as np

from rotorid.models.airframe.register import load_entry
from rotorid.models.airframe.shipped_names import airframe_names, register_airframes
from tests.running import here

rotorid = functools.partial(here, "airframes")


def test_the_list_has_both_kinds_and_the_verdicts():
    lines = rotorid().output.splitlines()
    first, second = (
        next(k for k, line in enumerate(lines) if line.startswith(h)) for h in ("Priors", "Register")
    )
    assert first < second
    assert any(line.startswith("px4-sih-quad ") for line in lines[first:second])
    for name in register_airframes():
        (line,) = (line for line in lines[second:] if line.startswith(f"{name} "))
        record = load_entry(name).airframe.fly_back
        assert record is not None
        assert ("not accepted" not in line) == record.accepted


def test_the_list_as_json():
    document = json.loads(rotorid("--json").output)
    assert [entry["name"] for entry in document] == [*airframe_names()]
    verdicts = {entry["name"]: entry["accepted"] for entry in document}
    assert verdicts["px4-sih-quad"] is None
    assert verdicts["px4-sih-quad-2026"] is True
    assert verdicts["neurobem-quad"] is False


def test_an_entry_as_json():
    name = "crazyflie-2.1-arpl"
    document = json.loads(rotorid(name, "--json").output)
    register = document["register"]
    assert register["url"].startswith("https://github.com/")
    assert [flight["file"] for flight in register["flights"]] == ["log10", "log15", "log16"]
    assert np.shape(register["covariance"]) == (len(register["names"]),) * 2
    by = {(one["quantity"], one["at"]): one for one in register["published"]}
    assert abs(by["inertia_x", None]["z"]) < 1.0
    assert by["thrust", 0.6]["std"] > 0.0
    assert "register" not in json.loads(rotorid("px4-sih-quad", "--json").output)
    assert "[fly_back]" in rotorid(name).output
