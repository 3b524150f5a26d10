"""An estimator in C gives the numbers that JAX gives, and JAX takes over where C cannot be had."""

import ctypes
import dataclasses
import inspect
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.codegen import native
from rotorid.errors import SettingError
from rotorid.estimators.compiled import estimator as compiled
from rotorid.estimators.compiled import trace
from rotorid.estimators.ekf import EKF, ekf
from rotorid.estimators.msckf import msckf
from rotorid.estimators.run import Stream, run, run_many, stack, stack_tunings
from rotorid.estimators.swls import swls
from rotorid.estimators.ukf import ukf
from rotorid.models.airframe.airframe import Quantity, load_airframe
from rotorid.models.multirotor.with_drag import multirotor
from rotorid.signals.samples import Samples
from tests.systems import SYSTEMS, Pendulum, matched

PAIRS = [(make, name) for make in (ekf, ukf) for name in SYSTEMS]
PAIRS += [(make, name) for make in (msckf, swls) for name in ("pendulum", "bare")]

pytestmark = pytest.mark.skipif(native.compiler() is None, reason="no C compiler on this machine")


def rows(samples):
    return [jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i]), samples) for i in range(len(samples.t))]


def assert_same(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


def troubled(samples):
    """A flight with an outlier, missing measurements, a gap, a jump of the inputs and numbers that are none."""
    y, mask, u = map(np.array, (samples.y, samples.mask, samples.u))
    y[40] += 20.0
    y[200:215] += 5.0
    mask[60:70, 0] = mask[80] = False
    u[120:] *= 1.4
    u[180] = np.nan
    dt = samples.dt.at[150].set(3.0)
    return eqx.tree_at(lambda s: (s.y, s.mask, s.u, s.dt), samples, (*map(jnp.asarray, (y, mask, u)), dt))


@pytest.mark.parametrize("trouble", [lambda s: s, troubled], ids=["calm", "troubled"])
@pytest.mark.parametrize(("make", "name"), PAIRS, ids=lambda part: getattr(part, "__name__", part))
def test_c_agrees_with_jax(make, name, trouble):
    filter_ = make(SYSTEMS[name])
    samples = trouble(matched(filter_, seed=11, steps=250)[0])
    in_c, in_jax = run(filter_, samples, engine="c"), run(filter_, samples, engine="jax")
    for field, a in vars(in_c).items():
        b = getattr(in_jax, field)
        assert a.dtype == b.dtype, field
        scale = float(np.nanmax(np.abs(np.asarray(b, float))))
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * scale, err_msg=field)


@pytest.mark.parametrize(
    ("make", "name"), [(ekf, "bare"), (ukf, "bare"), (msckf, "pendulum"), (swls, "pendulum")]
)
def test_one_flight_many_flights_and_a_stream_are_the_same_to_the_last_bit(make, name):
    filter_ = make(SYSTEMS[name])
    flights = [troubled(matched(filter_, seed, steps)[0]) for seed, steps in enumerate((250, 310) * 9)]
    together = run_many(filter_, stack(flights), workers=2, engine="c")
    for k in (0, 1, 8, 17):
        n = len(flights[k].t)
        assert_same(
            jax.tree.map(lambda leaf, k=k, n=n: leaf[k, :n], together), run(filter_, flights[k], engine="c")
        )
    stream = Stream(filter_, engine="c")
    for k in (0, 1):
        stream.restart()
        streamed = [stream.step(row) for row in rows(flights[k])]
        assert_same(
            jax.tree.map(lambda *leaves: np.stack(leaves), *streamed), run(filter_, flights[k], engine="c")
        )


