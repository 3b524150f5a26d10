"""Fill the tables of docs/size-priors.md in from the public vehicles and the laws fitted to them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rotorid.models.airframe.airframe import Quantity
from rotorid.models.airframe.size_priors import (
    PowerLaw,
    PublicVehicle,
    SizeLaws,
    arm_length_prior,
    fit_size_laws,
    public_vehicles,
    size_laws,
    size_priors,
)

PAGE = Path(__file__).parent / "size-priors.md"
_TABLE = re.compile(r"<!-- (?!end)(\w+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(text: str) -> str:
    """The text with each table between its markers as the laws have it."""
    tables = {
        "laws": _laws(size_laws()),
        "check": _check(),
        "outside": _outside(),
        "vehicles": _vehicles(),
        "left_out": _left_out(),
    }
    return _TABLE.sub(lambda found: f"<!-- {found[1]} -->\n\n{tables[found[1]]}\n\n<!-- end -->", text)


def _laws(laws: SizeLaws) -> str:
    J, tau, kappa, arm = laws.inertia, laws.motor_time_constant, laws.torque_ratio, laws.arm_length
    height = f"{0.5 * (1.0 - J.layout) + J.height:.3f}"
    rows = [
        ("J_z", f"{J.scale:.3f} m L^2", f"{100.0 * (J.log_std[2]):.0f} %", J.families),
        (
            "J_x",
            f"{J.scale:.3f} m ({J.layout:.3f} <y^2> + {height} L^2)",
            f"{100.0 * (J.log_std[0]):.0f} %",
            J.families,
        ),
        (
            "J_y",
            f"{J.scale:.3f} m ({J.layout:.3f} <x^2> + {height} L^2)",
            f"{100.0 * (J.log_std[1]):.0f} %",
            J.families,
        ),
        (
            "motor time constant",
            f"{tau.value() * 1000.0:.0f} ms",
            f"{100.0 * (tau.log_std()):.0f} %",
            tau.families,
        ),
        (
            "torque ratio",
            f"{kappa.value(mass=1.0) * 1000.0:.1f} mm (m / 1 kg)^{kappa.coefficients[1]:.2f}",
            _range(kappa),
            kappa.families,
        ),
        (
            "L, where no geometry is known",
            f"{arm.value(mass=1.0):.3f} m (m / 1 kg)^{arm.coefficients[1]:.2f}",
            _range(arm),
            arm.families,
        ),
    ]
    lines = [f"| {name} | `{law}` | {std} | {count} |" for name, law, std, count in rows]
    return "\n".join(["| prior | value | std | types of vehicles |", "|---|---|---|---|", *lines])


def _range(law: PowerLaw) -> str:
    return (
        f"{100.0 * (law.log_std(mass=1.0)):.0f} % at 1 kg, {100.0 * (law.log_std(mass=20.0)):.0f} % at 20 kg"
    )


def left_out_priors() -> dict[str, dict[str, Quantity]]:
    """For each public vehicle by name, its priors from the laws of the other families."""
    vehicles = public_vehicles()
    laws = {f: fit_size_laws([v for v in vehicles if v.family != f]) for f in {v.family for v in vehicles}}
    return {v.name: _priors(v, laws[v.family]) for v in vehicles}


def _priors(vehicle: PublicVehicle, laws: SizeLaws) -> dict[str, Quantity]:
    x, y = vehicle.arms
    positions = np.array([[x, y, 0.0], [x, -y, 0.0], [-x, y, 0.0], [-x, -y, 0.0]])
    arm = {"arm_length": arm_length_prior(vehicle.mass, vehicle.rotors, laws)}
    return {**size_priors(vehicle.mass, positions, laws), **arm}


def _truths(vehicle: PublicVehicle) -> dict[str, tuple[float, ...]]:
    numbers = {
        "motor_time_constant": vehicle.mean_time_constant,
        "torque_ratio": vehicle.torque_ratio,
        "arm_length": vehicle.arm_length,
    }
    inertia = {"inertia": vehicle.inertia} if vehicle.inertia else {}
    return {**inertia, **{name: (number,) for name, number in numbers.items() if number is not None}}


def _distances(truth: tuple[float, ...], prior: Quantity) -> list[float]:
    return [
        math.log(number / value) / (std / value)
        for number, value, std in zip(truth, prior.value, prior.std or (), strict=True)
    ]


def _check() -> str:
    names = {
        "inertia": ("inertia, g m^2", 1e3),
        "motor_time_constant": ("lag, ms", 1e3),
        "torque_ratio": ("torque ratio, mm", 1e3),
    }
    priors = left_out_priors()
    lines = [
        "| vehicle | " + " | ".join(f"{label}: prior | true" for label, _ in names.values()) + " |",
        "|---" * 7 + "|",
    ]
    for vehicle in public_vehicles():
        truths = _truths(vehicle)
        if names.keys() <= truths.keys():
            cells = [_cell(truths[n], priors[vehicle.name][n], scale) for n, (_, scale) in names.items()]
            lines.append(f"| {vehicle.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(truth: tuple[float, ...], prior: Quantity, scale: float) -> str:
    worst = max(_distances(truth, prior), key=abs)
    true = ", ".join(f"{scale * number:.3g}" for number in truth)
    guess = ", ".join(f"{scale * value:.3g}" for value in prior.value)
    relative = " / ".join(
        dict.fromkeys(
            f"{100.0 * (std / value):.0f} %" for std, value in zip(prior.std or (), prior.value, strict=True)
        )
    )
    return f"{guess} ± {relative} | {true} ({worst:+.1f})"


def _outside() -> str:
    priors = left_out_priors()
    far: list[str] = []
    count, inside = 0, 0
    for vehicle in public_vehicles():
        for name, truth in _truths(vehicle).items():
            distances = _distances(truth, priors[vehicle.name][name])
            count += len(distances)
            inside += sum(abs(z) <= 2.0 for z in distances)
            if max(map(abs, distances)) > 2.0:
                numbers = ", ".join(f"{z:+.1f}" for z in distances)
                far.append(f"- {vehicle.name}: {name.replace('_', ' ')} ({numbers})")
    share = f"{100.0 * inside / count:.0f} %"
    head = f"{inside} of {count} numbers ({share}) are within two standard deviations. The others are of:"
    return "\n".join([head, "", *far])


def _vehicles() -> str:
    numbers = [
        "| vehicle | kind | rotors | mass, kg | L, m | inertia, kg m^2 | lag, ms | torque ratio, mm |",
        "|---" * 8 + "|",
    ]
    sources = [
        "| vehicle | family | propeller radius, mm | thrust coefficient, N s^2 | source | licence |",
        "|---" * 6 + "|",
    ]
    for v in public_vehicles():
        lags = [f"{1e3 * lag:.3g}" for lag in (v.motor_time_constant, v.motor_time_constant_down) if lag]
        cells = (
            v.name,
            v.origin.kind,
            str(v.rotors),
            f"{v.mass:g}",
            f"{v.arm_length:.3f}",
            ", ".join(f"{J:.4g}" for J in v.inertia or ()),
            " up, ".join(lags) + (" down" if len(lags) > 1 else ""),
            _number(v.torque_ratio, 1e3),
        )
        numbers.append("| " + " | ".join(cells) + " |")
        cells = (
            v.name,
            v.family,
            _number(v.propeller_radius, 1e3),
            _number(v.thrust_coefficient, 1.0),
            v.origin.source.replace("/", "/<wbr>"),
            v.origin.license,
        )
        sources.append("| " + " | ".join(cells) + " |")
    return "\n".join([*numbers, "", "Propellers, sources and licences:", "", *sources])


def _number(value: float | None, scale: float) -> str:
    return "" if value is None else f"{scale * value:.4g}"


def figure_of_merit(vehicle: PublicVehicle) -> float | None:
    """Power of an ideal rotor over that of the drag torque in hover; None where a number is missing."""
    R, kappa, k = vehicle.propeller_radius, vehicle.torque_ratio, vehicle.thrust_coefficient
    return R * math.sqrt(k / (2.0 * 1.225 * math.pi * R**4)) / kappa if R and kappa and k else None


def _left_out() -> str:
    merits = [merit for v in public_vehicles() if (merit := figure_of_merit(v)) is not None]
    head = (
        "The figure of merit is the power of an ideal rotor of this radius and thrust, divided by the power of the drag "
        f"torque. For the torque ratios in use, as far as it is known, it is {min(merits):.2f} to {max(merits):.2f}."
    )
    lines = [f"- {v.name}: {_reasons(v.origin.left_out)}" for v in public_vehicles() if v.origin.left_out]
    return "\n".join([head, "", *lines])


def _reasons(left_out: Mapping[str, str]) -> str:
    return "; ".join(f"{name.replace('_', ' ')} ({reason})" for name, reason in left_out.items())


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
