"""The page of a live session: its messages, its access control, and its display in a real browser."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import http.client
import json
import math
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.live.page.history import History
from rotorid.live.page.page import Page
from rotorid.live.snapshot import Event, LinkState, Reading, Snapshot
from tests.chromium import FOUND, chromium

WORDS = ("ok", "outlier", "diverged")
LINK = LinkState(received=30, lost=2, rate=12.5, latency=0.002)
TURNED = (
    math.cos(math.pi / 12),
    math.sin(math.pi / 12),
    0.0,
    0.0,
)  # 30 degrees to the right, nose to the east


def snapshot(t: float, *, health: str = "ok", events: tuple[Event, ...] = (), **more: float) -> Snapshot:
    readings = {"mass": Reading(1.0 + t, 0.008, "kg")} | {k: Reading(v, 0.25, "N") for k, v in more.items()}
    return Snapshot(t, readings, health, TURNED, (1.0, 2.0, 3.0), events, LINK, "multirotor, EKF")


def filled(times: np.ndarray, room: int, *, worst: int = -1) -> History:
    history = History(WORDS, room)
    for k, t in enumerate(times):
        history.add(snapshot(float(t), health="diverged" if k == worst else "ok"))
    return history


def test_history_keeps_the_new_rows_and_thins_the_old_ones() -> None:
    times = 0.01 * np.arange(5000)
    rows = filled(times, 256, worst=77).after(0, 1000)
    assert len(rows) <= 512
    assert np.array_equal(rows.t[-128:], times[-128:])
    np.testing.assert_allclose(rows.value[:, 0], 1.0 + rows.t, rtol=1e-6)
    np.testing.assert_allclose(rows.t, times[rows.number - 1])
    assert rows.health.max() == WORDS.index("diverged")
    old = np.diff(rows.t[: np.searchsorted(rows.t, times[-256])])
    np.testing.assert_allclose(old, old[0])  # evenly
    assert rows.t[0] < 2.0


@pytest.mark.parametrize("most", [1, 7, 50])
def test_history_after_a_row_is_that_of_a_naive_reference(most: int) -> None:
    times = np.concatenate([0.1 * np.arange(40), 9.0 + 0.1 * np.arange(60)])
    rows = filled(times, 128, worst=41).after(20, most)
    groups = np.split(np.arange(20, 100), np.arange(0, 80, math.ceil(80 / most))[1:])
    assert np.array_equal(rows.t, [times[g[-1]] for g in groups])
    assert np.array_equal(rows.gap, [40 in g for g in groups])
    assert np.array_equal(rows.health, [2 * (41 in g) for g in groups])
    mass = (1.0 + times).astype(np.float32)
    for received, expected in (
        (rows.minimum, [g[0] for g in groups]),
        (rows.maximum, [g[-1] for g in groups]),
    ):
        assert np.array_equal(received[:, 0], mass[expected])


def test_history_takes_quantities_that_come_and_go() -> None:
    history = History(WORDS, 16)
    for k in range(40):
        history.add(snapshot(0.1 * k, **({"force_x": float(k)} if k % 2 else {})))
    rows = history.after(30, 100)
    assert list(history.units) == ["mass", "force_x"]
    assert np.array_equal(
        rows.value[:, 1], [math.nan, 31, math.nan, 33, math.nan, 35, math.nan, 37, math.nan, 39], True
    )


def test_thinned_rows_lose_no_quantity_that_comes_every_second_time() -> None:
    history = History(WORDS, 64)
    for k in range(1000):
        history.add(snapshot(0.1 * k, **({"force_x": -float(k)} if k % 2 == 0 else {})))
    rows = history.after(0, 20)
    assert len(rows) == 20
    assert not np.isnan(rows.value).any()
    assert np.array_equal(rows.maximum[1:, 1], rows.minimum[:-1, 1] - 2.0)
    assert np.array_equal(rows.value[:, 1], rows.minimum[:, 1])


def test_moments_without_readings_are_rows_too() -> None:
    history = History(WORDS, 8)
    for k in range(20):
        history.add(Snapshot(0.1 * k, {}, "ok", None, None, (), LINK, ""))
    history.add(snapshot(2.0))
    rows = history.after(0, 4)
    assert len(rows) <= 4
    assert rows.value[-1, 0] == pytest.approx(3.0)


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    while Listener.opened:
        listener = Listener.opened.pop()
        listener.file.close()
        listener.connection.close()


@pytest.fixture
def page() -> Iterator[Page]:
    with Page(port=0) as page:
        yield page


def get(page: Page, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    at = urlsplit(page.address)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=20)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()


class Listener:
    """A browser that reads the stream."""

    opened: ClassVar[list[Listener]] = []

    def __init__(self, page: Page, after: str = "") -> None:
        at = urlsplit(page.address)
        self.connection = socket.create_connection((at.hostname, at.port), timeout=20)
        ask = f"GET {at.path}stream?after={after} HTTP/1.1\r\nHost: {at.netloc}\r\n\r\n"
        self.connection.sendall(ask.encode())
        self.file = self.connection.makefile("rb")
        self.opened.append(self)

    def message(self) -> dict[str, Any]:
        line = next(line for line in self.file if line.startswith(b"data: "))
        return json.loads(line.removeprefix(b"data: "))

    def until(self, number: int) -> list[dict[str, Any]]:
        """Messages up to the one that has that row."""
        messages = [self.message()]
        while int(messages[-1]["id"].split(".")[1]) < number:
            messages.append(self.message())
        return messages


def values(message: dict[str, Any], what: str = "value") -> np.ndarray:
    return np.frombuffer(base64.b64decode(message[what]), "<f4").reshape(-1, len(message["names"]))


def test_stream_tells_every_row_once_and_a_late_page_all_of_them(page: Page) -> None:
    early = Listener(page)
    assert early.message()["reset"]
    for k in range(300):
        page.show(
            snapshot(
                0.01 * k,
                events=(Event(0.01 * k, "vehicle_detected", values={"vehicle": k}),) if k % 100 == 0 else (),
            )
        )
        if k % 60 == 0:
            time.sleep(0.05)
    expected = 1.0 + 0.01 * np.arange(300)
    received, late = early.until(300), Listener(page).until(300)
    for messages in (received, late):
        mass = np.concatenate([values(m)[:, 0] for m in messages if m["names"]])
        np.testing.assert_allclose(mass, expected, rtol=1e-6)
        assert [e[3] for m in messages for e in m["events"]] == ["detected 0", "detected 100", "detected 200"]
    assert len(received) > len(late)
    assert late[-1]["link"] == [30, 2, 12.5, 0.002, 0]
    again = Listener(page, received[-2]["id"]).message()
    assert not again["reset"]
    assert len(values(again)) == len(values(received[-1]))


def test_a_clock_that_is_set_back_begins_anew(page: Page) -> None:
    listener = Listener(page)
    page.show(snapshot(9.0))
    listener.until(1)
    page.show(snapshot(8.5))  # an idle snapshot is ahead of the next estimate
    (message,) = listener.until(2)
    assert not message["reset"]
    assert np.array_equal(np.frombuffer(base64.b64decode(message["t"])), [9.0])
    page.show(snapshot(0.0))
    (message,) = listener.until(3)
    assert message["reset"]
    assert np.array_equal(values(message)[:, 0], [1.0])


def test_numbers_that_are_not_known_are_told_as_such(page: Page) -> None:
    readings = {"mass": Reading(1.0, math.inf, "kg"), "drag": Reading(math.nan, math.nan, "1/s")}
    page.show(Snapshot(0.0, readings, "new word", None, None, (), LinkState(0, 0, math.nan, math.inf), ""))
    message = Listener(page).until(1)[-1]
    np.testing.assert_array_equal(values(message), [[1.0, math.nan]])
    np.testing.assert_array_equal(values(message, "std"), [[math.inf, math.nan]])
    assert message["health_names"][-1] == "new word"
    assert message["attitude"] is None
    assert message["link"] == [0, 0, None, None, 0]


def test_a_page_that_does_not_read_costs_nobody_else_and_misses_but_the_middle(page: Page) -> None:
    deaf, reads = Listener(page), Listener(page)
    deaf.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    n = 0
    for _ in range(10):
        for _ in range(500):
            page.show(snapshot(0.001 * n, **{f"force_{a}": float(n) for a in "xyz"}))
            n += 1
        reads.until(n)
    page.show(snapshot(0.001 * n, health="diverged"))
    assert values(reads.until(n + 1)[-1])[-1, 0] == pytest.approx(1.0 + 0.001 * n)
    messages = deaf.until(n + 1)
    assert values(messages[-1])[-1, 0] == pytest.approx(1.0 + 0.001 * n)
    received = [len(values(m)) for m in messages if m["names"]]
    assert max(received) <= 500
    assert sum(received) < n


def test_only_its_own_files_are_served_and_each_says_what_the_browser_may_do(page: Page) -> None:
    status, headers, body = get(page, "/")
    assert status == 200
    assert b"rotorid live" in body
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in headers
    for path in ("/nothing", "/../page.py", "/main.js/", "/index.htm%00l", "//etc/passwd"):
        assert get(page, path)[0] == 404, path
    for name in ("main.js", "live.css", "report.css"):
        status, headers, body = get(page, f"/{name}")
        assert (status, headers["X-Content-Type-Options"]) == (200, "nosniff")
        assert b"http" not in body, f"{name} names another machine"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "192.0.2.7", "127.0.0.1.evil.example", ""]
)
def test_a_name_of_someone_else_is_refused(page: Page, host: str) -> None:
    assert get(page, "/", Host=host)[0] == 421


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1", "[::1]:8088", "LOCALHOST"])
def test_names_of_this_machine_are_taken(page: Page, host: str) -> None:
    assert get(page, "/", Host=host)[0] == 200


def test_other_sites_may_link_to_the_page_but_not_read_from_it(page: Page) -> None:
    assert get(page, "/", Sec_Fetch_Site="cross-site")[0] == 200
    assert get(page, "/stream", Sec_Fetch_Site="cross-site")[0] == 403
    assert get(page, "/main.js", Sec_Fetch_Site="same-site")[0] == 403


def test_beyond_loopback_the_address_has_a_token_that_every_request_needs() -> None:
    with Page("0.0.0.0", port=0) as page:
        at = urlsplit(page.address)
        token = at.path.strip("/")
        assert len(token) >= 32
        for path in (
            "/",
            "/stream",
            f"/{token}",
            f"/{token[:-1]}/",
            f"/{token}x/",
            "//",
            f"/x/{token}/",
            "/main.js",
        ):
            assert get(page, path)[0] == 403, path
        assert get(page, at.path)[0] == 200
        assert get(page, f"{at.path}main.js")[0] == 200
        assert get(page, at.path, Host="evil.example")[0] == 421
        assert get(page, at.path, Host=socket.gethostname())[0] == 200
        assert Listener(page).message()["reset"]


def test_what_cannot_be_served_is_told_in_one_line(page: Page) -> None:
    taken = urlsplit(page.address).port or 0
    for arguments, words in (
        ({"port": taken}, "in use"),
        ({"port": 70000}, "1 to 65535"),
        ({"host": "192.0.2.7"}, "no such address"),
        ({"host": "no.such.host.invalid"}, "no such address"),
        ({"token": "short"}, "token"),
    ):
        with pytest.raises(SettingError, match=words):
            Page(**({"port": 0} | arguments))


def test_a_page_that_is_closed_says_so_and_frees_its_port() -> None:
    with Page(port=0) as page:
        listener, port = Listener(page), urlsplit(page.address).port or 0
        listener.message()
    assert any(line == b"event: end\n" for line in listener.file)
    Page(port=port).close()


THINNED = """import('./store.js').then(({ Store }) => {
  const store = new Store(), n = 70000, all = Array.from({ length: n }, (_, k) => k), wrong = [];
  const value = Float32Array.from(all, (k) => (k % 2 ? NaN : (7919 * k) % n)), std = value.map((v) => v / 10);
  const t = all.map((k) => k / 100), health = all.map((k) => k === 777);
  store.append({ names: ["q"], units: ["N"], t, health, gap: [], value, std });
  const q = store.columns.get("q"), last = store.size - 1;
  const most = (a, f) => a.subarray(0, store.size).reduce((x, v) => (Number.isNaN(v) ? x : f(x, v)), q.value[0]);
  if (store.size > 65536 || store.size < 40000) wrong.push(`${store.size} rows`);
  for (let i = 0; i < 20000; i++) {
    if (store.time[last - i] !== (n - 1 - i) / 100) wrong.push(`time of row ${i} from the end`);
    if (i < 10000 && !(q.minimum[i] <= q.value[i] && q.value[i] <= q.maximum[i])) wrong.push(`row ${i}: ${q.value[i]}`);
  }
  if (most(q.minimum, Math.min) !== 0 || most(q.maximum, Math.max) !== n - 2) wrong.push("an extreme is lost");
  if (most(store.health, Math.max) !== 1) wrong.push("health is lost");
  return wrong.slice(0, 5);
})"""
"""What is wrong with the store of the page after it was thinned: quantities of every second row, a permutation as values."""


@pytest.mark.skipif(FOUND is None, reason="no Chromium here")
def test_in_a_browser(tmp_path: Path) -> None:
    with (
        Page("0.0.0.0", port=0) as page,
        chromium(tmp_path) as browser,
    ):  # with a token, on an origin that browsers trust less
        browser.dress(390, 844, phone=True)
        browser.call("Page.navigate", url=page.address)
        browser.wait("document.getElementById('health')?.textContent == 'waiting for the first estimate'")
        page.show(
            snapshot(
                0.0,
                events=(Event(0.0, "vehicle_detected", values={"vehicle": "<img src=x onerror=alert(1)>"}),),
            )
        )
        for k in range(1, 3000):
            page.show(snapshot(0.01 * k, force_x=1.0, force_y=-2.0, force_z=0.1))
        text = "document.querySelector('{}')?.textContent.replaceAll('\\u00a0', ' ')".format
        browser.wait(f"{text('.main .value')} == '30.990 ± 0.008 kg'")
        assert browser.value(text("#health")) == "informed and consistent"
        assert browser.value(text("#angles")) == "roll 30° · pitch 0° · heading 90°"
        assert browser.value(text("#events li > span")) == "detected <img src=x onerror=alert(1)>"
        force = (
            "[...document.querySelectorAll('#charts .chart:nth-of-type(n+2) dd')].map((e) => e.textContent)"
        )
        assert [v.replace("\u00a0", " ") for v in browser.value(force)] == [
            "+1.0 ± 0.3",
            "\u22122.0 ± 0.3",
            "+0.1 ± 0.3",
        ]
        for canvas in browser.value(
            "[...document.querySelectorAll('canvas')].map((c) => c.getAttribute('aria-label'))"
        ):
            assert "30.990" in canvas or "force x" in canvas or "heading 90°" in canvas
        painted = "(c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v))"
        assert browser.value(f"[...document.querySelectorAll('canvas')].every({painted})")
        assert browser.value("document.documentElement.scrollWidth <= innerWidth")
        browser.wait("document.body.className == 'stale'")
        assert browser.value(THINNED) == []
        for name, t in (("system 1", 1.0), ("system 12", 2.0), ("system 3", 3.0)):
            for k in range(30):
                page.show(dataclasses.replace(snapshot(t + 0.01 * k), vehicle=name))
        row = "#team tbody tr:nth-of-type({}) {}".format
        browser.wait(f"{text('.main .value')} == '2.290 ± 0.008 kg'")  # the first one
        assert browser.value(text(row(2, "button"))) == "system 3"
        assert browser.value(text(row(3, "td"))) == "mass 3.290 ± 0.008 kg"
        browser.value(f"document.querySelector('{row(2, 'button')}').click()")
        browser.wait(f"{text('.main .value')} == '4.290 ± 0.008 kg'")
        assert "system 3" in browser.value(text("#system"))
        assert browser.value("document.documentElement.scrollWidth <= innerWidth")
        assert browser.complaints() == []
        assert all(url.startswith(page.address) for url in browser.requests())
        assert len(browser.requests()) > 8
