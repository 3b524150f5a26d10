# %% [markdown]
# # Your own system: the tyres of a car
#
# The estimators are not specific to drones. You will describe a car by two equations, and track how
# its tyres hold the road while it drives from a dry onto a wet surface. The tyres themselves cannot
# be measured; the yaw rate and the lateral acceleration can.
#
# You learn: what a `System` needs, how a parameter becomes something that is tracked, and how to
# report quantities that follow from the parameters, with their standard deviations.

# %%
import math

import jax
import numpy as np
import plotly.graph_objects as go
from rotorid import Parameter, Samples, Scalar, Space, System, ekf, run

jax.config.update("jax_enable_x64", True)

# %% [markdown]
# ## The equations
#
# In the single-track model the two wheels of an axle are one. Side forces are proportional to the
# slip angles:
#
#     F_f = c_f (δ - (v_y + a r) / v_x)
#     F_r = c_r (b r - v_y) / v_x
#     m (v_y' + v_x r) = F_f + F_r
#     I r' = a F_f - b F_r
#
# | symbol | meaning | role |
# |---|---|---|
# | `v_y`, `r` | lateral velocity, yaw rate | states |
# | `δ`, `v_x` | steering angle, speed | inputs, known |
# | `c_f`, `c_r` | cornering stiffness of the front and rear axle, N/rad | parameters, tracked |
# | `m`, `I`, `a`, `b` | mass, moment of inertia, distances of the axles from the centre of mass | known |
#
# `drift` is the random walk of a parameter: the standard deviation of its change in one second, in
# its unit. The `noise` of a state is that of effects which the equations omit; the `noise` of an
# output is the error of one measurement. `bounds` keep a stiffness positive.

# %%
MASS, INERTIA, A, B = 1500.0, 2500.0, 1.2, 1.5  # kg, kg m^2, m, m


class Car(System):
    states = Space.of(
        lateral_velocity=Scalar("m/s", std=0.3, noise=0.02),
        yaw_rate=Scalar("rad/s", std=0.1, noise=0.005),
    )
    inputs = Space.of(steering=Scalar("rad"), speed=Scalar("m/s"))
    outputs = Space.of(
        yaw_rate=Scalar("rad/s", noise=0.005),
        lateral_acceleration=Scalar("m/s^2", noise=0.1),
    )
    parameters = (
        Parameter(
            "front_stiffness",
            6e4,
            std=3e4,
            unit="N/rad",
            bounds=(0.0, math.inf),
            drift=8e3,
        ),
        Parameter(
            "rear_stiffness",
            6e4,
            std=3e4,
            unit="N/rad",
            bounds=(0.0, math.inf),
            drift=8e3,
        ),
    )

    def forces(self, x, u, p):
        front = p["front_stiffness"] * (
            u["steering"] - (x["lateral_velocity"] + A * x["yaw_rate"]) / u["speed"]
        )
        rear = (
            p["rear_stiffness"]
            * (B * x["yaw_rate"] - x["lateral_velocity"])
            / u["speed"]
        )
        return front, rear

    def dynamics(self, x, u, p):
        front, rear = self.forces(x, u, p)
        acceleration = (front + rear) / MASS - u["speed"] * x["yaw_rate"]
        return {
            "lateral_velocity": acceleration,
            "yaw_rate": (A * front - B * rear) / INERTIA,
        }

    def observe(self, x, u, p):
        front, rear = self.forces(x, u, p)
        return {
            "yaw_rate": x["yaw_rate"],
            "lateral_acceleration": (front + rear) / MASS,
        }


# %% [markdown]
# ## A drive
#
# 40 s at 20 m/s with a steering wheel that moves left and right. From 20 s on the road is wet, and
# both axles lose 40 % of their stiffness. The drive is computed by a loop of its own with small
# steps, not by the code that estimates.

# %%
DT, STEPS, WET = 0.01, 10, 20.0
TRUE_FRONT, TRUE_REAR = 8.0e4, 9.5e4
rng = np.random.default_rng(0)
t = DT * np.arange(1, 4001)
steering = 0.03 * np.sin(1.7 * t) + 0.02 * np.sin(4.1 * t + 1.0)
grip = np.where(t < WET, 1.0, 0.6)
v_x, v_y, r = 20.0, 0.0, 0.0
measured = np.zeros((len(t), 2))
for k in range(len(t)):
    for _ in range(STEPS):
        front = grip[k] * TRUE_FRONT * (steering[k] - (v_y + A * r) / v_x)
        rear = grip[k] * TRUE_REAR * (B * r - v_y) / v_x
        v_y += DT / STEPS * ((front + rear) / MASS - v_x * r)
        r += DT / STEPS * (A * front - B * rear) / INERTIA
    front = grip[k] * TRUE_FRONT * (steering[k] - (v_y + A * r) / v_x)
    rear = grip[k] * TRUE_REAR * (B * r - v_y) / v_x
    measured[k] = r, (front + rear) / MASS
