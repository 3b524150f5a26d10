"""The workflows on GitHub: they run what there is, without more permissions than they need."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: Path) -> dict[Any, Any]:
    """A workflow. YAML takes its key `on` for a truth value."""
    return yaml.safe_load(path.read_text())


def steps(workflow: dict[Any, Any]) -> Iterator[dict[str, Any]]:
    """All steps of all jobs."""
    for job in workflow["jobs"].values():
        yield from job["steps"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_it_runs_targets_and_scripts_that_exist(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    commands = [step["run"] for step in steps(read(path)) if "run" in step]
    assert commands
    for command in commands:
        for target in re.findall(r"\bmake (\w+)", command):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
        for script in re.findall(r"\bpython ([\w/]+\.py)", command):
            assert (ROOT / script).is_file(), script


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_it_has_few_permissions_and_needs_no_secret(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in path.read_text()
    for job in workflow["jobs"].values():
        allowed = {"pages", "id-token"} if "environment" in job else set()
        if any("push origin gh-pages" in step.get("run", "") for step in job["steps"]):
            assert "refs/heads/main" in job["if"]
            allowed.add("contents")
        assert set(job.get("permissions", {})) <= allowed
    for step in steps(workflow):
        assert re.fullmatch(r"[\w-]+/[\w-]+@[\w./-]+", step.get("uses", "a/b@c"))


def test_the_oldest_python_is_tested() -> None:
    declared = re.search(r'requires-python = ">=(.+)"', (ROOT / "pyproject.toml").read_text())
    assert declared is not None
    jobs = read(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]
    linux = next(step["with"] for step in jobs["linux"]["steps"] if "setup-python" in step.get("uses", ""))
    assert linux["python-version"] == declared[1]
