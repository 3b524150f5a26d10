"""Names of airframes are data: whatever they are, each exported file compiles or parses, and runs nothing of them."""

from __future__ import annotations

import ast
import dataclasses
import io
import json
import re
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rotorid import quoting
from rotorid.errors import AirframeError
from rotorid.estimators.ekf import ekf
from rotorid.estimators.onboard.readme import readme
from rotorid.estimators.onboard.source import header_and_source
from rotorid.estimators.onboard.trace import onboard
from rotorid.export.file_header import (
    as_c_comment,
    as_docstring,
    as_hash_comments,
    as_markdown,
    as_xml_comment,
    file_header,
)
from rotorid.export.targets import TARGETS, vehicle_files
from rotorid.models.airframe.airframe import airframe_toml, parse_airframe
from rotorid.report.page import Page
from tests.export.vehicles import accepted, for_target, skewed
from tests.systems import Pendulum

NAMES = (
    'quad */ int injected(void) { return system("touch pwned"); } /*',
    'quad **// #include "/etc/passwd" /*/ \\',
    "quad ??/",
    'quad """ + __import__("os").system("touch pwned") + """ {x} %s \\',
    "quad --> <injected/> <!-- ---- &lt; ]]> \"'",
    "quad\nARMING_CHECK,0\r\nset /p\x1b[2J\x00\x7f\u2028\u202e",
    "quad' ; $(touch pwned) `touch pwned` #",
    "quad <script>injected()</script> [a](javascript:b) | c |",
    "../../quad/../x",
    "quad " + "x" * 5000,
    "quadrotor é 四",
)
TEXTS = dict(enumerate(NAMES))


def hostile(name: str, target: str = ""):
    airframe = dataclasses.replace(
        for_target(target, skewed()), name=name, description=f"description: {name}"
    )
    record = accepted(airframe).fly_back
    assert record is not None
    record = dataclasses.replace(record, flights=(name,), reasons=(name,))
    return dataclasses.replace(airframe, fly_back=record)


