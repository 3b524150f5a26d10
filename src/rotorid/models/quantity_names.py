"""Names of the numbers of a parameter: "mass", "inertia_x", "products_of_inertia_xy", "thrust_curve_0"."""

from __future__ import annotations

from collections.abc import Sequence

_NUMBERED = ("thrust_curve", "rotor_scale")
_PAIRS = ("products_of_inertia",)


def quantity_names(name: str, count: int) -> tuple[str, ...]:
    """Of so many numbers: by axis, or by pair of axes; by number where they belong to none, or are more than three."""
    if name not in _NUMBERED and count == 1:
        return (name,)
    ends = range(count)
    if name not in _NUMBERED and count <= 3:
        ends = ("xy", "xz", "yz") if name in _PAIRS else "xyz"
    return tuple(f"{name}_{end}" for end in ends[:count])


def by_vectors(names: Sequence[str]) -> tuple[str, ...]:
    """These names, but the vector's own where all of its axes are among them."""
    found = []
    for name in names:
        vector, _, end = name.rpartition("_")
        axes = quantity_names(vector, 3)
        found.append(vector if end.isalpha() and name in axes and set(axes) <= set(names) else name)
    return tuple(dict.fromkeys(found))
