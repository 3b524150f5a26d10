"""The routes of the app: who may use them, what they accept, and what they serve."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rotorid.app.store import Store, safe_name
from tests.app.serving import BYTES, JSON, Served, served


def table(rows: int = 400) -> bytes:
    """A flight table in hover."""
    lines = [
        "t,attitude_w,attitude_x,attitude_y,attitude_z,specific_force_x,specific_force_y,specific_force_z,thrust"
    ]
    for t in 0.025 * np.arange(rows):
        lines.append(f"{t:.3f},1,0,0,0,0,0,{9.81 + 0.3 * np.sin(t):.4f},{15.0 + 0.45 * np.sin(t):.4f}")
    return "\n".join(lines).encode()


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("app") / "work", max_log=100_000) as running:
        yield running


@pytest.fixture(scope="module")
def log(app: Served) -> str:
    """The id of an inspected log."""
    status, answer = app.upload("hover.csv", table())
    assert status == 200
    app.wait(
        lambda s: any(e["id"] == answer["log"] and e["inspection"]["state"] == "done" for e in s["logs"])
    )
    return answer["log"]


def test_the_page_has_a_strict_policy(app: Served) -> None:
    for name in ("", "main.js", "app.css", "report.css"):
        status, headers, body = app.send("GET", name)
        assert (status, bool(body)) == (200, True)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8089", "127.0.0.1.evil.example", "192.0.2.7", "", "[", "::x"]
)
def test_other_hosts_are_refused(app: Served, host: str) -> None:
    for method, path in (("GET", ""), ("GET", "stream"), ("POST", "jobs")):
        status, _, body = app.send(method, path, headers={"Host": host, **JSON})
        assert status in (400, 421)
        assert app.app.view.encode() not in body


@pytest.mark.parametrize("token", ["", "x", "page", "view", "A" * 32, "é"])
def test_every_request_needs_the_token(app: Served, token: str) -> None:
    from urllib.parse import quote

    for method, path in (
        ("GET", ""),
        ("GET", "main.js"),
        ("GET", "stream"),
        ("POST", "jobs"),
        ("DELETE", "logs/hover"),
    ):
        assert app.send(method, path, token=quote(token))[0] == 403


def test_the_token_of_the_results_gives_no_access_to_the_page(app: Served, log: str) -> None:
    for method, path in (
        ("GET", ""),
        ("GET", "stream"),
        ("POST", "jobs"),
        ("POST", "files?name=a.csv"),
        ("DELETE", f"logs/{log}"),
    ):
        assert app.send(method, path, b"{}" if method == "POST" else None, JSON, token=app.app.view)[0] in (
            404,
            405,
        )


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
)
def test_other_sites_are_refused(app: Served, log: str, headers: dict[str, str]) -> None:
    for method, path in (
        ("POST", "jobs"),
        ("POST", "vehicle"),
        ("POST", "files?name=a.csv"),
        ("DELETE", f"logs/{log}"),
    ):
        assert app.send(method, path, b"{}" if method == "POST" else None, headers | JSON)[0] == 403
    if "Sec-Fetch-Site" in headers:
        assert app.send("GET", "stream", headers=headers)[0] == 403
        assert app.send("GET", f"logs/{log}/report.html", headers=headers, token=app.app.view)[0] == 403
    assert log in [entry["id"] for entry in app.state()["logs"]]


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_what_a_form_can_send_is_refused(app: Served, kind: str) -> None:
    for path in ("jobs", "vehicle", "files?name=a.csv"):
        assert app.send("POST", path, b"{}", {"Content-Type": kind})[0] == 415


@pytest.mark.parametrize(
    "path",
    ["logs/{log}/../../record.json", "logs/{log}/..%2frecord.json", "logs/{log}/record.json", "logs/../logs/report.html",
     "logs/{log}/hover.csv", "results/{log}/report.html", "logs/%2e%2e/report.html", "logs//etc/passwd",
     "results/../../etc/passwd"],
)  # fmt: skip
def test_only_results_are_served(app: Served, log: str, path: str) -> None:
    assert app.send("GET", path.format(log=log), token=app.app.view)[0] == 404
    assert app.send("GET", path.format(log=log))[0] in (404, 405)


def test_a_report_is_served_in_a_sandbox(app: Served, log: str) -> None:
    status, headers, body = app.send("GET", f"logs/{log}/report.html", token=app.app.view)
    assert status == 200
    assert b"<html" in body
    policy = headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts;")
    assert "allow-same-origin" not in policy
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy
    status, headers, _ = app.send("GET", f"logs/{log}/summary.json", token=app.app.view)
    assert (status, headers["content-disposition"]) == (200, 'attachment; filename="summary.json"')


def test_a_file_that_is_too_large_is_refused(app: Served) -> None:
    before = [entry["name"] for entry in app.state()["logs"]]
    for content in (bytes(100_001), (bytes(1000) for _ in range(101))):
        status, answer = app.upload("large.bin", content)
        assert (status, answer["error"]) == (413, "large.bin: is larger than 0 MB")
    assert app.send("POST", "jobs", b" " * 70_000, JSON)[0] == 413
    assert [entry["name"] for entry in app.state()["logs"]] == before
    assert not list(Path(app.state()["folder"]).glob(".upload-*"))


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "passwd"), ("C:\\logs\\a b.ulg", "a_b.ulg"), ("-o.csv", "o.csv"), (".hidden", "hidden"),
        ("", "log"),
        ("a\n\x00<b>.BIN", "a_b_.BIN"), ("é.csv", "csv"), ("x" * 300 + ".ulg", "x" * 80 + ".ulg"), ("..", "log"),
    ],
)  # fmt: skip
def test_names_of_files_are_made_safe(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@pytest.mark.parametrize("name", ["record.json", "inspect", "AIRFRAME.toml.", "Record.JSON"])
def test_a_log_does_not_replace_files_of_its_folder(tmp_path: Path, name: str) -> None:
    store, file = Store(tmp_path), tmp_path / "upload"
    file.write_bytes(b"log")
    key = store.add_log(file, name)
    store.save_log(key, {"digest": "x"})
    assert store.log_file(key).read_bytes() == b"log"
    assert store.logs() == {key: {"digest": "x"}}
    assert not (store.log_folder(key) / "inspect").exists()


@pytest.mark.parametrize(
    ("path", "data", "text"),
    [
        ("jobs", {"command": "track", "logs": [["LOG"]]}, "choose a log"),
        ("vehicle", {"logs": [{}]}, "no such log"),
        ("jobs", {"command": "demo", "logs": ["LOG"]}, "give one of track"),
        ("jobs", {"command": "track", "logs": []}, "choose a log"),
        ("jobs", {"command": "track", "logs": ["../x"]}, "choose a log"),
        ("jobs", {"command": "track", "logs": ["LOG"], "estimators": "ekf,--mcap"}, "no estimator"),
        ("jobs", {"command": "track", "logs": ["LOG"], "estimators": 3}, "not valid"),
        ("jobs", {"command": "wrench", "logs": ["LOG"], "observer": "-x"}, "no observer"),
        ("vehicle", {"logs": ["LOG"], "mass": "--help"}, "give a mass in kg"),
        ("vehicle", {"logs": ["LOG"], "mass": "-1"}, "give a mass in kg"),
        ("vehicle", {"logs": ["LOG"], "span": "wide"}, "give a distance in m"),
        ("vehicle", {"logs": ["LOG"], "airframe": "file:../../x"}, "none of this name"),
        ("vehicle", {"logs": ["LOG"], "airframe": "shipped:/etc/passwd"}, "none of this name"),
        ("vehicle", {"logs": ["none"]}, "no such log"),
    ],
)
def test_wrong_requests_get_one_line(
    app: Served, log: str, path: str, data: dict[str, Any], text: str
) -> None:
    data = data | {"logs": [log if name == "LOG" else name for name in data["logs"]]}
    status, answer = app.post(path, data)
    assert status in (400, 404)
    assert text in answer["error"]
    assert "\n" not in answer["error"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 30_000, b"\xff"])
def test_what_is_not_json_is_refused(app: Served, body: bytes) -> None:
    assert app.send("POST", "jobs", body, JSON)[0] == 400


def test_a_log_without_parameters_needs_an_airframe(app: Served, log: str) -> None:
    entry = app.wait(lambda s: s["logs"][0]["airframe"]["state"] == "failed")["logs"][0]
    assert "no log knows the mass" in entry["airframe"]["error"]
    assert str(app.state()["folder"]) not in entry["airframe"]["error"]
    status, answer = app.post("jobs", {"command": "track", "logs": [log]})
    assert status == 400
    assert answer["error"] == entry["airframe"]["error"]


def test_an_airframe_is_dropped_and_a_command_run(app: Served, log: str) -> None:
    toml = b'name = "mine"\n[mass]\nvalue = 1.5\nstd = 0.1\nunit = "kg"\n'
    assert app.upload("mine.toml", toml) == (200, {"airframe": "mine"})
    status, answer = app.upload("wrong.toml", b"mass = [")
    assert status == 400
    assert answer["error"].startswith("wrong.toml: ")
    assert app.post("vehicle", {"logs": [log], "airframe": "file:mine"})[0] == 200
    entry = app.wait(lambda s: s["logs"][0]["airframe"]["state"] in ("done", "failed"))["logs"][0]
    assert [(e["name"], e["value"]) for e in entry["airframe"]["entries"]] == [("mass", 1.5)]
    status, answer = app.post("jobs", {"command": "compare", "logs": [log], "estimators": "nonsense"})
    assert status == 400
    status, answer = app.post("jobs", {"command": "wrench", "logs": [log]})
    assert status == 200
    job = app.wait(lambda s: s["jobs"] and s["jobs"][-1]["state"] not in ("queued", "running"))["jobs"][-1]
    assert job["state"] == "failed"
    assert job["error"]
    assert "Traceback" not in job["error"]
    assert app.send("DELETE", f"jobs/{job['id']}")[0] == 200
    assert not app.state()["jobs"]


def test_the_same_log_is_kept_once(app: Served, log: str) -> None:
    status, answer = app.upload("copy.csv", table())
    assert (status, answer) == (200, {"log": log})


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [("photo.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF\x00", "JPEG"), ("empty.ulg", b"", "is empty"),
     ("cut.ulg", b"ULog\x01\x12\x35\x01", "cut.ulg")],
)  # fmt: skip
def test_a_wrong_file_gets_one_line(app: Served, name: str, content: bytes, text: str) -> None:
    status, answer = app.upload(name, content)
    assert status == 200
    key = answer["log"]
    state = app.wait(
        lambda s: any(e["id"] == key and e["inspection"]["state"] == "failed" for e in s["logs"])
    )
    error = next(e for e in state["logs"] if e["id"] == key)["inspection"]["error"]
    assert error.startswith(f"{name}: ")
    assert text in error
    assert "\n" not in error
    assert app.post("jobs", {"command": "track", "logs": [key]})[0] == 400
    assert app.send("DELETE", f"logs/{key}")[0] == 200
    assert key not in [e["id"] for e in app.state()["logs"]]
    assert not (Path(state["folder"]) / "logs" / key).exists()


def test_a_restart_finds_logs_and_results(tmp_path: Path) -> None:
    with served(tmp_path / "work") as app:
        _, answer = app.upload("hover.csv", table())
        app.wait(lambda s: s["logs"][0]["inspection"]["state"] == "done")
        app.post("vehicle", {"logs": [answer["log"]], "airframe": "shipped:simulated-quad"})
        app.wait(lambda s: s["logs"][0]["airframe"]["state"] == "done")
        before = app.state()
        assert app.post("jobs", {"command": "track", "logs": [answer["log"]], "estimators": "ekf"})[0] == 200
        app.wait(lambda s: s["jobs"][0]["state"] == "running")
        assert app.post("jobs", {"command": "wrench", "logs": [answer["log"]]})[0] == 200
        assert app.state()["jobs"][1]["position"] == 1
        assert app.send("DELETE", f"logs/{answer['log']}")[0] == 400  # a command uses it
    with served(tmp_path / "work") as app:
        after = app.wait(lambda s: s["logs"][0]["airframe"]["state"] == "done")
        assert after["logs"] == before["logs"]
        assert [job["state"] for job in after["jobs"]] == ["interrupted", "interrupted"]
        assert app.app.token not in json.dumps(after)


def test_an_upload_that_ends_early_leaves_nothing(app: Served) -> None:
    import socket

    with socket.create_connection(("127.0.0.1", app.port)) as link:
        head = f"POST /{app.app.token}/files?name=part.csv HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n"
        link.sendall(f"{head}Content-Type: {BYTES['Content-Type']}\r\n\r\nabc".encode())
    assert app.wait(lambda s: not list(Path(s["folder"]).glob(".upload-*")))
    assert "part.csv" not in [e["name"] for e in app.state()["logs"]]
