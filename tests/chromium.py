"""A headless Chromium, driven over a pipe by the DevTools protocol with nothing but the standard library."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

FOUND: Final = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
_FLAGS: Final = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-dev-shm-usage", "--no-first-run", "--no-default-browser-check", "--disable-extensions", "--hide-scrollbars",
    "--remote-debugging-pipe",
)  # fmt: skip


class Chromium:
    """One page of a browser. browser_events: all events since it was opened."""

    def __init__(self, out: int, into: int) -> None:
        self._out, self._into, self._rest, self._number = out, into, b"", 0
        self._session: str | None = None
        self.browser_events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Performance"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + 60.0
        while True:
            answer = self._read(until)
            assert answer is not None, f"no answer to {method}"
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.browser_events.append(answer)

    def _read(self, until: float) -> dict[str, Any] | None:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._into], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                return None
            piece = os.read(self._into, 1 << 16)
            assert piece, "the browser has ended"
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def dress(self, width: int, height: int, *, dark: bool = False, phone: bool = False) -> None:
        """Size of the screen in CSS px, and its dress."""
        scale = 2 if phone else 1
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=phone,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives, awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = 30.0) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < until, f"never true: {expression}"
            time.sleep(0.05)

    def picture(self, path: Path) -> None:
        """Write what the screen shows, as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self) -> list[str]:
        """What the page wrote to the console, threw, or could not load."""
        self.value("0")
        found = []
        for event in self.browser_events:
            if event.get("method") in (
                "Runtime.consoleAPICalled",
                "Runtime.exceptionThrown",
                "Log.entryAdded",
            ):
                found.append(json.dumps(event["params"]))
        return found

    def requests(self) -> list[str]:
        """Every address that the page asked for."""
        self.value("0")
        return [
            e["params"]["request"]["url"]
            for e in self.browser_events
            if e.get("method") == "Network.requestWillBeSent"
        ]


@contextmanager
def chromium(profile: Path, *flags: str) -> Iterator[Chromium]:
    """A browser with an empty profile in that folder."""
    assert FOUND is not None
    to_child, out = os.pipe()
    into, from_child = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, to_child, 3),
        (os.POSIX_SPAWN_DUP2, from_child, 4),
    ]
    arguments = [FOUND, *_FLAGS, f"--user-data-dir={profile}", *flags]
    child = os.posix_spawn(FOUND, arguments, os.environ, file_actions=actions)
    os.close(to_child)
    os.close(from_child)
    try:
        browser = Chromium(out, into)
        yield browser
        browser._session = None
        browser.call("Browser.close")
    finally:
        os.close(out)
        os.close(into)
        os.waitpid(child, 0)
