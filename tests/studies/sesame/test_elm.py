"""The regressors of the sesame study on a small data set: published numbers, errors, and repeatability."""

from __future__ import annotations

import dataclasses
import math

import jax
import numpy as np
import pytest

from rotorid import load_airframe
from rotorid.errors import LogError, SettingError
from rotorid.learning import ELMRegressor, mass_training_set, predict_mass
from rotorid.results import rmspe
from rotorid.simulation.datasets import Dataset, generate_dataset
from rotorid.simulation.datasets.dataset import DESCRIPTION, description_bytes
from rotorid.studies.sesame import elm
from rotorid.studies.sesame.elm import SCALING, elm_part, since_step, split_flights, table_part
from rotorid.studies.sesame.plain_inputs import LAGS, plain_inputs
from rotorid.studies.study_files import Part, Row
from rotorid.workflows.compare.batch import prepare_input

CELLS = [(t, m) for t in ("lemniscate", "random") for m in ("linear", "steps")]
FLIGHTS = 5

# As in the document. Columns of Table 1: for each of three quantities, RELM and then ELM.
TABLE_1 = """
50 3.0594 2.9783 5.6073 5.5817 6.4126e3 4.5661e4
100 2.9203 2.8903 3.6257 3.4204 2.3420e4 1.9392e4
300 3.1647 3.1154 2.3105 2.0744 2.6717e4 2.2691e5
500 3.4387 3.4709 2.2101 1.8922 2.6809e4 1.0978e6
1000 5.1501 5.2031 2.0948 2.0035 2.3237e4 8.9884e7
"""
TABLE_2 = """
0.0000001 3.8071 2.1634 2.3441e4
0.00001 4.1647 2.5802 5.8101e3
0.001 4.1501 4.4006 1.0650e3
0.1 4.0520 6.8179 143.5273
0.3 3.9585 7.4042 100.8383
0.5 3.8273 7.8349 82.0590
0.8 4.0812 8.4250 64.8544
1.0 3.8565 8.5060 59.8437
"""
TABLE_3 = """
1 0.6754 2.1162 1.3895e4
3 2.3554 2.1351 2.1501e4
5 3.5306 2.2240 2.6017e4
7 5.2201 2.1613 2.7567e4
10 7.6370 2.2374 3.5137e4
"""
COLUMNS = "training time", "rmspe", "norm of the weights"


def parse_table(table: str) -> dict[float, list[float]]:
    lines = [[float(word) for word in line.split()] for line in table.strip().splitlines()]
    return {first: rest for first, *rest in lines}


@pytest.fixture(scope="module", autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    trajectories, profiles = (tuple(dict.fromkeys(names)) for names in zip(*CELLS, strict=True))
    return generate_dataset(
        tmp_path_factory.mktemp("flights"),
        flights=FLIGHTS,
        duration=4.0,
        trajectories=trajectories,
        mass_profiles=profiles,
        workers=1,
    ).dataset


@pytest.fixture(scope="module")
def quick(dataset: Dataset) -> Part:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elm, "INPUTS", ("windows",))
        return elm_part(dataset, quick=True)


