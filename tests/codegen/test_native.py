"""Machine code of CasADi's functions."""

from __future__ import annotations

import ctypes
import functools
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from rotorid.cache import keep_compiled, sealed, unsealed
from rotorid.codegen import native
from rotorid.errors import SettingError

_SOURCE = '__attribute__((visibility("default"))) int answer(void) { return 42; }'


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache of compiled code."""
    if native.compiler() is None:
        pytest.skip("no C compiler here")
    monkeypatch.setenv("ROTORID_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "native"


def _answer() -> int:
    return native.build("answer", lambda: [_SOURCE], {}).answer()


def _library(cache: Path) -> Path:
    (library,) = cache.glob("*.so")
    return library


def test_machine_code_gives_the_same_bits(monkeypatch):
    if native.compiler() is None:
        pytest.skip("no C compiler here")
    a, b = ca.SX.sym("a", 3), ca.SX.sym("b", 3)
    function = ca.Function(
        "some", [a, b], [ca.cross(a, b) / ca.norm_2(a), ca.atan2(a[0], b[0]), ca.sin(a) * b]
    )
    fast = native.compiled(function)
    assert fast.class_name() != function.class_name()
    for x, y in np.random.default_rng(0).standard_normal((200, 2, 3)):
        for expected, found in zip(function(x, y), fast(x, y), strict=True):
            np.testing.assert_array_equal(np.array(expected), np.array(found))

    def absent(*_):
        raise native.BuildError("no C compiler found")

    monkeypatch.setattr(native, "build", absent)
    assert native.compiled(function) is function


def test_nobody_else_can_read_or_write_the_cache(cache):
    before = os.umask(0)
    try:
        assert _answer() == 42
    finally:
        os.umask(before)
    for path in (cache.parent, cache, *cache.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


@pytest.mark.parametrize("place", [".", "native", "jax"])
def test_a_cache_that_others_can_write_to_is_refused(cache, place):
    folder = cache.parent / place
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.raises(SettingError, match=r"can be written to by other users.* ROTORID_CACHE") as caught:
        _answer() if place == "native" else keep_compiled()
    assert "\n" not in str(caught.value)
    assert not list(cache.glob("*.so"))


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give folders away")
def test_a_cache_of_another_user_is_refused(cache):
    cache.mkdir(parents=True)
    os.chown(cache, 12345, 12345)
    with pytest.raises(SettingError, match=r"belongs to another user \(12345\)"):
        _answer()


def test_a_command_refuses_the_cache_in_one_line(cache, tmp_path):
    cache.mkdir(parents=True)
    cache.parent.chmod(0o777)
    (tmp_path / "log.csv").write_text("t,thrust\n0,1\n")
    arguments = [
        sys.executable,
        "-m",
        "rotorid",
        "track",
        str(tmp_path / "log.csv"),
        "--airframe",
        "crazyflie-2.1",
    ]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"rotorid: {cache.parent}: can be written to by other users")


@pytest.mark.parametrize("damage", ["truncated", "flipped bit", "empty", "no digest", "writable"])
def test_a_broken_library_is_compiled_again(cache, damage):
    assert _answer() == 42
    library = _library(cache)
    content = library.read_bytes()
    library.unlink()  # a new file, since this process has the old one in memory
    library.write_bytes(
        {
            "truncated": content[: len(content) // 3],
            "empty": b"",
            "flipped bit": bytes([content[0] ^ 1]) + content[1:],
        }.get(damage, content)
    )
    if damage == "no digest":
        library.with_name(f"{library.name}.sha256").unlink()
    if damage == "writable":
        library.chmod(0o666)
    changed = library.stat().st_ino
    assert _answer() == 42
    assert ctypes.CDLL(str(_library(cache))).answer() == 42
    assert library.stat().st_ino != changed
    assert sorted(p.name for p in cache.iterdir()) == [library.name, f"{library.name}.sha256"]


def test_an_intact_library_is_not_compiled_again(cache, monkeypatch):
    assert _answer() == 42
    monkeypatch.setattr(native, "_compile", lambda *_: pytest.fail("compiled again"))
    assert _answer() == 42


_COMPILE = """
import jax
from rotorid.cache import keep_compiled, sealed, unsealed
keep_compiled()
print(jax.jit(lambda x: x * 3.0)(2.0))
"""


@pytest.fixture
def kernels(cache, monkeypatch) -> Iterator[None]:
    """No kernel is loaded."""
    monkeypatch.setattr(native, "_kernel", functools.cache(native._kernel.__wrapped__))
    yield
    for thread in set(threading.enumerate()) - {threading.current_thread()}:
        if thread.name.startswith("kernel"):
            thread.join()


def test_a_kernel_that_was_started_is_compiled_once(cache, kernels, monkeypatch):
    compiled, of_original = [], native._compile

    def compile_slowly(command, options, units, library):
        compiled.append(threading.current_thread())
        time.sleep(0.2)
        of_original(command, options, units, library)

    monkeypatch.setattr(native, "_compile", compile_slowly)
    native.start_kernels("means.c", "rotor_lag.c")
    while len(compiled) < 2:
        time.sleep(0.001)
    assert native.kernel("means.c") is native.kernel("means.c") is not None
    assert native.kernel("rotor_lag.c") is not None
    assert len(set(compiled) - {threading.current_thread()}) == 2
    assert len(list(cache.glob("*.so"))) == 2


def test_a_refused_cache_is_told_where_the_kernel_is_needed(cache, kernels, capfd):
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    native.start_kernels("means.c")
    with pytest.raises(SettingError, match="written to by other users"):
        native.kernel("means.c")
    assert capfd.readouterr() == ("", "")


def test_a_broken_entry_of_jax_is_compiled_again(cache, monkeypatch):
    def run() -> tuple[str, str]:
        done = subprocess.run([sys.executable, "-c", _COMPILE], capture_output=True, text=True, check=True)
        return done.stdout, done.stderr

    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    (cache.parent / "jax").mkdir(parents=True)
    assert run() == ("6.0\n", "")
    (entry,) = (cache.parent / "jax").glob("*-cache")
    broken = bytes(b ^ (k % 97 == 96) for k, b in enumerate(entry.read_bytes()))
    entry.write_bytes(broken)
    assert run() == ("6.0\n", "")
    assert entry.read_bytes() != broken
    assert unsealed(entry.read_bytes()) is not None


def test_what_is_sealed_is_complete_and_unchanged():
    content = bytes(range(100))
    whole = sealed(content)
    assert unsealed(whole) == content
    damaged = [whole[:n] for n in range(len(whole))]
    damaged += [whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :] for k in range(len(whole))]
    assert {unsealed(d) for d in damaged} == {None}
