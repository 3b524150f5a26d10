"""The folder of the published versions of the site."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.loading import load_script


def test_the_newest_release_is_first_and_dev_is_last(tmp_path: Path) -> None:
    add = load_script("add_version").add
    site, folder = tmp_path / "site", tmp_path / "versions"
    site.mkdir()
    folder.mkdir()
    (site / "404.html").write_text("not found")
    for version, first in (("dev", "dev"), ("0.9.0", "0.9.0"), ("0.10.0", "0.10.0"), ("0.9.1", "0.10.0")):
        (site / "index.html").write_text(version)
        add(site, folder, version)
        assert f"url={first}/" in (folder / "index.html").read_text()
    listed = json.loads((folder / "versions.json").read_text())
    assert [entry["version"] for entry in listed] == ["0.10.0", "0.9.1", "0.9.0", "dev"]
    assert [entry["aliases"] for entry in listed] == [["latest"], [], [], []]
    (site / "index.html").write_text("again")
    add(site, folder, "dev")
    assert (folder / "dev" / "index.html").read_text() == "again"
    assert (folder / "0.9.0" / "index.html").read_text() == "0.9.0"


def test_a_name_that_is_no_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give one such as"):
        load_script("add_version").add(tmp_path, tmp_path, "v1.2.0")
