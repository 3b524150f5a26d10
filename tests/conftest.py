"""What all tests share."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from rotorid.cache import cache_folder, keep_compiled
from tests.loading import load_script
from tests.shape_checks import check_on_call

check_on_call()

# tests compile many programs and run each of them briefly; what one process compiled, the others take from the disk
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ.update(load_script("quick_compilation").environment())
# the workers have the cores, on which waiting threads of linear algebra would spin; NumPy may be loaded already
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
threadpool_limits(int(os.environ["OPENBLAS_NUM_THREADS"]), user_api="blas")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_folder() / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
keep_compiled()  # its entries are checked: a worker may read one while the other one writes it

# traced programs are many small objects that live long: they are not worth looking through often
gc.set_threshold(50_000, 20, 50)


@pytest.fixture(scope="session")
def flights() -> Path:
    """The folder of recorded flights, no part of the project; tests on it are skipped where it is absent."""
    folder = Path(os.environ.get("ROTORID_FLIGHTS", Path(__file__).parents[2] / "shared" / "flights"))
    if not folder.is_dir():
        pytest.skip(f"no recorded flights at {folder} (set ROTORID_FLIGHTS)")
    return folder


@pytest.fixture(autouse=True, scope="module")
def _earlier_objects_are_left_alone() -> None:
    gc.freeze()


LONG = (
    "test_docs.py", "workflows/learn/test_command.py", "recovery/", "contract/", "studies/", "identification/", "workflows/",
    "estimators/", "learning/", "benchmarks/",
)  # fmt: skip
"""Files and folders of tests that take long, the longest first: where two workers share the files, neither is left with one of
them at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long tests first, those of a file together."""
    here = Path(__file__).parent

    def place(item: pytest.Item) -> int:
        name = item.path.relative_to(here).as_posix()
        return next((k for k, start in enumerate(LONG) if name.startswith(start)), len(LONG))

    items.sort(key=place)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their argument: an archive contains its time of making, so that two workers would differ."""
    return argname if isinstance(val, bytes) else None
