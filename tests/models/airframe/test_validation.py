"""The record of a fly-back: it is read back as written, a wrong entry is named, and changed numbers void it."""

import dataclasses

import pytest

from rotorid.errors import AirframeError
from rotorid.models.airframe.acceptance import fingerprint_of, rejection_reason
from rotorid.models.airframe.airframe import Quantity, airframe_toml, load_airframe, parse_airframe
from rotorid.models.airframe.validation import FlyBack, Gain, ReferenceFlight, SignalErrors

AIRFRAME = load_airframe("px4-sih-quad")
ERRORS = SignalErrors(
    name="velocity",
    unit="m/s",
    model=(0.1, 0.3),
    model_std=(0.01, 0.02),
    prior=(0.2, 0.6),
    prior_std=(0.03, 0.04),
    constant=(0.3, 0.9),
    constant_std=(0.05, 0.06),
    prior_z=(4.0, float("inf")),
    constant_z=(-0.5, 2.0),
    coverage=(0.95, 1.0),
    decides=(True, False),
)
PROOF = FlyBack(
    accepted=True,
    reasons=('It says "yes".', "Über alles\\nordentlich."),
    flights=("a.ulg", "b.ulg"),
    prior="px4-sih-quad",
    windows=12,
    horizons=(0.1, 2.0),
    signals=(ERRORS, dataclasses.replace(ERRORS, name="position", unit="m")),
    gains=(Gain("thrust", 1.01, 0.003, 0.05),),
    nmpc=ReferenceFlight(5, 4, 20.0, 0.1, 0.4),
    fingerprint=fingerprint_of(AIRFRAME),
)
PROVEN = dataclasses.replace(AIRFRAME, fly_back=PROOF)


@pytest.mark.parametrize("proof", [PROOF, dataclasses.replace(PROOF, signals=(), gains=(), nmpc=None)])
def test_write_and_read_round_trip(proof):
    airframe = dataclasses.replace(AIRFRAME, fly_back=proof)
    text = airframe_toml(airframe)
    assert parse_airframe(text, AIRFRAME.source) == airframe
    assert airframe_toml(parse_airframe(text, "other.toml")) == text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("accepted = true", 'accepted = "yes"', r"\[fly_back\] accepted must be true or false"),
        ("windows = 12", "windows = -1", r"\[fly_back\] windows must be a whole number, 0 or more"),
        ("windows = 12", "window = 12", r"\[fly_back\] has an unknown entry 'window'"),
        ("windows = 12\n", "", r"\[fly_back\] has no windows; let `rotorid fly-back` write it again"),
        ("horizons = [0.1, 2.0]", "horizons = 2.0", r"\[fly_back\] horizons must be a list"),
        (
            "horizons = [0.1, 2.0]",
            "horizons = [2.0]",
            r"velocity: model has 2 numbers where there are 1 horiz",
        ),
        ("value = 1.01", "value = nan", r"\[\[fly_back.gain\]\] value must be a number"),
        ("[fly_back.nmpc]", "[[fly_back.nmpc]]", r"\[fly_back.nmpc\] must be a table"),
    ],
)
def test_a_wrong_entry_is_named(old, new, message):
    text = airframe_toml(PROVEN)
    assert old in text
    with pytest.raises(AirframeError, match=f"mine.toml: .*{message}"):
        parse_airframe(text.replace(old, new, 1), "mine.toml")


def test_a_model_is_accepted_while_its_numbers_are_unchanged():
    assert rejection_reason(PROVEN) is None
    assert "was not validated by fly-back" in (rejection_reason(AIRFRAME) or "")
    refused = dataclasses.replace(PROVEN, fly_back=dataclasses.replace(PROOF, accepted=False))
    assert 'rejected by fly-back: It says "yes".' in (rejection_reason(refused) or "")
    heavier = dict(AIRFRAME.quantities) | {"mass": Quantity((1.1,), "kg")}
    assert "changed after" in (rejection_reason(dataclasses.replace(PROVEN, quantities=heavier)) or "")
    renamed = dataclasses.replace(PROVEN, name="other", description="same numbers", source="elsewhere.toml")
    assert rejection_reason(renamed) is None
