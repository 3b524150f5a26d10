"""Compile C source and load it with ctypes; the libraries are kept in the user's cache."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import casadi as ca

from rotorid.cache import cache_folder

FOLDER = Path(__file__).with_name("c")
"""The C files that come with rotorid."""

_FLAGS = (
    "-O2",
    "-march=native",
    "-ffp-contract=off",  # the same result in a lane as alone
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-fvisibility=hidden",
    "-w",
)

_LEAST = 60_000
"""Least number of characters for one run of the compiler: about as many as it compiles in its start-up time."""


class BuildError(Exception):
    """The C compiler failed. The message is that of the compiler."""


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
    without a compiler, or if it fails.
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
    name = hashlib.sha256("\0".join([*command, *options, _machine(), _generator(), key]).encode()).hexdigest()
    library = _library_folder() / f"{name[:32]}.so"
    if not library.exists():
        try:
            _compile(command, [*options, f"-I{FOLDER}"], units(), library)
        except OSError as error:
            raise BuildError(f"{library.parent}: {error.strerror}") from error
    return ctypes.CDLL(str(library))


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
            source.write_text(files[k])
            _call([*command, *options, "-c", str(source), "-o", str(object_)])
            return object_

        with ThreadPoolExecutor(cores) as pool:
            objects = list(pool.map(one, range(len(files))))
        shared = folder / "linked.so"
        _call([*command, "-shared", "-o", str(shared), *map(str, objects), "-lm"])
        os.replace(shared, library)


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
    folder = cache_folder() / "native"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return Path(_own_folder().name)


@functools.cache
def _own_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="rotorid-")


@functools.cache
def _machine() -> str:
    """The processor that `-march=native` compiles for: several machines may share a cache."""
    try:
        flags = next(
            line
            for line in Path("/proc/cpuinfo").read_text().splitlines()
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
