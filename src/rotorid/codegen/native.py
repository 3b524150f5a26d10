"""Compile C source and load it with ctypes; the libraries are kept in the user's cache.

A library is loaded only from a folder that no other user can write to, and only if its content has the SHA-256 in the file
beside it (`<name>.so.sha256`). A library without it, or with another content, is compiled again.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Literal, get_args

import casadi as ca
import numpy as np

from rotorid.cache import code_folder, is_private
from rotorid.errors import SettingError

FOLDER = Path(__file__).with_name("c")
"""The C files that come with rotorid."""

_FLAGS = (
    "-O3",
    "-march=native",
    "-ffp-contract=off",  # the same result in a lane as alone
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-fvisibility=hidden",
    "-w",
)

_KERNEL_LOCKS: dict[str, threading.Lock] = {}

_LEAST = 60_000
"""Least number of characters for one run of the compiler: about as many as it compiles in its start-up time."""


def c_file(name: str) -> str:
    """The text of a C file that comes with rotorid."""
    return (FOLDER / name).read_text(encoding="utf-8")


Engine = Literal["auto", "c", "jax"]
"""What computes: C where it is possible, else JAX; always C; or always JAX."""


class BuildError(Exception):
    """The C compiler failed. The message is that of the compiler."""


def check_engine(engine: str) -> None:
    """Raise SettingError for an engine that there is not."""
    if engine not in get_args(Engine):
        raise SettingError(f"no engine {engine!r}; there are {', '.join(get_args(Engine))}")


def no_c_form(what: str, reason: object) -> SettingError:
    """The error where C was asked for and is not possible. what: that has no C form."""
    return SettingError(f"this {what} has no C form here: {reason}; use engine='auto'")


def warn_not_compiled(error: BuildError, stacklevel: int) -> None:
    """Warn that JAX computes in place of C. stacklevel: of the warning, as seen by the caller."""
    warnings.warn(
        f"The C code was not compiled, so JAX computes: {error}", RuntimeWarning, stacklevel=stacklevel + 1
    )


def compiler() -> list[str] | None:
    """The command of this machine's C compiler ($CC, cc, gcc or clang), None where there is none."""
    for command in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if command and shutil.which(shlex.split(command)[0]):
            return shlex.split(command)
    return None


def build(
    key: str,
    units: Callable[[], Sequence[str]],
    defines: Mapping[str, int | str],
    flags: Sequence[str] = (),
    *,
    is_kernel: bool = False,
) -> ctypes.CDLL:
    """The shared library of C units, which may include the files of `FOLDER`; a library in the cache is loaded.

    Neighbouring units are compiled as one file, so no two may define the same name. key: identifies the content of the
    units; the version of rotorid is added. flags: further compiler flags. $CFLAGS come after them and override them.
    is_kernel: whether the units are short loops written by hand, which are optimised fully in any case. Raises BuildError
    without a compiler, or if it fails, and SettingError if other users can write to the cache.
    """
    command = compiler()
    if command is None:
        raise BuildError("no C compiler found (looked for $CC, cc, gcc, clang)")
    options = [
        *_FLAGS,
        *flags,
        *shlex.split(os.environ.get("CFLAGS", "")),
        *(["-O3"] if is_kernel else []),
        *(f"-D{name}={value}" for name, value in defines.items()),
    ]
    name = hashlib.sha256("\0".join([*command, *options, machine(), _generator(), key]).encode()).hexdigest()
    library = _library_folder() / f"{name[:32]}.so"
    if not _is_intact(library):
        try:
            _compile(command, [*options, f"-I{FOLDER}"], units(), library)
        except OSError as error:
            raise BuildError(f"{library.parent}: {error.strerror}") from error
    try:
        return ctypes.CDLL(str(library))
    except OSError as error:
        raise BuildError(f"{library}: cannot be loaded ({error})") from error


def kernel(file: str) -> ctypes.CDLL | None:
    """The library of a C file of `FOLDER` whose loops were written by hand; None without a compiler, or if it fails."""
    with _KERNEL_LOCKS.setdefault(file, threading.Lock()):
        return _kernel(file)


