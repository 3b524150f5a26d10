"""What holds for the whole package: the order of its imports, its public names, its errors, and what it never does."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rotorid
from rotorid import errors

SOURCE = Path(rotorid.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

ORDER = (
    "errors",
    "cache",
    "geometry",
    "numerics",
    "logs",
    "signals",
    "models",
    "export",
    "estimators",
    "learning",
    "identification",
    "control",
    "simulation",
    "results",
    "report",
    "live",
    "studies",
    "cli",
)
"""A package imports those before it only."""

# fmt: off
PUBLIC = [
    "AbstractEstimator", "AccelerationObserver", "Adaptive", "AdaptiveEstimate", "Airframe", "AirframeError",
    "Announced", "AuxiliaryFilter", "BareMultirotor", "BootstrapFilter", "Changes", "Contact", "Dataset", "Dlm",
    "DlmFit", "EKF", "ELMRegressor", "Estimate", "ExcitationError", "Experiment", "Fit", "Flight", "FlyBack", "FreeFlight",
    "GainSchedule", "GuidedEstimate", "Head", "HeadingController", "Health", "Inspection", "Joint", "Jump",
    "LearnSettings", "LearnedModel", "LinearFit", "LinearModel", "LinkError", "LiuWest", "LogError", "LogFormatError",
    "LogNoise", "Lpv", "MSCKF", "MassRegressor", "Matrices", "ModelFound", "MomentumObserver", "Multirotor",
    "OSELMRegressor", "OutputError", "Parameter", "ParticleEstimate", "Plant", "Quadrotor", "Residual",
    "RigidMultirotor", "Rotation", "RotoridError", "SWLS", "Samples", "Scalar", "Sensors", "SettingError",
    "Signal", "SignalError", "Space", "Stream", "Structure", "Subspace", "System", "Term", "Track", "Training",
    "Tuning", "UKF", "Vector", "WrenchTrack", "acceleration_observer", "adaptive", "airborne", "allocation",
    "announce", "arma", "attach_truth", "auxiliary_filter", "bare_multirotor", "beside", "bootstrap_filter",
    "calibrate", "canonical_structure", "change_times", "changes", "companion_structure", "compare_model",
    "contact_free", "contacts", "coverage", "dlm", "dlm_filter", "dlm_forecast", "dlm_log_likelihood",
    "dlm_simulate", "dlm_smooth", "ekf", "evaluation_flights", "export_estimator",
    "export_airframe", "export_system", "fit_dlm", "fit_grey_box",
    "fit_prediction_error", "fit_spread", "fit_state_space", "fit_subspace", "fitted", "fly_back", "fly_pushed",
    "free_structure", "gain_schedule", "generate_dataset", "grey_box_structure", "hazard_of",
    "heading_schedule", "inspect_flight", "jumps", "learn_model", "learn_residual", "liu_west", "load_airframe",
    "load_model", "lpv", "mass_features", "mass_training_set", "measured_noise", "momentum_observer", "msckf",
    "multirotor", "multirotor_heads", "parameter_box", "parameter_stds", "parameter_values",
    "particle_log_likelihood", "predict_mass", "prepare", "quadrotor", "quadrotor_lpv", "read",
    "read_ardupilot_frame", "read_px4_parameters", "regression",
    "residual_tests", "rigid_multirotor", "rmspe", "run", "run_many", "sample", "schedule_for_track",
    "seasonal", "shipped_airframes", "simulate", "stack", "stack_tunings", "swls", "system_for", "to_control",
    "to_track", "track", "tracked_range", "training_flights", "training_windows", "trend", "trigonometric",
    "ukf", "with_residual", "with_rotors", "wrench", "wrench_system", "write_table",
    "Battery", "Chirp", "Doublet", "Identified", "Instrument", "Instruments", "Lissajous", "Move", "Multisine", "Setpoints",
    "fly", "identify", "varied",
]
# fmt: on


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and package of every import from rotorid, those inside functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            module = node.module or ""
            names = [f"{module}.{a.name}" for a in node.names] if module == "rotorid" else [module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name.startswith("rotorid."):
                yield node.lineno, name.split(".")[1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_up_the_list(path: Path) -> None:
    own = package_of(path)
    if own in ("__init__", "__main__"):
        return
    allowed = ORDER[: ORDER.index(own) + 1]
    wrong = [f"{path}:{line}: imports rotorid.{to}" for line, to in imported(path) if to not in allowed]
    assert not wrong, f"{own} may import {', '.join(allowed)} only"


def test_public_names() -> None:
    assert rotorid.__all__ == ["__version__", *sorted(PUBLIC)]
    assert set(PUBLIC) <= set(dir(rotorid))
    for name in rotorid.__all__:
        assert getattr(rotorid, name) is not None
    assert re.fullmatch(r"\d+\.\d+\.\d+", rotorid.__version__)
    with pytest.raises(AttributeError, match="no attribute 'mass'"):
        rotorid.mass  # noqa: B018


def test_type_checkers_see_the_public_names() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    (block,) = [n for n in tree.body if isinstance(n, ast.If)]
    seen = {a.asname: n.module for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert sorted(seen) == sorted(PUBLIC)
    for name, home in seen.items():
        assert getattr(importlib.import_module(home or ""), name) is getattr(rotorid, name)


def test_public_names_have_a_docstring() -> None:
    without = [name for name in PUBLIC if not (getattr(rotorid, name).__doc__ or "").strip()]
    assert not without


def test_import_is_light_and_changes_nothing() -> None:
    code = (
        "import sys, rotorid; heavy = ('jax', 'numpy', 'pyarrow', 'plotly', 'scipy', 'sklearn');"
        "print([m for m in heavy if m in sys.modules]);"
        "from rotorid import track; import jax; print(jax.config.jax_enable_x64)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split("\n")[:2] == ["[]", "False"]


def test_errors_are_drawn_as_they_are() -> None:
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass)]
    drawn: dict[str, int] = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"^( {4}[ │├└─]*)(\w+Error)\b", line):
            drawn[match[2]] = (len(match[1]) - 4) // 4
    assert sorted(drawn) == sorted(c.__name__ for c in classes)
    for c in classes:
        depth = len([base for base in c.__mro__ if issubclass(base, errors.RotoridError)]) - 1
        assert drawn[c.__name__] == depth, c
        assert (c.__doc__ or "").strip()


def test_every_error_is_raised_somewhere() -> None:
    text = "\n".join(path.read_text() for path in FILES)
    for name, error in inspect.getmembers(errors, inspect.isclass):
        if not error.__subclasses__():
            assert f"raise {name}(" in text, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_house_rules(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert len(text.splitlines()) <= 400, "past 400 lines, split"
    assert path.name == "__init__.py" or ast.get_docstring(tree), "a module begins with what it is"
    for node in ast.walk(tree):
        where = f"{path}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print" or package_of(path) == "cli", f"{where}: only the commands print"
            assert node.func.id not in ("eval", "exec"), f"{where}: {node.func.id}"
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [a.name for a in node.names] + [getattr(node, "module", None) or ""]
            roots = {name.split(".")[0] for name in names}
            assert not roots & {"pickle", "cloudpickle", "dill", "shelve", "marshal"}, f"{where}: pickle"
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"{where}: a bare except swallows errors"
