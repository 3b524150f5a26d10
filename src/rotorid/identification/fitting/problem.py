"""The estimation problem: windows of flights, a System, and priors, predicted and linearised part by part."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float

from rotorid.identification.fitting.free_parameters import (
    GENERIC,
    Coordinates,
    Numbers,
    Prior,
    SystemRules,
    coordinates_from_priors,
    evaluate_coordinates,
)
from rotorid.identification.fitting.frequency_bands import LowBand, low_band_information
from rotorid.identification.fitting.multiple_shooting import (
    InputSensitivities,
    OutputInformation,
    ShootingSetup,
    StartPriors,
    WindowCosts,
    WindowLinearisationPoint,
    WindowPrediction,
    linearise_windows,
    output_information,
    predict_windows,
)
from rotorid.identification.fitting.windows import WindowData, WindowPart, Windows
from rotorid.models.system import System

_Found = TypeVar("_Found")


@runtime_checkable
class InputModel(Protocol):
    """Inputs that depend on the estimated parameters."""

    def input_sensitivities(
        self, data: WindowData, numbers: Float[np.ndarray, " free"], slopes: Float[np.ndarray, "free free"]
    ) -> InputSensitivities:
        """The inputs of these windows and their derivatives.

        Args:
            data: the windows.
            numbers: values of the free parameters, in their units.
            slopes: derivatives of these values by the coordinates z.
        """
        ...

    def inputs(
        self, data: WindowData, numbers: Float[np.ndarray, " free"]
    ) -> Float[np.ndarray, "w rows inputs"]:
        """The inputs alone; arguments as of `input_sensitivities`."""
        ...


class Linearisation(NamedTuple):
    """Windows to first order.

    Attributes:
        triangle: triangular factor R of [A B D r] of each window (see `multiple_shooting`).
        costs: of the windows.
    """

    triangle: Float[np.ndarray, "w rows columns"]
    costs: WindowCosts


@dataclasses.dataclass(frozen=True)
class EstimationProblem:
    """A MAP estimation problem: windows of flights, a System, and priors.

    Attributes:
        shooting: the System, the outputs that are compared, and the free parameters.
        coordinates: coordinates z of the free parameters.
        windows: of the flights.
        base_values: values of all parameters of the System, one after the other, in their units.
        centre, scale: of the priors of the free parameters (see `free_parameters`).
        input_model: of inputs that depend on the free parameters; None: the inputs are those of the windows.
        K: gain of the windows' predictor; None: output error, without correction by measurements.
        start_priors: of the windows' initial values.
    """

    shooting: ShootingSetup
    coordinates: Coordinates
    windows: Windows
    base_values: Float[np.ndarray, " all"]
    centre: Float[np.ndarray, " free_size"]
    scale: Float[np.ndarray, " free_size"]
    input_model: InputModel | None = None
    K: Float[np.ndarray, "tangent compared"] | None = None
    start_priors: StartPriors = ()
    _evaluated: dict[bytes, tuple[np.ndarray, ...]] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The last coordinates, and what was evaluated there."""

    @classmethod
    def from_priors(
        cls,
        system: System,
        priors: tuple[Prior, ...],
        values: Mapping[str, Numbers],
        windows: Windows,
        outputs: tuple[str, ...],
        rules: SystemRules = GENERIC,
    ) -> EstimationProblem:
        """The problem of these priors.

        Parameters of the System that drift (`Parameter.drift`) and are not free are the constant disturbances of each window.

        Args:
            system: the model.
            priors: of the free parameters.
            values: prior means that replace the System's, by name.
            windows: of the flights.
            outputs: output blocks that are compared.
        """
        coordinates, centre, scale = coordinates_from_priors(priors)
        free = tuple(p.name for p in coordinates.parameters)
        drifting = tuple(p.name for p in system.parameters if p.drift > 0 and p.name not in free)
        base = np.concatenate(
            [np.ravel(values.get(p.name, p.value)).astype(float) for p in system.parameters]
        )
        return cls(
            ShootingSetup(system, outputs, free, drifting, rules=rules),
            coordinates,
            windows,
            base,
            centre,
            scale,
        )

    @property
    def start_size(self) -> int:
        """Tangent dimension of the initial state of a window."""
        return self.shooting.system.states.dim

    @property
    def free_size(self) -> int:
        """Number of coordinates of the free parameters."""
        return self.coordinates.size

    def prior_errors(self, z: Float[np.ndarray, " free_size"]) -> Float[np.ndarray, " free_size"]:
        """e: deviation from the prior, in prior standard deviations."""
        return self._evaluate(z)[0]

    def prior_jacobian(self, z: Float[np.ndarray, " free_size"]) -> Float[np.ndarray, "free free"]:
        """de/dz."""
        return self._evaluate(z)[1]

    def quantities(self, z: Float[np.ndarray, " free_size"]) -> Float[np.ndarray, " free_size"]:
        """Values of the free parameters, in their units."""
        return self._evaluate(z)[2]

    def quantity_jacobian(self, z: Float[np.ndarray, " free_size"]) -> Float[np.ndarray, "free free"]:
        """Derivatives of the values of the free parameters by z."""
        return self._evaluate(z)[3]

    def _evaluate(self, z: Float[np.ndarray, " free_size"]) -> tuple[np.ndarray, ...]:
        key = z.tobytes()
        if (known := self._evaluated.get(key)) is not None:
            return known
        values = evaluate_coordinates(self.coordinates, z, self.centre, self.scale)
        known = tuple(map(np.asarray, values))
        self._evaluated.clear()
        self._evaluated[key] = known
        return known

    def all_values(self, z: Float[np.ndarray, " free_size"]) -> Float[np.ndarray, " all"]:
        """Values of all parameters of the System, in their units."""
        values, numbers = self.base_values.copy(), self.quantities(z)
        for name in self.shooting.free:
            values[self.shooting.parameter_indices[name]] = numbers[self.coordinates.slices[name]]
        return values

    def costs(
        self,
        x: Float[np.ndarray, "w states"],
        z: Float[np.ndarray, " free_size"],
        sigma: Float[np.ndarray, " compared"],
    ) -> WindowCosts:
        """Costs of all windows, predicted from the initial states x with the coordinates z. sigma: noise of each compared
        output, in its unit."""
        return _join(self._by_parts(lambda part: self._predict(part, x, z, sigma).costs))

    def mean_squares(
        self,
        x: Float[np.ndarray, "w states"],
        z: Float[np.ndarray, " free_size"],
        sigma: Float[np.ndarray, " compared"],
        weight: Float[np.ndarray, " w"],
    ) -> Float[np.ndarray, " compared"]:
        """Mean squared residual of each compared output over all windows, in sigma. weight: of each window; others as of
        `costs`."""
        squares = self.costs(x, z, sigma).squared_residuals
        return weight @ squares / np.maximum(weight @ self.measurement_counts, 1e-300)

    def residuals(
        self,
        x: Float[np.ndarray, "w states"],
        z: Float[np.ndarray, " free_size"],
        sigma: Float[np.ndarray, " compared"],
        which: slice = slice(None),
    ) -> Float[np.ndarray, "w rows which"]:
        """Residuals of all windows, in sigma; NaN without a measurement. which: of the compared outputs; others as of
        `costs`."""

        def of_part(part: WindowPart) -> Float[np.ndarray, "w rows which"]:
            found = self._predict(part, x, z, sigma)
            return np.where(found.weight > 0.0, found.residuals, np.nan)[..., which]

        return self.windows.gather(of_part)

    @cached_property
    def measurement_counts(self) -> Float[np.ndarray, "w compared"]:
        """Number of measurements of each compared output in each window."""
        return 1.0 * self.windows.counts[:, self.shooting.step_model.compared_indices]

    def linearise(
        self,
        x: Float[np.ndarray, "w states"],
        z: Float[np.ndarray, " free_size"],
        sigma: Float[np.ndarray, " compared"],
    ) -> Linearisation:
        """The windows to first order about the initial states x and the coordinates z. sigma: as of `costs`."""

        costs: list[WindowCosts] = []

        def of_part(part: WindowPart) -> Float[np.ndarray, "w rows columns"]:
            point = self._linearisation_point(part, x, z, sigma)
            costs.append(point.prediction.costs)
            return linearise_windows(self.shooting, part.data, point)

        return Linearisation(self.windows.gather(of_part), _join(costs))

    def output_information(
        self,
        x: Float[np.ndarray, "w states"],
        z: Float[np.ndarray, " free_size"],
        sigma: Float[np.ndarray, " compared"],
        weight: Float[np.ndarray, " w"],
        root: Float[np.ndarray, "free some"],
    ) -> OutputInformation:
        """Information of each output.

        Args:
            x, z, sigma: as of `costs`.
            weight: of each window.
            root: see `multiple_shooting.output_information`.
        """

        def of_part(part: WindowPart) -> OutputInformation:
            point = self._linearisation_point(part, x, z, sigma)
            return output_information(self.shooting, part.data, point, weight[part.which], root)

        information, gradients = zip(*self._by_parts(of_part), strict=True)
        return OutputInformation(np.sum(information, axis=0), np.concatenate(gradients))

    def low_band_information(
        self,
        x: Float[np.ndarray, "w states"],
        z: Float[np.ndarray, " free_size"],
        sigma: Float[np.ndarray, " compared"],
        weight: Float[np.ndarray, " w"],
        modes: tuple[int, ...],
    ) -> tuple[LowBand, ...]:
        """Information of the slow part of the residuals, for each number of cosines in `modes`. Other arguments as of
        `output_information`."""

        def of_part(part: WindowPart) -> tuple[LowBand, ...]:
            point = self._linearisation_point(part, x, z, sigma)
            return low_band_information(self.shooting, part.data, point, weight[part.which], modes)

        bands = zip(*self._by_parts(of_part), strict=True)
        return tuple(
            (np.sum([H for H, _ in band], axis=0), np.concatenate([g for _, g in band])) for band in bands
        )

    def _by_parts(self, work: Callable[[WindowPart], _Found]) -> list[_Found]:
        """Apply a function to parts of the windows, in order, so that what each row takes is not kept for all of them."""
        return [work(part) for part in self.windows.parts()]

    def _predict(
        self,
        part: WindowPart,
        x: Float[np.ndarray, "w states"],
        z: Float[np.ndarray, " free_size"],
        sigma: Float[np.ndarray, " compared"],
        u: Float[np.ndarray, "w rows inputs"] | None = None,
    ) -> WindowPrediction:
        """Prediction of a part. u: its inputs, if they are known."""
        data = part.data
        if u is None and self.input_model is not None:
            u = self.input_model.inputs(data, self.quantities(z))
        data = data if u is None else data._replace(u=u)
        others = self.all_values(z), sigma, self.K, self.start_priors
        return predict_windows(self.shooting, data, x[part.which], *others)

    def _linearisation_point(
        self,
        part: WindowPart,
        x: Float[np.ndarray, "w states"],
        z: Float[np.ndarray, " free_size"],
        sigma: Float[np.ndarray, " compared"],
    ) -> WindowLinearisationPoint:
        slopes, inputs, u = self.quantity_jacobian(z), None, None
        if self.input_model is not None:
            inputs = self.input_model.input_sensitivities(part.data, self.quantities(z), slopes)
            u = inputs.inputs
        prediction = self._predict(part, x, z, sigma, u)
        return WindowLinearisationPoint(
            prediction, self.all_values(z), slopes, sigma, inputs, self.K, self.start_priors
        )

    def shift_starts(
        self, x: Float[np.ndarray, "w states"], delta: Float[np.ndarray, "w tangent"]
    ) -> Float[np.ndarray, "w states"]:
        """The initial states, each moved by a tangent vector."""
        return self.shooting.step_functions.plus(x, delta)


def _join(costs: Sequence[WindowCosts]) -> WindowCosts:
    return WindowCosts(*map(np.concatenate, zip(*costs, strict=True)))
