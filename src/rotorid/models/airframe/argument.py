"""An airframe as the argument of a function: an object, a path or a name."""

from __future__ import annotations

from pathlib import Path

from rotorid.errors import SettingError
from rotorid.models.airframe.airframe import Airframe, load_airframe


def to_airframe(airframe: object) -> Airframe:
    """The airframe that is given as an Airframe, or by its path or name, see `load_airframe`.

    Raises:
        AirframeError: it cannot be read.
        SettingError: neither an Airframe nor a path or name.
    """
    if isinstance(airframe, Airframe):
        return airframe
    if isinstance(airframe, (str, Path)):
        return load_airframe(airframe)
    raise SettingError(
        f"an airframe must be an Airframe, the path of a TOML file or the name of a shipped airframe, not "
        f"{type(airframe).__name__}"
    )
