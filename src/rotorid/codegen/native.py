"""C source to functions in this process: compiled once, kept in the user's cache, loaded with ctypes."""

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
"""Characters that a run of the compiler is given at least: about what it compiles in the time that it takes to start."""


class BuildError(Exception):
    """The C compiler did not do it. Its message is the compiler's."""


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
) -> ctypes.CDLL:
    """The shared library of C units (see `FOLDER` for what they may include); one built before is loaded.

    Neighbours are compiled as one file, so no two may define the same name. key: what the units depend on, beside rotorid
    itself. flags: for the compiler, beside ours. Flags of $CFLAGS come last, so they win. Raises BuildError where there
    is no compiler, or where it fails.
    """
    command = compiler()
    if command is None:
        raise BuildError("no C compiler found (looked for $CC, cc, gcc, clang)")
    options = [
        *_FLAGS,
        *flags,
        *shlex.split(os.environ.get("CFLAGS", "")),
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
    """The same function as machine code, where a C compiler is at hand: the same numbers to the last bit, sooner."""
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
        linked = folder / "linked.so"
        _call([*command, "-shared", "-o", str(linked), *map(str, objects), "-lm"])
        os.replace(linked, library)


def _files(units: Sequence[str], size: int) -> list[str]:
    """The units in files of about this many characters."""
    files: list[list[str]] = [[]]
    for unit in units:
        if files[-1] and sum(map(len, files[-1])) + len(unit) > size:
            files.append([])
        files[-1].append(unit)
    return ["\n".join(file) for file in files]


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        raise BuildError(f"{command[0]}: {errors[0] if errors else f'exit {done.returncode}'}")


def _library_folder() -> Path:
    """In the user's cache; in a folder of this process alone where that cannot be written."""
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
    """What `-march=native` depends on: a cache may be shared by several machines."""
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
    """A digest of what turns a function into C, so that a library of another version is not taken for ours."""
    files = sorted(p for p in FOLDER.parent.rglob("*") if p.suffix in (".py", ".c", ".h"))
    return hashlib.sha256(b"".join(p.read_bytes() for p in files) + version("casadi").encode()).hexdigest()
