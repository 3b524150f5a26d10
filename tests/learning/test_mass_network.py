"""Training of mass networks on simulated flights, and their files."""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import AirframeError, ExcitationError, LogFormatError, SettingError, SignalError
from rotorid.estimators.elm.estimator import elm_mass
from rotorid.estimators.run import run
from rotorid.learning.mass_network import TrainingRows, train_mass_network, training_rows, untrained_network
from rotorid.learning.mass_network_files import (
    TrainedMassModel,
    check_network,
    check_signals,
    check_use,
    identity_findings,
    load_network,
    network_files,
)
from rotorid.learning.model_files import LearnedModel, model_files
from rotorid.models.airframe.airframe import Quantity, load_airframe
from rotorid.simulation.flight import simulate
from rotorid.workflows.track.track import prepare_samples
from tests.estimators.elm.networks import AIRFRAME, BARE, random_network

NOISE = 0.03  # m/s


@functools.cache
def rows(seed: int, profile: str = "steps", trajectory: str = "loop") -> TrainingRows:
    flight = simulate(trajectory, profile, seed, duration=15.0)
    samples = prepare_samples(flight, BARE, whole=True)
    mass = flight["true_mass"]
    truth = mass.values[np.searchsorted(mass.times, np.asarray(samples.t), side="right") - 1, 0]
    return training_rows(elm_mass(BARE, network=untrained_network(NOISE)), samples, truth)


def test_the_band_holds_on_flights_of_other_masses_and_paths() -> None:
    trained = train_mass_network([rows(1), rows(2, "sine")], NOISE, 0.01)
    errors, stds = [], []
    for test in (rows(7, "steps", "random"), rows(8, "exponential")):
        for ratios, thrust, y in zip(test.ratios[::5], test.thrust[::5], test.y[::5], strict=True):
            value, std, is_inside = trained.network.mass(*map(jnp.asarray, (1.0, ratios, thrust)))
            if is_inside:
                errors.append(float(value) * y - 1.0)  # m / true mass - 1, of a b_0 of 1
                stds.append(float(std / value))
    e, s = np.array(errors), np.array(stds)
    assert len(e) > 100
    assert np.sqrt(np.mean(e**2)) < 0.05
    assert np.mean(np.abs(e) < 1.96 * s) > 0.9
    assert np.median(s) < 0.12


def test_the_network_beats_the_longest_window_after_changes() -> None:
    trained = train_mass_network([rows(1), rows(2), rows(3)], NOISE, 0.01)
    test = rows(9)
    H = np.stack([np.asarray(trained.network.layer.outputs(jnp.asarray(x))) for x in test.ratios[::5]])
    e = H @ np.asarray(trained.network.readout.weights) / test.y[::5] - 1.0
    assert np.sqrt(np.mean(e**2)) < 0.5 * np.sqrt(np.mean((1.0 / test.y[::5] - 1.0) ** 2))


def test_a_thrust_that_differs_from_flight_to_flight_widens_the_band() -> None:
    def scaled(of: TrainingRows, factor: float) -> TrainingRows:
        return dataclasses.replace(of, y=factor * of.y)

    alike = train_mass_network([rows(1), rows(2), rows(3)], NOISE, 0.01)
    different = train_mass_network([scaled(rows(1), 0.9), rows(2), scaled(rows(3), 1.1)], NOISE, 0.01)
    assert float(different.network.errors.flight_std) > 0.05
    assert float(alike.network.errors.flight_std) < 0.02
    single = train_mass_network([rows(1)], NOISE, 0.07)
    assert float(single.network.errors.flight_std) == pytest.approx(0.07)


def test_training_repeats_and_needs_rows() -> None:
    first, second = (train_mass_network([rows(1)], NOISE, 0.01) for _ in range(2))
    assert jax.tree.all(jax.tree.map(lambda a, b: np.array_equal(a, b), first.network, second.network))
    short = dataclasses.replace(
        rows(1), **{n: getattr(rows(1), n)[:50] for n in ("ratios", "thrust", "y", "mass")}
    )
    with pytest.raises(ExcitationError, match="at least"):
        train_mass_network([short], NOISE, 0.01)
    with pytest.raises(SettingError, match="above 0"):
        train_mass_network([rows(1)], NOISE, 0.01, alpha=0.0)


def model(**changes: object) -> TrainedMassModel:
    return dataclasses.replace(
        TrainedMassModel(random_network(), AIRFRAME, "multirotor-bare", "thrust", ("a.csv",), 0.02), **changes
    )