def syntax_of_c(text: str, folder: Path) -> None:
    """Raise for C that does not compile, or has a word of a name outside of its comments."""
    (folder / "file.c").write_text(text)
    if shutil.which("cc"):
        command = ["cc", "-std=c99", "-fsyntax-only", "-Werror", "-Wall", "-trigraphs", "file.c"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    assert not re.search("injected|/etc", code)


DYNAMICS = """
namespace rl_tools::rl::environments::l2f::parameters {
    template <typename T, typename TI, TI N> struct Dynamics {
        T positions[N][3], thrusts[N][3], torques[N][3], k[N][3], ratios[N], rising[N], falling[N], mass;
        T gravity[3], J[3][3], J_inv[3][3], hover, limit[2];
    };
}
"""
"""What dynamics.hpp includes."""


def syntax_of_cpp(text: str, folder: Path) -> None:
    """As `syntax_of_c`, of the header for RLtools."""
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    assert not re.search(r"\binjected|/etc", code)
    (name,) = re.findall(r"(\w+) = \{", code)
    use = f"float of_quad = rotorid::{name}<float, unsigned>.mass;\n"
    text = DYNAMICS + re.sub("^#(pragma once|include <rl_tools.*)$", "", text, flags=re.MULTILINE) + use
    (folder / "file.cpp").write_text(text)
    if shutil.which("c++"):
        command = ["c++", "-std=c++17", "-fsyntax-only", "-Werror", "-Wall", "-trigraphs", "file.cpp"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)


def parse(file: str, content: bytes, folder: Path) -> None:
    """Raise for a file that its program would not read, or in which a name is more than data."""
    if file.endswith(".onnx"):
        import onnx

        model = onnx.load_from_string(content)
        texts = [model.doc_string, model.graph.doc_string, *(entry.value for entry in model.metadata_props)]
        assert not [text for text in texts if re.search(r"[\0\r\n\x1b\x7f\u2028\u202e]", text)]
        return
    if file.endswith(".fmu"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                assert re.fullmatch(r"[A-Za-z0-9_/.-]+", name)
                assert ".." not in name
                if name.endswith((".xml", ".h")):
                    parse(name, archive.read(name), folder)
        return
    text = content.decode()
    assert not set(text) & {"\0", "\r", "\x1b", "\x7f", "\u2028", "\u202e"}
    if file.endswith(".h"):
        syntax_of_c(text, folder)
    elif file.endswith(".hpp"):
        syntax_of_cpp(text, folder)
    elif file.endswith((".xml", ".sdf", ".urdf", ".config")):
        assert not [e for e in ElementTree.fromstring(text).iter() if e.tag == "injected"]
    elif file.endswith(".py"):
        tree = ast.parse(text)
        assert not [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "__import__"]
    elif file.endswith(".json"):
        json.loads(text)
    elif file.endswith((".param", ".params")):
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        pattern = (
            r"[A-Z0-9_]+,-?[0-9.e+-]+" if file.endswith(".param") else r"1\t1\t[A-Z0-9_]+\t-?[0-9.e+-]+\t[69]"
        )
        assert [line for line in lines if not re.fullmatch(pattern, line)] == []
    elif file.endswith(".md"):
        assert not re.search(r"(?<!\\)<script|(?<!\\)\]\(", text)


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_holds_any_name(target: str, tmp_path: Path):
    for file, content in vehicle_files(target, hostile("\n".join(NAMES), target)).items():
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", file), file
        if not file.endswith(".casadi"):
            parse(file, content, tmp_path)


@pytest.mark.parametrize("index", TEXTS)
def test_the_comments_of_every_language_hold_any_name(index: int, tmp_path: Path):
    paragraphs = file_header(hostile(TEXTS[index]), "a test", [])
    syntax_of_c(as_c_comment(paragraphs) + "int x;\n", tmp_path)
    assert len(ElementTree.fromstring(f"<a>{as_xml_comment(paragraphs)}</a>")) == 0
    assert [type(n) for n in ast.parse(f'"""{as_docstring(paragraphs)}"""').body] == [ast.Expr]
    assert all(line.startswith("#") for line in as_hash_comments(paragraphs).splitlines())
    assert not re.search(r"(?<!\\)<script|(?<!\\)\]\(", as_markdown(paragraphs))


def test_the_header_and_the_readme_of_an_estimator_hold_any_title(tmp_path: Path):
    traced = onboard(ekf(Pendulum()))
    for name in NAMES:
        title = f"ekf over pendulum of {name}"
        header, source = header_and_source(traced, "filter", "double", [title])
        syntax_of_c(header, tmp_path)
        assert "injected" not in source
        parse("README.md", readme(traced, "filter", "double", title).encode(), tmp_path)


@pytest.mark.parametrize("index", TEXTS)
def test_an_airframe_file_holds_any_name(index: int):
    airframe = hostile(TEXTS[index])
    table = tomllib.loads(airframe_toml(airframe))
    assert table["name"] == airframe.name
    assert parse_airframe(airframe_toml(airframe), "file").name == airframe.name


def test_a_name_without_letters_has_no_header():
    with pytest.raises(AirframeError, match="no letter or digit for a C name"):
        vehicle_files("header", hostile("*/"))


def test_a_page_holds_any_name():
    for name in NAMES:
        page = Page(name).as_html()
        assert not re.search("<script>injected|<injected/>", page)


def test_comments_end_where_they_should():
    for text in ("*/", "**//", "/*/", "*" * 9 + "/" * 9, "a\\", "??/", "/**/", "*\n/"):
        line = quoting.c_comment(text)
        assert not re.search(r"\*/|/\*|\n", line)
        assert not line.endswith(("\\", "??/"))
    for text in ("--", "---", "-" * 9, "-->", "<!--"):
        assert "--" not in quoting.xml_comment(text)
    for text in ('"""', "\\", '\\"', "'''", '"' * 7):
        assert ast.literal_eval(f'"""{quoting.docstring(text)}"""') == text
    assert tomllib.loads(f"a = {quoting.toml_string('x' + chr(0xD800))}") == {"a": "x?"}
    assert quoting.plain_name("../a b/é.toml") == ".._a_b_.toml"
