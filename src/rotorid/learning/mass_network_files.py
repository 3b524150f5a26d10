"""A trained mass network as a folder: `model.json`, `weights.safetensors`, and the `airframe.toml` of its training.

The files contain only tensors and text, no executable code. A network holds for the vehicle, the System, the rotor input and
the thrust curve of its training; `check_network` rejects others.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from rotorid.documents import parse_json
from rotorid.errors import AirframeError, LogFormatError, SettingError, SignalError
from rotorid.estimators.elm.network import HeldOutErrors, HiddenLayer, MassNetwork, Readout, TrainingRange
from rotorid.estimators.elm.windows import RATIOS, TIME_CONSTANTS
from rotorid.findings import Finding, Severity
from rotorid.learning.model_files import AIRFRAME, MASS_NETWORK, read_files
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, airframe_toml, parse_airframe
from rotorid.models.registry import ROTOR_INPUTS
from rotorid.models.residual_files import MODEL, WEIGHTS
from rotorid.models.system import System

_FORMAT: Final = 1
_AUTOPILOTS: Final[Mapping[str, str]] = {
    "px4-ulog": "PX4", "ardupilot-bin": "ArduPilot", "crazyflie-usd": "Crazyflie", "blackbox": "Betaflight or INAV",
}  # fmt: skip
_MOST_NODES: Final = 10_000

OTHER_VEHICLE_STD: Final = 0.08
"""Relative standard deviation between the thrusts of vehicles of one kind at the same command: propellers, motors, cells."""


Autopilot = tuple[str, str]
"""Kind and serial number, "" where a log does not tell them."""


@dataclasses.dataclass(frozen=True)
class TrainedMassModel:
    """A network with its vehicle. system: name of its System. rotor_input: what drove the rotors. flights: names of the
    training flights. held_out_rms: relative error of the mass on rows that it was not trained on.
    autopilots: of these flights. is_same_vehicle: whether the user says that all logs are of the vehicle of the training.
    """

    network: MassNetwork
    airframe: Airframe
    system: str
    rotor_input: str
    flights: tuple[str, ...] = ()
    held_out_rms: float = 0.0
    autopilots: tuple[Autopilot, ...] = ()
    is_same_vehicle: bool = False

    @property
    def description(self) -> str:
        """One line for a report."""
        return f"mass network of {len(self.flights)} flights"

    def is_confirmed_for(self, flight: Flight | None) -> bool:
        """Whether a flight is of the vehicle of the training, by its serial number or by the user. None: not known yet."""
        if self.is_same_vehicle:
            return True
        return flight is not None and bool(flight.identity) and autopilot_of(flight) in self.autopilots

    def network_for(self, flight: Flight | None) -> MassNetwork:
        """The network for a flight. Its band is widened by OTHER_VEHICLE_STD where the vehicle is not confirmed."""
        if self.is_confirmed_for(flight):
            return self.network
        errors = self.network.errors
        std = np.asarray(np.hypot(errors.flight_std, OTHER_VEHICLE_STD))
        return dataclasses.replace(self.network, errors=dataclasses.replace(errors, flight_std=std))


def rotor_input_of(system: System) -> str:
    """The input of a System that drives its rotors."""
    return next(name for name in ROTOR_INPUTS if name in system.inputs)


def network_files(model: TrainedMassModel) -> dict[str, bytes]:
    """The files of a model, by name."""
    table = {
        "format": _FORMAT,
        "kind": MASS_NETWORK,
        "vehicle": model.airframe.name,
        "system": model.system,
        "rotor_input": model.rotor_input,
        "flights": list(model.flights),
        "held_out_rms": model.held_out_rms,
        "autopilots": [list(autopilot) for autopilot in model.autopilots],
    }
    tensors = {
        name: np.array(value, dtype=np.float64, order="C") for name, value in _tensors(model.network).items()
    }
    return {
        MODEL: json.dumps(table, indent=2, sort_keys=True).encode() + b"\n",
        WEIGHTS: to_bytes(tensors),
        AIRFRAME: airframe_toml(model.airframe).encode(),
    }


def load_network(folder: str | Path) -> TrainedMassModel:
    """Read the model in a folder that `rotorid learn-mass` wrote.

    Raises:
        LogFormatError: a file cannot be read, or is not part of a mass network of this format.
        AirframeError: the airframe is not valid.
    """
    folder = Path(folder)
    content = read_files(folder, "learn-mass")
    try:
        table = parse_json(content[MODEL])
        is_network = isinstance(table, dict) and table.get("kind") == MASS_NETWORK
    except ValueError:
        is_network = True  # a damaged file, see below
        table = None
    if not is_network:
        raise LogFormatError(f"{folder}: not a mass network; give a folder that `rotorid learn-mass` wrote")
    try:
        if table is None:
            raise ValueError(f"{MODEL} is damaged")
        if table["format"] != _FORMAT:
            raise ValueError(f"format {table['format']}, this version reads {_FORMAT}")
        network = _network(from_bytes(content[WEIGHTS]))
        system, rotor_input = str(table["system"]), str(table["rotor_input"])
        flights = tuple(str(name) for name in table["flights"])
        autopilots = tuple((str(kind), str(serial)) for kind, serial in table["autopilots"])
        rms = float(table["held_out_rms"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, SafetensorError) as error:
        raise LogFormatError(
            f"{folder}: not a complete mass network ({type(error).__name__}: {error}); repeat `rotorid learn-mass`"
        ) from None
    airframe = parse_airframe(content[AIRFRAME].decode(errors="replace"), str(folder / AIRFRAME), folder)
    return TrainedMassModel(network, airframe, system, rotor_input, flights, rms, autopilots)


def check_use(model: TrainedMassModel, flight: Flight, airframe: Airframe, name: str, system: System) -> None:
    """Check that a network can be used on a flight: `check_network`, the vehicle's autopilot, and the signals.

    Args:
        model, airframe: as of `check_network`.
        flight: the log.
        name: of the System.
        system: of the flight.
    Raises:
        AirframeError, SettingError, SignalError: as `check_network`; also a log of another autopilot, or without a signal that
            is needed.
    """
    check_network(model, airframe, name, rotor_input_of(system))
    check_signals(flight)
    own = autopilot_of(flight)
    if model.autopilots and not any(_may_be_the_same(own, trained) for trained in model.autopilots):
        known = ", ".join(_autopilot_text(*trained) for trained in model.autopilots)
        raise AirframeError(
            f"{flight.source}: a log of {_autopilot_text(*own)}, but the mass network was trained on logs of {known}; train "
            "one on flights of this vehicle"
        )


def identity_findings(model: TrainedMassModel, flight: Flight) -> tuple[Finding, ...]:
    """A warning unless a network and a log are known to be of one vehicle: the mass of a similar one is wrong, and the band
    is wider for that."""
    if model.is_confirmed_for(flight):
        return ()
    values = {"vehicle": model.airframe.name, "relative_std": OTHER_VEHICLE_STD}
    return (Finding("vehicle_unconfirmed", Severity.WARNING, values),)


def autopilot_of(flight: Flight) -> Autopilot:
    """The autopilot of a log."""
    return _AUTOPILOTS.get(flight.format, ""), flight.identity


def _may_be_the_same(a: Autopilot, b: Autopilot) -> bool:
    """Whether two logs can be of one autopilot. One of a kind writes its serial number to all of its logs, or to none."""
    if a[0] and b[0]:
        return a == b
    return not (a[1] and b[1]) or a[1] == b[1]


def _autopilot_text(kind: str, serial: str) -> str:
    number = f"the serial number {serial}" if serial else "no serial number"
    return f"an autopilot {kind} with {number}".replace("  ", " ")


def check_network(model: TrainedMassModel, airframe: Airframe, system: str, rotor_input: str) -> None:
    """Check that a network can be used.

    Args:
        model: the network.
        airframe: of the vehicle.
        system: name of the System over which it is to run.
        rotor_input: what drives its rotors.
    Raises:
        AirframeError: it is of another vehicle, or of another thrust curve or motor lag.
        SettingError: it was trained over another System.
        SignalError: it was trained with another rotor input.
    """
    own = model.airframe
    if own.name != airframe.name or len(own.rotors) != len(airframe.rotors):
        raise AirframeError(
            f"a mass network of {own.name!r} with {len(own.rotors)} rotors, not of {airframe.name!r} with "
            f"{len(airframe.rotors)}; train one on flights of this vehicle"
        )
    if _thrust_numbers(own) != _thrust_numbers(airframe):
        raise AirframeError(
            f"the mass network was trained with another thrust curve or motor lag than {airframe.name!r} has now; repeat "
            "`rotorid learn-mass`, or use its own airframe.toml"
        )
    if system != model.system:
        raise SettingError(
            f"the mass network was trained over the system {model.system}: give --system {model.system}"
        )
    if rotor_input != model.rotor_input:
        raise SignalError(
            f"the mass network was trained with {model.rotor_input}, but here the rotors are driven by {rotor_input}; train a "
            "network on flights with it"
        )


def check_signals(flight: Flight) -> None:
    """Raise SignalError where a flight lacks a signal that every mass network needs."""
    missing = [name for name in ("attitude", "velocity") if name not in flight]
    if missing:
        raise SignalError(
            f"{flight.source}: the log has no {' and no '.join(missing)}, which a mass network needs"
        )


def _thrust_numbers(airframe: Airframe) -> tuple[Any, ...]:
    """The numbers that convert rotor signals to thrust, to 9 digits."""
    curve = airframe.thrust_curve
    numbers: list[float] = []
    if curve is not None:
        numbers += [*curve.coefficients, curve.zero, curve.full, curve.voltage, curve.voltage_exponent]
    quantities = [
        airframe.get(name) for name in ("thrust_coefficient", "thrust_scale", "motor_time_constant")
    ]
    parts: list[Sequence[float]] = [numbers, *([] if q is None else q.value for q in quantities)]
    return tuple(tuple(f"{value:.9g}" for value in part) for part in parts)


def _tensors(network: MassNetwork) -> dict[str, np.ndarray]:
    leaves = jax.tree_util.tree_leaves_with_path(network)
    return {jax.tree_util.keystr(path).lstrip("."): np.asarray(leaf) for path, leaf in leaves}


def _network(tensors: Mapping[str, np.ndarray]) -> MassNetwork:
    """The network of `_tensors`. Raises KeyError and ValueError for a tensor that is missing or not valid."""
    bias = tensors["layer.bias"]
    hidden, short = bias.size, len(TIME_CONSTANTS) - 1
    if not 0 < hidden <= _MOST_NODES:
        raise ValueError(f"{hidden} nodes")
    rank = tensors["readout.root"].shape[-1] if tensors["readout.root"].ndim else 0
    if not 0 < rank <= hidden:
        raise ValueError(f"readout.root has the rank {rank}")
    shapes: dict[str, tuple[int, ...]] = {
        "layer.weights": (hidden, RATIOS), "layer.bias": (hidden,), "layer.mean": (RATIOS,), "layer.scale": (RATIOS,),
        "readout.weights": (hidden,), "readout.root": (hidden, rank), "errors.typical": (short,), "range.low": (RATIOS,),
        "range.high": (RATIOS,), "range.level": (2,), "errors.floor": (), "errors.slope": (), "errors.flight_std": (),
        "velocity_noise": (),
    }  # fmt: skip
    values = {}
    for name, shape in shapes.items():
        value = values[name] = tensors[name]
        if value.dtype != np.float64 or value.shape != shape:
            raise ValueError(f"{name} is {value.dtype} of shape {value.shape}, not float64 of {shape}")
        if not np.isfinite(value).all():
            raise ValueError(f"{name} is not finite")
    for name in ("layer.scale", "errors.typical", "errors.floor", "velocity_noise"):
        if not (values[name] > 0.0).all():
            raise ValueError(f"{name} is not positive")
    if min(values["errors.slope"], values["errors.flight_std"]) < 0.0:
        raise ValueError("an error is negative")
    if not (
        (values["range.high"] > values["range.low"]).all()
        and values["range.level"][1] >= values["range.level"][0]
    ):
        raise ValueError("the range of the training is empty")
    layer = HiddenLayer(*(values[f"layer.{n}"] for n in ("weights", "bias", "mean", "scale")))
    readout = Readout(values["readout.weights"], values["readout.root"])
    errors = HeldOutErrors(*(values[f"errors.{n}"] for n in ("floor", "slope", "flight_std", "typical")))
    limits = TrainingRange(*(values[f"range.{n}"] for n in ("low", "high", "level")))
    return MassNetwork(layer, readout, errors, limits, values["velocity_noise"])
