# %% [markdown]
# # External force and contact
#
# A vehicle that touches something, is pushed or carries a load does not move as its rotors and
# gravity alone would move it. The cause of the difference is the external wrench: force and torque.
# You will estimate it over a flight, find the contacts, and see the effect of a wrong airframe.

# %%
import dataclasses

import jax
import numpy as np
import plotly.graph_objects as go
from rotorid import load_airframe, wrench
from rotorid.results import coverage
from rotorid.simulation.wrench import LogNoise, simulate_wrench_flight
from rotorid.workflows.wrench import (
    find_contacts,
    parameter_stds,
    with_rotors,
    wrench_system,
)

jax.config.update("jax_enable_x64", True)

# %% [markdown]
# ## The flight
#
# A hexarotor with tilted rotors, which can push in all directions, hovers and is pushed three
# times. Its mass and the thrust coefficient of its rotors were measured to 0.5 % each. The log has
# rotor speeds, and the pose by motion capture, with their noise.

# %%
vehicle = load_airframe("fully-actuated-hexarotor")
measured = {
    name: dataclasses.replace(quantity, std=(0.005 * quantity.number,))
    for name, quantity in vehicle.quantities.items()
    if name in ("mass", "thrust_coefficient")
}
airframe = dataclasses.replace(vehicle, quantities={**vehicle.quantities, **measured})
flight = simulate_wrench_flight(
    airframe, "hover-wrench", seed=1, duration=8.0, noise=LogNoise()
)
flight

# %% [markdown]
# ## Force and torque
#
# The momentum observer compares the momentum of the vehicle with what rotors and gravity give.
# `parameter_stds` takes the standard deviations of the airframe file, so that the bands contain the
# error that each of them causes.


# %%
def observe(airframe):
    """The wrench on a vehicle with this airframe."""
    log = with_rotors(flight, airframe)
    system = wrench_system(log, airframe)
    return wrench(log, system, stds=parameter_stds(airframe, system))


observed = observe(airframe)
observed

# %%
observed.plot()

# %% [markdown]
# The horizontal force beside the truth. The observer is a low-pass filter with the time constant
# 1/gain, here 0.1 s, so that it follows the edges of a push with this delay:

# %%
figure = go.Figure()
for axis, colour in (("x", "rgb(31, 119, 180)"), ("y", "rgb(214, 39, 40)")):
    name = f"force_{axis}"
    estimate = observed.track.quantities[name]
    figure.add_scatter(
        x=observed.t, y=estimate.value, name=f"force {axis}", line_color=colour
    )
    dashed = {"color": colour, "dash": "dash"}
    figure.add_scatter(
        x=observed.t,
        y=observed.track.truth[name],
        name=f"force {axis}, truth",
        line=dashed,
    )
figure.update_layout(xaxis_title="time (s)", yaxis_title="force (N, world)")
figure

# %%
for name in ("force_x", "force_y", "force_z", "torque_x", "torque_y", "torque_z"):
    estimate = observed.track.quantities[name]
    inside = coverage(estimate.value, estimate.std, observed.track.truth[name])
    print(
        f"{name}: std {np.median(estimate.std):.2f} {estimate.unit},"
        f" inside the 95 % band {100 * inside:.0f} % of the time"
    )

# %% tags=["remove-cell"]
assert abs(observed.gain - 10.0) < 1e-9
for name in ("force_x", "force_y", "force_z", "torque_x", "torque_y", "torque_z"):
    estimate = observed.track.quantities[name]
    assert coverage(estimate.value, estimate.std, observed.track.truth[name]) > 0.9, (
        name
    )

# %% [markdown]
# ## Contacts
#
# A contact is a force or torque that begins, ends, and exceeds its band. Impulse and mean force do
# not depend on the delay of the observer.

# %%
contacts = find_contacts(observed).events
true_force = flight["true_force"]
for contact in contacts:
    acts = (true_force.times > contact.start - 0.2) & (
        true_force.times < contact.end + 0.2
    )
    true_impulse = np.linalg.norm(true_force.values[acts].sum(axis=0) * 0.004)
    impulse = np.linalg.norm(contact.impulse.value)
    impulse_std = (
        np.linalg.norm(np.array(contact.impulse.value) * contact.impulse.std) / impulse
    )
    print(
        f"{contact.start:.2f} to {contact.end:.2f} s:"
        f" {contact.strength:.1f} ± {contact.strength_std:.1f} N on average,"
        f" impulse {impulse:.2f} ± {impulse_std:.2f} N s, true {true_impulse:.2f} N s"
    )

# %% tags=["remove-cell"]
assert len(contacts) == 3
for contact in contacts:
    acts = (true_force.times > contact.start - 0.2) & (
        true_force.times < contact.end + 0.2
    )
    true_impulse = true_force.values[acts].sum(axis=0) * 0.004
    assert np.all(
        np.abs(np.array(contact.impulse.value) - true_impulse)
        < 3 * np.array(contact.impulse.std)
    )

# %% [markdown]
# Force and torque together determine the line along which a force acts, not the point on it.
# `nearest` is the point of that line nearest to the centre of mass:

# %%
for contact in contacts:
    if contact.line is None:
        print(f"{contact.start:.2f} s: {contact.line_unknown}")
    else:
        point = ", ".join(
            f"{p:.3f} ± {s:.3f}"
            for p, s in zip(contact.line.nearest, contact.line.nearest_std)
        )
        print(f"{contact.start:.2f} s: the line passes ({point}) m, body axes")

# %% [markdown]
# ## A mass that is wrong
#
# Everything that the model does not explain ends up in the wrench. The same flight with a mass that
# is 5 % too small:

# %%
mass = vehicle.mass.number
light = dataclasses.replace(measured["mass"], value=(0.95 * mass,))
wrong = observe(
    dataclasses.replace(airframe, quantities={**airframe.quantities, "mass": light})
)
for name, result in (("measured mass", observed), ("5 % too small", wrong)):
    offset = find_contacts(result).offsets["force_z"]
    verdict = "outside" if offset.significant else "inside"
    print(
        f"{name}: constant vertical force {offset.value:.2f} ± {offset.std:.2f} N,"
        f" {verdict} its 95 % band"
    )
print(f"5 % of the weight: {0.05 * 9.81 * mass:.2f} N")

# %% tags=["remove-cell"]
assert not find_contacts(observed).offsets["force_z"].significant
assert find_contacts(wrong).offsets["force_z"].significant
error = (
    find_contacts(wrong).offsets["force_z"].value
    - find_contacts(observed).offsets["force_z"].value
)
assert abs(error + 0.05 * 9.81 * mass) < 0.1, error
assert len(find_contacts(wrong).events) == 3

# %% [markdown]
# A constant force outside of its band says that the airframe is wrong, or that something hangs on
# the vehicle during the whole flight. Without the two measurements its band would be as wide as the
# default uncertainty of the thrust, and contain the error. The contacts are still found, since the
# constant part is subtracted first.
#
# ## What next
#
# - The same as a command with a report: [`rotorid wrench`](../commands/wrench.md).
# - Correct the airframe first: [a first model from a log](first-model.py).
# - What remains with a good airframe is aerodynamics: [`rotorid learn`](../commands/learn.md)
#   learns it from contact-free flights.
# - [`rotorid live`](../commands/live.md) estimates the wrench in flight.