@pytest.mark.parametrize("flights", [1, 2000])  # one block of memory, and several
def test_jax_takes_over_the_arrays_of_results(flights):
    forms = [((5,), np.float64), ((), np.bool_), ((0,), np.int64), ((1000,), np.float64)]
    shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in forms]
    arrays = compiled._empty_arrays(shapes, (flights, 3))
    for k, (array, (shape, dtype)) in enumerate(zip(arrays, forms, strict=True)):
        assert (array.shape, array.dtype) == ((flights, 3, *shape), dtype)
        array[...] = k
    for k, array in enumerate(arrays):
        assert np.all(array == k)
        if array.size:
            assert jax.device_put(array).unsafe_buffer_pointer() == array.ctypes.data


def test_tunings_share_the_compiled_code(monkeypatch):
    priors = [{"length": Pendulum.parameters[0].with_prior(v)} for v in (0.8, 1.3, 0.9)]
    filters = [ekf(Pendulum(), priors=p) for p in priors]
    samples, _ = matched(filters[0], seed=5, steps=100)
    alone = [run(f, samples, engine="c") for f in filters]
    batch = run_many(stack_tunings(filters), stack([samples] * 3), tunings=True, engine="c")
    for k, estimates in enumerate(alone):
        assert_same(jax.tree.map(lambda leaf, k=k: leaf[k], batch), estimates)
    monkeypatch.setattr(compiled.CompiledEstimator, "__init__", lambda *_: pytest.fail("it was traced anew"))
    run(ekf(Pendulum(), gate=4.0), samples, engine="c")


def test_airframes_that_differ_in_their_numbers_share_the_compiled_code(monkeypatch):
    airframe = load_airframe("crazyflie-2.1")
    curve = airframe.thrust_curve
    other = dataclasses.replace(
        airframe,
        thrust_curve=dataclasses.replace(curve, coefficients=(0.03, -0.012, 0.14)),
        quantities={**airframe.quantities, "mass": Quantity((0.031,), "kg")},
    )
    rng = np.random.default_rng(0)
    for k, filter_ in enumerate(ekf(multirotor(a)) for a in (airframe, other)):
        system, steps = filter_.joint.system, 50
        y = np.zeros((steps, system.outputs.size)) + np.eye(system.outputs.size)[0]
        u = np.concatenate([np.full((steps, 4), 0.7), rng.normal(0.0, 0.3, (steps, 3))], axis=1)
        t = 0.01 * np.arange(steps)
        mask = np.ones((steps, system.outputs.dim), bool)
        samples = Samples(*map(jnp.asarray, (t, np.full(steps, 0.01), u, y, mask)))
        if k == 1:
            monkeypatch.setattr(compiled, "c_program", lambda *_, **__: pytest.fail("it was compiled anew"))
        in_c, in_jax = run(filter_, samples, engine="c"), run(filter_, samples, engine="jax")
        np.testing.assert_allclose(in_c.value, in_jax.value, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(in_c.covariance, in_jax.covariance, rtol=1e-8, atol=1e-12)


def test_a_stream_reports_its_engine_and_keeps_its_state():
    filter_ = ekf(Pendulum())
    samples, _ = matched(filter_, seed=2, steps=30)
    streams = {engine: Stream(filter_, engine=engine) for engine in ("auto", "c", "jax")}
    for engine, stream in streams.items():
        assert stream.engine == engine
        assert stream.state is None
        for row in rows(samples):
            stream.step(row)
    assert {name: stream.engine for name, stream in streams.items()} == {"auto": "c", "c": "c", "jax": "jax"}
    for a, b in zip(*(jax.tree.leaves(streams[name].state) for name in ("c", "jax")), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    streams["c"].restart()
    assert streams["c"].state is None


def test_a_stream_goes_on_with_another_noise():
    """From the row of the change on the gain is that of the other noise, and the state is kept."""
    outputs = Pendulum().outputs
    noises = ({}, {name: tuple(3.0 * std for std in block.noise_vector) for name, block in outputs.items()})
    filters = [ekf(Pendulum(), measurement_noise=noise) for noise in noises]
    samples, _ = matched(filters[0], seed=2, steps=30)
    last = {}
    for engine in ("c", "jax"):
        stream, unchanged = (Stream(filters[0], engine=engine) for _ in range(2))
        for k, row in enumerate(rows(samples)):
            if k == 20:
                stream.go_on_with(filters[1])
            estimate, other = stream.step(row), unchanged.step(row)
            is_same = np.array_equal(estimate.innovation_std, other.innovation_std)
            assert is_same == (k < 20)
        last[engine] = estimate
    np.testing.assert_allclose(last["c"].value, last["jax"].value, rtol=1e-9, atol=1e-12)


def test_estimates_of_a_stream_are_not_overwritten_by_the_next():
    filter_ = ekf(Pendulum())
    samples, _ = matched(filter_, seed=2, steps=3)
    stream = Stream(filter_, engine="c")
    first, *_ = [stream.step(row) for row in rows(samples)]
    np.testing.assert_array_equal(first.value, run(filter_, samples, engine="c").value[0])


class Drawing(EKF):
    """An EKF that starts somewhere by chance."""

    def init(self, sample, key=None):
        state = super().init(sample, key)
        return eqx.tree_at(lambda s: s.z, state, state.z + 0.01 * jax.random.normal(key, state.z.shape))


def _single(leaf):
    return leaf.astype(jnp.float32) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda f, s: (Drawing(f.joint, f.tuning), s), "it draws random numbers"),
        (lambda f, s: (jax.tree.map(_single, f), jax.tree.map(_single, s)), "it is not in float64"),
    ],
)
def test_jax_computes_without_a_c_form(change, why):
    filter_ = ekf(Pendulum())
    filter_, samples = change(filter_, matched(filter_, seed=2, steps=30)[0])
    assert_same(run(filter_, samples), run(filter_, samples, engine="jax"))
    with pytest.raises(SettingError, match=why):
        run(filter_, samples, engine="c")


