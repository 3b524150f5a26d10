"""The tests check shapes and types of arguments and results."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from jaxtyping import Float, TypeCheckError

from rotorid.identification.fitting.windows import evenly_spaced
from tests.shape_checks import ALL_CALLS, ONE_OF
from tests.shape_checks import checked as check


@check
def scaled(factor: float):
    @check
    def inner(a: Float[np.ndarray, " n"], b: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return factor * (a + b) if factor > 0 else a[:-1]

    return inner


@check
@dataclasses.dataclass
class Row:
    value: Float[np.ndarray, " 3"]

    @property
    @check
    def first(self) -> str:
        return self.value[0]

    @classmethod
    @check
    def of(cls, size: int) -> Row:
        return cls(np.zeros(size))


@check
@dataclasses.dataclass
class NamedRow(Row):
    name: str = ""


def test_functions_of_the_packages_are_checked() -> None:
    def call_often() -> None:
        for _ in range(ONE_OF):
            evenly_spaced(10.0, 3)

    with pytest.raises(TypeCheckError, match="evenly_spaced"):
        call_often()


def test_frequent_calls_are_checked_now_and_then() -> None:
    @check
    def same(a: Float[np.ndarray, " 2"]) -> Float[np.ndarray, " 2"]:
        return a

    for _ in range(ALL_CALLS):
        same(np.zeros(2))
    failed = 0
    for _ in range(ONE_OF):
        try:
            same(np.zeros(3))
        except TypeCheckError:
            failed += 1
    assert failed == 1


def test_all_functions_of_one_definition_are_checked() -> None:
    two, three = scaled(2.0), scaled(3.0)
    ones = np.ones(2)
    assert (two(ones, ones)[0], three(ones, ones)[0], two(ones, ones)[0]) == (4.0, 6.0, 4.0)
    for wrong in (lambda: two(ones, np.ones(3)), lambda: scaled(-1.0)(ones, ones), lambda: scaled("2")):
        with pytest.raises(TypeCheckError):
            wrong()
    assert three(ones, ones)[0] == 6.0
    with pytest.raises(TypeError, match="missing"):
        two(ones)


def test_classes_are_checked() -> None:
    assert NamedRow.of(3).value.shape == (3,)
    for wrong in (
        lambda: Row(np.ones(2)),
        lambda: Row.of(2),
        lambda: Row(np.ones(3)).first,
        lambda: NamedRow(np.ones(3), 1),  # pyright: ignore[reportArgumentType]
    ):
        with pytest.raises(TypeCheckError):
            wrong()


def test_classes_of_one_function_are_checked_each_by_its_own_hints() -> None:
    def words():
        @check
        @dataclasses.dataclass
        class Local:
            value: str

        return Local

    def numbers():
        @check
        @dataclasses.dataclass
        class Local:
            value: int

        return Local

    assert words()("1").value == "1"
    assert numbers()(1).value == 1
    with pytest.raises(TypeCheckError):
        numbers()("1")  # pyright: ignore[reportArgumentType]


def test_shapes_by_the_value_of_an_argument_are_checked() -> None:
    @check
    def ones(n: int, m: int) -> Float[np.ndarray, " {n}+1"]:
        return np.ones(m)

    assert len(ones(2, 3)) == 3
    with pytest.raises(TypeCheckError):
        ones(2, 2)


def test_what_has_no_annotations_is_left_alone() -> None:
    def plain(a, b=1):
        return a

    assert check(plain) is plain


def test_all_kinds_of_arguments_are_checked() -> None:
    @check
    def function(a: int, /, b: str = "b", *more: int, c: float = 0.0, **others: str | None) -> None:
        pass

    function(1, "b", 2, 3, c=1.0, d="d", e=None)
    for arguments, others in (
        (("1",), {}),
        ((1, 2), {}),
        ((1, "b", "3"), {}),
        ((1,), {"c": "c"}),
        ((1,), {"b": 1}),
        ((1,), {"d": 1}),
    ):
        with pytest.raises(TypeCheckError):
            function(*arguments, **others)
