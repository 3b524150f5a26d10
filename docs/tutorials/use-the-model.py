# %% [markdown]
# # Use the model: controller, simulator, on board
#
# You will take an identified airframe to a predictive controller (NMPC) in CasADi and to the files
# for acados, let that controller fly the vehicle in MuJoCo, and run a filter with this model in C.
#
# Besides rotorid, this tutorial needs MuJoCo (`pip install mujoco`) and a C compiler. CasADi comes
# with rotorid.

# %%
import csv
import dataclasses
import importlib.util
import json
import os
import subprocess

import casadi as ca
import jax
import mujoco
import numpy as np
import plotly.graph_objects as go
from rotorid import (
    ekf,
    fly_back,
    identify,
    load_airframe,
    prepare_samples,
    system_for,
)
from rotorid.simulation.free_flight import draw_setpoints, fly
from rotorid.workflows.export import export_airframe, export_estimator

jax.config.update("jax_enable_x64", True)

# %% [markdown]
# ## Identified and validated
#
# As in [a first model from a log](first-model.py): one flight for the fit, another one for the
# validation. Exports need an airframe that fly-back has accepted, so the result of the validation
# is stored in the airframe.

# %%
vehicle = load_airframe("px4-sih-quad")
first, second = (
    fly(vehicle, draw_setpoints(seed, 16.0), seed=seed, duration=16.0)
    for seed in (3, 7)
)
prior = dataclasses.replace(
    vehicle,
    quantities={
        **vehicle.quantities,
        "inertia": dataclasses.replace(
            vehicle.quantities["inertia"],
            value=(0.035, 0.015, 0.045),
            std=(0.02, 0.02, 0.03),
        ),
        "drag": dataclasses.replace(
            vehicle.quantities["drag"], value=(0.2,), std=(0.4,)
        ),
    },
)
model = identify(first, prior, free=["inertia", "drag"], mass=(1.0, 0.005))
airframe = dataclasses.replace(
    model.airframe, fly_back=fly_back(model.airframe, prior, [second])
)
print("accepted" if airframe.fly_back.accepted else airframe.fly_back.reasons)
model

# %% tags=["remove-cell"]
assert airframe.fly_back.accepted

# %% [markdown]
# ## The model in CasADi, and for acados

# %%
folder = export_airframe(airframe, "acados", "acados")
table = json.loads((folder / "model.json").read_text())
print(*sorted(file.name for file in folder.iterdir()), sep=", ")
print("states:", *(entry["name"] for entry in table["x"]))
print("inputs:", *(entry["name"] for entry in table["u"]))

# %% [markdown]
# `acados_model.py` makes the `AcadosModel`. Its header lists the values with their standard
# deviations, and what the target cannot represent. Below it:

# %%
text = (folder / "acados_model.py").read_text()
print(text[text.index("def acados_model") :])
has_acados = importlib.util.find_spec("acados_template") is not None
print(
    "acados is",
    "installed here"
    if has_acados
    else "not installed here: the rest of this tutorial uses CasADi alone",
)

# %% [markdown]
# ## A predictive controller
#
# The functions are exact copies of the model that was identified, with derivatives. `step.casadi`
# integrates it over one time step. The controller plans 1 s ahead in 20 steps: multiple shooting,
# solved by Ipopt, which comes with CasADi. The thrust of a rotor lags behind its command; thrusts
# are states of the model, so the plan includes the lag.

# %%
STEP, HORIZON = 0.05, 20
step = ca.Function.load(str(folder / "step.casadi"))
parameters = ca.DM([entry["value"] for entry in table["p"]])
at_rest = ca.DM(table["x0"])
weights = ca.DM(
    [0.0, 8.0, 8.0, 2.0, 20.0, 20.0, 40.0, 2.0, 2.0, 4.0, 0.2, 0.2, 0.2, 0, 0, 0, 0]
)


def controller():
    """A function from state, target position and last plan to the next plan."""
    problem = ca.Opti()
    x, u = problem.variable(17, HORIZON + 1), problem.variable(4, HORIZON)
    start, target = problem.parameter(17), problem.parameter(3)
    wanted = ca.vertcat(at_rest[:4], target, at_rest[7:])
    cost = 0
    for k in range(HORIZON):
        problem.subject_to(x[:, k + 1] == step(x[:, k], u[:, k], parameters, STEP))
        cost += ca.sumsqr(ca.sqrt(weights) * (x[:, k + 1] - wanted)) + 4.0 * ca.sumsqr(
            u[:, k] - hover
        )
    problem.subject_to(x[:, 0] == start)
    problem.subject_to(problem.bounded(0.05, ca.vec(u), 1.0))
    problem.minimize(cost)
    options = {
        "print_time": False,
        "ipopt": {"print_level": 0, "sb": "yes", "tol": 1e-4, "max_iter": 50},
    }
    problem.solver("ipopt", options | {"expand": True})
    return problem.to_function("plan", [start, target, x, u], [x, u])


