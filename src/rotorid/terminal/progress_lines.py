"""Progress for programs: a JSON line on stderr for each report, where the environment variable ROTORID_PROGRESS is json.

    {"stage": "Fitting", "done": 3, "total": 20}

total is 0 where the number of steps is unknown. At most ten lines a second are written for one stage.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Final

from rotorid.progress import Progress

VARIABLE: Final = "ROTORID_PROGRESS"
VALUE: Final = "json"
"""Of the variable."""

_PERIOD: Final = 0.1  # s


def progress_lines() -> Progress | None:
    """A callback that writes the lines; None where they are not asked for."""
    if os.environ.get(VARIABLE) != VALUE:
        return None
    latest_stage, latest_time = "", 0.0

    def report(stage: str, done: int, total: int) -> None:
        nonlocal latest_stage, latest_time
        now = time.monotonic()
        if stage == latest_stage and done != total and now < latest_time + _PERIOD:
            return
        latest_stage, latest_time = stage, now
        line = json.dumps({"stage": stage, "done": done, "total": total}, ensure_ascii=False)
        print(line, file=sys.stderr, flush=True)

    return report