def test_plain_inputs_are_those_of_the_document(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    key = dataset.keys()[0]
    flight = prepare_input(dataset.flight(*key), load_airframe("simulated-quad"), "multirotor-bare")
    instant, history = (plain_inputs(flight.samples, flight.system, lags) for lags in ((0.0,), LAGS))
    y, u, outputs = np.asarray(flight.samples.y), np.asarray(flight.samples.u), flight.system.outputs
    names = ("attitude", "position", "velocity")
    np.testing.assert_array_equal(instant, np.column_stack([*(y[:, outputs.stored[n]] for n in names), u]))
    assert instant.shape[1] == 14  # q, r, v, thrust and body rate
    for k, lag in enumerate(LAGS):
        np.testing.assert_array_equal(
            history[100:, 14 * k : 14 * k + 14], instant[100 - round(100 * lag) :][: len(y) - 100]
        )

    # a row shows the mass through the controller: less error than a constant, more than windows, and lambda is a trade-off
    monkeypatch.setattr(elm, "HIDDEN", (50,))
    monkeypatch.setattr(elm, "NODES", 50)
    monkeypatch.setattr(elm, "LAMBDAS", (1e-7, 1.0, 1000.0))
    monkeypatch.setattr(elm, "FLIGHTS", (3,))
    part = elm_part(dataset, quick=False)
    guess = rows_of(part, "constant", method="constant")["rmspe"].value
    errors = {
        inputs: [rows_of(part, table_part(2, inputs), f"lambda={a:g}")["rmspe"].value for a in elm.LAMBDAS]
        for inputs in elm.INPUTS
    }
    assert min(errors["windows"]) < min(errors["instant"]) < guess
    assert min(errors["windows"]) < min(errors["history"]) < guess


def rows_of(part: Part, name: str, setting: str = "", method: str = "relm") -> dict[str, Row]:
    """Rows by quantity."""
    rows = [
        r for r in part.rows if (r.part, r.method, r.setting, r.trajectory) == (name, method, setting, "")
    ]
    assert len({r.quantity for r in rows}) == len(rows)
    return {r.quantity: r for r in rows}


@pytest.fixture
def features_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables without those with plain inputs."""
    monkeypatch.setattr(elm, "INPUTS", ("windows",))


@pytest.mark.usefixtures("features_only")
def test_published_numbers_are_those_of_the_tables(dataset: Dataset) -> None:
    part = elm_part(dataset, quick=False)
    for hidden, numbers in parse_table(TABLE_1).items():
        for method, published in (("relm", numbers[0::2]), ("elm", numbers[1::2])):
            rows = rows_of(part, "table 1", f"hidden={hidden:.0f}", method)
            assert [rows[c].published for c in COLUMNS] == published
    for alpha, published in parse_table(TABLE_2).items():
        rows = rows_of(part, "table 2", f"lambda={alpha:g}")
        assert [rows[c].published for c in COLUMNS] == published
    for count, published in parse_table(TABLE_3).items():
        rows = rows_of(part, "table 3", f"flights={count:.0f}")
        assert [rows[c].published for c in COLUMNS if rows] == (published if count < FLIGHTS - 1 else [])
    for row in part.rows:
        assert math.isfinite(row.value)
        assert row.value >= 0.0
        if row.quantity == "rmspe":
            assert row.unit == "%"
            assert row.flights > 0


def test_errors_agree_with_those_of_the_public_functions_on_test_flights(
    dataset: Dataset, quick: Part
) -> None:
    split = split_flights(dataset, 0)
    training = [key for round_ in split.training for key in round_]
    assert sorted([*training, *split.test]) == sorted(dataset.keys())
    airframe = load_airframe("simulated-quad")
    train, test = (
        [prepare_input(dataset.flight(*key), airframe, "multirotor-bare") for key in keys]
        for keys in (training, split.test)
    )
    X, y = mass_training_set(
        [f.samples for f in train], [f.true_mass for f in train if f.true_mass is not None], every=2
    )
    for hidden in (50, 300):
        regressor = ELMRegressor(hidden, alpha=1e-7, scaling=SCALING, random_state=0).fit(X, y)
        errors = []
        for flight in test:
            prediction = predict_mass(regressor, flight.samples)
            rows = np.flatnonzero(prediction.informed)[::2]
            assert flight.true_mass is not None
            errors.append(rmspe(prediction.value[rows], flight.true_mass[rows]))
        rows = rows_of(quick, "table 1", f"hidden={hidden}")
        np.testing.assert_allclose(rows["rmspe"].value, np.mean(errors), rtol=1e-6)
        np.testing.assert_allclose(rows["rmspe"].standard_error, np.std(errors, ddof=1) / 2.0, rtol=1e-6)
        assert rows["rmspe"].flights == len(CELLS)
        np.testing.assert_allclose(
            rows["norm of the weights"].value, np.linalg.norm(regressor.output_weights_), rtol=1e-6
        )


@pytest.mark.parametrize(
    ("flights", "rounds", "tests"), [(2, 1, 1), (3, 2, 1), (6, 4, 2), (10, 7, 3), (50, 10, 10)]
)
def test_training_and_test_flights_are_disjoint(tmp_path, flights: int, rounds: int, tests: int) -> None:
    cells = {cell: flights + i for i, cell in enumerate(CELLS)}
    (tmp_path / DESCRIPTION).write_bytes(description_bytes({"duration": 4.0, "rate": 100}, cells))
    split = split_flights(Dataset(tmp_path), 0)
    assert len(split.training) == rounds
    for keys in split.training:
        assert sorted(key[:2] for key in keys) == sorted(CELLS)
    assert sorted(key[:2] for key in split.test) == sorted(CELLS * tests)
    keys_of_split = [*(key for keys in split.training for key in keys), *split.test]
    assert len(set(keys_of_split)) == len(keys_of_split)
    assert set(keys_of_split) <= set(Dataset(tmp_path).keys())
    assert split_flights(Dataset(tmp_path), 0) == split
    assert split_flights(Dataset(tmp_path), 1) != split


@pytest.mark.usefixtures("features_only")
def test_same_seed_gives_same_numbers_and_each_flight_is_read_once(
    dataset: Dataset, quick: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys_read, reports = [], []
    flight = Dataset.flight
    monkeypatch.setattr(Dataset, "flight", lambda self, *key: keys_read.append(key) or flight(self, *key))
    again = elm_part(dataset, quick=True, progress=lambda *report: reports.append(report))
    assert len(set(keys_read)) == len(keys_read)
    total = reports[0][2]
    assert reports == [("elm", done, total) for done in range(total + 1)]

    def without_times(part: Part) -> list[Row]:
        return [dataclasses.replace(r, value=0.0) if "time" in r.quantity else r for r in part.rows]

    assert [repr(r) for r in without_times(again)] == [repr(r) for r in without_times(quick)]
    for a, b in zip(again.curves, quick.curves, strict=True):
        assert np.array_equal(a.value, b.value)
        assert np.array_equal(a.std, b.std)
    other = elm_part(dataset, quick=True, seed=1)
    assert rows_of(other, "table 1", "hidden=50")["rmspe"] != rows_of(quick, "table 1", "hidden=50")["rmspe"]


def test_os_elm_equals_relm_after_all_flights(quick: Part) -> None:
    chunks = len(CELLS) * (FLIGHTS - 1)
    rows = rows_of(quick, "os-elm", f"chunks={chunks}", "os-elm")
    relm = rows_of(quick, "table 2", "lambda=1e-05")
    assert rows["largest difference from RELM"].value < 1e-8
    for quantity in ("rmspe", "norm of the weights"):
        np.testing.assert_allclose(rows[quantity].value, relm[quantity].value, rtol=1e-6)
    np.testing.assert_allclose(
        rows["training time of a chunk"].value * chunks, rows["training time"].value, rtol=1e-9
    )
    assert rows_of(quick, "os-elm", "chunks=1", "os-elm")["rmspe"].value > 2.0 * rows["rmspe"].value
    curves = {(c.part, c.mass_profile): c for c in quick.curves}
    for profile in ("linear", "steps"):
        a, b = (curves[name, profile] for name in ("figure 12", "figure 15"))
        np.testing.assert_allclose(a.value, b.value, atol=1e-8)
        assert (a.method, b.method) == ("relm", "os-elm")


def test_a_larger_lambda_gives_smaller_weights(quick: Part) -> None:
    alphas = [*parse_table(TABLE_2), 10.0, 100.0, 1000.0, 10000.0]
    rows = [rows_of(quick, "table 2", f"lambda={alpha:g}") for alpha in alphas]
    norms = [row["norm of the weights"].value for row in rows]
    assert norms == sorted(norms, reverse=True)
    assert norms[0] > 100.0 * norms[-1]
    assert rows[-1]["rmspe"].value > rows[4]["rmspe"].value
    assert math.isnan(rows[-1]["rmspe"].published)


def test_cells_and_steps(quick: Part) -> None:
    rows = [r for r in quick.rows if r.part == "elm cells"]
    assert {(r.trajectory, r.mass_profile) for r in rows} == {*CELLS, ("", "")}
    by_key = {(r.trajectory, r.mass_profile, r.setting, r.quantity): r for r in rows}
    assert len(by_key) == len(rows)
    after, elsewhere = (by_key["", "", s, "rmspe"] for s in ("0.3 s after steps", "elsewhere"))
    assert after.flights == 2
    assert elsewhere.flights == 4
    assert after.value > 3.0 * elsewhere.value
    for cell in CELLS:
        assert by_key[(*cell, "", "rmspe")].flights == 1
        assert 0.8 < by_key[(*cell, "", "coverage")].value <= 1.0
    np.testing.assert_allclose(
        by_key["", "", "", "rmspe"].value, np.mean([by_key[(*c, "", "rmspe")].value for c in CELLS])
    )


def test_curves_are_of_test_flights(dataset: Dataset, quick: Part) -> None:
    tests = {key[:2]: key for key in split_flights(dataset, 0).test}
    assert [(c.part, c.trajectory, c.mass_profile) for c in quick.curves] == [
        (part, trajectory, profile)
        for part, trajectory in (
            ("figure 12", "lemniscate"),
            ("figure 13", "random"),
            ("figure 15", "lemniscate"),
            ("os-elm random", "random"),
        )
        for profile in ("linear", "steps")
    ]
    for curve in quick.curves:
        truth = dataset.flight(*tests[curve.trajectory, curve.mass_profile])["true_mass"]
        assert np.array_equal(curve.truth, truth.values[np.rint(curve.t * 100).astype(int), 0])
        assert np.all(np.diff(curve.t) > 0.0)
        assert np.all(curve.std > 0.0)
        assert np.mean(np.abs(curve.value - curve.truth) < 3.0 * curve.std) > 0.8


def test_since_step() -> None:
    t = np.arange(6) / 100.0
    since = since_step(t, np.array([1.0, 1.0, 1.2, 1.22, 0.9, 0.9]))
    assert since.tolist() == [math.inf, math.inf, 0.0, 0.01, 0.0, 0.01]


def test_unusable_data_sets_are_rejected(dataset: Dataset, tmp_path) -> None:
    content = {"duration": 4.0, "rate": 100}
    (tmp_path / DESCRIPTION).write_bytes(description_bytes(content, {CELLS[0]: 2, CELLS[1]: 1}))
    with pytest.raises(SettingError, match="lemniscate/steps has 1 flight; 2 or more"):
        elm_part(Dataset(tmp_path), quick=True)
    (tmp_path / DESCRIPTION).write_bytes(description_bytes(content, {CELLS[0]: 2, CELLS[1]: 2}))
    with pytest.raises(LogError, match="parquet"):
        elm_part(Dataset(tmp_path), quick=True)