# %% [markdown]
# The command in hover is the same for all rotors: that which keeps the vertical velocity at zero.

# %%
command = ca.SX.sym("command")
climb = step(at_rest, ca.repmat(command, 4, 1), parameters, STEP)[9]
hover = float(ca.rootfinder("hover", "newton", {"x": command, "g": climb})(0.5, [])[0])
print(f"hover command: {hover:.4f}")
plan = controller()

# %% [markdown]
# ## Fly it in MuJoCo
#
# The MuJoCo model comes from the same airframe. MuJoCo integrates it with its own code, at 500 Hz.
# The controller runs at 20 Hz, sees the state of the simulation, and moves the vehicle by 2 m
# forward, 1 m left and 1 m up.

# %%
simulator = export_airframe(airframe, "mujoco", "mujoco")
spec = importlib.util.spec_from_file_location("fly", simulator / "fly.py")
fly_script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fly_script)
world = mujoco.MjModel.from_xml_path(str(simulator / "model.xml"))
body = mujoco.MjData(world)
mujoco.mj_resetDataKeyframe(world, body, 0)
print("position, attitude and rotor states:", world.nq, world.na)


def state():
    """The state of the simulation in the order of the CasADi model."""
    position, attitude = body.qpos[:3], body.qpos[3:7]
    return np.concatenate(
        [attitude, position, body.qvel[:3], body.qvel[3:6], body.act[:4]]
    )


# %%
target = np.array([2.0, 1.0, 1.0])
states, commands = ca.repmat(at_rest, 1, HORIZON + 1), ca.repmat(hover, 4, HORIZON)
path = [(0.0, *body.qpos[:3])]
while body.time < 4.0:
    states, commands = plan(state(), target, states, commands)
    body.ctrl[:] = fly_script.thrust(commands[:, 0].full()[:, 0])
    until = body.time + STEP
    while body.time < until - 1e-9:
        mujoco.mj_step(world, body)
    path.append((body.time, *body.qpos[:3]))
    states, commands = (
        ca.horzcat(states[:, 1:], states[:, -1]),
        ca.horzcat(commands[:, 1:], commands[:, -1]),
    )
path = np.array(path)
distance = np.linalg.norm(path[-1, 1:] - target)
print(f"distance from the target after 4 s: {1000 * distance:.1f} mm")

# %% tags=["remove-cell"]
assert distance < 0.05, path[-1]

# %%
figure = go.Figure()
for k, axis in enumerate("xyz"):
    figure.add_scatter(x=path[:, 0], y=path[:, 1 + k], name=f"position {axis}")
figure.update_layout(xaxis_title="time (s)", yaxis_title="position (m, world)")
figure

# %% [markdown]
# ## A filter in C
#
# The estimator that tracks the mass in [the sprayer](sprayer.py), with this airframe, as C99: no
# allocation, no library but libm. The export includes a golden test: the samples of a flight, and
# what JAX computes from them.

# %%
system = system_for(second, airframe)
filter_ = ekf(system)
samples = prepare_samples(second, system, end=6.0)
onboard = export_estimator(filter_, "onboard", samples, name="mass_filter")
for file in sorted(onboard.iterdir()):
    print(f"{file.name:16} {file.stat().st_size / 1000:7.0f} kB")

# %% [markdown]
# `make check` compiles it, runs it on these samples, and compares each estimate:

# %%
environment = {**os.environ, "CFLAGS": "-O1"}
done = subprocess.run(
    ["make", "-s", "check"],
    cwd=onboard,
    env=environment,
    capture_output=True,
    text=True,
)
print(done.stdout + done.stderr)

# %% tags=["remove-cell"]
assert done.returncode == 0

# %% [markdown]
# `golden.csv` has the estimates by name. The last one of the mass:

# %%
with open(onboard / "golden.csv") as file:
    *_, last = csv.DictReader(file)
mass, std = float(last["value.mass"]), float(last["std.mass"])
print(f"mass: {mass:.3f} ± {std:.3f} kg, true {vehicle.mass.number:.3f} kg")

# %% tags=["remove-cell"]
assert abs(mass - vehicle.mass.number) < 3 * std < 0.1

# %% [markdown]
# ## What next
#
# - [Export an airframe](../export-airframe.md): the other targets (PX4, ArduPilot, Gazebo, URDF,
#   python-control), and what each of them cannot represent.
# - [`rotorid export`](../commands/export.md): the estimators in C, single precision, replay of a
#   log on the desktop.
# - [`rotorid lpv`](../commands/lpv.md): a gain-scheduled controller with a stability certificate in
#   place of NMPC.
# - [`rotorid fly-back`](../commands/fly-back.md): what a model must show before it is exported.