measured += rng.normal(size=measured.shape) * [0.005, 0.1]

# %% [markdown]
# Estimators take `Samples`: times, the time since the row before, inputs, measurements, and a mask
# of those that are present. The accelerometer is read at 20 Hz only, so most of its rows are
# masked. Missing measurements need no other treatment.

# %%
mask = np.ones(measured.shape, bool)
mask[:, 1] = np.arange(len(t)) % 5 == 0
samples = Samples(
    t,
    np.full(len(t), DT),
    np.column_stack([steering, np.full(len(t), v_x)]),
    measured,
    mask,
)

# %% [markdown]
# ## Track
#
# The estimator is made for the System: it differentiates the two functions, and compiles one step
# to C if there is a compiler.

# %%
estimates = run(ekf(Car()), samples)
value, std = np.asarray(estimates.value), np.asarray(estimates.std)
for at in (19.9, 39.9):
    k = np.searchsorted(t, at)
    for i, (name, true) in enumerate((("front", TRUE_FRONT), ("rear", TRUE_REAR))):
        estimate, band = value[k, i] / 1e3, std[k, i] / 1e3
        true = grip[k] * true / 1e3
        print(
            f"{at:.1f} s, {name}: {estimate:.1f} ± {band:.1f} kN/rad, true {true:.1f}"
        )

# %%
figure = go.Figure()
for i, (name, colour, true) in enumerate(
    (("front", "31, 119, 180", TRUE_FRONT), ("rear", "214, 39, 40", TRUE_REAR))
):
    low, high = (value[::10, i] + sign * 1.96 * std[::10, i] for sign in (-1, 1))
    hidden = {
        "mode": "lines",
        "line": {"width": 0},
        "showlegend": False,
        "hoverinfo": "skip",
    }
    figure.add_scatter(x=t[::10], y=low / 1e3, **hidden)
    figure.add_scatter(
        x=t[::10],
        y=high / 1e3,
        fill="tonexty",
        fillcolor=f"rgba({colour}, 0.2)",
        **hidden,
    )
    figure.add_scatter(
        x=t[::10],
        y=value[::10, i] / 1e3,
        name=f"{name}, 95 % band",
        line_color=f"rgb({colour})",
    )
    dashed = {"color": f"rgb({colour})", "dash": "dash"}
    figure.add_scatter(
        x=t[::10], y=grip[::10] * true / 1e3, name=f"{name}, truth", line=dashed
    )
figure.update_layout(
    xaxis_title="time (s)",
    yaxis_title="cornering stiffness (kN/rad)",
    yaxis_range=[0, 140],
)
figure

# %% tags=["remove-cell"]
true = grip[:, None] * [TRUE_FRONT, TRUE_REAR]
settled = ((t > 5.0) & (t < WET)) | (t > WET + 4.0)
assert np.mean(np.abs(value - true)[settled] < 1.96 * std[settled]) > 0.9
assert np.all(std[-1] < 0.1 * value[-1])

# %% [markdown]
# ## Is the filter consistent?
#
# A band is useful only if it is right. The innovations are measured
# minus predicted values; the normalised innovation squared (NIS) has a mean of one for each
# measurement if the noises are right.

# %%
ratio = float(np.sum(estimates.nis) / np.sum(estimates.nis_dof))
print(f"NIS over its expected value: {ratio:.2f}")

# %% tags=["remove-cell"]
assert 0.9 < ratio < 1.15, ratio

# %% [markdown]
# ## A quantity that follows from the parameters
#
# The understeer gradient `m (b / c_f - a / c_r) / (a + b)` says how much more a driver has to steer
# in a faster curve. The covariance of the two stiffnesses gives its standard deviation to first
# order.

# %%
c_f, c_r = value[-1]
gradient = MASS / (A + B) * (B / c_f - A / c_r)
slope = MASS / (A + B) * np.array([-B / c_f**2, A / c_r**2])
gradient_std = math.sqrt(slope @ np.asarray(estimates.covariance)[-1] @ slope)
true_gradient = MASS / (A + B) * (B / TRUE_FRONT - A / TRUE_REAR) / grip[-1]
print(f"understeer gradient: {1e3 * gradient:.2f} ± {1e3 * gradient_std:.2f} mrad s²/m")
print(f"true: {1e3 * true_gradient:.2f} mrad s²/m")

# %% tags=["remove-cell"]
assert abs(gradient - true_gradient) < 3 * gradient_std < 0.5 * true_gradient

# %% [markdown]
# ## What next
#
# - [Extend](../extend.md): a pendulum and a cart in a few lines, estimators and log formats of your
#   own.
# - `ukf(Car())`, `swls(Car())` or `adaptive(Car())` in place of `ekf(Car())`: [which
#   estimator](which-estimator.py).
# - Constant parameters from whole recordings: `rotorid.identification.grey_box.fit_grey_box` with
#   the same System.
# - The same filter in C, by `export_estimator`: [use the model](use-the-model.py).
# - The mathematics of states, rotations and parameters: [theory](../theory.md).
