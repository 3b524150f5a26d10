"""How far an exported estimator in C is from JAX, row by row and over whole runs, and why where it is far.

A deviation is relative to what the number is worth: |C - JAX| / max(|JAX|, its standard deviation). Of a standard deviation
that is itself; of a covariance, the product of the two; of NIS, its degrees of freedom; of a quaternion's numbers, its
length; of a time, 0.01 s; of a probability, 1.

step     each row starts from the state that JAX has there, so that rounding cannot pile up
run      each flight starts from its beginning in both; where they part (see `PARTED`) C goes on from JAX's state

Where the two differ by more than `TOLERANCE`, or decide otherwise (a flag, health, how much was accepted), JAX itself is
asked again with its state and sample nudged by random relative numbers. What it says in `NUDGES` ways then is what no
rounding can tell apart: the least nudge at which C's answer lies among them is given.
"""

from __future__ import annotations

import ctypes
import dataclasses
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rotorid.estimators.base import AbstractEstimator, step
from rotorid.estimators.onboard.programs import estimate_places
from rotorid.estimators.onboard.source import Precision, header_and_source
from rotorid.estimators.onboard.trace import Onboard, onboard
from rotorid.numerics.flat import Layout
from rotorid.signals.samples import Samples

TOLERANCE = 1e-10
"""Relative, in double precision."""

PARTED = 1e-8
"""Relative; a run in which they are further apart is one in which something was decided otherwise."""

NUDGES = 64
SIZES = tuple(10.0**k for k in range(-15, -8))
CHUNK = 200
"""Rows that JAX is given at once."""

_HARNESS = """#include "filter.c"
static filter_state following, alone;
static filter_scratch s;
void begin(void) { filter_init(&following, &s); }
static void set(filter_state *f, const double *state) {
  for (int i = 0; i < STATE; i++) f->x[SAMPLE + i] = (num)state[i];
}
void put(const double *state) { set(&following, state); }
void run(long rows, const double *samples, const double *states, double *estimates) {
  filter_state *f = states ? &alone : &following;
  for (long k = 0; k < rows; k++) {
    if (states) set(f, states + k * STATE);
    for (int i = 0; i < SAMPLE; i++) f->x[i] = (num)samples[k * SAMPLE + i];
    f_predict(f->x, s.y, s.work);
    keep(f, &s);
    f_update(f->x, s.y, s.work);
    keep(f, &s);
    f_estimate(f->x, s.y, s.work);
    for (int i = 0; i < ESTIMATE; i++) estimates[k * ESTIMATE + i] = (double)s.y[i];
  }
}
"""


@dataclasses.dataclass
class Differences:
    """What was found. off: the worst deviation of each row in which both decided alike; worst: of all, and where it is.

    otherwise: rows in which they decided otherwise. parted: how often a run was taken up again. nudges: the nudge that explains
    each row that needs it, None where none does.
    """

    off: list[float] = dataclasses.field(default_factory=list)
    worst: float = 0.0
    where: tuple[int, str] = (0, "")
    otherwise: int = 0
    parted: int = 0
    nudges: list[float | None] = dataclasses.field(default_factory=list)


