"""The site of the documentation: complete, strict, and without anything from a network."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.chromium import FOUND, chromium
from tests.test_layout import public_names

ROOT = Path(__file__).parents[1]


def build(root: Path, output: Path, results: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a checkout with these results of tutorials and gallery."""
    command = [sys.executable, str(root / "docs" / "build_site.py"), str(output)]
    command += ["--results", str(results)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stand-ins for the results of tutorials and gallery, which have tests of their own."""
    results = tmp_path_factory.mktemp("results")
    folder = results / "tutorials"
    folder.mkdir()
    (results / "gallery").mkdir()
    for path in (ROOT / "docs" / "images" / "gallery").glob("*.webp"):
        (results / "gallery" / f"{path.stem}.html").write_text("<!doctype html><title>Report</title>")
    figure = '{"data": [{"type": "scatter", "x": [0, 1], "y": [0, 1]}], "layout": {}}'
    for path in (ROOT / "docs" / "tutorials").glob("*.py"):
        text = "\n".join(line[2:] for line in path.read_text().splitlines() if re.match("# [^%]", line))
        text += f'\n\n<div class="figure"><script type="application/json">{figure}</script></div>\n'
        scripts = ("plotly-cartesian.min.js", "figures.js")
        text += "".join(f'\n<script src="../assets/{script}"></script>\n' for script in scripts)
        (folder / f"{path.stem}.md").write_text(text)
        (folder / f"{path.stem}.ipynb").write_text("{}")
    return results


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, results: Path) -> Path:
    """The site, built."""
    folder = tmp_path_factory.mktemp("site")
    built = build(ROOT, folder, results)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_pictures_of_the_gallery_open_their_reports(site: Path) -> None:
    page = (site / "gallery.html").read_text()
    links = re.findall(r'<a href="?(gallery/[\w-]+\.html)"?>', page)
    assert len(links) == len(list((ROOT / "docs" / "images" / "gallery").iterdir()))
    assert all((site / link).exists() for link in links)


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    pages = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    for package, names in public_names().items():
        for name in names:
            assert f'id="{package}.{name}"' in pages, f"{package}.{name}"


def test_every_page_states_the_version(site: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for page in site.rglob("*.html"):
        if page.parent.name != "gallery":  # the reports have a head of their own
            assert page.read_text().count(f"rotorid {version}") >= 2, page.name


def test_sections_of_docstrings_are_recognised(site: Path) -> None:
    text = re.sub(r"<[^>]+>", "", (site / "reference" / "rotorid.html").read_text())
    assert len(re.findall(r"^\s*Returns:\s*$", text, re.MULTILINE)) > 5
    assert not re.search(r"\S (Returns|Raises): [A-Z]", text)


def test_a_colon_in_a_section_of_a_docstring_follows_a_name_or_a_type(site: Path) -> None:
    for page in (site / "reference").glob("*.html"):
        for item in re.findall(r'<li class="doc-section-item[^>]*>(.*?)</li>', page.read_text(), re.DOTALL):
            head = " ".join(re.sub(r"<[^>]+>", "", item.split("–")[0]).split())  # noqa: RUF001
            assert not re.search(r"^\w+,? \w|`", head), f"{page.name}: {head}"


def test_fields_are_lists_and_modules_of_equinox_have_signatures(site: Path) -> None:
    text = re.sub(r"<[^>]+>", "", (site / "reference" / "rotorid.html").read_text())
    assert re.search(r"Samples\(\s*t: ", text)
    assert "t: s from the start of the flight. dt:" not in text
    quadrotor = (site / "reference" / "models.html").read_text()
    assert 'id="rotorid.models.quadrotor.quadrotor.quadrotor"' in quadrotor  # the function, not its module


def test_a_package_begins_with_an_overview_and_errors_are_last(site: Path) -> None:
    page = (site / "reference" / "rotorid.html").read_text()
    assert re.search(r'<td><a [^>]*href="#rotorid.track"><code>track</code></a></td>\s*<td>Track the', page)
    names = re.findall(r'<h3 id="rotorid\.(\w+)"', page)
    assert names[0] == "adaptive"
    assert all(name.endswith("Error") for name in names[-9:])


def test_names_and_shapes_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "estimators.html").read_text()
    assert re.search(
        r'keywords of <a [^>]*href="#rotorid.estimators.Tuning.of"><code>Tuning.of</code></a>', page
    )
    text = re.sub(r"<[^>]+>", "", page)
    assert 'times: Float64[ndarray, "n"]' in re.sub(
        r"<[^>]+>", "", (site / "reference" / "logs.html").read_text()
    )
    assert "\N{GREEK SMALL LETTER TAU}" not in text  # an argument keeps its name
    assert "x \N{SQUARED PLUS} d" in text
    assert "1 / \N{GREEK CAPITAL LETTER SIGMA}<sub>i</sub> W<sub>i</sub><sup>2</sup>" in page


def test_equations_are_set(site: Path) -> None:
    page = (site / "theory.html").read_text()
    assert "q\u2032 = 1/2 q \u2297 w" in page
    assert "(T<sub>c</sub> \u2212 T) / \u03c4" in page
    assert not re.search(r"gamma|sqrt\(|<code>[^<]*\^[^<]*</code>", page.split("<article")[1])
    sizes = (site / "size-priors.html").read_text()
    assert 'class="kn"' in sizes  # code stays code
    assert "&lt;span" not in sizes


def test_columns_of_tables_have_least_widths(site: Path) -> None:
    head = re.search(r"<thead>.*?</thead>", (site / "formats.html").read_text(), re.DOTALL)
    assert head is not None
    widths = [float(width) for width in re.findall(r"--least: ([\d.]+)rem", head[0])]
    assert len(widths) == 3
    assert 4.0 < min(widths) <= max(widths) <= 11.0


def test_nothing_is_loaded_from_a_network(site: Path) -> None:
    loaded = re.compile(r"<(?:script|img|iframe)\b[^>]*\bsrc=\"?https?:|<link\b[^>]*\bhref=\"?https?:")
    for page in site.rglob("*.html"):
        assert not loaded.search(page.read_text()), page.name
    for sheet in site.rglob("*.css"):
        assert "@import" not in sheet.read_text(), sheet.name
        assert not re.search(r"url\([\"']?https?:", sheet.read_text()), sheet.name


def test_no_marks_of_the_tests_are_shown(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.search(r"```|\bnorun\b", page.read_text()), page.name


@pytest.mark.skipif(FOUND is None, reason="no Chromium")
def test_pages_fit_a_phone_and_search_works_from_files(site: Path, tmp_path: Path) -> None:
    with chromium(tmp_path) as browser:
        browser.dress(390, 844, phone=True)
        for page in ("index", "how-to", "formats", "theory", "cli", "reference/rotorid"):
            browser.call("Page.navigate", url=f"file://{site}/{page}.html")
            browser.wait(f"location.href.endsWith('{page}.html') && document.readyState == 'complete'")
            assert browser.value("document.documentElement.scrollWidth") <= 390, page
        browser.value("document.querySelector('[data-md-component=search-query]').focus()")
        browser.call("Input.insertText", text="mass_std")
        browser.wait("document.querySelectorAll('.md-search-result__item a').length > 0")
        assert not browser.complaints()
        assert not [url for url in browser.requests() if not url.startswith(("file:", "data:"))]


@pytest.mark.skipif(FOUND is None, reason="no Chromium")
def test_figures_of_tutorials_are_drawn_in_the_colours_of_the_page(site: Path, tmp_path: Path) -> None:
    with chromium(tmp_path) as browser:
        browser.dress(390, 844, phone=True)
        browser.call("Page.navigate", url=f"file://{site}/tutorials/own-system.html")
        browser.wait("document.querySelectorAll('.figure .main-svg').length > 0")
        colour = "getComputedStyle(document.querySelector('.figure .xtick text')).fill"
        light = browser.value(colour)
        browser.value("document.body.setAttribute('data-md-color-scheme', 'slate')")
        browser.wait(f"{colour} != {light!r}")
        assert browser.value("document.documentElement.scrollWidth") <= 390
        assert not browser.complaints()


def test_a_dead_link_and_a_name_without_docstring_end_the_build(tmp_path: Path, results: Path) -> None:
    for name in ("src", "docs"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    for page in (
        "mkdocs.yml",
        "pyproject.toml",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CODE_OF_CONDUCT.md",
    ):
        shutil.copy(ROOT / page, tmp_path)
    shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks")
    with (tmp_path / "docs" / "glossary.md").open("a") as page:
        page.write("\n[nowhere](nowhere.md), [no heading](theory.md#no-such-heading)\n")
    errors = tmp_path / "src" / "rotorid" / "errors.py"
    docstring = re.compile(r'(class LinkError\([^)]*\):\n    )"""[^"]*"""')
    errors.write_text(docstring.sub(r"\1pass", errors.read_text()))
    built = build(tmp_path, tmp_path / "site", results)
    assert built.returncode == 1
    for complaint in ("nowhere.md", "no-such-heading", "rotorid.LinkError is public and has no docstring"):
        assert complaint in built.stdout + built.stderr


def test_a_missing_extra_gives_its_install_line() -> None:
    script = str(ROOT / "docs" / "build_site.py")
    code = (
        f"import runpy, sys; sys.modules['material'] = None; runpy.run_path({script!r}, run_name='__main__')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "pip install 'rotorid[docs]'" in result.stderr
