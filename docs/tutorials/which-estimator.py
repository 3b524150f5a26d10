# %% [markdown]
# # Which estimator
#
# A load that is dropped changes the mass at once; a tank changes it slowly. You will run five
# estimators on the same flights with a known mass, and compare what matters: the error, the delay
# after a step, whether the band is right, and the computing time.

# %%
import time

import jax
import numpy as np
import plotly.graph_objects as go
from rotorid import (
    adaptive,
    ekf,
    load_airframe,
    msckf,
    prepare_samples,
    run,
    run_many,
    swls,
    system_for,
    ukf,
)
from rotorid.estimators import stack
from rotorid.results import coverage, rmspe
from rotorid.simulation import simulate
from rotorid.workflows.track import find_jumps, to_track

jax.config.update("jax_enable_x64", True)

# %% [markdown]
# ## Flights with steps of the mass
#
# Eight flights of 20 s. All estimators get the same samples and the same System, the bare
# multirotor: this simulation has no drag.

# %%
flights = [simulate("loop", "steps", seed=seed) for seed in range(8)]
system = system_for(flights[0], load_airframe("simulated-quad"), "multirotor-bare")
samples = [prepare_samples(flight, system, whole=True) for flight in flights]
t = np.asarray(samples[0].t)
truth = []
for flight in flights:
    mass = flight["true_mass"]
    truth.append(mass.values[np.searchsorted(mass.times, t - 1e-6) - 1, 0])

# %% tags=["remove-cell"]
assert all(np.array_equal(t, s.t) for s in samples)

# %% [markdown]
# ## Run them
#
# `run_many` takes many flights at once. The first call compiles, so the time is that of a second
# call.

# %%
builders = {"EKF": ekf, "UKF": ukf, "MSCKF": msckf, "SWLS": swls, "adaptive": adaptive}
results, seconds = {}, {}
for name, builder in builders.items():
    estimator = builder(system)
    results[name] = run_many(estimator, stack(samples))
    begin = time.perf_counter()
    run_many(estimator, stack(samples), workers=1)
    seconds[name] = (time.perf_counter() - begin) / (len(flights) * len(t))

# %% [markdown]
# ## One flight

# %%
figure = go.Figure()
for name in ("EKF", "adaptive"):
    figure.add_scatter(x=t, y=np.asarray(results[name].value)[0, :, 0], name=name)
figure.add_scatter(
    x=t, y=truth[0], name="truth", line={"color": "gray", "dash": "dash"}
)
figure.update_layout(
    xaxis={"title": "time (s)", "range": [4.0, 11.0]}, yaxis_title="mass (kg)"
)
figure

# %% [markdown]
# The EKF follows a step as fast as the drift of its model allows. The adaptive estimator tests at
# each sample whether the mass jumped, and then forgets the mass of before.
#
# ## All flights
#
# Errors are root mean square percentage errors from 1 s on, with the standard error over the
# flights. A band is right if it contains the truth 95 % of the time. The delay is the time from a
# step until the estimate is within 3 % of the new mass. The computing time is that of one sample on
# the computer that built this page.


# %%
def delays(estimate, true):
    """Of each step of the true mass, the time until the estimate is within 3 %, s."""
    steps = np.flatnonzero(np.abs(np.diff(true)) > 0.05 * true[:-1]) + 1
    ends = [*steps[1:], len(true)]
    for start, end in zip(steps, ends):
        close = np.abs(estimate[start:end] / true[start:end] - 1.0) < 0.03
        yield t[start + np.argmax(close)] - t[start] if close.any() else np.inf


late = t > 1.0
print("           error, %  inside the band  delay, s  time, µs")
errors, waits = {}, {}
for name, result in results.items():
    values, stds = np.asarray(result.value)[..., 0], np.asarray(result.std)[..., 0]
    errors[name] = np.array(
        [rmspe(v[late], true[late]) for v, true in zip(values, truth)]
    )
    inside = np.mean(
        [
            coverage(v[late], s[late], true[late])
            for v, s, true in zip(values, stds, truth)
        ]
    )
    waits[name] = np.median(
        [delay for v, true in zip(values, truth) for delay in delays(v, true)]
    )
    mean, error = errors[name].mean(), errors[name].std(ddof=1) / np.sqrt(len(flights))
    print(
        f"{name:9}  {mean:5.2f} ± {error:.2f}  {100 * inside:10.0f} %"
        f"  {waits[name]:9.2f}  {1e6 * seconds[name]:9.2f}"
    )

# %% tags=["remove-cell"]
assert all(e.mean() < 5.0 for e in errors.values()), errors
gain = errors["EKF"] - errors["adaptive"]
assert gain.mean() > 1.96 * gain.std(ddof=1) / np.sqrt(len(flights))
assert waits["adaptive"] < waits["EKF"]
assert all(
    np.abs(errors[name] - errors["EKF"]).mean() < 0.3
    and abs((errors[name] - errors["EKF"]).mean()) < 0.1
    for name in ("UKF", "MSCKF", "SWLS")
)

# %% [markdown]
# All estimators see the same flights, so compare them flight by flight: most of the scatter cancels
# in the differences.

# %%
figure = go.Figure()
for name in ("UKF", "MSCKF", "SWLS", "adaptive"):
    difference = errors[name] - errors["EKF"]
    bar = {"array": [1.96 * difference.std(ddof=1) / np.sqrt(len(flights))]}
    figure.add_scatter(
        x=[name],
        y=[difference.mean()],
        error_y=bar,
        mode="markers",
        marker_size=10,
        showlegend=False,
    )
figure.update_layout(yaxis_title="error minus that of the EKF (%), 95 % band")
figure

# %% [markdown]
# For this problem the mean errors of the filters without change detection differ by less than 0.1 %
# of the mass, so take the cheapest of them, or the adaptive one.
#
# ## When did it change
#
# The adaptive estimator also finds the times of the changes. `find_jumps` measures their sizes, and
# leaves out those that the estimates do not confirm:

# %%
filter_ = adaptive(system)
tracked = to_track(run(filter_, samples[0]), t, filter_, "adaptive", "multirotor-bare")
steps = np.flatnonzero(np.abs(np.diff(truth[0])) > 0.05 * truth[0][:-1])
jumps = find_jumps(tracked)
for jump in jumps:
    step = steps[np.argmin(np.abs(t[steps] - jump.time))]
    true = truth[0][step + 1] - truth[0][step]
    print(
        f"{jump.time:5.2f} s: {jump.size:+.3f} ± {jump.size_std:.3f} kg,"
        f" true {t[step]:5.2f} s: {true:+.3f} kg"
    )

# %% tags=["remove-cell"]
assert len(jumps) == len(steps)
for jump, step in zip(jumps, steps):
    assert abs(jump.time - t[step]) < 0.1
    assert abs(jump.size - (truth[0][step + 1] - truth[0][step])) < 3 * jump.size_std

# %% [markdown]
# ## What next
#
# - [How to choose an estimator](../how-to-choose.md): the same comparison on 1250 flights, and
#   under wind, lag and saturation.
# - [`rotorid compare`](../commands/compare.md) compares estimators on your own logs, with or
#   without a known mass.
# - [Estimators](../estimators.md): the methods, their defaults and how to tune them.
# - The estimator on a vehicle: [use the model](use-the-model.py).