def written(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_a_model_is_read_as_it_was_written(tmp_path: Path) -> None:
    read = load_network(written(tmp_path, network_files(model())))
    for name in ("system", "rotor_input", "flights", "held_out_rms"):
        assert getattr(read, name) == getattr(model(), name)
    assert jax.tree.all(jax.tree.map(np.array_equal, read.network, model().network))
    check_network(read, AIRFRAME, "multirotor-bare", "thrust")
    flight = simulate("loop", "step", 1, duration=5.0)
    samples = prepare_samples(flight, BARE, whole=True)
    a, b = (run(elm_mass(BARE, network=n), samples, engine="jax") for n in (read.network, model().network))
    assert np.array_equal(a.value, b.value)


@pytest.mark.parametrize(
    "damage",
    [
        lambda f: f | {"weights.safetensors": f["weights.safetensors"][:-8]},
        lambda f: f | {"weights.safetensors": f["weights.safetensors"][:20]},
        lambda f: f | {"weights.safetensors": b""},
        lambda f: f | {"model.json": f["model.json"][:-20]},
        lambda f: f | {"model.json": b"[]"},
        lambda f: f | {"model.json": f["model.json"].replace(b'"format": 1', b'"format": 9')},
        lambda f: f | {"model.json": json.dumps({"format": 1, "kind": "mass-network"}).encode()},
        lambda f: {n: v for n, v in f.items() if n != "weights.safetensors"},
        lambda f: model_files(LearnedModel(AIRFRAME, None)),
    ],
)
def test_damaged_and_other_models_are_refused(tmp_path: Path, damage) -> None:
    with pytest.raises(LogFormatError, match="learn-mass"):
        load_network(written(tmp_path, damage(network_files(model()))))


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
@pytest.mark.parametrize("name", ["errors.floor", "layer.scale", "velocity_noise"])
def test_numbers_that_cannot_be_are_refused(tmp_path: Path, name: str, value: float) -> None:
    from safetensors.numpy import load, save

    files = network_files(model())
    tensors = {n: np.array(v) for n, v in load(files["weights.safetensors"]).items()}
    tensors[name] = np.full_like(tensors[name], value)
    with pytest.raises(LogFormatError, match=name):
        load_network(written(tmp_path, files | {"weights.safetensors": save(tensors)}))


def test_only_a_serial_number_confirms_the_vehicle() -> None:
    flight = dataclasses.replace(simulate("loop", "steps", 1, duration=2.0), format="px4-ulog")
    numbered = dataclasses.replace(flight, identity="00A5")
    with_number, without = model(autopilots=(("PX4", "00A5"),)), model(autopilots=(("PX4", ""),))
    assert identity_findings(with_number, numbered) == ()
    for trained, other in ((without, flight), (with_number, flight), (without, numbered), (model(), flight)):
        assert [f.code for f in identity_findings(trained, other)] == ["vehicle_unconfirmed"]


def test_a_network_is_of_the_autopilots_of_its_training() -> None:
    trained = model(autopilots=(("PX4", "00A5"),))
    flight = simulate("loop", "step", 1, duration=2.0)
    own: list[dict[str, str]] = [{}, {"identity": "00A5"}, {"format": "px4-ulog", "identity": "00A5"}]
    for changes in own:
        check_use(trained, dataclasses.replace(flight, **changes), AIRFRAME, "multirotor-bare", BARE)
    others = [
        ({"identity": "00B6"}, "00B6"),
        ({"format": "ardupilot-bin"}, "ArduPilot"),
        ({"format": "px4-ulog"}, "no serial number"),
    ]
    for changes, found in others:
        other = dataclasses.replace(flight, **changes)
        with pytest.raises(AirframeError, match=found):
            check_use(trained, other, AIRFRAME, "multirotor-bare", BARE)
        check_use(model(), other, AIRFRAME, "multirotor-bare", BARE)


def test_a_network_is_of_its_vehicle_system_and_signals() -> None:
    trained = model()
    with pytest.raises(AirframeError, match="crazyflie"):
        check_network(trained, load_airframe("crazyflie-2.1"), "multirotor-bare", "thrust")
    stronger = dataclasses.replace(
        AIRFRAME, quantities={**AIRFRAME.quantities, "thrust_scale": Quantity((1.2,), "1")}
    )
    with pytest.raises(AirframeError, match="thrust curve"):
        check_network(trained, stronger, "multirotor-bare", "thrust")
    with pytest.raises(SettingError, match="multirotor-bare"):
        check_network(trained, AIRFRAME, "multirotor", "thrust")
    with pytest.raises(SignalError, match="rotor_speed"):
        check_network(trained, AIRFRAME, "multirotor-bare", "rotor_speed")
    flight = simulate("loop", "step", 1, duration=2.0)
    signals = {name: signal for name, signal in flight.signals.items() if name != "velocity"}
    with pytest.raises(SignalError, match="velocity"):
        check_signals(dataclasses.replace(flight, signals=signals))
