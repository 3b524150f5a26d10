"""Evidence of structures against integrals of a linear model, which they are exact for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from rotorid.identification.airframe.alternatives.structures import Structure, nested_structures
from rotorid.identification.fitting.free_parameters import Prior, coordinates_from_priors
from rotorid.models.system import Parameter


def linear_structures(y: float, sigma: float) -> tuple[float, tuple[Structure, ...]]:
    """Of y = 0.3 gain + drag + noise, with priors of 0 and 1 for both, that of the drag cut off at 0: the gain of the full
    structure, and the structures."""
    priors = (
        Prior(Parameter("gain", 0.0, 1.0), (0.0,), (1.0,)),
        Prior(Parameter("drag", 0.0, 1.0), (0.0,), (1.0,), is_one_sided=True),
    )
    coordinates, centre, scale = coordinates_from_priors(priors)
    X = np.array([[0.3, 1.0]]) / sigma
    H = X.T @ X + np.eye(2)
    z = np.linalg.solve(H, X[0] * y / sigma)
    zero, root = coordinates.lower_bounds(centre, scale), np.linalg.cholesky(np.linalg.inv(H))
    return float(z[0]), nested_structures(coordinates, zero, z, root, np.eye(2))


@pytest.mark.parametrize("y", [0.05, 0.4, 1.5])
def test_evidence_is_that_of_the_integrals(y: float) -> None:
    sigma = 0.2
    gain, structures = linear_structures(y, sigma)
    assert [s.parameters for s in structures] == [(), ("drag",)]

    def likelihood(drag: float) -> float:
        return norm.pdf(y, drag, np.hypot(sigma, 0.3))

    full = quad(lambda k: 2.0 * norm.pdf(k) * likelihood(k), 0.0, 12.0, points=[max(y, 0.0)])[0]
    assert structures[0].log_evidence == pytest.approx(np.log(likelihood(0.0) / full), abs=1e-3)
    assert structures[-1].log_evidence == 0.0
    assert sum(s.probability for s in structures) == pytest.approx(1.0)
    without_drag = 0.3 * y / (0.3**2 + sigma**2)
    assert gain + structures[0].difference["gain"] == pytest.approx(without_drag)
    assert structures[0].std["gain"] == pytest.approx(1.0 / np.sqrt(1.0 + (0.3 / sigma) ** 2))
    assert structures[0].std["drag"] == pytest.approx(0.0, abs=1e-6)
    assert structures[1].std["gain"] > structures[0].std["gain"]


def test_a_structure_is_ruled_out_by_a_large_drag() -> None:
    assert linear_structures(3.0, 0.2)[1][0].probability < 0.01
    assert linear_structures(0.0, 0.2)[1][0].probability > 0.5
