"""Docstrings and signatures as the reference of the site shows them (see mkdocs.yml).

Sections get an empty line before them. A paragraph of fields or arguments ("t: s from the start. u: inputs.") becomes a list.
Modules of Equinox and named tuples, which are made from their fields as dataclasses are, get a signature. Public names in a
docstring are links.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.append(str(Path(__file__).parent))
from site_reference import entries

SECTION = re.compile(r"(?<!\n)\n(?=(Args|Returns|Raises|Source|Yields|Attributes):)")
ORIGIN = re.compile(r"^Source: .*(?:\n[ ]*\S.*)*", re.MULTILINE)
NAMES = r"\w+(?: \([^()]*\))?(?:, \w+(?: \([^()]*\))?)*"
FIELD = re.compile(rf"(?:^|(?<=[.;] ))({NAMES}): ")
NAME = re.compile(r"(\w+)(?: \(([^()]*)\))?(?:, |$)")
GROUP = re.compile(r"^    (\w+(?:, \w+)+): (.*(?:\n {5,}.*)*)", re.MULTILINE)
CODE = re.compile(r"(?<![`\[])`(\w+)((?:\.\w+)?)(?:\([^`]*\))?`(?!`)")
MADE_FROM_FIELDS = {"eqx.Module", "Module", "NamedTuple"}
KIND = griffe.ParameterKind.positional_or_keyword
ABSTRACT = {"AbstractVar", "AbstractClassVar"}


class Docstrings(griffe.Extension):
    """Brings docstrings into the form of Google's sections, and adds missing signatures."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object that was read from the sources."""
        if obj.docstring is not None:
            text = ORIGIN.sub(lambda match: " ".join(match[0].split()), obj.docstring.value)
            obj.docstring.value = GROUP.sub(
                lambda match: "\n".join(
                    f"    {name}: {' '.join(match[2].split())}" for name in match[1].split(", ")
                ),
                SECTION.sub("\n\n", text),
            )

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Called for each attribute; a default that a lambda makes is shown without the lambda, a long value is not shown."""
        value = attr.value
        if isinstance(value, griffe.ExprCall):
            for argument in value.arguments:
                if isinstance(argument, griffe.ExprKeyword) and argument.name == "default_factory":
                    factory = argument.value
                    attr.value = factory.body if isinstance(factory, griffe.ExprLambda) else value
        if isinstance(value, griffe.ExprDict) and attr.parent is not None and attr.parent.is_module:
            attr.value = None

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """Called for each function, with its parameters."""
        if func.docstring is not None and "Args:" not in func.docstring.value:
            names = {parameter.name for parameter in func.parameters}
            func.docstring.value = with_list(func.docstring.value, "Args", names)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Called for the package, with all of its modules."""
        things = list(objects(pkg))
        signatures = {thing: signature(thing) for thing in things if isinstance(thing, griffe.Class)}
        for cls, parameters in signatures.items():
            if parameters is not None:
                function = griffe.Function("__init__", parameters=parameters, returns="None", parent=cls)
                cls.set_member("__init__", function)
        for thing in things:
            if isinstance(thing, griffe.Class):
                list_fields(thing)
                thing.bases = [base for base in thing.bases if not str(base).split(".")[-1].startswith("_")]
            if thing.docstring is not None:
                thing.docstring.value = CODE.sub(
                    lambda match, at=thing: link(match, at), thing.docstring.value
                )


def objects(parent: griffe.Object) -> Any:
    """All modules, classes, functions and attributes in this one."""
    yield parent
    for member in parent.members.values():
        if isinstance(member, griffe.Object):
            yield from objects(member)


def list_fields(cls: griffe.Class) -> None:
    """Make a list of the paragraph of fields in the docstring of a class."""
    if cls.docstring is None or re.search("^(Args|Attributes):", cls.docstring.value, re.MULTILINE):
        return
    names = set(cls.all_members)
    if isinstance(init := cls.members.get("__init__"), griffe.Function):
        names |= {parameter.name for parameter in init.parameters}
    cls.docstring.value = with_list(cls.docstring.value, "Attributes", names)


def link(match: re.Match[str], thing: griffe.Object) -> str:
    """Code in the docstring of a thing: a link, if it is the name of another thing in the reference.

    Names of the thing's arguments and members are not links, nor are names of the class that it is in.
    """
    name = match[1]
    place = thing if isinstance(thing, griffe.Class) else thing.parent
    own = {thing.name, *thing.members}
    if isinstance(thing, griffe.Function):
        own |= {parameter.name for parameter in thing.parameters}
    if isinstance(place, griffe.Class):
        own |= {place.name, *place.members}
        if "__init__" in place.members:
            own |= {parameter.name for parameter in place.members["__init__"].parameters}
    if name not in entries() or name in own:
        return match[0]
    target = entries()[name]
    member = match[2].removeprefix(".")
    if member:
        root = thing.package
        found = root[target.removeprefix("rotorid.")].all_members.get(member)
        target += f".{member}" if found is not None and found.has_docstring else ""
    return f"[{match[0]}][{target}]"


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
        lines = [line for head, end in fields for line in items(head[1], flat[head.end() : end])]
        before = flat[: heads[0].start()].rstrip()
        paragraphs[k] = (f"{before}\n\n" if before else "") + "\n    ".join([f"{section}:", *lines])
        break
    return "\n\n".join(paragraphs)


def items(head: str, text: str) -> list[str]:
    """A line of a section for each of these names: the name, its unit and the text of all."""
    text = text.strip().rstrip(";")
    return [f"{name}: {unit + ': ' if unit else ''}{text}" for name, unit in NAME.findall(head)]


def signature(cls: griffe.Class) -> griffe.Parameters | None:
    """The parameters of a class that is made from its fields; None for any other, and for an abstract class."""
    classes = [cls, *(base for base in cls.mro() if isinstance(base, griffe.Class))]
    bases = {str(base) for one in classes for base in one.bases}
    if not bases & MADE_FROM_FIELDS or any("__init__" in one.members for one in classes):
        return None
    fields: dict[str, griffe.Parameter | None] = {}
    for member in (member for one in reversed(classes) for member in one.members.values()):
        if is_field(member):
            fields[member.name] = None if is_abstract(member) else parameter(member)
    if None in fields.values() or not fields:
        return None
    in_order = sorted(fields.values(), key=lambda field: field.kind is griffe.ParameterKind.keyword_only)
    return griffe.Parameters(griffe.Parameter("self", kind=KIND), *in_order)


def is_field(member: Any) -> bool:
    """Whether a member of a class is a field, be it one that a subclass has to give."""
    if not isinstance(member, griffe.Attribute) or member.annotation is None or "property" in member.labels:
        return False
    return (
        is_abstract(member) or "class-attribute" not in member.labels or "instance-attribute" in member.labels
    )


def is_abstract(member: griffe.Attribute) -> bool:
    """Whether a subclass has to give a field."""
    return str(member.annotation).split("[")[0].split(".")[-1] in ABSTRACT


def parameter(member: griffe.Attribute) -> griffe.Parameter:
    """The parameter of a field."""
    value = member.value
    if isinstance(value, griffe.ExprCall) and "field" in str(value.function):
        options = {one.name: one.value for one in value.arguments if isinstance(one, griffe.ExprKeyword)}
        kind = griffe.ParameterKind.keyword_only if str(options.get("kw_only")) == "True" else KIND
        return griffe.Parameter(
            member.name, annotation=member.annotation, kind=kind, default=options.get("default")
        )
    return griffe.Parameter(member.name, annotation=member.annotation, kind=KIND, default=value)
