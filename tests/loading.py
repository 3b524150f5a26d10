"""Python files that are no part of a package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]


def load_file(path: Path) -> ModuleType:
    """Run a file as a module of its own."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where dataclasses look for their annotations
    spec.loader.exec_module(module)
    return module


def load_script(name: str) -> ModuleType:
    """A script in docs/."""
    return load_file(ROOT / "docs" / f"{name}.py")
