"""modelDescription.xml of an FMU: the variables of a System with units, and their structure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from rotorid.export.file_header import as_xml_comment
from rotorid.export.xml import number
from rotorid.quoting import xml_text

SOURCES = ("fmi3.c",)
"""The translation units of the sources."""


@dataclasses.dataclass(frozen=True)
class Variable:
    """A number of an FMU: its name, unit, frame, value at the start and the text of its description."""

    name: str
    unit: str
    start: float = 0.0
    description: str = ""


@dataclasses.dataclass(frozen=True)
class Variables:
    """All numbers of an FMU, in the order of their value references, which begin at 1 behind the time."""

    states: Sequence[Variable]
    inputs: Sequence[Variable]
    parameters: Sequence[Variable]
    outputs: Sequence[Variable]

    @property
    def offsets(self) -> dict[str, int]:
        """First value reference of each kind, by its name in C, and the number of all values."""
        n, m, k = len(self.states), len(self.inputs), len(self.parameters)
        first = {"X": 1, "DX": 1 + n, "U": 1 + 2 * n, "P": 1 + 2 * n + m, "Y": 1 + 2 * n + m + k}
        return {**first, "SIZE": first["Y"] + len(self.outputs)}


def description(
    variables: Variables,
    *,
    name: str,
    identifier: str,
    token: str,
    about: Sequence[str],
    version: str,
    step: float,
) -> str:
    """The XML text.

    Args:
        variables: of the FMU.
        name: of the model, any text.
        identifier: name of the binary, a name in C.
        token: the instantiation token.
        about: paragraphs of the comment.
        version: of the program that wrote it.
        step: suggested step of an integrator, s.
    """
    interface = f'modelIdentifier="{identifier}"'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<fmiModelDescription fmiVersion="3.0" modelName="{xml_text(name)}" instantiationToken="{token}" '
        f'generationTool="rotorid {xml_text(version)}" variableNamingConvention="structured">\n'
        f"{as_xml_comment(about, '  ')}"
        f'  <ModelExchange {interface} needsCompletedIntegratorStep="false"/>\n'
        f'  <CoSimulation {interface} canHandleVariableCommunicationStepSize="true" fixedInternalStepSize="{number(step)}"/>\n'
        f"  <UnitDefinitions>\n{''.join(_units(variables))}  </UnitDefinitions>\n"
        f'  <DefaultExperiment startTime="0" stopTime="5" stepSize="{number(step)}"/>\n'
        f"  <ModelVariables>\n{''.join(_variables(variables))}  </ModelVariables>\n"
        f"  <ModelStructure>\n{''.join(_structure(variables))}  </ModelStructure>\n"
        "</fmiModelDescription>\n"
    )


def build_description(identifier: str) -> str:
    """buildDescription.xml of the sources."""
    files = "".join(f'      <SourceFile name="{file}"/>\n' for file in SOURCES)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<fmiBuildDescription fmiVersion="3.0">\n'
        f'  <BuildConfiguration modelIdentifier="{identifier}">\n    <SourceFileSet language="C99">\n{files}'
        "    </SourceFileSet>\n  </BuildConfiguration>\n</fmiBuildDescription>\n"
    )


def _units(v: Variables) -> Iterator[str]:
    named = {one.unit for one in (*v.states, *v.inputs, *v.parameters, *v.outputs)}
    for unit in sorted({"s"} | named | {_rate(one.unit) for one in v.states}):
        yield f'    <Unit name="{xml_text(unit)}"/>\n'


def _rate(unit: str) -> str:
    return "1/s" if unit == "1" else f"({unit})/s"


def _float(reference: int, one: Variable, attributes: str) -> str:
    text = f' description="{xml_text(one.description)}"' if one.description else ""
    return (
        f'    <Float64 name="{xml_text(one.name)}" valueReference="{reference}" {attributes} unit="{xml_text(one.unit)}"'
        f"{text}/>\n"
    )


def _variables(v: Variables) -> Iterator[str]:
    first = v.offsets
    yield _float(0, Variable("time", "s"), 'causality="independent" variability="continuous"')
    kinds = (
        ("X", v.states, 'causality="local" variability="continuous" initial="exact"'),
        ("U", v.inputs, 'causality="input" variability="continuous"'),
        ("P", v.parameters, 'causality="parameter" variability="tunable" initial="exact"'),
    )
    for key, group, attributes in kinds:
        for i, one in enumerate(group):
            yield _float(first[key] + i, one, f'{attributes} start="{number(one.start)}"')
    for i, one in enumerate(v.states):
        rate = Variable(f"der({one.name})", _rate(one.unit))
        attributes = (
            f'causality="local" variability="continuous" initial="calculated" derivative="{first["X"] + i}"'
        )
        yield _float(first["DX"] + i, rate, attributes)
    for i, one in enumerate(v.outputs):
        yield _float(first["Y"] + i, one, 'causality="output" variability="continuous" initial="calculated"')


def _structure(v: Variables) -> Iterator[str]:
    first = v.offsets
    outputs = [first["Y"] + i for i in range(len(v.outputs))]
    rates = [first["DX"] + i for i in range(len(v.states))]
    for kind, references in (
        ("Output", outputs),
        ("ContinuousStateDerivative", rates),
        ("InitialUnknown", [*outputs, *rates]),
    ):
        for reference in references:
            yield f'    <{kind} valueReference="{reference}"/>\n'
