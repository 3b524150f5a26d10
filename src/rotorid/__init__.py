"""rotorid: run-time model identification for flying robots.

    from rotorid import track

    tracked = track("flight.ulg", "quad.toml")
    tracked.plot("mass")

The names of `__init__.pyi` are the public interface of the first steps; every package has its own list, in its own
`__init__.pyi`. A name is loaded when it is first used, so that `import rotorid` is quick. `track` and `identify` compute in
float64, as the commands do. Estimators that `run` runs want float64, too, which its caller switches on:
`jax.config.update("jax_enable_x64", True)`.
"""

from __future__ import annotations

from typing import Any

import lazy_loader

_public, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = ["__version__", *_names]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("rotorid")
    return _public(name)