@functools.cache
def _kernel(file: str) -> ctypes.CDLL | None:
    try:
        return build(file, lambda: [c_file(file)], {}, is_kernel=True)
    except BuildError:
        return None


def start_kernels(*files: str) -> None:
    """Have kernels compiled, if they are not in the cache, while this thread does other work."""

    def start(file: str) -> None:
        with contextlib.suppress(SettingError):  # the call that needs the kernel raises it
            kernel(file)

    for file in files:
        threading.Thread(target=start, args=(file,), name=f"kernel {file}").start()


def pointer(values: np.ndarray) -> ctypes.c_void_p:
    """Where contiguous values are, for a call of C; valid as long as they are kept."""
    return ctypes.c_void_p(values.ctypes.data)


def compiled(function: ca.Function) -> ca.Function:
    """The function as machine code if there is a C compiler: faster, with the same numbers to the last bit."""
    generator = ca.CodeGenerator(f"{function.name()}.c")
    generator.add(function)
    source = generator.dump()
    try:
        library = build(source, lambda: [source], {"GCC_HASCLASSVISIBILITY": 1})
    except BuildError:
        return function
    return ca.external(function.name(), library._name)


def _compile(command: list[str], options: list[str], units: Sequence[str], library: Path) -> None:
    cores = os.cpu_count() or 1
    files = _files(units, max(_LEAST, sum(map(len, units)) // (4 * cores)))
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        folder = Path(scratch)

        def one(k: int) -> Path:
            source, object_ = folder / f"{k}.c", folder / f"{k}.o"
            source.write_text(files[k], encoding="utf-8")
            _call([*command, *options, "-c", str(source), "-o", str(object_)])
            return object_

        with ThreadPoolExecutor(cores) as pool:
            objects = list(pool.map(one, range(len(files))))
        shared = folder / "linked.so"
        _call([*command, "-shared", "-o", str(shared), *map(str, objects), "-lm"])
        digest = folder / "digest"
        digest.write_text(hashlib.sha256(shared.read_bytes()).hexdigest(), encoding="utf-8")
        for partial, path in ((shared, library), (digest, _digest_file(library))):
            partial.chmod(0o600)
            _replace(partial, path)


def _replace(partial: Path, path: Path) -> None:
    """Give a complete file its name, once it is on the disk."""
    descriptor = os.open(partial, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(partial, path)


def _digest_file(library: Path) -> Path:
    return library.with_name(f"{library.name}.sha256")


def _is_intact(library: Path) -> bool:
    """Whether there is a library of this user's, as it was compiled."""
    try:
        with library.open("rb") as file:
            if not is_private(os.fstat(file.fileno())):
                return False
            content = file.read()
        return hashlib.sha256(content).hexdigest() == _digest_file(library).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False


def _files(units: Sequence[str], size: int) -> list[str]:
    """The units in files of about this many characters."""
    files: list[list[str]] = [[]]
    for unit in units:
        if files[-1] and sum(map(len, files[-1])) + len(unit) > size:
            files.append([])
        files[-1].append(unit)
    return ["\n".join(file) for file in files]


def _call(command: list[str]) -> None:
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        errors = [
            line for line in process.stderr.splitlines() if "error" in line
        ] or process.stderr.splitlines()
        raise BuildError(f"{command[0]}: {errors[0] if errors else f'exit {process.returncode}'}")


def _library_folder() -> Path:
    """A folder in the user's cache, or a temporary folder of this process if the cache is not writable."""
    return code_folder("native") or Path(_own_folder().name)


@functools.cache
def _own_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="rotorid-")


@functools.cache
def machine() -> str:
    """The processor that `-march=native` compiles for: several machines may share a cache."""
    try:
        flags = next(
            line
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith(("flags", "Features"))
        )
    except (OSError, StopIteration):
        flags = platform.processor()
    return f"{platform.system()} {platform.machine()} {flags}"


@functools.cache
def _generator() -> str:
    """A digest of the code generator, so that a library of another version is not loaded."""
    files = sorted(p for p in FOLDER.parent.rglob("*") if p.suffix in (".py", ".c", ".h"))
    return hashlib.sha256(b"".join(p.read_bytes() for p in files) + version("casadi").encode()).hexdigest()
