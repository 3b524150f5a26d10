# %% [markdown]
# # The mass of a sprayer, in the log and live
#
# A sprayer gets lighter as its tank empties. You will follow its mass from a log, compute what is
# left in the tank and how fast it flows, and then run the same filter sample by sample, as on a
# vehicle in flight.

# %%
import time

import jax
import numpy as np
import plotly.graph_objects as go
from rotorid import (
    Stream,
    ekf,
    load_airframe,
    prepare_samples,
    run,
    system_for,
    track,
    write_table,
)
from rotorid.control import Move, Setpoints
from rotorid.results import coverage, rmspe
from rotorid.simulation.free_flight import fly

jax.config.update("jax_enable_x64", True)

# %% [markdown]
# ## The flight
#
# Five rows of 12 m over a field in a wind of 2 m/s. The valve is open along the rows and closed in
# the turns. The tank starts with 0.45 kg, and the vehicle weighs 0.80 kg without it.

# %%
EMPTY, FULL, ROWS, ROW_TIME, TURN_TIME = 0.80, 1.25, 5, 6.0, 2.0
starts = [1.0 + k * (ROW_TIME + TURN_TIME) for k in range(ROWS)]
moves = [
    Move(start, ROW_TIME, (12.0 * (-1) ** k, 0.0, 0.0))
    for k, start in enumerate(starts)
]
moves += [Move(start + ROW_TIME, TURN_TIME, (0.0, 2.0, 0.0)) for start in starts[:-1]]


def mass(t):
    """The true mass at times t, kg."""
    sprayed = sum(np.clip((t - start) / ROW_TIME, 0.0, 1.0) for start in starts) / ROWS
    return FULL - (FULL - EMPTY) * sprayed


airframe = load_airframe("px4-sih-quad")
flight = fly(
    airframe,
    Setpoints(moves=tuple(sorted(moves, key=lambda move: move.start))),
    seed=4,
    duration=42.0,
    sensors="px4",
    mass=mass,
    wind=lambda t: np.broadcast_to([1.5, -1.3, 0.0], (len(t), 3)),
)
log = write_table(flight, "sprayer.parquet")

# %% [markdown]
# ## From the log
#
# The airframe gives the thrust curve and a first guess of the mass: 1 kg ± 0.3 kg. `track`
# estimates the mass together with drag, wind and accelerometer bias, which would otherwise look
# like mass.

# %%
tracked = track(log, airframe, "ekf")
tracked

# %%
tracked.plot("mass")

# %% [markdown]
# The band is the 95 % band. Since the truth is known here, you can check it:

# %%
estimate, true = tracked.quantities["mass"], tracked.truth["mass"]
settled = tracked.t > 3.0
error = rmspe(estimate.value[settled], true[settled])
inside = coverage(estimate.value[settled], estimate.std[settled], true[settled])
print(f"error from 3 s on: {error:.2f} % (root mean square)")
print(f"inside the 95 % band: {100 * inside:.0f} % of the time")

# %% tags=["remove-cell"]
assert error < 2.0, error
assert inside > 0.9, inside
assert abs(estimate.value[-1] - EMPTY) < 3 * estimate.std[-1] < 0.08

# %% [markdown]
# ## What is left, and how fast it flows
#
# The remaining liquid is the mass less that of the empty vehicle, which a scale gives to 5 g. Its
# standard deviation follows from both. A change of the mass is known better than the mass, since a
# common error of the thrust scale cancels: use `change_std` for it.

# %%
left = estimate.value[-1] - EMPTY
left_std = np.hypot(estimate.std[-1], 0.005)
print(f"left in the tank: {left:.3f} ± {left_std:.3f} kg")

first, last = np.searchsorted(tracked.t, (starts[1], starts[1] + ROW_TIME))
flow = (estimate.value[first] - estimate.value[last]) / ROW_TIME
flow_std = np.hypot(estimate.change_std[first], estimate.change_std[last]) / ROW_TIME
true_flow = (FULL - EMPTY) / ROWS / ROW_TIME
print(f"flow in row 2: {1000 * flow:.1f} ± {1000 * flow_std:.1f} g/s")
print(f"true flow: {1000 * true_flow:.1f} g/s")

# %% tags=["remove-cell"]
assert abs(left) < 3 * left_std
assert abs(flow - true_flow) < 3 * flow_std

# %% [markdown]
# ## Live
#
# In flight there is no log yet: samples come one by one. `Stream` takes one sample and returns the
# estimate after it. The loop stands for the loop of your vehicle's computer.

# %%
system = system_for(flight, airframe)
samples = prepare_samples(flight, system)
rows = jax.tree.map(np.asarray, samples)
stream = Stream(ekf(system))
live, seconds = [], []
for k in range(len(rows.t)):
    sample = jax.tree.map(lambda leaf, k=k: leaf[k], rows)
    begin = time.perf_counter()
    live.append(stream.step(sample))
    seconds.append(time.perf_counter() - begin)
masses = np.array([e.value[0] for e in live])
stds = np.array([e.std[0] for e in live])
print(f"{len(live)} steps, median {1e6 * np.median(seconds):.0f} µs each")

# %% [markdown]
# The time is that of the computer that built this page. The stream gives the numbers that `run` gives on the whole log. What you test on logs is what
# flies.

# %%
whole = run(ekf(system), samples)
difference = np.abs(np.asarray(whole.value[:, 0]) - masses).max()
print(f"largest difference: {difference:g} kg")

# %% tags=["remove-cell"]
assert difference < 1e-12

# %%
figure = go.Figure()
band = {
    "x": rows.t[::10],
    "mode": "lines",
    "line": {"width": 0},
    "showlegend": False,
    "hoverinfo": "skip",
}
figure.add_scatter(y=(masses - 1.96 * stds)[::10], **band)
figure.add_scatter(
    y=(masses + 1.96 * stds)[::10],
    fill="tonexty",
    fillcolor="rgba(31, 119, 180, 0.25)",
    **band,
)
figure.add_scatter(
    x=rows.t[::10],
    y=masses[::10],
    name="live estimate, 95 % band",
    line_color="rgb(31, 119, 180)",
)
figure.add_scatter(
    x=rows.t[::10],
    y=mass(rows.t[::10]),
    name="truth",
    line={"color": "gray", "dash": "dash"},
)
figure.update_layout(
    xaxis_title="time (s)", yaxis_title="mass (kg)", yaxis_range=[0.6, 1.5]
)
figure

# %% [markdown]
# This filter has the default noise; `track` estimates the noise from the log first, and adds the
# errors of the model to the band. `rotorid live` does both in flight.

# %% [markdown]
# ## What next
#
# - [`rotorid live`](../commands/live.md) runs this on the MAVLink messages of PX4 or ArduPilot,
#   with a page in the browser, and can keep a parameter such as `MOT_THST_HOVER` at the current
#   mass.
# - A load that is picked up or dropped changes the mass at once: [which
#   estimator](which-estimator.py).
# - A filter in C for a microcontroller: [use the model](use-the-model.py).
# - Thrust and mass: [calibrate](../commands/calibrate.md) the thrust with a scale.
