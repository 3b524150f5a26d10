# %% [markdown]
# # A first model from a log
#
# You will take one flight log from reading to a validated model: what can be identified from the
# log, the parameters with their standard deviations, and a test on a flight that was not used for
# the fit.
#
# The log is of a simulated quadrotor, so that you can compare the result with the truth. With a log
# of your own, put its path in the place of `flight.parquet`: PX4, ArduPilot, Betaflight, Crazyflie
# and ROS logs are read in the same way.

# %%
import math

import plotly.graph_objects as go
from rotorid import fly_back, identify, load_airframe, read, write_table
from rotorid.simulation.free_flight import draw_setpoints, fly

# %% [markdown]
# ## A log
#
# The vehicle is the quadrotor of PX4's simulation: 1 kg, four motors with a lag of 50 ms. It flies
# figures and excites roll, pitch, yaw and thrust. Its instruments have the noise and the rates of
# PX4.

# %%
vehicle = load_airframe("px4-sih-quad")
setpoints = draw_setpoints(3, 16.0)
simulated = fly(vehicle, setpoints, seed=1, duration=16.0, sensors="px4")
log = write_table(simulated, "flight.parquet")
flight = read(log)
flight

# %% [markdown]
# Look at the data before you fit anything: do the motors reach their limits, are there gaps?

# %%
flight.plot("body_rate", "rotor_command")

# %% [markdown]
# ## What you know before
#
# An [airframe file](../airframes.md) says what you know of the vehicle: the mass by a scale, the
# places of the rotors by a ruler, and rough guesses of the rest with their standard deviations.
# These guesses are wrong by 40 to 60 %, as they may be for a new vehicle.

# %%
airframe = """
name = "mine"

[mass]
value = 1.0
std = 0.005
unit = "kg"

[inertia]
value = [0.035, 0.015, 0.045]
std = [0.02, 0.02, 0.03]
unit = "kg m^2"

[motor_time_constant]
value = 0.03
std = 0.03
unit = "s"

[torque_ratio]
value = 0.02
std = 0.0
unit = "m"

[angular_drag]
value = 0.025
unit = "N m s"

[drag]
value = 0.2
std = 0.3
unit = "N s/m"

[thrust_curve]
value = [0.0, 7.0]
std = [0.5, 3.0]
unit = "N"
"""
for x, y, direction in (
    (0.2, -0.2, "ccw"),
    (-0.2, 0.2, "ccw"),
    (0.2, 0.2, "cw"),
    (-0.2, -0.2, "cw"),
):
    airframe += f'\n[[rotor]]\nposition = [{x}, {y}, 0.0]\ndirection = "{direction}"\n'
with open("mine.toml", "w") as file:
    file.write(airframe)

# %% [markdown]
# ## Identify
#
# Flight identifies the ratio of thrust and mass only. Here the weighed mass is held fixed, and the
# thrust curve is estimated relative to it. Without `free`, all parameters are estimated that the
# log allows, which takes longer.

# %%
model = identify(
    "flight.parquet",
    "mine.toml",
    free=["thrust_curve", "inertia", "motor_time_constant", "drag"],
)
model

# %% [markdown]
# Every estimate has a standard deviation. The last column is the information gain: the share of the
# prior's standard deviation that the flight removed. A parameter with a gain near 0 % is still your
# guess.

# %%
model.plot()

# %% [markdown]
# ## Compare with the truth
#
# In this simulation the true values are known. The error of each estimate, in standard deviations:

# %%
axes = ("inertia_x", "inertia_y", "inertia_z")
truth = dict(zip(axes, vehicle.vector("inertia")))
for name in ("motor_time_constant", "drag"):
    truth[name] = vehicle.number(name)
rows = {row["quantity"]: row for row in model.to_frame().to_pylist()}
deviation = {}
for name, true in truth.items():
    value, std, unit = rows[name]["value"], rows[name]["std"], rows[name]["unit"]
    deviation[name] = (value - true) / std
    print(
        f"{name:20} {value:.5f} ± {std:.5f} {unit:7} true {true:.5f}:"
        f" {deviation[name]:+.1f} standard deviations"
    )

# %% tags=["remove-cell"]
assert all(abs(d) < 3 for d in deviation.values()), deviation
assert all(rows[name]["std"] < 0.03 * rows[name]["value"] for name in truth)
assert all(rows[name]["information_gain"] > 0.9 for name in truth)

# %% [markdown]
# ## Validate on another flight
#
# A small standard deviation says how well this flight determines the parameters *if the model is
# right*. Whether it is right is another question, which a second flight answers. `fly_back` runs
# the model open loop on the commands of that flight, and compares its predictions with the
# measurements, with those of the airframe that you started from, and with "the velocity stays as it
# is".

# %%
setpoints = draw_setpoints(7, 16.0)
second = fly(vehicle, setpoints, seed=2, duration=16.0, sensors="px4")
validation = fly_back(model.airframe, load_airframe("mine.toml"), [second])
print("accepted" if validation.accepted else "not accepted")
for reason in validation.reasons:
    print("-", reason)

# %% [markdown]
# The errors of the predicted attitude over the horizon of the prediction, with bands of two
# standard errors:

# %%
errors = next(signal for signal in validation.signals if signal.name == "attitude")
figure = go.Figure()
lines = (
    ("your guess", errors.prior, errors.prior_std),
    ("identified", errors.model, errors.model_std),
)
for name, values, stds in lines:
    bars = {"array": [2 * math.degrees(std) for std in stds]}
    degrees = [math.degrees(value) for value in values]
    figure.add_scatter(x=validation.horizons, y=degrees, error_y=bars, name=name)
figure.update_layout(
    xaxis_title="horizon (s)",
    yaxis_title="RMS error of the attitude (deg)",
    yaxis={"type": "log", "dtick": 1},
)
figure

# %% tags=["remove-cell"]
assert validation.accepted, validation.reasons
assert all(ours < 0.5 * guess for ours, guess in zip(errors.model, errors.prior))

# %% [markdown]
# ## What next
#
# - The same in two commands: [`rotorid inspect`](../commands/inspect.md), which also says what to
#   log next time, and [`rotorid identify`](../commands/identify.md), which holds out a part of each
#   flight and writes the report.
# - Parameters with a small gain: let [`rotorid plan`](../commands/plan.md) design the flight that
#   identifies them.
# - [From the model to a controller and a simulator](use-the-model.py).
# - How the estimates and their bands are computed: [theory of
#   identification](../theory-identification.md).