class InC:
    """An exported estimator, compiled as its Makefile does."""

    def __init__(self, traced: Onboard, precision: Precision, folder: Path) -> None:
        header, source = header_and_source(traced, "filter", precision, [])
        defines = f"#define SAMPLE {traced.sample}\n#define STATE {traced.state}\n#define ESTIMATE {traced.estimate}\n"
        for name, text in (("filter.h", header), ("filter.c", source), ("run.c", defines + _HARNESS)):
            (folder / name).write_text(text)
        library = folder / f"{precision}.so"
        command = ["cc", "-std=c99", "-O2", "-shared", "-fPIC", "-o", str(library), "run.c", "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        self._library, self._size = ctypes.CDLL(str(library)), traced.estimate

    def begin(self) -> None:
        self._library.begin()

    def put(self, state: np.ndarray) -> None:
        self._library.put(_at(np.ascontiguousarray(state)))

    def run(self, rows: np.ndarray, states: np.ndarray | None = None) -> np.ndarray:
        """Estimates after each row, from the states before them or else one after the other."""
        rows, found = np.ascontiguousarray(rows), np.full((len(rows), self._size), np.nan)
        before = None if states is None else _at(np.ascontiguousarray(states))
        self._library.run(ctypes.c_long(len(rows)), _at(rows), before, _at(found))
        return found


class Comparison:
    """An estimator in C beside itself in JAX, flight by flight. step, run: what was found, by precision."""

    def __init__(self, estimator: AbstractEstimator, folder: Path) -> None:
        traced = onboard(estimator)
        self._estimator = estimator
        self._in_c = {p: InC(traced, p, folder) for p in ("double", "float")}
        self._names = [place.name for place in estimate_places(traced)]
        kinds = [(leaf.dtype.kind, leaf.size) for leaf in jax.tree.leaves(traced.estimate_shapes)]
        self._decided = np.array([kind != "f" for kind, size in kinds for _ in range(size)])
        self.step = {p: Differences() for p in self._in_c}
        self.run = {p: Differences() for p in self._in_c}
        self.rows = 0

    def fly(self, samples: Samples) -> None:
        """Compare on one flight."""
        for c in self._in_c.values():
            c.begin()
        state = self._estimator.init(jax.tree.map(lambda leaf: leaf[0], samples), jax.random.key(0))
        for chunk, count in _chunks(samples):
            before, after, want = (np.asarray(a) for a in _in_jax(self._estimator, state, chunk)[1])
            state = _state_at(self._estimator, state, after[count - 1])
            rows = np.concatenate(
                [np.asarray(leaf, float).reshape(CHUNK, -1) for leaf in jax.tree.leaves(chunk)], axis=1
            )
            before, after, want, rows = (a[:count] for a in (before, after, want, rows))
            scale = _scales(self._estimator, want)
            for precision, c in self._in_c.items():
                got = c.run(rows, before)
                self._count(self.step[precision], precision, got, want, scale, before, rows)
                self._follow(c, precision, rows, before, after, want, scale)
            self.rows += count

    def _follow(self, c: InC, precision: str, rows, before, after, want, scale) -> None:
        """A run, in which C goes on from JAX's state where the two have parted."""
        start, found = 0, self.run[precision]
        while start < len(rows):
            got = c.run(rows[start:])
            off, otherwise = self._off(got, want[start:], scale[start:])
            parted = np.flatnonzero(otherwise | ~(off.max(axis=1) <= PARTED))
            last = len(got) if not len(parted) or precision == "float" else int(parted[0]) + 1
            piece = slice(start, start + last)
            self._count(
                found, precision, got[:last], want[piece], scale[piece], before[piece], rows[piece], start
            )
            start += last
            if len(parted) and precision != "float":
                found.parted += 1
                c.put(after[start - 1])

    def _off(self, got: np.ndarray, want: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Deviations of numbers, 0 of decisions; and whether the two decided otherwise."""
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        with np.errstate(invalid="ignore", divide="ignore"):
            off = np.where(same | self._decided, 0.0, np.abs(got - want) / scale)
        return np.where(np.isnan(off), np.inf, off), np.any(~same & self._decided, axis=1)

    def _count(self, found, precision, got, want, scale, before, rows, start: int = 0) -> None:
        off, otherwise = self._off(got, want, scale)
        found.otherwise += int(otherwise.sum())
        each = off.max(axis=1)
        found.off += each[~otherwise].tolist()
        alike = np.where(otherwise, 0.0, each)
        k = int(np.argmax(alike))
        if alike[k] > found.worst:
            found.worst, found.where = (
                float(alike[k]),
                (self.rows + start + k, self._names[int(np.argmax(off[k]))]),
            )
        if precision == "double":
            for k in np.flatnonzero(otherwise | (each > TOLERANCE)):
                found.nudges.append(self._nudge(got[k], scale[k], before[k], rows[k]))

    def _nudge(self, got: np.ndarray, scale: np.ndarray, state: np.ndarray, row: np.ndarray) -> float | None:
        """The least of `SIZES` with which JAX itself may say what C says."""
        for size in SIZES:
            said = np.asarray(_nudged(self._estimator, state, row, size))
            said = said[np.all(said[:, self._decided] == got[self._decided], axis=1)]
            if len(said):
                outside = np.maximum(said.min(axis=0) - got, got - said.max(axis=0)) / scale
                if np.max(np.where(self._decided, 0.0, outside)) <= TOLERANCE:
                    return size
        return None


def _chunks(samples: Samples) -> Iterator[tuple[Samples, int]]:
    """Rows `CHUNK` at a time, the last ones filled up, and how many there are."""
    for start in range(0, len(samples.t), CHUNK):
        count = min(CHUNK, len(samples.t) - start)
        places = np.minimum(start + np.arange(CHUNK), len(samples.t) - 1)
        yield jax.tree.map(lambda leaf, p=places: jnp.asarray(np.asarray(leaf)[p]), samples), count


def _flat(tree: Any) -> jax.Array:
    return Layout(tree, np.float64, integers=True).pack(tree)[0]


@eqx.filter_jit
def _in_jax(estimator: AbstractEstimator, state: Any, samples: Samples) -> Any:
    """The last state; and states before and after each row, and estimates."""

    def one(state: Any, sample: Samples) -> Any:
        new, estimate = step(estimator, state, sample)
        return new, (_flat(state), _flat(new), _flat(estimate))

    return jax.lax.scan(one, state, samples)


def _state_at(estimator: AbstractEstimator, like: Any, flat: np.ndarray) -> Any:
    state = Layout(like, np.float64, integers=True).unpack(flat)
    return jax.tree.map(lambda leaf, old: jnp.asarray(leaf, old.dtype), state, like)


@eqx.filter_jit
def _nudged(estimator: AbstractEstimator, state: Any, row: Any, size: float) -> jax.Array:
    """What JAX says of a state and a sample, each number of which is nudged."""
    system = estimator.joint.system
    sizes = (system.inputs.size, system.outputs.size, system.outputs.dim)
    now = jnp.zeros(())
    sample = Samples(now, now, *(jnp.zeros(n, bool if k == 2 else float) for k, n in enumerate(sizes)))
    of_state = Layout(
        jax.eval_shape(lambda s: estimator.init(s, jax.random.key(0)), sample), np.float64, integers=True
    )
    of_sample = Layout(sample, np.float64, integers=True)

    def one(key: Any) -> jax.Array:
        a, b = jax.random.split(key)
        s = of_state.unpack(_moved(state, a, size))
        x = of_sample.unpack(_moved(row, b, size).at[:2].set(row[:2]))
        exact = of_state.unpack(state), of_sample.unpack(row)
        s, x = (
            jax.tree.map(lambda new, old: new if new.dtype == jnp.float64 else old, m, e)
            for m, e in zip((s, x), exact, strict=True)
        )
        return _flat(step(estimator, s, x)[1])

    return jax.lax.map(one, jax.random.split(jax.random.key(1), NUDGES))


def _moved(numbers: jax.Array, key: Any, size: float) -> jax.Array:
    return numbers * (1.0 + size * jax.random.uniform(key, numbers.shape, minval=-1.0, maxval=1.0))


def _scales(estimator: AbstractEstimator, flat: np.ndarray) -> np.ndarray:
    """What a deviation of each number of each row is relative to."""
    shown = jax.eval_shape(estimator.estimate, _example(estimator))
    parts, start = {}, 0
    for item in dataclasses.fields(shown):
        leaf = getattr(shown, item.name)
        parts[item.name] = flat[:, start : start + leaf.size]
        start += leaf.size
    std = parts["std"]
    least = {
        "state": _stored(estimator, parts["state_std"]),
        "value": std,
        "covariance": (std[:, :, None] * std[:, None, :]).reshape(len(flat), -1),
        "innovation": parts["innovation_std"],
        "nis": np.maximum(parts["nis_dof"], 1.0),
        "since_change": np.full((len(flat), 1), 0.01),
        "change_probability": np.ones((len(flat), 1)),
        "lagged": parts.get("lagged_std", std),
    }
    scales = [np.maximum(np.abs(a), least.get(name, 0.0)) for name, a in parts.items()]
    return np.where((found := np.concatenate(scales, axis=1)) > 0.0, found, 1.0)


def _stored(estimator: AbstractEstimator, std: np.ndarray) -> np.ndarray:
    """Standard deviations of the stored numbers of states; 1 of a quaternion's."""
    space = estimator.joint.system.states
    columns: list[np.ndarray] = []
    for name, block in space.blocks:
        columns.append(np.ones((len(std), block.size)) if block.rotation else std[:, space.tangent[name]])
    return np.concatenate(columns, axis=1)


def _example(estimator: AbstractEstimator) -> Any:
    system = estimator.joint.system
    now = jnp.zeros(())
    sample = Samples(
        now,
        now,
        jnp.zeros(system.inputs.size),
        jnp.zeros(system.outputs.size),
        jnp.zeros(system.outputs.dim, bool),
    )
    return estimator.init(sample, jax.random.key(0))


def _at(numbers: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(numbers.ctypes.data)


def compare(estimator: AbstractEstimator, flights: Iterable[Samples]) -> Comparison:
    """C beside JAX on flights."""
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(estimator, Path(folder))
        for samples in flights:
            comparison.fly(samples)
    return comparison
