"""rotorid: run-time model identification for flying robots.

    from rotorid import load_airframe, read, track

    mass = track(read("flight.ulg"), load_airframe("quad.toml")).quantities["mass"]

The names below are the public interface. Each is loaded when it is first used, so that `import rotorid` is quick. Estimators
want float64, which the caller switches on: `jax.config.update("jax_enable_x64", True)`. The commands do that themselves.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rotorid.control.heading import HeadingController as HeadingController
    from rotorid.control.heading import heading_schedule as heading_schedule
    from rotorid.control.lpv import GainSchedule as GainSchedule
    from rotorid.control.lpv import gain_schedule as gain_schedule
    from rotorid.control.setpoints import Chirp as Chirp
    from rotorid.control.setpoints import Doublet as Doublet
    from rotorid.control.setpoints import Lissajous as Lissajous
    from rotorid.control.setpoints import Move as Move
    from rotorid.control.setpoints import Multisine as Multisine
    from rotorid.control.setpoints import Setpoints as Setpoints
    from rotorid.errors import AirframeError as AirframeError
    from rotorid.errors import ExcitationError as ExcitationError
    from rotorid.errors import LinkError as LinkError
    from rotorid.errors import LogError as LogError
    from rotorid.errors import LogFormatError as LogFormatError
    from rotorid.errors import OutputError as OutputError
    from rotorid.errors import RotoridError as RotoridError
    from rotorid.errors import SettingError as SettingError
    from rotorid.errors import SignalError as SignalError
    from rotorid.estimators.adaptive import Adaptive as Adaptive
    from rotorid.estimators.adaptive import AdaptiveEstimate as AdaptiveEstimate
    from rotorid.estimators.adaptive import adaptive as adaptive
    from rotorid.estimators.auxiliary import AuxiliaryFilter as AuxiliaryFilter
    from rotorid.estimators.auxiliary import auxiliary_filter as auxiliary_filter
    from rotorid.estimators.base import AbstractEstimator as AbstractEstimator
    from rotorid.estimators.base import Estimate as Estimate
    from rotorid.estimators.base import Health as Health
    from rotorid.estimators.bootstrap import BootstrapFilter as BootstrapFilter
    from rotorid.estimators.bootstrap import bootstrap_filter as bootstrap_filter
    from rotorid.estimators.changepoints import Changes as Changes
    from rotorid.estimators.changepoints import changes as changes
    from rotorid.estimators.changepoints import hazard_of as hazard_of
    from rotorid.estimators.dlm import dlm_filter as dlm_filter
    from rotorid.estimators.dlm import dlm_forecast as dlm_forecast
    from rotorid.estimators.dlm import dlm_log_likelihood as dlm_log_likelihood
    from rotorid.estimators.dlm import dlm_simulate as dlm_simulate
    from rotorid.estimators.dlm import dlm_smooth as dlm_smooth
    from rotorid.estimators.ekf import EKF as EKF
    from rotorid.estimators.ekf import ekf as ekf
    from rotorid.estimators.guided import GuidedEstimate as GuidedEstimate
    from rotorid.estimators.hypotheses import change_times as change_times
    from rotorid.estimators.liu_west import LiuWest as LiuWest
    from rotorid.estimators.liu_west import liu_west as liu_west
    from rotorid.estimators.msckf import MSCKF as MSCKF
    from rotorid.estimators.msckf import msckf as msckf
    from rotorid.estimators.particles import ParticleEstimate as ParticleEstimate
    from rotorid.estimators.particles import particle_log_likelihood as particle_log_likelihood
    from rotorid.estimators.run import Stream as Stream
    from rotorid.estimators.run import run as run
    from rotorid.estimators.run import run_many as run_many
    from rotorid.estimators.run import stack as stack
    from rotorid.estimators.run import stack_tunings as stack_tunings
    from rotorid.estimators.swls import SWLS as SWLS
    from rotorid.estimators.swls import swls as swls
    from rotorid.estimators.tuning import Tuning as Tuning
    from rotorid.estimators.ukf import UKF as UKF
    from rotorid.estimators.ukf import ukf as ukf
    from rotorid.estimators.wrench import AccelerationObserver as AccelerationObserver
    from rotorid.estimators.wrench import MomentumObserver as MomentumObserver
    from rotorid.estimators.wrench import acceleration_observer as acceleration_observer
    from rotorid.estimators.wrench import momentum_observer as momentum_observer
    from rotorid.export.vehicle.ardupilot_reader import read_ardupilot_frame as read_ardupilot_frame
    from rotorid.export.vehicle.px4_reader import read_px4_parameters as read_px4_parameters
    from rotorid.geometry.spaces import Rotation as Rotation
    from rotorid.geometry.spaces import Scalar as Scalar
    from rotorid.geometry.spaces import Space as Space
    from rotorid.geometry.spaces import Vector as Vector
    from rotorid.identification.fit import Fit as Fit
    from rotorid.identification.fitted import fitted as fitted
    from rotorid.identification.free_flight import FreeFlight as FreeFlight
    from rotorid.identification.free_flight import contact_free as contact_free
    from rotorid.identification.grey_box import fit_grey_box as fit_grey_box
    from rotorid.identification.linear_fit import LinearFit as LinearFit
    from rotorid.identification.linear_model import Experiment as Experiment
    from rotorid.identification.linear_model import LinearModel as LinearModel
    from rotorid.identification.maximum_likelihood import DlmFit as DlmFit
    from rotorid.identification.maximum_likelihood import fit_dlm as fit_dlm
    from rotorid.identification.prediction_error import fit_prediction_error as fit_prediction_error
    from rotorid.identification.prediction_error import fit_state_space as fit_state_space
    from rotorid.identification.structures import Matrices as Matrices
    from rotorid.identification.structures import Structure as Structure
    from rotorid.identification.structures import canonical_structure as canonical_structure
    from rotorid.identification.structures import companion_structure as companion_structure
    from rotorid.identification.structures import free_structure as free_structure
    from rotorid.identification.structures import grey_box_structure as grey_box_structure
    from rotorid.identification.subspace import Subspace as Subspace
    from rotorid.identification.subspace import fit_subspace as fit_subspace
    from rotorid.identification.validation import compare_model as compare_model
    from rotorid.identification.validation import residual_tests as residual_tests
    from rotorid.learning.architectures import multirotor_heads as multirotor_heads
    from rotorid.learning.elm import ELMRegressor as ELMRegressor
    from rotorid.learning.elm import OSELMRegressor as OSELMRegressor
    from rotorid.learning.features import MassRegressor as MassRegressor
    from rotorid.learning.features import fit_spread as fit_spread
    from rotorid.learning.features import mass_features as mass_features
    from rotorid.learning.features import mass_training_set as mass_training_set
    from rotorid.learning.features import predict_mass as predict_mass
    from rotorid.learning.knode import Training as Training
    from rotorid.learning.knode import learn_residual as learn_residual
    from rotorid.learning.model_files import LearnedModel as LearnedModel
    from rotorid.learning.model_files import load_model as load_model
    from rotorid.learning.windows import training_windows as training_windows
    from rotorid.logs.flight import Flight as Flight
    from rotorid.logs.flight import Signal as Signal
    from rotorid.logs.read import read as read
    from rotorid.logs.truth import attach_truth as attach_truth
    from rotorid.logs.write import write_table as write_table
    from rotorid.models.airframe import Airframe as Airframe
    from rotorid.models.airframe import load_airframe as load_airframe
    from rotorid.models.airframe import shipped_airframes as shipped_airframes
    from rotorid.models.announced import Announced as Announced
    from rotorid.models.announced import announce as announce
    from rotorid.models.dlm import Dlm as Dlm
    from rotorid.models.dlm import beside as beside
    from rotorid.models.dlm import dlm as dlm
    from rotorid.models.dlm_terms import arma as arma
    from rotorid.models.dlm_terms import regression as regression
    from rotorid.models.dlm_terms import seasonal as seasonal
    from rotorid.models.dlm_terms import trend as trend
    from rotorid.models.dlm_terms import trigonometric as trigonometric
    from rotorid.models.fly_back import FlyBack as FlyBack
    from rotorid.models.hybrid import with_residual as with_residual
    from rotorid.models.joint import Joint as Joint
    from rotorid.models.lpv import Lpv as Lpv
    from rotorid.models.lpv import Term as Term
    from rotorid.models.lpv import lpv as lpv
    from rotorid.models.lpv_bounds import parameter_box as parameter_box
    from rotorid.models.lpv_bounds import tracked_range as tracked_range
    from rotorid.models.lpv_files import to_control as to_control
    from rotorid.models.multirotor import BareMultirotor as BareMultirotor
    from rotorid.models.multirotor_drag import Multirotor as Multirotor
    from rotorid.models.multirotor_drag import bare_multirotor as bare_multirotor
    from rotorid.models.multirotor_drag import multirotor as multirotor
    from rotorid.models.quadrotor import Quadrotor as Quadrotor
    from rotorid.models.quadrotor import quadrotor as quadrotor
    from rotorid.models.quadrotor_lpv import quadrotor_lpv as quadrotor_lpv
    from rotorid.models.residual import Head as Head
    from rotorid.models.residual import Residual as Residual
    from rotorid.models.rigid_multirotor import RigidMultirotor as RigidMultirotor
    from rotorid.models.rigid_multirotor import rigid_multirotor as rigid_multirotor
    from rotorid.models.rotors import allocation as allocation
    from rotorid.models.system import Parameter as Parameter
    from rotorid.models.system import System as System
    from rotorid.models.system import parameter_values as parameter_values
    from rotorid.results.calibration import calibrate as calibrate
    from rotorid.results.contacts import Contact as Contact
    from rotorid.results.contacts import contacts as contacts
    from rotorid.results.export import export_estimator as export_estimator
    from rotorid.results.export import export_system as export_system
    from rotorid.results.export_airframe import export_airframe as export_airframe
    from rotorid.results.fly_back import fly_back as fly_back
    from rotorid.results.identify import Identified as Identified
    from rotorid.results.identify import identify as identify
    from rotorid.results.jumps import Jump as Jump
    from rotorid.results.jumps import jumps as jumps
    from rotorid.results.learning import LearnSettings as LearnSettings
    from rotorid.results.learning import ModelFound as ModelFound
    from rotorid.results.learning import learn_model as learn_model
    from rotorid.results.lpv import schedule_for_track as schedule_for_track
    from rotorid.results.metrics import coverage as coverage
    from rotorid.results.metrics import rmspe as rmspe
    from rotorid.results.track import Track as Track
    from rotorid.results.track import prepare as prepare
    from rotorid.results.track import system_for as system_for
    from rotorid.results.track import to_track as to_track
    from rotorid.results.track import track as track
    from rotorid.results.wrench import WrenchTrack as WrenchTrack
    from rotorid.results.wrench import with_rotors as with_rotors
    from rotorid.results.wrench import wrench as wrench
    from rotorid.results.wrench import wrench_system as wrench_system
    from rotorid.results.wrench_spread import parameter_stds as parameter_stds
    from rotorid.signals.airborne import airborne as airborne
    from rotorid.signals.inspection import Inspection as Inspection
    from rotorid.signals.inspection import inspect_flight as inspect_flight
    from rotorid.signals.noise import measured_noise as measured_noise
    from rotorid.signals.samples import Samples as Samples
    from rotorid.signals.sampling import sample as sample
    from rotorid.simulation.dataset import Dataset as Dataset
    from rotorid.simulation.flight import simulate as simulate
    from rotorid.simulation.free_flight import Battery as Battery
    from rotorid.simulation.free_flight import fly as fly
    from rotorid.simulation.generation import generate_dataset as generate_dataset
    from rotorid.simulation.instruments import Instrument as Instrument
    from rotorid.simulation.instruments import Instruments as Instruments
    from rotorid.simulation.plant import Plant as Plant
    from rotorid.simulation.pushed import LogNoise as LogNoise
    from rotorid.simulation.pushed import evaluation_flights as evaluation_flights
    from rotorid.simulation.pushed import fly_pushed as fly_pushed
    from rotorid.simulation.pushed import training_flights as training_flights
    from rotorid.simulation.sensors import Sensors as Sensors
    from rotorid.simulation.varied import varied as varied

_HOMES: Final = {
    "rotorid.control.heading": ("HeadingController", "heading_schedule"),
    "rotorid.control.lpv": ("GainSchedule", "gain_schedule"),
    "rotorid.control.setpoints": ("Chirp", "Doublet", "Lissajous", "Move", "Multisine", "Setpoints"),
    "rotorid.errors": (
        "AirframeError",
        "ExcitationError",
        "LinkError",
        "LogError",
        "LogFormatError",
        "OutputError",
        "RotoridError",
        "SettingError",
        "SignalError",
    ),
    "rotorid.estimators.adaptive": ("Adaptive", "AdaptiveEstimate", "adaptive"),
    "rotorid.estimators.auxiliary": ("AuxiliaryFilter", "auxiliary_filter"),
    "rotorid.estimators.base": ("AbstractEstimator", "Estimate", "Health"),
    "rotorid.estimators.bootstrap": ("BootstrapFilter", "bootstrap_filter"),
    "rotorid.estimators.changepoints": ("Changes", "changes", "hazard_of"),
    "rotorid.estimators.dlm": (
        "dlm_filter",
        "dlm_forecast",
        "dlm_log_likelihood",
        "dlm_simulate",
        "dlm_smooth",
    ),
    "rotorid.estimators.ekf": ("EKF", "ekf"),
    "rotorid.estimators.guided": ("GuidedEstimate",),
    "rotorid.estimators.hypotheses": ("change_times",),
    "rotorid.estimators.liu_west": ("LiuWest", "liu_west"),
    "rotorid.estimators.msckf": ("MSCKF", "msckf"),
    "rotorid.estimators.particles": ("ParticleEstimate", "particle_log_likelihood"),
    "rotorid.estimators.run": ("Stream", "run", "run_many", "stack", "stack_tunings"),
    "rotorid.estimators.swls": ("SWLS", "swls"),
    "rotorid.estimators.tuning": ("Tuning",),
    "rotorid.estimators.ukf": ("UKF", "ukf"),
    "rotorid.estimators.wrench": (
        "AccelerationObserver",
        "MomentumObserver",
        "acceleration_observer",
        "momentum_observer",
    ),
    "rotorid.export.vehicle.ardupilot_reader": ("read_ardupilot_frame",),
    "rotorid.export.vehicle.px4_reader": ("read_px4_parameters",),
    "rotorid.geometry.spaces": ("Rotation", "Scalar", "Space", "Vector"),
    "rotorid.identification.fit": ("Fit",),
    "rotorid.identification.fitted": ("fitted",),
    "rotorid.identification.free_flight": ("FreeFlight", "contact_free"),
    "rotorid.identification.grey_box": ("fit_grey_box",),
    "rotorid.identification.linear_fit": ("LinearFit",),
    "rotorid.identification.linear_model": ("Experiment", "LinearModel"),
    "rotorid.identification.maximum_likelihood": ("DlmFit", "fit_dlm"),
    "rotorid.identification.prediction_error": ("fit_prediction_error", "fit_state_space"),
    "rotorid.identification.structures": (
        "Matrices",
        "Structure",
        "canonical_structure",
        "companion_structure",
        "free_structure",
        "grey_box_structure",
    ),
    "rotorid.identification.subspace": ("Subspace", "fit_subspace"),
    "rotorid.identification.validation": ("compare_model", "residual_tests"),
    "rotorid.learning.architectures": ("multirotor_heads",),
    "rotorid.learning.elm": ("ELMRegressor", "OSELMRegressor"),
    "rotorid.learning.features": (
        "MassRegressor",
        "fit_spread",
        "mass_features",
        "mass_training_set",
        "predict_mass",
    ),
    "rotorid.learning.knode": ("Training", "learn_residual"),
    "rotorid.learning.model_files": ("LearnedModel", "load_model"),
    "rotorid.learning.windows": ("training_windows",),
    "rotorid.logs.flight": ("Flight", "Signal"),
    "rotorid.logs.read": ("read",),
    "rotorid.logs.truth": ("attach_truth",),
    "rotorid.logs.write": ("write_table",),
    "rotorid.models.airframe": ("Airframe", "load_airframe", "shipped_airframes"),
    "rotorid.models.announced": ("Announced", "announce"),
    "rotorid.models.dlm": ("Dlm", "beside", "dlm"),
    "rotorid.models.dlm_terms": ("arma", "regression", "seasonal", "trend", "trigonometric"),
    "rotorid.models.fly_back": ("FlyBack",),
    "rotorid.models.hybrid": ("with_residual",),
    "rotorid.models.joint": ("Joint",),
    "rotorid.models.lpv": ("Lpv", "Term", "lpv"),
    "rotorid.models.lpv_bounds": ("parameter_box", "tracked_range"),
    "rotorid.models.lpv_files": ("to_control",),
    "rotorid.models.multirotor": ("BareMultirotor",),
    "rotorid.models.multirotor_drag": ("Multirotor", "bare_multirotor", "multirotor"),
    "rotorid.models.quadrotor": ("Quadrotor", "quadrotor"),
    "rotorid.models.quadrotor_lpv": ("quadrotor_lpv",),
    "rotorid.models.residual": ("Head", "Residual"),
    "rotorid.models.rigid_multirotor": ("RigidMultirotor", "rigid_multirotor"),
    "rotorid.models.rotors": ("allocation",),
    "rotorid.models.system": ("Parameter", "System", "parameter_values"),
    "rotorid.results.calibration": ("calibrate",),
    "rotorid.results.contacts": ("Contact", "contacts"),
    "rotorid.results.export": ("export_estimator", "export_system"),
    "rotorid.results.export_airframe": ("export_airframe",),
    "rotorid.results.fly_back": ("fly_back",),
    "rotorid.results.identify": ("Identified", "identify"),
    "rotorid.results.jumps": ("Jump", "jumps"),
    "rotorid.results.learning": ("LearnSettings", "ModelFound", "learn_model"),
    "rotorid.results.lpv": ("schedule_for_track",),
    "rotorid.results.metrics": ("coverage", "rmspe"),
    "rotorid.results.track": ("Track", "prepare", "system_for", "to_track", "track"),
    "rotorid.results.wrench": ("WrenchTrack", "with_rotors", "wrench", "wrench_system"),
    "rotorid.results.wrench_spread": ("parameter_stds",),
    "rotorid.signals.airborne": ("airborne",),
    "rotorid.signals.inspection": ("Inspection", "inspect_flight"),
    "rotorid.signals.noise": ("measured_noise",),
    "rotorid.signals.samples": ("Samples",),
    "rotorid.signals.sampling": ("sample",),
    "rotorid.simulation.dataset": ("Dataset",),
    "rotorid.simulation.flight": ("simulate",),
    "rotorid.simulation.free_flight": ("Battery", "fly"),
    "rotorid.simulation.generation": ("generate_dataset",),
    "rotorid.simulation.instruments": ("Instrument", "Instruments"),
    "rotorid.simulation.plant": ("Plant",),
    "rotorid.simulation.pushed": ("LogNoise", "evaluation_flights", "fly_pushed", "training_flights"),
    "rotorid.simulation.sensors": ("Sensors",),
    "rotorid.simulation.varied": ("varied",),
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("rotorid")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rotorid' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
