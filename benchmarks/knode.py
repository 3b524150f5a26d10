"""Learning a residual: an epoch beside torchdiffeq's, with the same physics, network, windows, batches and optimiser.

The peer integrates the same rigid hexarotor by torchdiffeq's fourth-order Runge-Kutta method, one step a row, inputs held over
it, quaternions by their linear equation, in float32 as we do; its loss on the first batch is compared with ours.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable

import jax
import numpy as np

from benchmarks.metrics import Metric, WrongResultError
from rotorid import Samples
from rotorid.codegen.native import Engine
from rotorid.learning.architectures import multirotor_heads
from rotorid.learning.knode import Training, TrainingState, learn_residual
from rotorid.learning.prediction import Weights, error_scales, loss, window_batch
from rotorid.learning.windows import Windows, training_windows
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.rigid import RigidMultirotor, rigid_multirotor
from rotorid.models.multirotor.rotors import allocation
from rotorid.models.residual import initial_weights, scaled_to
from rotorid.models.system import GRAVITY, parameter_values
from rotorid.simulation.wrench.flights import simulate_wrench_flight
from rotorid.workflows.track.track import prepare_samples

PEERS = ("torchdiffeq",)
FULL = 9, (1, 25, 50), 7
QUICK = 1, (1,), 1

BATCH = 360  # windows, 1 % of those of the study
PHYSICS = {"thrust_coefficient": 1.2 * 11.75e-4}
_REST = 0.05  # s, until the threads of the peer no longer wait for work


def benchmark(flights: int, horizons: tuple[int, ...], epochs: int, peers: set[str]) -> list[Metric]:
    """Seconds of the fastest epoch, over all rows of the flights, for each horizon. The two take turns."""
    found = []
    for horizon in horizons:
        found += _one(hexarotor(), windows(flights, horizon), epochs, bool(peers))
    return found


def hexarotor() -> RigidMultirotor:
    return rigid_multirotor(load_airframe("fully-actuated-hexarotor"), "rotor_speed")


def windows(flights: int, horizon: int) -> Windows:
    """The windows of simulated flights of the hexarotor."""
    with jax.enable_x64(True):
        return training_windows(hexarotor(), _samples(flights), horizon, stride=max(1, horizon // 2))


@functools.cache
def _samples(flights: int) -> list[Samples]:
    system, airframe = hexarotor(), load_airframe("fully-actuated-hexarotor")
    logs = [simulate_wrench_flight(airframe, "free-flight", seed) for seed in range(flights)]
    return [prepare_samples(log, system, whole=True) for log in logs]


def _one(system: RigidMultirotor, data: Windows, epochs: int, peer: bool) -> list[Metric]:
    batch = min(BATCH, len(data.training))
    training = Training(batch=batch / len(data.training), epochs=epochs + 1)
    torch_epoch = _torch_epoch(system, data, batch, PHYSICS) if peer else None
    ours, in_jax, theirs = [], [], []
    engines: tuple[tuple[Engine, list[float]], ...] = (("auto", ours), ("jax", in_jax))
    for engine, seconds in engines:
        _take_turns(system, data, training, engine, seconds, torch_epoch, theirs)
    label = f"KNODE, horizon {data.horizon}, {len(data.training)} windows"
    found = [
        Metric(f"{label}: epoch", min(ours), "s", "lower", peer=min(theirs) if theirs else None),
        Metric(f"{label}: epoch in JAX", min(in_jax), "s", "lower"),
    ]
    if theirs:
        found.insert(0, Metric(f"{label}: torchdiffeq / ours", min(theirs) / min(ours), "x", "higher", 0.4))
    return found


def _take_turns(
    system: RigidMultirotor,
    data: Windows,
    training: Training,
    engine: Engine,
    seconds: list[float],
    peer: Callable[[], float] | None,
    peer_seconds: list[float],
) -> None:
    """Add the seconds of our epochs but the first, and those of the peer after each."""
    begun = math.nan

    def turn(_: TrainingState) -> None:
        nonlocal begun
        seconds.append(time.perf_counter() - begun)
        if peer is not None:
            peer_seconds.append(peer())
            time.sleep(_REST)
        begun = time.perf_counter()

    learn_residual(
        system, data, multirotor_heads("split"), training, members=[PHYSICS], engine=engine, on_epoch=turn
    )
    del seconds[0]


def _torch_epoch(system: RigidMultirotor, data: Windows, batch: int, physics: dict) -> Callable[[], float]:
    """A function that trains one epoch in torch and returns its seconds."""
    import torch
    from torchdiffeq import odeint

    number = functools.partial(torch.tensor, dtype=torch.float32)
    p = parameter_values(system, **physics)
    start = {name: s.start for name, s in system.states.stored.items()}
    G = number(np.array(allocation(system.rotors, p["torque_ratio"], p["centre_of_mass"])))
    J, m, c_f = (number(np.array(p[name])) for name in ("inertia", "mass", "thrust_coefficient"))
    down = number([0.0, 0.0, -GRAVITY])
    weights = _weights(system, data)
    nets, fixed = [], []
    for w in weights:
        t = {name: number(np.array(value)) for name, value in w.items()}
        net = torch.nn.Sequential(
            torch.nn.Linear(t["W_1"].shape[1], 64), torch.nn.ReLU(), torch.nn.Linear(64, 3)
        )
        with torch.no_grad():
            for target, name in zip(net.parameters(), ("W_1", "b_1", "W_2", "b_2"), strict=True):
                target.copy_(t[name])
        nets.append(net)
        fixed.append(t)

    def rate(step, u):
        def f(t, x):
            q, v, omega = x[:, :4], x[:, 4:7], x[:, 7:10]
            gamma = u[:, min(int(t / step), u.shape[1] - 1)]
            gamma = c_f * gamma.abs() * gamma
            wrench = gamma @ G.T
            w, r = q[:, :1], q[:, 1:]
            cross = 2.0 * torch.linalg.cross(r, wrench[:, :3])
            force = wrench[:, :3] + w * cross + torch.linalg.cross(r, cross)
            turning = (wrench[:, 3:] - torch.linalg.cross(omega, J * omega)) / J
            phi = [
                s["unit"] * net((torch.cat([z, gamma], 1) - s["mean"]) / s["scale"])
                for net, s, z in zip(nets, fixed, (v, omega), strict=True)
            ]
            dq = 0.5 * torch.cat(
                [-(r * omega).sum(1, keepdim=True), w * omega + torch.linalg.cross(r, omega)], 1
            )
            return torch.cat([dq, force / m + down + phi[0], turning + phi[1]], 1)

        return f

    columns = np.concatenate(
        [
            np.arange(start[name], start[name] + n)
            for name, n in (("attitude", 4), ("velocity", 3), ("body_rate", 3))
        ]
    )
    x, u = number(data.x[:, columns]), number(data.u)
    step, horizon = float(np.median(data.dt[data.follows])), data.horizon
    t = step * torch.arange(horizon + 1)
    r = error_scales(system, multirotor_heads("split"), p, window_batch(data, data.training))
    r_of = number(np.array(r))
    parameters = [q for net in nets for q in net.parameters()]
    adam = torch.optim.Adam(parameters, lr=1e-3)

    def batch_loss(starts):
        rows = torch.tensor(starts[:, None] + 1 + np.arange(horizon))
        path = odeint(rate(step, u[rows]), x[starts], t, method="rk4", options={"perturb": True})
        off = path[1:].transpose(0, 1)[:, :, 4:] - x[rows][:, :, 4:]
        parts = [(off[:, :, 3 * k : 3 * k + 3] ** 2).sum(2) / r_of[k] ** 2 for k in range(2)]
        return torch.stack([part.mean() for part in parts]).mean()

    first = data.training[:batch]
    ours = float(loss(system, multirotor_heads("split"), weights, p, r, window_batch(data, first)))
    with torch.no_grad():
        theirs = float(batch_loss(first))
    if abs(theirs / ours - 1.0) > 0.01:
        raise WrongResultError(f"torchdiffeq's loss is {theirs:g}, ours {ours:g}: they do not do the same")
    rng = np.random.default_rng(0)

    def epoch() -> float:
        begun = time.perf_counter()
        order = rng.permutation(data.training)
        for starts in order[: len(order) // batch * batch].reshape(-1, batch):
            adam.zero_grad()
            batch_loss(starts).backward()
            adam.step()
        return time.perf_counter() - begun

    return epoch


def _weights(system: RigidMultirotor, data: Windows) -> list[Weights]:
    """Heads of the seed's form with weights that are not 0."""
    found = []
    gamma = 11.75e-4 * 1.2 * np.abs(data.u) * data.u
    for k, head in enumerate(multirotor_heads("split")):
        inputs = np.concatenate([data.x[:, system.states.stored[head.inputs[0]]], gamma], axis=1)
        w = initial_weights(head, inputs.shape[1], 3, jax.random.key(k))
        w["W_2"] = 0.1 * jax.random.normal(jax.random.key(k + 7), w["W_2"].shape)
        w |= {name: jax.numpy.asarray(v) for name, v in scaled_to(inputs, np.ones(3)).items()}
        found.append(w)
    return found
