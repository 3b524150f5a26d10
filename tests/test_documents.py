"""TOML of others: airframes, mappings, maps and ranges end soon, with an error of one line."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import pytest

from rotorid.documents import MOST_TEXT, parse_toml
from rotorid.errors import AirframeError, LogError
from rotorid.logs.options import load_toml
from rotorid.models.airframe.airframe import load_airframe, parse_airframe

MASS = "[mass]\nunit = 'kg'\nvalue = "
HOSTILE = {
    "a number of 400 digits": MASS + "9" * 400,
    "a number of 5000 digits": MASS + "9" * 5000,
    "a hexadecimal number": MASS + "0x" + "f" * 100_000,
    "a deep table": f"[{'.'.join('a' * 20_000)}]",
    "a deep key": "a." * 20_000 + "b = 1",
    "a deep key in quotes": "'a . a' . " * 20_000 + "b = 1",
    "deep inline tables": "a = " + "{a=" * 20_000,
    "deep lists": "a = " + "[" * 100_000,
    "a long text": "#" * (MOST_TEXT + 1),
    "no date": "a = 9999-99-99",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_toml_is_refused_soon(text: str, tmp_path: Path) -> None:
    start = time.process_time()
    with pytest.raises(tomllib.TOMLDecodeError):
        parse_toml(text)
    path = tmp_path / "a.toml"
    path.write_text(text)
    for read in (load_airframe, load_toml):
        with pytest.raises((AirframeError, LogError)) as caught:
            read(path)
        assert "\n" not in str(caught.value)
    assert time.process_time() - start < 2.0


def test_dots_in_texts_and_numbers_are_no_deep_keys() -> None:
    text = "a = '" + "1.2 " * 50 + "'\nb = [" + "1.5, " * 100 + "]\nc.d.e = 1"
    assert parse_toml(text)["c"] == {"d": {"e": 1}}


@pytest.mark.parametrize("entry", ["rotor = 5", "[rotor]\nposition = [1, 0, 0]", "rotor = [1]"])
def test_rotors_of_another_kind_are_refused(entry: str) -> None:
    with pytest.raises(AirframeError, match="rotor"):
        parse_airframe(f"{entry}\n{MASS}1.0", "a.toml")
