"""A System in CasADi's files is what it is in JAX."""

import json
import subprocess
import sys

import casadi as ca
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.export.controller.system_files import system_files
from rotorid.models.system import parameter_values
from rotorid.numerics import integrators
from rotorid.workflows.export.onboard import export_system
from tests.systems import SYSTEMS


def central_differences(function, arguments, k, h=1e-5):
    """The Jacobian of a function by its argument k."""
    columns = []
    for way in h * np.eye(len(arguments[k])):
        ahead, behind = ([*arguments[:k], arguments[k] + s * way, *arguments[k + 1 :]] for s in (1, -1))
        columns.append((function(*ahead) - function(*behind)).full()[:, 0] / (2.0 * h))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("name", ["pendulum", "bare"])
def test_the_functions_are_those_of_jax(name, tmp_path):
    system, rng = SYSTEMS[name], np.random.default_rng(0)
    export_system(system, tmp_path / "model", name=name)
    f = {p.stem: ca.Function.load(str(p)) for p in (tmp_path / "model").glob("*.casadi")}
    table = json.loads((tmp_path / "model" / "model.json").read_text())
    u, dt = rng.normal(size=system.inputs.size), 0.07
    away = jnp.asarray(0.4 * rng.normal(size=system.states.dim))
    x = np.asarray(system.states.plus(jnp.asarray(system.states.initial()), away))
    p = np.array([q["value"] for q in table["p"]])
    assert [len(table[k]) for k in "xuyp"] == [len(x), len(u), system.outputs.size, len(p)]

    def named(p):
        return {q.name: p[k] for k, q in enumerate(system.parameters)}

    def rate(x, u, p):
        return system.states.pack_tangent(
            system.dynamics(system.states.unpack(x), system.inputs.unpack(u), named(p))
        )

    def step(x, u, p, dt):
        return integrators.step(system.states, lambda x: rate(x, u, p), x, dt, "rk4")

    def seen(x, u, p):
        return system.outputs.pack(system.observe(system.states.unpack(x), system.inputs.unpack(u), named(p)))

    for function, ours, arguments in (
        ("dynamics", lambda x, u, p: system.states.lift(x, rate(x, u, p)), (x, u, p)),
        ("observe", seen, (x, u, p)),
        ("step", step, (x, u, p, dt)),
    ):
        got = f[function](*arguments).full()[:, 0]
        np.testing.assert_allclose(got, jax.jit(ours)(*arguments), rtol=1e-12, atol=1e-13)
        assert f[function].name_in() == ["x", "u", "p", "dt"][: len(arguments)]
        slopes = f[f"{function}_jacobian"](*arguments)
        assert len(slopes) == (2 if function == "step" else 3)  # by x and u, and but for the step by p
        for k, slope in enumerate(slopes):
            np.testing.assert_allclose(
                slope.full(), central_differences(f[function], arguments, k), atol=1e-7
            )
    np.testing.assert_allclose(p, [float(v) for v in parameter_values(system).values()])


def test_the_example_runs(tmp_path):
    export_system(SYSTEMS["pendulum"], tmp_path / "model")
    said = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path / "model", capture_output=True, text=True, check=True
    ).stdout
    assert [line.split()[0] for line in said.splitlines()[:2]] == ["angle", "rate"]


def test_parameters_may_be_constants_in():
    system = SYSTEMS["cart"]
    files = system_files(system, name="cart", constants=("mass",))
    table = json.loads(files["model.json"])
    assert [q["name"] for q in table["p"]] == ["push"]
    assert table["constants"] == {"mass": 1}
    assert files == system_files(system, name="cart", constants=("mass",))
    with pytest.raises(SettingError, match="no parameter 'length'"):
        system_files(system, name="cart", constants=("length",))
