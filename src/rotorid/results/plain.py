"""Results as JSON can say them."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any


def plain(thing: Any) -> Any:
    """Dataclasses as objects, sequences as lists, and null for a number that is none."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return {f.name: plain(getattr(thing, f.name)) for f in dataclasses.fields(thing)}
    if isinstance(thing, Mapping):
        return {str(k): plain(v) for k, v in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [plain(v) for v in thing]
    if isinstance(thing, float):
        return thing if math.isfinite(thing) else None
    return thing


def as_json(thing: Any) -> str:
    """A JSON document: sorted keys; a number that is not finite is null."""
    return json.dumps(plain(thing), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
