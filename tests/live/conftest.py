"""One flight over a link, and what a session made of it, for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest

from rotorid.live.moment import Moment
from rotorid.live.session import Session
from rotorid.live.settings import Settings
from rotorid.models.airframe import Airframe, load_airframe
from tests.live import flown


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):  # pyright: ignore[reportArgumentType]
        yield


@pytest.fixture(scope="session")
def airframe() -> Airframe:
    return load_airframe("px4-sih-quad")


@pytest.fixture(scope="session")
def pieces() -> list[flown.Piece]:
    """12 s of it, 9 s in the air."""
    return list(flown.flight(12.0))


def session(airframe: Airframe, **settings) -> Session:
    return Session(airframe, Settings(**{"wrench": False} | settings))


def fed(session: Session, pieces: list[flown.Piece]) -> list[Moment]:
    """All the moments that these bytes give."""
    return [moment for arrival, data in pieces for moment in session.feed(arrival, data)]


def estimates(moments: list[Moment]) -> list[Moment]:
    return [moment for moment in moments if moment.attitude is not None]
