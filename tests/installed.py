"""Run an installed wheel where there is nothing else: `python -m tests.installed dist/rotorid-*.whl`.

The wheel is installed into an empty environment, in the versions of `PIP_CONSTRAINT` if that is set. The commands run in a
temporary folder, out of the checkout, and must write their files there. The tour of the README and a tutorial run there too;
of the checkout, only their text and the scripts that run them are used.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

COMMANDS = {
    "demo": ("rotorid-demo/report.html", "rotorid-demo/estimates.parquet"),
    "inspect rotorid-demo/flight.parquet -o inspection": ("inspection/report.html",),
    "export ekf --system multirotor-bare --airframe simulated-quad -o onboard": ("onboard/ekf.c",),
    "export mujoco --airframe crazyflie-2.1 --force -o simulator": ("simulator/model.xml",),
    "airframes": (),
    "live --help": (),
    "ros --help": (),
}
"""Each command of rotorid, with files that it writes."""

ROOT = Path(__file__).parents[1]
TUTORIAL = "first-model"


def check(wheel: Path, folder: Path) -> None:
    """Install a wheel into an empty environment in a folder, and run the commands, the README and a tutorial there.

    Raises:
        subprocess.CalledProcessError: the installation, a command or the tutorial failed.
        FileNotFoundError: a command did not write one of its files.
        AssertionError: code of the README failed, or another rotorid was imported.
    """
    venv.create(folder / "environment", with_pip=True)
    programs = folder / "environment" / "bin"
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    environment |= {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    work = folder / "work"
    work.mkdir()

    def run(program: str, *arguments: str, where: Path = work, given: str = "") -> str:
        command = (str(programs / program), *arguments)
        return subprocess.run(
            command, cwd=where, env=environment, check=True, stdout=subprocess.PIPE, text=True, input=given
        ).stdout

    run("pip", "install", "--quiet", "--disable-pip-version-check", str(wheel), where=Path.cwd())
    place = run("python", "-c", "import rotorid; print(rotorid.__file__)")
    assert Path(place).is_relative_to(folder), place
    for command, files in COMMANDS.items():
        print(f"$ rotorid {command}", flush=True)
        run("rotorid", *command.split())
        for file in files:
            if not (work / file).is_file():
                raise FileNotFoundError(f"rotorid {command} did not write {file}")
    print("the tour of the README", flush=True)
    request = json.dumps([str(ROOT / "README.md"), str(work)])
    wrong = json.loads(run("python", str(ROOT / "tests" / "docs_page.py"), given=request + "\n"))
    assert wrong == "", wrong
    print(f"the tutorial {TUTORIAL}", flush=True)
    run("python", str(ROOT / "docs" / "run_tutorials.py"), "--one", TUTORIAL, str(work))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        check(Path(sys.argv[1]).resolve(), Path(scratch).resolve())
    print(
        f"{sys.argv[1]}: {len(COMMANDS)} commands, the README and a tutorial passed in an empty environment"
    )
