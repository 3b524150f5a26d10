"""The form of a traced estimator comes from the cache where it is that of this very estimator, and only there."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.codegen import native
from rotorid.estimators.compiled import cached_files, trace
from rotorid.estimators.compiled import estimator as compiled
from rotorid.estimators.compiled.structure import structure_digest
from rotorid.estimators.compiled.trace import TracedEstimator
from rotorid.estimators.ekf import EKF, ekf
from rotorid.estimators.registry import STREAM_ESTIMATORS
from rotorid.estimators.run import run
from rotorid.models.airframe.airframe import Airframe, load_airframe
from rotorid.models.multirotor.with_drag import Multirotor, multirotor
from rotorid.models.registry import SYSTEMS
from rotorid.signals.samples import Samples
from tests.systems import Pendulum, matched

AIRFRAME = load_airframe("px4-sih-quad")


def system(airframe: Airframe = AIRFRAME) -> Multirotor:
    return multirotor(airframe, "rotor_command", rotors=4)


def row(model: Multirotor) -> Samples:
    y, mask = np.zeros(model.outputs.size), np.ones(model.outputs.dim, bool)
    return Samples(*map(jnp.asarray, (0.0, 0.004, np.zeros(model.inputs.size), y, mask)))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROTORID_CACHE", str(tmp_path))
    monkeypatch.setattr(compiled, "_forms", {})
    return tmp_path / "traces"


def is_traced(estimator: EKF, sample: Samples, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the form of an estimator needs a trace."""
    count = []
    traced = TracedEstimator._traced
    with monkeypatch.context() as m:
        m.setattr(TracedEstimator, "_traced", lambda self: (count.append(1), traced(self))[1])
        _ = TracedEstimator(estimator, sample).form
    return bool(count)


def test_an_equal_estimator_is_not_traced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_traced(ekf(system()), row(system()), monkeypatch)
    assert not is_traced(ekf(system()), row(system()), monkeypatch)
    assert not is_traced(ekf(system(), gate=4.0), row(system()), monkeypatch), "tunings are arguments"


def with_curve(**changes: object) -> Airframe:
    assert AIRFRAME.thrust_curve is not None
    return dataclasses.replace(AIRFRAME, thrust_curve=dataclasses.replace(AIRFRAME.thrust_curve, **changes))


def heavier() -> Airframe:
    mass = dataclasses.replace(AIRFRAME.mass, value=(1.1,))
    return dataclasses.replace(AIRFRAME, quantities={**AIRFRAME.quantities, "mass": mass})


@pytest.mark.parametrize("other", [with_curve(full=0.9), with_curve(coefficients=(0.0, 5.1)), heavier()])
def test_every_number_of_the_vehicle_counts(other: Airframe, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are constants in the form."""
    assert is_traced(ekf(system()), row(system()), monkeypatch)
    assert is_traced(ekf(system(other)), row(system(other)), monkeypatch)


def test_the_form_from_the_cache_is_that_of_a_trace() -> None:
    for name in ("ekf", "ukf", "msckf", "swls", "adaptive"):
        estimator = STREAM_ESTIMATORS[name].build(system())
        first, second = (TracedEstimator(estimator, row(system())).form for _ in range(2))
        assert first.key == second.key
        np.testing.assert_array_equal(first.constants, second.constants)
        assert eqx.tree_equal(first.state, second.state)
        assert eqx.tree_equal(first.estimate, second.estimate)


def test_systems_have_digests_that_hold_in_use() -> None:
    for name, entry in SYSTEMS.items():
        for rotor_input in entry.rotor_inputs:
            if rotor_input == "rotor_speed":
                continue  # this airframe has no thrust coefficient
            model = entry.build(AIRFRAME, rotor_input)
            before = structure_digest(model)
            assert before is not None, name
            _ = [model.states.dim, model.inputs.size, model.outputs.size]
            assert structure_digest(model) == before
    assert structure_digest(ekf(system()).joint) == structure_digest(ekf(system()).joint)


def test_what_is_not_known_has_no_digest() -> None:
    class Local:
        pass

    for value in (Pendulum(), Local(), len, lambda: 1, object(), {"a": Local()}, np.array(["a"])):
        assert structure_digest(value) is None
    assert structure_digest((1, 2.0, "a", None, slice(1, 2), {"a": np.ones(2)})) is not None
    values = (1, 1.0, True, "1", b"1", (1,), [1], {1: 1}, {1: 1.0}, np.ones(1), np.ones(1, np.float32), None)
    assert len({structure_digest(value) for value in values}) == len(values)


def test_a_system_of_the_user_is_traced_each_time(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code is not part of the key."""
    filter_ = ekf(Pendulum())
    sample = matched(filter_, seed=1, steps=2)[0]
    first = jax.tree.map(lambda leaf: leaf[0], sample)
    for _ in range(2):
        assert is_traced(filter_, first, monkeypatch)
    assert not cache.exists() or not [*cache.iterdir()]


@pytest.mark.parametrize("damage", [lambda c: c[:-1], lambda c: b"", lambda c: c[:40] + b"x" + c[41:]])
def test_a_damaged_form_is_made_again(damage, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_traced(ekf(system()), row(system()), monkeypatch)
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert is_traced(ekf(system()), row(system()), monkeypatch)
    assert path.read_bytes() == whole


def test_a_form_that_another_user_can_write_to_is_not_read(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_traced(ekf(system()), row(system()), monkeypatch)
    (path,) = cache.iterdir()
    path.chmod(0o666)
    assert is_traced(ekf(system()), row(system()), monkeypatch)


def test_another_limit_or_source_is_another_form(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_traced(ekf(system()), row(system()), monkeypatch)
    with monkeypatch.context() as m:
        m.setattr(trace, "WRITTEN_OUT", 1000)
        assert is_traced(ekf(system()), row(system()), m)
    monkeypatch.setattr(cached_files, "source_stamp", lambda: "edited")
    assert is_traced(ekf(system()), row(system()), monkeypatch)


@pytest.mark.skipif(native.compiler() is None, reason="no C compiler on this machine")
def test_a_run_by_a_form_from_the_cache_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    filter_ = ekf(system())
    samples, _ = matched(filter_, seed=3, steps=100)
    before = run(filter_, samples, engine="c")
    monkeypatch.setattr(compiled, "_forms", {})
    monkeypatch.setattr(TracedEstimator, "_traced", lambda _: pytest.fail("it was traced again"))
    after = run(filter_, samples, engine="c")
    assert eqx.tree_equal(before, after)
