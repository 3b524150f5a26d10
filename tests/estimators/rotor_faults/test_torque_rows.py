"""Rows of the torque balance, of a whole flight and sample by sample."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.estimators.rotor_faults import torque_rows
from rotorid.estimators.rotor_faults.torque_rows import TorqueRows


@pytest.mark.parametrize("is_compiled", [True, False], ids=["c", "python"])
@pytest.mark.parametrize("lag", [0.0, 0.05])
def test_a_flight_at_once_gives_the_rows_of_its_samples(
    monkeypatch: pytest.MonkeyPatch, is_compiled: bool, lag: float
) -> None:
    if not is_compiled:
        monkeypatch.setattr(torque_rows, "fault_library", lambda: None)
    rng = np.random.default_rng(7)
    n = 400
    dt = 0.01 + 0.002 * rng.random(n)
    dt[[150, 300]] = 0.5, -0.01
    t, rate, command = np.cumsum(dt), rng.standard_normal((n, 3)), 2.0 + rng.random((n, 4))
    restarts = np.zeros(n, bool)
    restarts[[0, 200, 201]] = True
    inertia = np.array([0.02, 0.03, 0.04])
    one, all_ = TorqueRows(inertia, lag, 0.05), TorqueRows(inertia, lag, 0.05)
    expected = []
    for k in range(n):
        if restarts[k]:
            one.restart()
        elif (row := one.push(t[k], dt[k], rate[k], command[k])) is not None:
            expected.append((k, row))
    found = all_.push_all(t, dt, rate, command, restarts)
    assert len(expected) > 60
    assert found.samples.tolist() == [k for k, _ in expected]
    for place, (_, b) in enumerate(expected):
        a = found.row(place)
        for name in a._fields:
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-9, atol=1e-9, err_msg=name)