@pytest.fixture
def _nothing_known(monkeypatch, tmp_path):
    monkeypatch.setattr(compiled, "_forms", {})
    monkeypatch.setenv("ROTORID_CACHE", str(tmp_path))


@pytest.mark.usefixtures("_nothing_known")
def test_a_step_too_large_for_straight_line_code_runs_in_jax(monkeypatch):
    monkeypatch.setattr(trace, "MOST_OPERATIONS", 100)
    filter_ = ekf(SYSTEMS["cart"], method="rk4")
    samples, _ = matched(filter_, seed=2, steps=20)
    with pytest.raises(SettingError, match="its step is too large"):
        run(filter_, samples, engine="c")


@pytest.mark.usefixtures("_nothing_known")
def test_a_long_step_is_written_with_loops_and_gives_the_same_numbers(monkeypatch):
    filter_ = ukf(SYSTEMS["bare"])
    samples = troubled(matched(filter_, seed=11, steps=250)[0])
    written_out = run(filter_, samples, engine="c")
    code = len("".join(next(iter(compiled._forms.values()))._units()))
    monkeypatch.setattr(compiled, "_forms", {})
    monkeypatch.setattr(trace, "WRITTEN_OUT", 1000)
    with_loops = run(filter_, samples, engine="c")
    assert len("".join(next(iter(compiled._forms.values()))._units())) < 0.8 * code
    for field, a in vars(with_loops).items():
        scale = float(np.nanmax(np.abs(np.asarray(a, float))))
        np.testing.assert_allclose(
            a, getattr(written_out, field), rtol=1e-9, atol=1e-9 * scale, err_msg=field
        )


@pytest.mark.parametrize("make", [ekf, ukf, msckf, swls])
def test_estimators_of_the_tracked_multirotor_have_a_c_form(make):
    """In JAX a window of it takes half as long as the flight."""
    filter_ = make(multirotor(load_airframe("px4-sih-quad")))
    inputs, outputs = filter_.joint.system.inputs, filter_.joint.system.outputs
    y, mask = np.zeros(outputs.size), np.ones(outputs.dim, bool)
    row = Samples(*map(jnp.asarray, (0.0, 0.004, np.zeros(inputs.size), y, mask)))
    assert isinstance(compiled.CompiledEstimator(filter_, row), compiled.CompiledEstimator)


