"""Environment variables for work that compiles many programs and runs each of them briefly: the site and the tests."""

from __future__ import annotations

import os
from typing import Final

ENVIRONMENT: Final = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1 --xla_cpu_enable_concurrency_optimized_scheduler=false "
    "--xla_llvm_disable_expensive_passes=true",
    # gcc's search for common values takes most of its time where eight lanes of doubles do not fit the registers; -Og compiles
    # no faster than -O1, and its code takes up to twice as long
    "CFLAGS": "-O1 --param=max-cselib-memory-locations=10 --param=max-cse-insns=50",
}


def environment(*, is_quick: bool = True) -> dict[str, str]:
    """The environment of this process for others, in which what one compiles of Python is kept for the next.

    is_quick: with those of the variables that it does not have.
    """
    found = {**(ENVIRONMENT if is_quick else {}), **os.environ}
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found
