"""Published numbers of the studies are those in the text of the source documents, if these lie beside the project."""

# ruff: noqa: RUF001

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rotorid.studies.lpv import likelihood, standard
from rotorid.studies.nemo import study as nemo
from rotorid.studies.sesame import elm

ROOT = Path(__file__).parents[2]
SEEDS = next((p / "shared" / "seeds" for p in ROOT.parents if (p / "shared" / "seeds").is_dir()), None)

needs_documents = pytest.mark.skipif(
    SEEDS is None, reason="the source documents (shared/seeds) are not beside the project"
)


def text_of(number: str) -> str:
    assert SEEDS is not None
    (path,) = SEEDS.glob(f"{number}_*.txt")
    return path.read_text()


def section(text: str, start: str, end: str) -> str:
    return text[text.index(start) :].split(end)[0]


def numbers_in(line: str) -> list[float]:
    """Numbers of a line of a table of SESAME D2.2, "6.4126×103" among them."""
    line = re.sub(r"×10(\d)", r"e\1", line)
    return [float(n) for n in re.findall(r"[\d.]+(?:e\d)?", line)]


def table_1() -> dict[tuple[str, int], tuple[float, ...]]:
    lines = section(text_of("000"), "Table 1: Offline", "Table 2:").splitlines()
    rows = [numbers_in(line) for line in lines if re.match(r"\d", line)]
    return {
        (method, int(row[0])): tuple(row[k::2]) for row in rows for k, method in ((1, "relm"), (2, "elm"))
    }


def table_2() -> dict[float, tuple[float, ...]]:
    lines = section(text_of("000"), "Table 2: RELM", "Table 3:").splitlines()
    rows = [numbers_in(line) for line in lines if re.match(r"\d", line)]
    return {row[0]: tuple(row[1:]) for row in rows}


def table_3() -> dict[int, tuple[float, ...]]:
    lines = section(text_of("000"), "Table 3: RELM", "Figure 12").splitlines()
    rows = [numbers_in(re.sub(r"\(\d+%\)", "", line)) for line in lines if re.match(r"\d", line)]
    return {int(row[0]): tuple(row[1:]) for row in rows if len(row) == 4}


def table_ii() -> dict[str, dict[str, tuple[float, ...]]]:
    """Table II of Alharbat 2025, whose numbers stand four times in its text where they are not bold. Without the sums."""
    text = text_of("001")
    text = text[text.index("TABLE II: Wrench Estimation RMS Error Comparison") :]
    line = next(line for line in text.splitlines() if "Residual Dynamics Type G MO" in line)
    table: dict[str, dict[str, tuple[float, ...]]] = {}
    for kind, part in re.findall(r"\b(G|MG-1|MG-2|MGD) (MO .*?)(?= (?:MG-1|MG-2|MGD) MO|$)", line):
        methods = re.split(r"(\bMO|NeMO, α=\S+ = \d+)", part)[1:]
        for name, values in zip(methods[::2], methods[1::2], strict=True):
            method = "mo" if name == "MO" else f"nemo-{name.split()[-1]}"
            words = (re.match(r"[{]?(\d+\.\d{4})", word) for word in values.split())
            *errors, total = (float(m[1]) for m in words if m)
            assert sum(errors) == pytest.approx(total, abs=2e-4)
            table.setdefault(kind, {})[method] = tuple(errors)
    return table


def first_test() -> dict[str, float]:
    found = re.search(r"x_1 = (0\.\d+)\$, \$x_2 = (0\.\d+)\$ and \$x_3 = (0\.\d+)\$\)", text_of("002"))
    assert found
    return {f"x{k}": float(found[k]) for k in (1, 2, 3)}


def third_rows() -> dict[str, tuple[float, ...]]:
    rows: dict[str, tuple[float, ...]] = {}
    for equation, figure in (("2.1", "Figure 3.2 Result"), ("2.2", "Figure 3.3 Results")):
        found = re.search(r"^x3 +(.*)$", section(text_of("002"), f"({equation})", figure), re.MULTILINE)
        assert found
        rows[equation] = tuple(map(float, found[1].split()))
    return rows


def third_std() -> dict[str, float]:
    found = re.search(r"value of (-[\d.]+) ± ([\d.]+)", text_of("002"))
    assert found
    return {"value": float(found[1]), "std": float(found[2])}


TABLES: dict[str, tuple[Any, Callable[[], Any]]] = {
    "000 table 1": (elm.PUBLISHED_1, table_1),
    "000 table 2": (elm.PUBLISHED_2, table_2),
    "000 table 3": (elm.PUBLISHED_3, table_3),
    "001 table II": (nemo.PUBLISHED, table_ii),
    "002 first test": (likelihood.PUBLISHED, first_test),
    "002 third order": (standard.PUBLISHED, third_rows),
    "002 deviation": (
        {"value": standard.PUBLISHED["2.2"][2], "std": standard.PUBLISHED_STD},
        third_std,
    ),
}


@needs_documents
@pytest.mark.parametrize("name", TABLES)
def test_published_numbers_are_those_of_the_document(name: str) -> None:
    ours, read = TABLES[name]
    assert ours == read()


def leaves(table: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of each number of a table."""
    if isinstance(table, Mapping):
        for key, value in table.items():
            yield from leaves(value, (*path, key))
    elif isinstance(table, tuple):
        for k, value in enumerate(table):
            yield from leaves(value, (*path, k))
    else:
        yield path


def with_wrong_number(table: Any, path: tuple[Any, ...]) -> Any:
    """A copy of a table whose number at this place is 0.01 % larger."""
    if not path:
        return table * 1.0001
    key, rest = path[0], path[1:]
    if isinstance(table, Mapping):
        return {k: with_wrong_number(v, rest) if k == key else v for k, v in table.items()}
    return tuple(with_wrong_number(v, rest) if k == key else v for k, v in enumerate(table))


@needs_documents
@pytest.mark.parametrize("name", TABLES)
def test_a_wrong_number_anywhere_is_found(name: str) -> None:
    ours, read = TABLES[name]
    document = read()
    places = list(leaves(ours))
    assert places
    for place in places:
        assert with_wrong_number(ours, place) != document


def test_every_published_table_is_compared() -> None:
    """A table that is added to a study is added here, too."""
    names = re.compile(r"^(PUBLISHED\w*)\b", re.M)
    sources = ROOT / "src" / "rotorid" / "studies"
    found = {
        f"{path.parent.name}.{path.stem}.{name}"
        for path in sources.rglob("*.py")
        if path.parent.name != "benchmarks"  # from other documents
        for name in names.findall(path.read_text())
    }
    assert found == {
        "sesame.elm.PUBLISHED_1", "sesame.elm.PUBLISHED_2", "sesame.elm.PUBLISHED_3", "nemo.study.PUBLISHED",
        "lpv.likelihood.PUBLISHED", "lpv.standard.PUBLISHED", "lpv.standard.PUBLISHED_STD",
    }  # fmt: skip
