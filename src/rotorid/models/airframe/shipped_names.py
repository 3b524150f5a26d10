"""The names of the airframes that come with the package, without what takes time to import."""

from __future__ import annotations

from importlib import resources


def shipped_airframes() -> tuple[str, ...]:
    """List the airframes that come with the package.

    Returns:
        Their names, sorted.
    """
    folder = resources.files("rotorid.models.airframe") / "shipped"
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))
