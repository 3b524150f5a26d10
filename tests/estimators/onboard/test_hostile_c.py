"""Every estimator in C, under the sanitizers, with numbers and names that no sensor and no vehicle has."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.codegen.native import FOLDER, compiler
from rotorid.estimators.base import Health
from rotorid.estimators.elm.estimator import elm_mass
from rotorid.estimators.onboard.programs import check_program
from rotorid.estimators.onboard.source import header_and_source
from rotorid.estimators.onboard.trace import onboard
from rotorid.estimators.registry import ALL_ESTIMATORS, WRENCH_OBSERVERS
from rotorid.models.system import parameter_values
from tests.estimators.elm.networks import BARE, random_network
from tests.estimators.wrench.test_wrench import HEXAROTOR
from tests.systems import Pendulum

FLAGS = (
    "-std=c99",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-O0",
    "-fsanitize=address,undefined,float-cast-overflow",
    "-fno-sanitize-recover=all",
)
NAMES = ["*/ #error x", "??/", "\\", "/*", "\n#error y", "*\\\n/ int x;"]
CASES = [name for name, entry in ALL_ESTIMATORS.items() if not entry.needs_model]
CASES += ["single precision", "elm", "elm in single precision"]
SETTINGS = {"swls": {"window": 3}, "msckf": {}}

MAIN = """
#include <math.h>
#include <stdio.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

static const double WRONG[] = {NAN, INFINITY, -INFINITY, 5e-324, -1e-310, 1e38, -1e38, 1e300, -1.797e308, 1e9, -0.0};
static const double STEPS[] = {0.0, -0.0, -1.0, NAN, INFINITY, -INFINITY, 1e38, 1.797e308, 5e-324, 1e5, -1e300};

static int step(double dt, const char *what, int at, double value) {
  STEP(dt);
  int health = -1, is_finite = 1;
  for (int k = 0; k < COUNT(WANTED); k++) {
    if (WANTED[k].kind == REAL) is_finite &= isfinite(*(const real *)WANTED[k].at) != 0;
    if (WANTED[k].kind == INTEGER && WANTED[k].name[0] == 'h') health = *(const int *)WANTED[k].at;
  }
  if (!is_finite && health != DIVERGED) {
    printf("%s %d = %g, dt %g: health %d beside a number that is not finite\\n", what, at, value, dt, health);
    return -2;
  }
  return health;
}

static void sound(void) {
  for (int k = 0; k < COUNT(GIVEN); k++) *GIVEN[k] = SOUND[k];
  for (int k = 0; k < COUNT(FLAGS); k++) *FLAGS[k] = true;
}

static int recovers(const char *what, int at, double value) {
  sound();
  int health = 0;
  for (int k = 0; k < 40; k++)
    if ((health = step(0.02, what, at, value)) == -2) return 0;
  if (health == DIVERGED) printf("%s %d = %g: no recovery\\n", what, at, value);
  return health != DIVERGED;
}

int main(void) {
  unsigned seed = 1;
  INIT();
  if (!recovers("start", 0, 0.0)) return 1;
  for (int k = 0; k < COUNT(GIVEN); k++)
    for (int v = 0; v < COUNT(WRONG); v++) {
      *GIVEN[k] = WRONG[v];
      if (step(0.02, "number", k, WRONG[v]) == -2 || (v % 4 == 3 && !recovers("number", k, WRONG[v]))) return 1;
      *GIVEN[k] = SOUND[k];
    }
  for (int v = 0; v < COUNT(STEPS); v++)
    if (step(STEPS[v], "step", v, STEPS[v]) == -2 || !recovers("step", v, STEPS[v])) return 1;
  for (int row = 0; row < 1500; row++) {
    for (int k = 0; k < COUNT(GIVEN) + COUNT(FLAGS); k++) {
      seed = 1664525u * seed + 1013904223u;
      unsigned draw = seed >> 16;
      if (k >= COUNT(GIVEN)) *FLAGS[k - COUNT(GIVEN)] = draw % 4 > 0;
      else if (draw % 8 == 0) *GIVEN[k] = WRONG[(draw >> 3) % COUNT(WRONG)];
      else *GIVEN[k] = SOUND[k];
    }
    if (step(row % 5 ? 0.02 : STEPS[seed % COUNT(STEPS)], "row", row, 0.0) == -2) return 1;
    if (row % 100 == 99 && !recovers("row", row, 0.0)) return 1;
  }
  puts("sound");
  return 0;
}
"""


def sound_row(system) -> list[float]:
    """Inputs, and the outputs of the initial state under them."""
    x, u = (jnp.asarray(space.initial(), float) for space in (system.states, system.inputs))
    y = system.observe(system.states.unpack(x), system.inputs.unpack(u), parameter_values(system))
    y = system.outputs.pack(y)
    return [*u, *np.asarray(y)]


@pytest.mark.skipif(compiler() is None, reason="no C compiler on this machine")
@pytest.mark.parametrize("case", CASES)
def test_hostile_numbers_in_c(case: str, tmp_path: Path) -> None:
    name, real = (
        case if case in ALL_ESTIMATORS else "ekf",
        "float" if "single precision" in case else "double",
    )
    with jax.enable_x64(True):
        system = HEXAROTOR if case in WRENCH_OBSERVERS else Pendulum()
        if case.startswith("elm"):
            system = BARE
            built = elm_mass(system, network=random_network())
        else:
            built = ALL_ESTIMATORS[name].build(system, **SETTINGS.get(name, {}))
        traced = onboard(built)
        row = sound_row(system)
    header, source = header_and_source(traced, "hostile", real, NAMES)
    tables = check_program(traced, "hostile", 0.0, 0.0).removesuffix(
        (FOLDER / "check.c").read_text().split("*/\n", 1)[1]
    )
    numbers = ", ".join(repr(float(value)) for value in row)
    constants = f"#define DIVERGED {int(Health.DIVERGED)}\nstatic const real SOUND[] = {{{numbers}}};"
    for file, text in {
        "hostile.h": header,
        "hostile.c": source,
        "main.c": f"{tables}\n{constants}\n{MAIN}",
    }.items():
        (tmp_path / file).write_text(text)
    command = [*(compiler() or ()), *FLAGS, "hostile.c", "main.c", "-o", "run", "-lm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run([tmp_path / "run"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "sound\n", "")
