"""The estimation problem: windows of flights, a System, and priors, predicted and linearised part by part."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar, runtime_checkable

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
    WindowLinearisationPoint,
    WindowPrediction,
    empty_prediction,
    linearise_windows,
    output_information,
    predict_windows,
)
from rotorid.identification.fitting.windows import WindowData
from rotorid.models.system import System

_AT_ONCE = 512  # windows whose rows are in memory

_Part = TypeVar("_Part")


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


@dataclasses.dataclass(frozen=True)
class EstimationProblem:
    """A MAP estimation problem: windows of flights, a System, and priors.

    Attributes:
        shooting: the System, the outputs that are compared, and the free parameters.
        coordinates: coordinates z of the free parameters.
        data: the windows.
        base_values: values of all parameters of the System, one after the other, in their units.
        centre, scale: of the priors of the free parameters (see `free_parameters`).
        input_model: of inputs that depend on the free parameters; None: the inputs are those of the windows.
        K: gain of the windows' predictor; None: output error, without correction by measurements.
        start_priors: of the windows' initial values.
    """

    shooting: ShootingSetup
    coordinates: Coordinates
    data: WindowData
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
        data: WindowData,
        outputs: tuple[str, ...],
        rules: SystemRules = GENERIC,
    ) -> EstimationProblem:
        """The problem of these priors.

        Parameters of the System that drift (`Parameter.drift`) and are not free are the constant disturbances of each window.

        Args:
            system: the model.
            priors: of the free parameters.
            values: prior means that replace the System's, by name.
            data: the windows.
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
            data,
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

    def predict(
        self,
        x: Float[np.ndarray, "w states"],
        z: Float[np.ndarray, " free_size"],
        sigma: Float[np.ndarray, " compared"],
    ) -> WindowPrediction:
        """Predict all windows from the initial states x with the coordinates z. sigma: noise of each compared output,
        in its unit."""
        numbers, p = self.quantities(z), self.all_values(z)
        found = empty_prediction(self.shooting, self.data, self.start_priors)

        def predict(data: WindowData, part: slice) -> None:
            if self.input_model is not None:
                data = dataclasses.replace(data, u=self.input_model.inputs(data, numbers))
            of_part = WindowPrediction(*(v[part] for v in found))
            predict_windows(self.shooting, data, x[part], p, sigma, self.K, self.start_priors, of_part)

        self._by_parts(predict)
        return found

    def linearise(
        self,
        prediction: WindowPrediction,
        z: Float[np.ndarray, " free_size"],
        sigma: Float[np.ndarray, " compared"],
    ) -> Float[np.ndarray, "w rows columns"]:
        """Triangular factor R of [A B D r] of each window (see `multiple_shooting`) at a prediction with the coordinates z."""

        def linearise(data: WindowData, part: slice) -> Float[np.ndarray, "w rows columns"]:
            point = self._linearisation_point(data, part, prediction, z, sigma)
            return linearise_windows(self.shooting, data, point)

        return np.concatenate(self._by_parts(linearise))

    def output_information(
        self,
        prediction: WindowPrediction,
        z: Float[np.ndarray, " free_size"],
        sigma: Float[np.ndarray, " compared"],
        weight: Float[np.ndarray, " w"],
        root: Float[np.ndarray, "free some"],
    ) -> OutputInformation:
        """Information of each output at a prediction with z.

        Args:
            prediction: the prediction.
            z: coordinates of the free parameters.
            sigma: noise of each compared output, in its unit.
            weight: of each window.
            root: see `multiple_shooting.output_information`.
        """

        def of_part(data: WindowData, part: slice) -> OutputInformation:
            point = self._linearisation_point(data, part, prediction, z, sigma)
            return output_information(self.shooting, data, point, weight[part], root)

        information, gradients = zip(*self._by_parts(of_part), strict=True)
        return OutputInformation(np.sum(information, axis=0), np.concatenate(gradients))

    def low_band_information(
        self,
        prediction: WindowPrediction,
        z: Float[np.ndarray, " free_size"],
        sigma: Float[np.ndarray, " compared"],
        weight: Float[np.ndarray, " w"],
        modes: tuple[int, ...],
    ) -> tuple[LowBand, ...]:
        """Information of the slow part of the residuals at a prediction with z, for each number of cosines in `modes`.

        Other arguments as of `output_information`.
        """

        def of_part(data: WindowData, part: slice) -> tuple[LowBand, ...]:
            point = self._linearisation_point(data, part, prediction, z, sigma)
            return low_band_information(self.shooting, data, point, weight[part], modes)

        bands = zip(*self._by_parts(of_part), strict=True)
        return tuple(
            (np.sum([H for H, _ in band], axis=0), np.concatenate([g for _, g in band])) for band in bands
        )

    def _by_parts(self, work: Callable[[WindowData, slice], _Part]) -> list[_Part]:
        """Apply a function to parts of the windows, in order, so that what each row takes is not kept for all of them."""
        edges = [*range(0, max(len(self.data.start), 1), _AT_ONCE), len(self.data.start)]
        parts = [slice(*edge) for edge in itertools.pairwise(edges)]
        return [work(self.data.take(part), part) for part in parts]

    def _linearisation_point(
        self,
        data: WindowData,
        part: slice,
        prediction: WindowPrediction,
        z: Float[np.ndarray, " free_size"],
        sigma: Float[np.ndarray, " compared"],
    ) -> WindowLinearisationPoint:
        slopes = self.quantity_jacobian(z)
        input_sensitivities = (
            None
            if self.input_model is None
            else self.input_model.input_sensitivities(data, self.quantities(z), slopes)
        )
        return WindowLinearisationPoint(
            WindowPrediction(*(v[part] for v in prediction)),
            self.all_values(z),
            slopes,
            sigma,
            input_sensitivities,
            self.K,
            self.start_priors,
        )

    def shift_starts(
        self, x: Float[np.ndarray, "w states"], delta: Float[np.ndarray, "w tangent"]
    ) -> Float[np.ndarray, "w states"]:
        """The initial states, each moved by a tangent vector."""
        return self.shooting.step_functions.plus(x, delta)
