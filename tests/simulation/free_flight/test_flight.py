"""Free flights of an airframe, against the System that it is, its physics, and what its logs say."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.control.cascade import cascade_controller, thrust_at
from rotorid.control.setpoints import Chirp, Doublet, Lissajous, Move, Multisine, Setpoints, schroeder
from rotorid.errors import AirframeError, SettingError
from rotorid.logs.read import read
from rotorid.logs.write import write_table
from rotorid.models.airframe.airframe import Airframe, Quantity, airframe_toml, load_airframe, parse_airframe
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.models.system import GRAVITY, parameter_values
from rotorid.numerics import integrators
from rotorid.simulation.free_flight.flight import Battery, flight_structure, fly, make_conditions
from rotorid.simulation.free_flight.instruments import (
    INSTRUMENTS,
    Instrument,
    Instruments,
    interpolate_rows,
    measure,
)
from rotorid.simulation.free_flight.plant import FreeFlightTruth, simulate_truth
from rotorid.simulation.free_flight.random_setpoints import draw_setpoints

RATE = 250.0
SECONDS = 8.0
SETPOINTS = Setpoints(
    moves=(
        Move(0.5, 1.5, (1.0, -0.5, 0.4), 0.8),
        Lissajous(2.5, 5.0, (0.5, 0.3, 0.1), (3.0, 2.0, 2.5), ramp=1.0),
    ),
    excitations=(
        Chirp("rate_x", 1.0, 1.0, 4.0, 0.5, 6.0),
        Doublet("rate_y", 0.8, 3.0, 0.3),
        Multisine("thrust", 0.1, 1.0, 6.0, (0.5, 1.1, 2.3), schroeder((0.5, 1.1, 2.3))),
    ),
)


@pytest.fixture(scope="module")
def airframe() -> Airframe:
    """Everything that an airframe may say."""
    plain = load_airframe("px4-sih-quad")
    more = {
        "inertia": Quantity((0.02, 0.024, 0.033), "kg m^2"),
        "products_of_inertia": Quantity((0.001, -0.0005, 0.0008), "kg m^2"),
        "centre_of_mass": Quantity((0.004, -0.006, 0.01), "m"),
        "motor_time_constant": Quantity((0.04,), "s"),
        "motor_time_constant_down": Quantity((0.06,), "s"),
        "rotor_drag": Quantity((0.03,), "N^0.5 s/m"),
        "drag_area": Quantity((0.02,), "m^2"),
        "imu_position": Quantity((0.02, 0.01, -0.03), "m"),
        "command_delay": Quantity((0.009,), "s"),
    }
    assert plain.thrust_curve is not None
    curve = dataclasses.replace(
        plain.thrust_curve, coefficients=(0.0, 2.0, 4.0), voltage=15.0, voltage_exponent=1.5
    )
    rotors = tuple(
        dataclasses.replace(r, thrust_scale=s)
        for r, s in zip(plain.rotors, (1.0, 0.95, 1.03, 1.01), strict=True)
    )
    whole = dataclasses.replace(
        plain, quantities={**plain.quantities, **more}, thrust_curve=curve, rotors=rotors
    )
    return parse_airframe(airframe_toml(whole), "whole.toml")


@pytest.fixture(scope="module")
def made(airframe: Airframe) -> FreeFlightTruth:
    under = make_conditions(airframe, SETPOINTS, duration=SECONDS, battery=Battery(16.0, fall=6.0, sag=0.4))
    return simulate_truth(flight_structure(airframe, RATE), under)


def test_flies_as_its_system_under_the_same_commands(airframe: Airframe, made: FreeFlightTruth) -> None:
    system = rigid_multirotor(airframe, "rotor_command")
    late = round(0.009 * 1000)  # ms, which is a whole number of the steps here
    with jax.enable_x64(True):
        p = parameter_values(system)
        space, delay = system.states, late

        def rate(x, u, volts):
            inputs = {"rotor_command": u, "battery_voltage": volts}
            return space.pack_tangent(system.dynamics(space.unpack(x), inputs, p))

        @jax.jit
        def after(x, u, volts):
            return jax.lax.scan(
                lambda x, of: (integrators.step(space, lambda x: rate(x, *of), x, 0.001), None), x, (u, volts)
            )[0]

        start, rows = 500, 125
        c = np.array(airframe.quantities["centre_of_mass"].value)
        q, omega = made.attitude[start], made.body_rate[start]
        x = {
            "attitude": q,
            "position": made.position[start] + _turn(q, c),
            "velocity": made.velocity[start] + _turn(q, np.cross(omega, c)),
            "body_rate": omega,
            "rotor_thrust": made.rotor_thrust[start],
        }
        ms = 4 * start + np.arange(4 * rows)
        packed = space.pack({name: jnp.asarray(of) for name, of in x.items()})
        x = after(
            packed, jnp.asarray(made.rotor_command[(ms - delay) // 4]), jnp.asarray(made.voltage[ms // 4])
        )
        found = space.unpack(x)
        end = start + rows
        assert np.abs(np.asarray(found["rotor_thrust"]) - made.rotor_thrust[end]).max() < 2e-3
        assert np.abs(np.asarray(found["body_rate"]) - made.body_rate[end]).max() < 2e-4
        y = system.observe(
            found,
            {"rotor_command": jnp.asarray(made.rotor_command[end]), "battery_voltage": jnp.asarray(15.0)},
            p,
        )
        assert np.abs(np.asarray(y["velocity"]) - made.velocity[end]).max() < 2e-4
        assert np.abs(np.asarray(y["position"]) - made.position[end]).max() < 1e-4


def _turn(q: Any, v: Any) -> np.ndarray:
    """Naive rotation of v by unit quaternions q."""
    w, u = np.asarray(q)[..., :1], np.asarray(q)[..., 1:]
    return v + 2.0 * np.cross(u, np.cross(u, v) + w * v)


def test_imu_feels_how_its_own_place_moves(airframe: Airframe, made: FreeFlightTruth) -> None:
    r = np.array(airframe.quantities["imu_position"].value)
    at = made.position + _turn(made.attitude, r)
    h = 1.0 / RATE
    second = (at[2:] - 2.0 * at[1:-1] + at[:-2]) / h**2 + np.array([0.0, 0.0, GRAVITY])
    felt = _turn(made.attitude, made.specific_force)[1:-1]
    assert np.sqrt(np.mean((second - felt) ** 2)) < 0.01


def test_follows_its_set_points(made: FreeFlightTruth) -> None:
    with jax.enable_x64(True):
        wanted = SETPOINTS.at(jnp.arange(len(made.position)) / RATE)
        h = 1.0 / RATE
        slope = np.gradient(np.asarray(wanted.position), h, axis=0)
        assert np.abs(slope - np.asarray(wanted.velocity))[1:-1].max() < 1e-3
        curve = np.gradient(np.asarray(wanted.velocity), h, axis=0)
        assert np.abs(curve - np.asarray(wanted.acceleration))[1:-1].max() < 0.1
    assert np.linalg.norm(made.position - np.asarray(wanted.position), axis=1).max() < 0.5
    assert np.abs(made.body_rate[:, 0]).max() > 0.5  # what was added is flown


def test_hover_is_at_rest_with_the_analytic_command(airframe: Airframe) -> None:
    flight = fly(airframe, Setpoints(), duration=SECONDS, sensors="clean")
    believed = cascade_controller(airframe)
    u = flight["rotor_command"].values
    assert np.ptp(u, axis=0).max() < 1e-6
    with jax.enable_x64(True):
        pull = np.asarray(thrust_at(believed, jnp.asarray(u[0])))
    lift = pull * [r.thrust_scale for r in airframe.rotors]
    assert lift.sum() == pytest.approx(airframe.mass.number * GRAVITY, rel=1e-5)
    assert np.abs(flight["velocity"].values).max() < 1e-5
    assert np.abs(flight["position"].values - [0.0, 0.0, 3.0]).max() < 1e-5
    assert flight["specific_force"].values[-1] == pytest.approx([0.0, 0.0, GRAVITY], abs=1e-5)


def test_mass_rotors_and_wind_as_they_change(airframe: Airframe) -> None:
    flight = fly(
        airframe,
        Setpoints(),
        duration=SECONDS,
        sensors="clean",
        mass=lambda t: np.where(t < 2.0, 1.0, 0.8),
        rotor_scale=lambda t: np.where(t[:, None] < 2.0, 1.0, [0.9, 1.0, 1.0, 1.0]),
        wind=lambda t: np.where(t[:, None] < 4.0, 0.0, [2.0, 0.0, 0.0]),
    )
    mass, wind = flight["true_mass"], flight["true_wind"]
    assert mass.values[np.searchsorted(mass.times, 2.0)] == 0.8
    assert wind.values[-1].tolist() == [2.0, 0.0, 0.0]
    u = flight["rotor_command"].values
    assert u[-1].mean() < 0.95 * u[0].mean()
    assert u[-1, 0] / u[0, 0] > u[-1, 1] / u[0, 1]  # the weak rotor is given more
    assert flight["attitude"].values[-1, 2] < -0.01  # it leans into the wind


def test_logs_by_seed_and_as_tables(airframe: Airframe, tmp_path: Path) -> None:
    flight = fly(airframe, SETPOINTS, seed=3, duration=SECONDS, sensors="rough")
    again = fly(airframe, SETPOINTS, seed=3, duration=SECONDS, sensors="rough")
    other = fly(airframe, SETPOINTS, seed=4, duration=SECONDS, sensors="rough")
    for name, signal in flight.signals.items():
        assert np.array_equal(signal.values, again[name].values)
        assert np.array_equal(signal.times, again[name].times)
        if not name.startswith("true_"):
            assert signal.values.shape != other[name].values.shape or not np.array_equal(
                signal.values, other[name].values
            )
    assert flight["velocity"].rate == pytest.approx(50.0)
    back = read(write_table(flight, tmp_path / "flight.parquet"))
    assert set(back.signals) == set(flight.signals)
    assert np.array_equal(back["specific_force"].values, flight["specific_force"].values)


def test_instruments_err_as_they_say() -> None:
    n, dt = 50_000, 0.004
    thrust = np.tile([2.4, 2.5, 2.55, 2.6], (n, 1))
    truth = {
        "body_rate": np.sin(2.0 * np.arange(n) * dt)[:, None] * np.ones(3),
        "attitude": np.tile([1.0, 0.0, 0.0, 0.0], (n, 1)),
        "specific_force": np.zeros((n, 3)),
        "velocity": np.zeros((n, 3)),
    }
    of = {
        "body_rate": Instrument(100.0, delay=0.03),
        "attitude": Instrument(100.0, noise=0.01),
        "specific_force": Instrument(250.0, vibration=2.0),
        "velocity": Instrument(50.0, coloured_noise=0.1, correlation_time=0.2, dropout=0.1),
    }
    seen = measure(Instruments(of), truth, thrust, dt, [1])
    rate = seen["body_rate"]
    assert np.abs(rate.values[:, 0] - np.sin(2.0 * (rate.times - 0.03))).max() < 1e-6
    tilt = 2.0 * seen["attitude"].values[:, 1:]
    assert np.std(tilt) == pytest.approx(0.01, rel=0.03)
    assert np.sqrt(np.mean(seen["specific_force"].values ** 2)) == pytest.approx(2.0, rel=0.1)
    v = seen["velocity"]
    assert len(v.times) == pytest.approx(9000, rel=0.02)
    assert np.std(v.values) == pytest.approx(0.1, rel=0.1)
    gap = np.diff(v.times)
    near = gap < 0.021
    product = np.mean((v.values[1:] * v.values[:-1])[near]) / 0.01
    assert product == pytest.approx(np.exp(-0.02 / 0.2), rel=0.1)


def test_interpolates_cubics_exactly() -> None:
    t = np.arange(20.0)
    rows = np.stack([t**3 - 2.0 * t, 5.0 - t**2], axis=1)
    at = np.array([0.0, 0.3, 7.7, 18.9, 19.0])
    assert interpolate_rows(rows, at) == pytest.approx(np.stack([at**3 - 2.0 * at, 5.0 - at**2], axis=1))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"duration": 0.0}, "a flight of 0 s"),
        ({"rate": 10.0}, "a rate of 10 Hz"),
        ({"seed": -1}, "seed -1"),
        ({"sensors": "best"}, "no instruments 'best'"),
        ({"mass": lambda t: t[:3]}, "mass: the function must return"),
    ],
)
def test_says_what_cannot_be_flown(airframe: Airframe, wrong: dict, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        fly(airframe, Setpoints(), **{"duration": SECONDS, **wrong})


def test_names_what_an_airframe_lacks() -> None:
    with pytest.raises(AirframeError, match=r"no \[inertia\]"):
        fly(parse_airframe("[mass]\nvalue = 1.0\nunit = 'kg'\n", "a.toml"), Setpoints())
    with pytest.raises(SettingError, match="no channel 'yaw'"):
        Setpoints(excitations=(Doublet("yaw", 1.0, 0.0, 1.0),))
    with pytest.raises(SettingError, match="no instrument measures 'thrust'"):
        Instruments({"thrust": Instrument(10.0)})
    assert all(np.isfinite(i.rate) for of in INSTRUMENTS.values() for i in of.by_signal.values())


def test_a_lag_that_the_plant_cannot_integrate_is_refused(airframe: Airframe) -> None:
    lag = {"motor_time_constant": Quantity((0.0005,), "s")}
    quick = dataclasses.replace(airframe, quantities={**airframe.quantities, **lag})
    with pytest.raises(SettingError, match="motor time constant below"):
        flight_structure(quick, RATE)


def test_varied_flights_stay_in_the_air_and_differ(airframe: Airframe) -> None:
    structure, heights = flight_structure(airframe, RATE), []
    for seed in range(3):
        truth = simulate_truth(
            structure, make_conditions(airframe, draw_setpoints(seed, SECONDS), duration=SECONDS)
        )
        assert truth.position[:, 2].min() > 2.0
        assert 1.0 < np.abs(truth.body_rate).max() < 6.0
        heights.append(truth.position[-1, 2])
    assert len(set(heights)) == 3
    with pytest.raises(SettingError, match="set points of 2 s"):
        draw_setpoints(0, 2.0)


def test_the_command_writes_such_a_flight(airframe: Airframe, tmp_path: Path) -> None:
    (tmp_path / "whole.toml").write_text(airframe_toml(airframe))
    table = ["simulate", "-o", str(tmp_path / "flight.parquet")]
    vehicle = ["--airframe", str(tmp_path / "whole.toml"), "--duration", str(SECONDS)]
    result = CliRunner().invoke(app, [*table, *vehicle, "--sensors", "rough", "--seed", "2"])
    assert result.exit_code == 0, result.output
    asked = fly(airframe, draw_setpoints(2, SECONDS), seed=2, duration=SECONDS, sensors="rough")
    written = read(tmp_path / "flight.parquet")
    assert np.array_equal(written["body_rate"].values, asked["body_rate"].values)
    for wrong, word in ((["-t", "loop", *vehicle], "--trajectory"), (["--sensors", "px4"], "--airframe")):
        refused = CliRunner().invoke(app, [*table, *wrong])
        assert refused.exit_code == 2
        assert word in refused.output
