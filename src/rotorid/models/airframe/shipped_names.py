"""The names of the airframes that come with the package, without what takes time to import."""

from __future__ import annotations

import functools
from importlib import resources


@functools.cache
def shipped_airframes() -> tuple[str, ...]:
    """List the airframes that come with the package as priors.

    Returns:
        Their names, sorted.
    """
    folder = resources.files("rotorid.models.airframe") / "shipped"
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


def register_airframes() -> tuple[str, ...]:
    """List the identified airframes of the register (see `rotorid.models.airframe.register`).

    Returns:
        Their names, sorted.
    """
    folder = resources.files("rotorid.models.airframe") / "identified"
    return tuple(sorted(f.name for f in folder.iterdir() if (f / "airframe.toml").is_file()))


def airframe_names() -> tuple[str, ...]:
    """All names that stand for an airframe: those of `shipped_airframes`, then those of `register_airframes`."""
    return (*shipped_airframes(), *register_airframes())
