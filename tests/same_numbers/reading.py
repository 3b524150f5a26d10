"""The numbers of files of every kind, each under a key that begins with the file's name.

A number is written as `float.hex()`, and as `true`, `false` or `null` where it is one of these. A long column is written as a
digest of all of its values, with their count, mean, first and last, and some in between to measure a difference with.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import math
import re
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from tests.same_numbers.cases import VOLATILE

Column = dict[str, Any]
"""count, nan, sha256, sorted (the digest of the sorted values), mean, first, last, some."""

_SOME = 25
_LONG_TABLE = 20_000  # numbers
_LONG_LIST = 12
_VOLATILE = re.compile("|".join(VOLATILE), re.IGNORECASE)
_NUMBER = re.compile(
    r"(?<![\w.])(?:(?<![\w)\]\"] )(?<![\w)\]\"])-)?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\d.])"
)
_COMMENTS = {
    **dict.fromkeys((".c", ".h", ".cpp"), re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)),
    **dict.fromkeys((".xml", ".sdf", ".urdf", ".config"), re.compile(r"<!--.*?-->", re.DOTALL)),
    ".m": re.compile(r"%[^\n]*"),
    "": re.compile(r"#[^\n]*"),
}
"""What is left out of a text file before its numbers are read; '': of any other."""

_PROSE = {".html", ".md", ".txt", ".rst", ".svg", ".png", ".so", ".o", ".jsonl"}


class Found:
    """What was read: numbers and columns by key, and texts, which are kept apart."""

    def __init__(self) -> None:
        self.numbers: dict[str, str] = {}
        self.columns: dict[str, Column] = {}
        self.texts: dict[str, str] = {}

    def put(self, key: str, value: Any) -> None:
        """A leaf, or all leaves of objects and lists."""
        if _VOLATILE.search(key):
            return
        if isinstance(value, Mapping):
            for name, item in value.items():
                self.put(f"{key}/{name}", item)
        elif isinstance(value, (list, tuple)):
            leaves = numbers_in(value)
            if leaves is not None and len(leaves) > _LONG_LIST:
                self.put_column(key, leaves)
                return
            for k, item in enumerate(value):
                self.put(f"{key}/{k}", item)
        elif isinstance(value, str):
            self.texts[key] = value
        elif value is None or isinstance(value, bool):
            self.numbers[key] = json.dumps(value)
        elif isinstance(value, (int, float)):
            self.numbers[key] = written(value)
        else:
            self.texts[key] = str(value)

    def put_column(self, key: str, values: Any) -> None:
        """An array, as one column."""
        if not _VOLATILE.search(key):
            self.columns[key] = column(np.asarray(values, np.float64).ravel())


def numbers_in(values: Any) -> list[float] | None:
    """All leaves of nested lists, None where some are no numbers."""
    found: list[float] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            inner = numbers_in(value)
            if inner is None:
                return None
            found += inner
        elif value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            found.append(math.nan if value is None else float(value))
        else:
            return None
    return found


def written(value: float) -> str:
    """A number so that equal ones are written equally: -0 as 0, 2 as 2.0."""
    return float(value + 0.0).hex() if math.isfinite(value) else str(float(value))


def column(values: np.ndarray) -> Column:
    """The record of a column."""
    values = np.where(np.isnan(values), np.nan, values + 0.0)
    finite = values[np.isfinite(values)]
    picked = (
        np.unique(np.linspace(0, len(values) - 1, min(_SOME, len(values))).astype(int)) if len(values) else []
    )
    return {
        "count": len(values),
        "nan": int(np.isnan(values).sum()),
        "sha256": hashlib.sha256(values.tobytes()).hexdigest(),
        "sorted": hashlib.sha256(np.sort(values).tobytes()).hexdigest(),
        "mean": written(float(finite.mean())) if len(finite) else "null",
        "first": written(float(values[0])) if len(values) else "null",
        "last": written(float(values[-1])) if len(values) else "null",
        "some": [written(float(values[k])) for k in picked],
    }


def read_folder(folder: Path, found: Found) -> None:
    """All files of a folder, but pages, prose and what is kept of the way there."""
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        if path.suffix in _PROSE or "parts" in path.parts or "__pycache__" in path.parts:
            continue
        read_file(path, name, found)


def read_file(path: Path, name: str, found: Found) -> None:
    """One file, by its ending."""
    if path.suffix in (".json", ".plan"):
        found.put(name, json.loads(path.read_text()))
    elif path.suffix == ".toml":
        found.put(name, tomllib.loads(path.read_text()))
    elif path.suffix == ".parquet":
        table = parquet.read_table(path)
        read_table(table, name, found)
        for key, value in (table.schema.metadata or {}).items():
            _put_text(f"{name}#{key.decode()}", value.decode(errors="replace"), found)
    elif path.suffix == ".csv":
        read_csv(path, name, found)
    elif path.suffix == ".mcap":
        read_mcap(path, name, found)
    elif path.suffix == ".mat":
        read_mat(path, name, found)
    elif path.suffix == ".safetensors":
        read_safetensors(path, name, found)
    elif path.suffix == ".casadi":
        read_casadi(path, name, found)
    else:
        read_text(path, name, found)


def _put_text(key: str, text: str, found: Found) -> None:
    """A text that may be JSON."""
    try:
        found.put(key, json.loads(text))
    except ValueError:
        found.texts[key] = text


def read_csv(path: Path, name: str, found: Found) -> None:
    """A table; lines of comments before it are a text."""
    lines = path.read_text().splitlines(keepends=True)
    heading = [line for line in lines if line.startswith("#")]
    if heading:
        found.texts[f"{name}#"] = "".join(heading)
    rest = "".join(line for line in lines if not line.startswith("#"))
    try:
        read_table(csv.read_csv(io.BytesIO(rest.encode())), name, found)
    except pa.ArrowInvalid:
        read_text(path, name, found)


def read_table(table: pa.Table, name: str, found: Found) -> None:
    """Columns as columns. A short table with words in it is read row by row, each named by its words."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    words = [f.name for f in table.schema if _is_text(f.type)]
    if words and table.num_rows * (table.num_columns - len(words)) <= _LONG_TABLE:
        seen: Counter[str] = Counter()
        for row in table.to_pylist():
            key = "|".join(str(row[w]) for w in words)
            seen[key] += 1
            again = f"#{seen[key]}" if seen[key] > 1 else ""
            found.put(f"{name}:{key}{again}", {k: v for k, v in row.items() if k not in words})
        found.texts[f"{name}:"] = ", ".join(table.column_names)
        return
    for field in table.schema:
        values = table.column(field.name).combine_chunks()
        if _is_text(field.type):
            text = "\n".join(map(str, values.to_pylist()))
            found.texts[f"{name}:{field.name}"] = hashlib.sha256(text.encode()).hexdigest()
            continue
        while pa.types.is_list(values.type) or pa.types.is_fixed_size_list(values.type):
            values = values.flatten()
        found.put_column(f"{name}:{field.name}", _floats(values))


