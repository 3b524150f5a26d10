"""Checks of shapes and types under pytest, at a small part of the time that jaxtyping's own decorator takes.

jaxtyping's import hook decorates every function of the packages with `jaxtyping.jaxtyped`, which writes and compiles four
functions for it: at import for thousands that no test calls, again at each definition of an inner function, and also for
functions that have nothing to check. `checked` takes its place. It makes a check when a function is first called, one for each
hint and for all functions of an inner definition, and checks arguments once. Functions that are called for each row of a flight
are checked in their first `ALL_CALLS` calls, then in one of `ONE_OF`: the rest would take a fifth of the time of such tests.
The rules are the same: beartype's for types, jaxtyping's for shapes, of which equal names in one call are of equal size.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import typing
from abc import ABCMeta
from collections.abc import Callable, Mapping
from enum import EnumMeta
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType
from typing import Any, Final, NoReturn

import beartype
import jaxtyping

ALL_CALLS: Final = 1000
ONE_OF: Final = 37
_jaxtyped: Final = jaxtyping.jaxtyped
_inner: Final[dict[tuple[Any, ...], _Check]] = {}
_resolved: Final[dict[tuple[str, str], Any]] = {}
_CLASSES: Final = (type, ABCMeta, EnumMeta, type(jaxtyping.Float[jaxtyping.Array, "3"]))
"""Classes of those classes whose hint means `isinstance` and nothing else."""


def check_on_call() -> None:
    """Have the import hook decorate with `checked`."""
    jaxtyping.jaxtyped = checked


def checked(fn: Any = None, *, typechecker: Any = None) -> Any:
    """A function, method or dataclass that checks its arguments and results. typechecker: beartype in any case."""
    if fn is None:
        return checked
    if inspect.isclass(fn):
        if dataclasses.is_dataclass(fn) and not hasattr(fn.__init__, "is_checked"):
            fn.__init__ = checked(fn.__init__)
        return fn
    if isinstance(fn, classmethod | staticmethod):
        return type(fn)(checked(fn.__func__))
    if isinstance(fn, property):
        return property(*(f and checked(f) for f in (fn.fget, fn.fset, fn.fdel)))
    if not isinstance(fn, FunctionType) or not fn.__annotations__:
        return fn
    if any("{" in str(hint) for hint in fn.__annotations__.values()):  # shapes by the values of arguments
        return _jaxtyped(fn, typechecker=beartype.beartype)
    if "<locals>" in fn.__qualname__ and all(isinstance(hint, str) for hint in fn.__annotations__.values()):
        definition = fn.__code__, fn.__module__, fn.__qualname__, *fn.__annotations__.items()
        if definition not in _inner:
            _inner[definition] = _Check(fn)
        check = _inner[definition]
    else:
        check = _Check(fn)

    calls = itertools.count()

    @functools.wraps(fn)
    def check_and_call(*args, **kwargs):
        __tracebackhide__ = True
        if (call := next(calls)) >= ALL_CALLS and call % ONE_OF:
            return fn(*args, **kwargs)
        with _jaxtyped("context"):
            check.arguments(args, kwargs)
            result = fn(*args, **kwargs)
            check.result(result)
        return result

    check_and_call.is_checked = True  # pyright: ignore[reportFunctionMemberAccess]
    return check_and_call


class _Check:
    """What the functions of one definition check. Names that exist only later, or for type checkers alone, mean Any."""

    def __init__(self, fn: FunctionType) -> None:
        code = fn.__code__
        named = code.co_argcount + code.co_kwonlyargcount
        has_more, has_more_keywords = (bool(code.co_flags & f) for f in (CO_VARARGS, CO_VARKEYWORDS))
        self._place = f"{fn.__module__}.{fn.__qualname__}"
        self._names = code.co_varnames[:named]
        self._positional = code.co_varnames[: code.co_argcount]
        self._more = code.co_varnames[named] if has_more else ""
        self._more_keywords = code.co_varnames[named + has_more] if has_more_keywords else ""
        self._hints = {name: _resolve(hint, fn.__globals__) for name, hint in fn.__annotations__.items()}

    @functools.cached_property
    def _tests(self) -> dict[str, Callable[[Any], bool] | None]:
        return {name: _test(hint) for name, hint in self._hints.items()}

    @functools.cached_property
    def _positional_tests(self) -> list[tuple[str, Callable[[Any], bool] | None]]:
        return [(name, self._tests.get(name)) for name in self._positional]

    @functools.cached_property
    def _result_test(self) -> Callable[[Any], bool] | None:
        return self._tests.get("return")

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        for (name, test), value in zip(self._positional_tests, args, strict=False):
            if test is not None and not test(value):
                self._fail(name, value)
        for name in self._names if kwargs else ():
            if name in kwargs:
                self._argument(name, kwargs[name])
        if self._more_keywords:
            for name in kwargs.keys() - set(self._names):
                self._argument(self._more_keywords, kwargs[name])
        for value in args[len(self._positional) :]:
            self._argument(self._more, value)

    def _argument(self, name: str, value: Any) -> None:
        test = self._tests.get(name)
        if test is not None and not test(value):
            self._fail(name, value)

    def result(self, value: Any) -> None:
        if self._result_test is not None and not self._result_test(value):
            self._fail("return", value)

    def _fail(self, name: str, value: Any) -> NoReturn:
        shape = f" of shape {value.shape}" if hasattr(value, "shape") else ""
        raise jaxtyping.TypeCheckError(
            f"{self._place}: {name} is not {self._hints[name]}, but {type(value).__name__}{shape}: {value!r:.300}"
        )


def _resolve(hint: Any, names: dict[str, Any]) -> Any:
    """A hint as written in a module, whose names these are."""
    key = (hint, names["__name__"]) if isinstance(hint, str) else None
    if key in _resolved:
        return _resolved[key]

    def of_hint(value):
        return value

    of_hint.__annotations__ = {"value": hint}
    try:
        resolved = typing.get_type_hints(of_hint, names, include_extras=True)["value"]
    except Exception:
        return Any
    if key is not None:
        _resolved[key] = resolved
    return resolved


def _test(hint: Any) -> Callable[[Any], bool] | None:
    """Whether a value has a hint, None where all values have."""
    if any(hint is every for every in (Any, object, NoReturn)):
        return None
    if type(hint) in _CLASSES:
        return lambda value: isinstance(value, hint)
    try:
        return _beartype_test(hint)
    except TypeError:  # a hint of values that cannot be hashed
        return _beartype_test.__wrapped__(hint)


@functools.cache
def _beartype_test(hint: Any) -> Callable[[Any], bool]:
    def check(value):
        pass

    check.__annotations__ = {"value": hint}
    check = beartype.beartype(check)

    def test(value: Any) -> bool:
        try:
            check(value)
        except beartype.roar.BeartypeCallHintViolation:
            return False
        return True

    return test
