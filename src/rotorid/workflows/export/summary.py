"""The result of `rotorid export`: the files that were written, and what to do with them."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from importlib.metadata import version

from rotorid.results.files import to_json


@dataclasses.dataclass(frozen=True)
class ExportedFile:
    """A file that was written. sha256: of its content. bytes: its size."""

    name: str
    sha256: str
    bytes: int


@dataclasses.dataclass(frozen=True)
class ExportSummary:
    """Written files.

    name: of the estimator, the System or the program. form: "c", "casadi" or "airframe". airframe: its name. next_step: the
    command to call in the folder, or what to do there.
    """

    name: str
    form: str
    airframe: str
    files: tuple[ExportedFile, ...]
    next_step: str
    versions: Mapping[str, str]

    @property
    def size_text(self) -> str:
        """Number and size of the files: "8 files, 31 kB"."""
        return f"{len(self.files)} files, {sum(f.bytes for f in self.files) / 1000:.0f} kB"

    def to_json(self) -> str:
        """As a JSON document with sorted keys."""
        return to_json(self)


def summarise_export(
    name: str, form: str, airframe: str, files: Mapping[str, bytes], next_step: str
) -> ExportSummary:
    """Describe written files. files: contents by name; others as of `ExportSummary`."""
    written = (
        ExportedFile(file, hashlib.sha256(data).hexdigest(), len(data)) for file, data in files.items()
    )
    return ExportSummary(name, form, airframe, tuple(written), next_step, {"rotorid": version("rotorid")})
