"""Whether measurements show the vehicle: motion above the noise, commands that are sampled often enough, constant mass."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from jaxtyping import Float64

from rotorid.identification.recursive.lagged_thrusts import HOLD
from rotorid.models.system import GRAVITY
from rotorid.numerics.mean_variance import mean_variance

_MOTION_MEMORY: Final = 0.5  # s
LEAST_MOTION: Final = 0.08
"""Root mean square of a body rate that shows the vehicle, rad/s."""

_RATIO: Final = 8.0
_QUIET: Final = 0.3  # rad/s, up to which second differences are noise
_NOISE_ROWS: Final = 200.0
_UNDERSAMPLED_LAG: Final = (
    0.05,
    0.08,
)  # std of the lag over the period of the commands, see `CommandSampling`
_AVERAGED_LAG: Final = 0.15  # std of the lag over the window of the means of rates
_UNDERSAMPLED_GAIN: Final = 0.15
_REFERENCE_PERIOD: Final = 0.02  # s
_LARGEST_GAIN_STD: Final = 0.12  # of commands that are sampled often enough
_RESIDUAL_MEMORY: Final = 0.5  # s
_CLIMB_MEMORY: Final = 0.5  # s
_BY_CLIMB: Final = 0.045  # of the thrust in hover, relative, per m/s to the slowest climb so far
_CHANGED, _RETURNED = 0.08, 0.04  # of the weight
_SETTLING: Final = 2.0  # s
_RETURN_TIME: Final = 1.0  # s
_SIGMAS: Final = 2.5  # of the prediction
_SLOPE_STD: Final = 0.02
_AIR_ERROR: Final = 0.01  # m/s^2, of the specific force in still air
_WIND_SHARE, _MEAN_WIND_SHARE = 0.4, 0.7  # of the force of the wind by the drag
_GUST_SHARE: Final = (
    0.2  # of the force of vertical gusts over that of the wind: std of 0.1, inflow of twice the drag
)
_GUST_TIME: Final = 5.0  # s, correlation time of vertical gusts
_YOUNG, _RESTART = 6.0, 4.0  # s


class Activity:
    """Whether an axis moves by much more than the noise of its gyro.

    Near rest, the commands follow the noise of the gyro through the controller. Such commands say little about the vehicle,
    and what the filters assume of the noise (white, of a gyro without filters, of commands between their time stamps) decides
    the result. Rates are used only while their root mean square over the last half second is well above the noise, which is
    estimated from second differences.

    Args:
        least: root mean square that is needed, rad/s.
    """

    def __init__(self, least: float = LEAST_MOTION) -> None:
        self._least = least
        self._noise = 0.0
        self._weight = 0.0
        self.restart()

    def restart(self) -> None:
        """Forget the motion, after a gap; the noise is kept."""
        self._square, self._rates = 0.0, (math.nan, math.nan)
        self.is_active = False

    def update(self, rate: float, dt: float) -> bool:
        """Whether a rate is used. rate: rad/s. dt: since the previous one, s."""
        share = -math.expm1(-dt / _MOTION_MEMORY)
        self._square += share * (rate * rate - self._square)
        before, middle = self._rates
        self._rates = middle, rate
        second = rate - 2.0 * middle + before
        if math.isfinite(second) and self._square < _QUIET**2:
            self._weight += 1.0
            self._noise += (second * second / 6.0 - self._noise) / min(self._weight, _NOISE_ROWS)
        self.is_active = self._square > max(self._least**2, _RATIO**2 * self._noise)
        return self.is_active


class CommandSampling:
    """What is lost between the time stamps of the commands.

    Args:
        window: of the means of rates, s. Commands that follow the noise of the gyroscope within it cannot be separated from it.

    roughness: mean square of the second differences of the moments over that of the first ones: near 0 for commands that are
    sampled often, 3 for white ones. Uncertainties follow from it by a rule that fits simulated and recorded flights.
    """

    def __init__(self, window: float = 0.0) -> None:
        self._window = window
        self._last: tuple[float, Float64[np.ndarray, " axes"]] | None = None
        self._change: Float64[np.ndarray, " axes"] | None = None
        self._first = self._second = 0.0
        self._periods, self._count = 0.0, 0

    def add(self, t: float, moments: Float64[np.ndarray, " axes"]) -> None:
        """Add the moments of a command. t: s."""
        last, before = self._last, self._change
        self._last = t, moments
        if last is None or not 0.0 < t - last[0] < 0.3:
            self._change = None
            return
        change = moments - last[1]
        self._change = change
        self._periods += t - last[0]
        self._count += 1
        self._first += float(change @ change)
        if before is not None:
            second = change - before
            self._second += float(second @ second)

    @property
    def period(self) -> float:
        """Mean period, s."""
        return self._periods / self._count if self._count else 0.0

    @property
    def roughness(self) -> float:
        return self._second / self._first if self._first > 0.0 else 0.0

    @property
    def lag_std(self) -> float:
        """Standard deviation of a lag by what is lost, s."""
        constant, slope = _UNDERSAMPLED_LAG
        return constant * self.period + self.roughness * max(
            slope * self.period, _AVERAGED_LAG * self._window
        )

    @property
    def gain_std(self) -> float:
        """Relative standard deviation of a gain by what is lost."""
        return (
            _UNDERSAMPLED_GAIN * (self.roughness / 3.0) ** 2 * min(self.period / _REFERENCE_PERIOD, 10.0) ** 2
        )

    @property
    def interpolation_variance(self) -> float:
        """Square of a lag, s^2, by which interpolated commands lag already.

        Linear interpolation between commands with period T convolves them with a triangle. The second central moment of that is
        T^2 / 6, and that of a first-order lag tau is tau^2. Commands that hold until the next one are exact.
        """
        return self.period**2 / 6.0 if self.period > HOLD else 0.0

    @property
    def is_sufficient(self) -> bool:
        """Whether the commands are sampled often enough for lag and inertia."""
        return self.gain_std < _LARGEST_GAIN_STD


class UnmodelledLift:
    """What the model of the specific force along body z leaves out, as uncertainty of the thrust curve.

    Lift and inflow change with motion and wind, as the thrust does: no noise model separates them. Their change over that of
    the thrust by another slope is an error of the slope, which is wide where the thrust hardly changes; their mean is one of
    the thrust. By a rule that fits RotorPy, whose inflow is up to 2.5 times the drag.
    """

    def __init__(self) -> None:
        self._count = 0
        self._means, self._squares = np.zeros(2), np.zeros(2)

    def add(self, shape: float, wind: float) -> None:
        """Add specific forces along body z, m/s^2. shape: per relative change of the slope. wind: of the wind, by the drag."""
        self._count += 1
        error = np.array([shape, wind]) - self._means
        self._means = self._means + error / self._count
        self._squares = self._squares + error * (np.array([shape, wind]) - self._means)

    @property
    def slope_std(self) -> float:
        """Relative standard deviation of the slope in hover, beside that of the filters; infinite in a steady hover."""
        shape, wind = np.sqrt(self._squares / max(self._count, 1))
        return math.hypot(_SLOPE_STD, (_AIR_ERROR + _WIND_SHARE * wind) / shape) if shape > 0.0 else math.inf

    @property
    def thrust_std(self) -> float:
        """Relative standard deviation of the thrust in hover, without gusts."""
        return _MEAN_WIND_SHARE * abs(float(self._means[1])) / GRAVITY


class ClimbRange:
    """How far the climbs and descents of a flight are from hover, for which the thrust is given.

    The thrust falls with the climb, by inflow and drag, in part as its square. Of a take-off alone, a linear fit in the
    velocity is extrapolated to hover, and the error grows with the distance.
    """

    def __init__(self) -> None:
        self._speed = 0.0
        self._distance = math.inf  # of hover from the slowest part so far, m/s

    def add(self, climb: float, dt: float) -> None:
        """Add a velocity along body z, m/s. dt: since the previous one, s."""
        is_first = math.isinf(self._distance)
        self._speed += (1.0 if is_first else -math.expm1(-dt / _CLIMB_MEMORY)) * (abs(climb) - self._speed)
        self._distance = min(self._distance, self._speed)

    @property
    def thrust_std(self) -> float:
        """Relative standard deviation of the thrust in hover."""
        return 0.0 if math.isinf(self._distance) else _BY_CLIMB * self._distance


def vertical_gust_std(wind: float, duration: float) -> float:
    """Relative standard deviation of the thrust in hover by vertical gusts, whose mean over a short flight is not zero.

    Near the ground their standard deviation is a tenth of the mean wind (MIL-F-8785C), and they last for seconds.

    Args:
        wind: specific force of the wind by the drag, m/s^2.
        duration: of the flight, s.
    """
    if duration <= 0.0:
        return _GUST_SHARE * wind / GRAVITY
    return _GUST_SHARE * wind / GRAVITY * math.sqrt(float(mean_variance(np.asarray(_GUST_TIME / duration))))


class MassMonitor:
    """Whether thrust over mass is that of the estimate so far: not while the vehicle carries or touches something else.

    An estimate that is contradicted after less than `_YOUNG` s was wrong, by the ground or the take-off: the payload does not
    change then. If it is still contradicted after `_RESTART` s, a new one begins.

    is_constant: as of the latest residual. changed_for: time since it changed, s. restarts: number of new estimates.
    """

    def __init__(self) -> None:
        self.restarts = -1
        self.restart()

    def restart(self) -> None:
        """Begin with a new estimate."""
        self.restarts += 1
        self._mean = self._variance = self._time = self._quiet = 0.0
        self.is_constant, self.changed_for = True, 0.0

    def update(self, residual: float, std: float, dt: float) -> bool:
        """Whether a specific force can be used.

        Args:
            residual: of the specific force along body z, over gravity.
            std: of its prediction, over gravity.
            dt: since the previous one, s.
        """
        self._mean += -math.expm1(-dt / _RESIDUAL_MEMORY) * (residual - self._mean)
        self._variance += -math.expm1(-dt / _RESIDUAL_MEMORY) * (std * std - self._variance)
        if self.is_constant:
            self._time += dt
            if self._time < _SETTLING:
                return True
            self.is_constant = abs(self._mean) < max(_CHANGED, _SIGMAS * math.sqrt(self._variance))
            self.changed_for = self._quiet = 0.0
        else:
            self.changed_for += dt
            self._quiet = self._quiet + dt if abs(self._mean) < _RETURNED else 0.0
            self.is_constant = self._quiet > _RETURN_TIME
        return self.is_constant

    @property
    def is_wrong(self) -> bool:
        """Whether the estimate was wrong from the start."""
        return self._time < _YOUNG and self.changed_for > _RESTART
