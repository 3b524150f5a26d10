"""Docstrings and signatures as the reference of the site shows them (see mkdocs.yml).

Sections get an empty line before them. A paragraph of fields or arguments ("t: s from the start. u: inputs.") becomes a list.
Modules of Equinox and named tuples, which are made from their fields as dataclasses are, get a signature.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

SECTION = re.compile(r"(?<!\n)\n(?=(Args|Returns|Raises|Source|Yields|Attributes):)")
NAMES = r"\w+(?: \([^()]*\))?(?:, \w+(?: \([^()]*\))?)*"
FIELD = re.compile(rf"(?:^|(?<=[.;] ))({NAMES}): ")
NAME = re.compile(r"(\w+)(?: \(([^()]*)\))?(?:, |$)")
MADE_FROM_FIELDS = ("eqx.Module", "Module", "NamedTuple")


class Docstrings(griffe.Extension):
    """Brings docstrings into the form of Google's sections, and adds missing signatures."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object that was read from the sources."""
        if obj.docstring is not None:
            obj.docstring.value = SECTION.sub("\n\n", obj.docstring.value)

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """Called for each function, with its parameters."""
        if func.docstring is not None and "Args:" not in func.docstring.value:
            names = {parameter.name for parameter in func.parameters}
            func.docstring.value = with_list(func.docstring.value, "Args", names)

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Called for each class, with its members."""
        if any(str(base) in MADE_FROM_FIELDS for base in cls.bases):
            add_signature(cls)
        if cls.docstring is not None and not re.search(
            "^(Args|Attributes):", cls.docstring.value, re.MULTILINE
        ):
            names = set(cls.members)
            if isinstance(init := cls.members.get("__init__"), griffe.Function):
                names |= {parameter.name for parameter in init.parameters}
            cls.docstring.value = with_list(cls.docstring.value, "Attributes", names)


def with_list(text: str, section: str, names: set[str]) -> str:
    """A docstring whose paragraph of fields, if it has one, is a section with a line for each."""
    paragraphs = text.split("\n\n")
    for k, paragraph in enumerate(paragraphs):
        flat = " ".join(paragraph.split())
        heads = [
            head for head in FIELD.finditer(flat) if {name for name, _ in NAME.findall(head[1])} <= names
        ]
        if not heads or paragraph.startswith(" "):
            continue
        ends = [head.start() for head in heads[1:]] + [len(flat)]
        fields = zip(heads, ends, strict=True)
        lines = [line for head, end in fields for line in entries(head[1], flat[head.end() : end])]
        before = flat[: heads[0].start()].rstrip()
        paragraphs[k] = (f"{before}\n\n" if before else "") + "\n    ".join([f"{section}:", *lines])
        break
    return "\n\n".join(paragraphs)


def entries(head: str, text: str) -> list[str]:
    """A line of a section for each of these names: the name, its unit and the text of all."""
    text = text.strip().rstrip(";")
    return [f"{name}: {unit + ': ' if unit else ''}{text}" for name, unit in NAME.findall(head)]


def add_signature(cls: griffe.Class) -> None:
    """Give a class that is made from its fields the signature of its `__init__`."""
    if "__init__" in cls.members:
        return
    kind = griffe.ParameterKind.positional_or_keyword
    fields = [griffe.Parameter("self", kind=kind)]
    for member in cls.members.values():
        if (
            not isinstance(member, griffe.Attribute)
            or member.annotation is None
            or "property" in member.labels
        ):
            continue
        if "class-attribute" in member.labels and "instance-attribute" not in member.labels:
            continue
        default = None if "field(" in str(member.value) else member.value
        fields.append(griffe.Parameter(member.name, annotation=member.annotation, kind=kind, default=default))
    if len(fields) > 1:
        cls.set_member(
            "__init__",
            griffe.Function("__init__", parameters=griffe.Parameters(*fields), returns="None", parent=cls),
        )