def test_under_a_transformation_jax_computes():
    filter_ = ekf(Pendulum())
    samples, _ = matched(filter_, seed=2, steps=20)
    jitted = jax.jit(lambda s: run(filter_, s).value)(samples)
    np.testing.assert_allclose(jitted, run(filter_, samples, engine="c").value, rtol=1e-10)
    with pytest.raises(SettingError, match="JAX is tracing it"):
        jax.jit(lambda s: run(filter_, s, engine="c").value)(samples)


def test_an_unknown_engine_is_named():
    filter_ = ekf(Pendulum())
    samples, _ = matched(filter_, seed=2, steps=20)
    with pytest.raises(SettingError, match="no engine 'fortran'"):
        inspect.unwrap(compiled.compiled_form)(filter_, samples, 1, "fortran")


@pytest.mark.usefixtures("_nothing_known")
def test_without_a_compiler_jax_computes(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    filter_ = ekf(Pendulum())
    samples, _ = matched(filter_, seed=2, steps=20)
    stream = Stream(filter_)
    stream.step(rows(samples)[0])
    assert stream.engine == "jax"
    with pytest.raises(SettingError, match="no C compiler was found"):
        run(filter_, samples, engine="c")


@pytest.mark.usefixtures("_nothing_known")
def test_a_failing_compiler_warns_and_jax_computes(monkeypatch):
    monkeypatch.setenv("CC", "false")
    filter_ = ekf(Pendulum())
    samples, _ = matched(filter_, seed=2, steps=20)
    with pytest.warns(RuntimeWarning, match="so JAX computes: false: exit 1"):
        found = run(filter_, samples)
    assert_same(found, run(filter_, samples, engine="jax"))


@pytest.mark.parametrize("ends", ["compiled", "in the cache", "failing"])
def test_estimators_are_written_one_after_the_other_and_compiled_at_once(monkeypatch, ends):
    """The turn of an estimator ends where the compiler runs, where there is nothing to compile, or with an error."""
    at_once, free = threading.Barrier(2, timeout=30), []

    def build(key, units, defines):
        assert compiled._in_python.locked()
        if ends == "failing":
            raise native.BuildError("it fails")
        if ends == "compiled":
            units()
            at_once.wait()  # for the other one, which has been traced and written meanwhile
        free.append(key)
        return ctypes.pythonapi

    monkeypatch.setattr(compiled, "build", build)
    monkeypatch.setattr(compiled, "_forms", {})
    monkeypatch.setattr(compiled, "_locks", {})
    monkeypatch.setattr(compiled, "warn_not_compiled", lambda *_, **__: None)
    sample = rows(matched(ekf(SYSTEMS["pendulum"]), seed=11, steps=5)[0])[0]
    with ThreadPoolExecutor(2) as pool:
        made = [pool.submit(compiled._form, f(SYSTEMS["pendulum"]), sample, 1) for f in (ekf, ukf)]
    assert [isinstance(future.result(), str) for future in made] == [ends == "failing"] * 2
    assert len(set(free)) == (0 if ends == "failing" else 2)
    assert not compiled._in_python.locked()


@pytest.mark.usefixtures("_nothing_known")
def test_compiled_code_is_kept_between_runs(monkeypatch, tmp_path):
    filter_ = ekf(Pendulum())
    samples, _ = matched(filter_, seed=2, steps=20)
    before = run(filter_, samples, engine="c")
    files = sorted((tmp_path / "native").iterdir())
    assert [file.suffix for file in files] == [".so", ".sha256"]
    monkeypatch.setattr(compiled, "_forms", {})
    monkeypatch.setattr(subprocess, "run", None)
    monkeypatch.setattr(compiled, "c_program", None)
    assert_same(run(filter_, samples, engine="c"), before)
    assert files == sorted((tmp_path / "native").iterdir())
