"""One flight over a link, and what a session made of it, for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest

from rotorid.live.session import Session
from rotorid.live.settings import SessionSettings
from rotorid.live.snapshot import Snapshot
from rotorid.models.airframe.airframe import Airframe, load_airframe
from tests.live import simulated_flight


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):  # pyright: ignore[reportArgumentType]
        yield


@pytest.fixture(scope="session")
def airframe() -> Airframe:
    return load_airframe("px4-sih-quad")


@pytest.fixture(scope="session")
def pieces() -> list[simulated_flight.Piece]:
    """12 s of it, 9 s in the air."""
    return list(simulated_flight.flight(12.0))


def session(airframe: Airframe, **settings) -> Session:
    return Session(airframe, SessionSettings(**{"wrench": False} | settings))


def fed(session: Session, pieces: list[simulated_flight.Piece]) -> list[Snapshot]:
    """All the snapshots that these bytes give."""
    return [snapshot for arrival, data in pieces for snapshot in session.feed(arrival, data)]


def estimates(snapshots: list[Snapshot]) -> list[Snapshot]:
    return [snapshot for snapshot in snapshots if snapshot.attitude is not None]