def _is_text(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return _is_text(type_.value_type)
    return pa.types.is_string(type_) or pa.types.is_large_string(type_)


def _floats(values: pa.Array) -> np.ndarray:
    if pa.types.is_timestamp(values.type) or pa.types.is_duration(values.type):
        values = values.cast(pa.int64())
    return np.array([np.nan if v is None else float(v) for v in values.to_pylist()])


def read_mcap(path: Path, name: str, found: Found) -> None:
    """Messages in JSON as a column for each of their leaves; the others as bytes."""
    from mcap.reader import make_reader

    leaves: dict[str, list[float]] = defaultdict(list)
    rest: dict[str, Any] = {}
    with open(path, "rb") as file:
        reader = make_reader(file)
        for schema, channel, message in reader.iter_messages(log_time_order=False):
            if channel.message_encoding == "json":
                _leaves(channel.topic, json.loads(message.data), leaves)
            else:
                rest.setdefault(channel.topic, hashlib.sha256()).update(message.data)
            del schema
    for key, values in leaves.items():
        found.put_column(f"{name}:{key}", values)
    for topic, digest in rest.items():
        found.texts[f"{name}:{topic}"] = digest.hexdigest()


def _leaves(key: str, thing: Any, leaves: dict[str, list[float]]) -> None:
    if isinstance(thing, Mapping):
        for name, item in thing.items():
            _leaves(f"{key}/{name}", item, leaves)
    elif isinstance(thing, list):
        for k, item in enumerate(thing):
            _leaves(f"{key}/{k}", item, leaves)
    elif thing is None or isinstance(thing, (bool, int, float)):
        leaves[key].append(math.nan if thing is None else float(thing))


def read_mat(path: Path, name: str, found: Found) -> None:
    """Arrays of numbers."""
    from scipy.io import loadmat

    for key, value in loadmat(path).items():
        if key.startswith("__"):
            continue
        for k, values in _arrays(value, key):
            found.put_column(f"{name}:{k}", values)


def _arrays(value: np.ndarray, key: str) -> Iterable[tuple[str, np.ndarray]]:
    if value.dtype.names:
        for field in value.dtype.names:
            yield from _arrays(value[field], f"{key}.{field}")
    elif value.dtype == object:
        for k, item in enumerate(value.ravel()):
            if isinstance(item, np.ndarray):
                yield from _arrays(item, f"{key}.{k}")
    elif value.dtype.kind in "fiub":
        yield key, value


def read_safetensors(path: Path, name: str, found: Found) -> None:
    """Tensors, and the words of their file."""
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        for key in file.keys():  # noqa: SIM118
            found.put_column(f"{name}:{key}", file.get_tensor(key))
        for key, text in (file.metadata() or {}).items():
            _put_text(f"{name}#{key}", text, found)


def read_casadi(path: Path, name: str, found: Found) -> None:
    """What a function gives at fixed inputs."""
    import casadi

    function = casadi.Function.load(str(path))
    count, inputs = 0, []
    for k in range(function.n_in()):
        size = function.numel_in(k)
        values = 1.0 + 0.5 * np.sin(1.0 + 2.0 * np.arange(count, count + size))
        inputs.append(casadi.reshape(casadi.DM(values), *function.size_in(k)))
        count += size
    for k, value in enumerate(function.call(inputs)):
        found.put_column(f"{name}:{k}", value.full())


def read_text(path: Path, name: str, found: Found) -> None:
    """Literals of numbers in the code: whole numbers, which say places, apart from the others; and those of comments."""
    data = path.read_bytes()
    found.texts[f"{name}#sha256"] = hashlib.sha256(data).hexdigest()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    code, comments = split(text, path.suffix)
    literals = numbers_of_python(code) if path.suffix == ".py" else _NUMBER.findall(code)
    is_whole = [path.suffix != ".csv" and re.fullmatch(r"-?\d+", x) is not None for x in literals]
    whole = [float(x) for x, w in zip(literals, is_whole, strict=True) if w]
    if not all(is_whole):
        found.put_column(
            f"{name}#numbers", [float(x) for x, w in zip(literals, is_whole, strict=True) if not w]
        )
    if whole:
        found.put_column(f"{name}#whole", whole)
    said = [x for x in _NUMBER.findall(comments) if "." in x]
    if said:
        found.put_column(f"{name}#comments", [float(x) for x in said if x.count(".") == 1])


def split(text: str, suffix: str) -> tuple[str, str]:
    """Code and comments. Texts in C count as comments; of Python the code is left whole."""
    if suffix == ".py":
        return text, "\n".join(re.findall(r"#[^\n]*", text))
    pattern = _COMMENTS.get(suffix, _COMMENTS[""])
    return pattern.sub(" ", text), "\n".join(pattern.findall(text))


def numbers_of_python(text: str) -> Sequence[str]:
    """Literals of a program in Python, without those in its texts. Numbers in other notations are written as decimals."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [repr(ast.literal_eval(t.string)) for t in tokens if t.type == tokenize.NUMBER]
