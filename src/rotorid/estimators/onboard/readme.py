"""README.md of an estimator in C: files, usage, and the constants in the code."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rotorid.estimators.onboard.source import Precision
from rotorid.estimators.onboard.trace import Onboard
from rotorid.estimators.tuning import Tuning
from rotorid.geometry.spaces import Space
from rotorid.quoting import markdown_text


def readme(traced: Onboard, name: str, precision: Precision, title: str) -> str:
    """The text of README.md."""
    joint = traced.estimator.joint
    inputs = ", ".join(f"`{n}`" for n in joint.system.inputs) or "none"
    outputs = ", ".join(f"`{n}`" for n in joint.system.outputs)
    return f"""# {name}: {markdown_text(title)}

| file | |
|---|---|
| `{name}.h` | the interface: inputs, measurements and estimates by name, with units and frames |
| `{name}.c` | the filter: C99, no allocation, no library but libm, {precision} precision |
| `main.c` | replays a flight from a CSV: `./replay flight.csv > estimates.csv` |
| `check.c`, `golden.csv` | compare the filter with JAX in float64, sample by sample |
| `CMakeLists.txt`, `Makefile` | `cmake -B build && cmake --build build && ctest --test-dir build`, or `make check` |
| `export.json` | what it was made from, and every number that is baked in |

Inputs: {inputs}. Measurements, any of which may be missing at any sample: {outputs}. A state has a fixed size and belongs to
the caller: make as many as you like.

`main.c` reads a flight table, as `rotorid convert LOG flight.csv` writes it.

## Numbers that are baked in

They are constants in `{name}.c`. To change one, export again.

| | value | standard deviation | wanders, per square root of s |
|---|---|---|---|
{chr(10).join(_priors(traced))}

| noise | standard deviation |
|---|---|
{chr(10).join(_noises(traced))}
"""


def _priors(traced: Onboard) -> Iterator[str]:
    """A row for each parameter that is tracked, then the fixed ones in one."""
    joint = traced.estimator.joint
    tuning = getattr(traced.estimator, "tuning", None)
    if not isinstance(tuning, Tuning):
        return
    values, slopes = (np.asarray(a) for a in joint.values_and_slopes(tuning.coordinate))
    std, drift = np.asarray(tuning.coordinate_std) * slopes, np.asarray(tuning.drift) * slopes
    for k, (quantity, unit) in enumerate(zip(joint.quantities, joint.units, strict=True)):
        yield f"| {quantity} | {values[k]:.6g} {unit} | {std[k]:.6g} {unit} | {drift[k]:.6g} |"
    start = 0
    for p in joint.system.parameters:
        count = len(p.values)
        fixed = np.asarray(tuning.values)[start : start + count]
        start += count
        if not p.tracked:
            numbers = ", ".join(f"{v:.6g}" for v in fixed[:6]) + (", ..." if count > 6 else "")
            yield f"| {p.name} | {numbers} {p.unit} | fixed | 0 |"


def _noises(traced: Onboard) -> Iterator[str]:
    system, tuning = traced.estimator.joint.system, getattr(traced.estimator, "tuning", None)
    if not isinstance(tuning, Tuning):
        return
    yield from _noise(system.states, np.asarray(tuning.process_noise), "process, ", " per square root of s")
    yield from _noise(system.outputs, np.asarray(tuning.measurement_noise), "measured ", "")


def _noise(space: Space, std: np.ndarray, prefix: str, suffix: str) -> Iterator[str]:
    for name, block in space.blocks:
        numbers = std[space.tangent[name]]
        text = f"{numbers[0]:.4g}" if np.ptp(numbers) == 0 else ", ".join(f"{v:.4g}" for v in numbers)
        yield f"| {prefix}{name} | {text} {'rad' if block.rotation else block.unit}{suffix} |"
