"""The app driven through by a browser, with a recorded ULog and a recorded BIN."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.serving import Served, served
from tests.chromium import FOUND, Chromium, chromium

pytestmark = pytest.mark.skipif(FOUND is None, reason="no Chromium on this computer")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("app") / "work") as running:
        yield running


@pytest.fixture(scope="module")
def page(app: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        browser.dress(1280, 900)
        browser.call("Page.navigate", url=app.address)
        wait_for(browser, "document.querySelector('#folder')?.textContent.length > 3")
        yield browser


def wait_for(browser: Chromium, expression: str) -> None:
    browser.wait(f"!!({expression})", 60.0)


def choose_files(browser: Chromium, *files: Path) -> None:
    root = browser.call("DOM.getDocument")["root"]["nodeId"]
    node = browser.call("DOM.querySelector", nodeId=root, selector="#files")["nodeId"]
    browser.call("DOM.setFileInputFiles", nodeId=node, files=[str(file) for file in files])


def pick(browser: Chromium, name: str) -> None:
    browser.value(
        f"[...document.querySelectorAll('.pick')].find((b) => b.textContent.includes({json.dumps(name)})).click()"
    )
    wait_for(browser, f"document.querySelector('#log .overline b')?.textContent === {json.dumps(name)}")


def type_mass(browser: Chromium, text: str) -> None:
    set_value = f"const m = document.querySelector('#mass'); m.value = {json.dumps(text)}"
    browser.value(f"(() => {{ {set_value}; m.dispatchEvent(new Event('change', {{ bubbles: true }})) }})()")


def text_of(browser: Chromium, selector: str) -> str:
    return browser.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")


def test_logs_are_dropped_and_tracked(app: Served, page: Chromium, flights: Path) -> None:
    ulog, bin_log = (
        flights / "px4_samples/sample_log_small.ulg",
        flights / "ardupilot_propeller/cut5_line_1.BIN",
    )
    choose_files(page, ulog, bin_log)
    wait_for(page, "document.querySelectorAll('#logs .row').length === 2")
    pick(page, bin_log.name)
    wait_for(page, "document.querySelector('#airframe-state.caution')")
    assert "Poorly excited: mass" in text_of(page, "#log")
    assert "no log knows the mass" in text_of(page, "#airframe-state")
    assert page.value("document.querySelector('#run').disabled")
    type_mass(page, "1.5+-0.01")
    wait_for(page, "document.querySelector('tr.wide')")
    assert "1.5 ± 0.01 kg" in text_of(page, "#log")
    page.value("document.querySelector('input[value=ukf]').click()")
    page.value("document.querySelector('#run').click()")
    wait_for(page, "document.querySelector('.job[data-state=running]')")
    wait_for(page, "document.querySelector('.job[data-state=done]')")
    assert "The mass was constant: 1.48" in text_of(page, ".job").replace("\u00a0", " ")
    files = page.value("[...document.querySelectorAll('.job .files a')].map((a) => a.textContent)")
    assert files == ["airframe.toml", "estimates.parquet", "report.html", "summary.json"]
    assert not page.complaints()
    assert all(
        address.startswith((app.address.rsplit("/", 2)[0], "data:", "about:", "blob:"))
        for address in page.requests()
    )


def test_a_ulog_says_why_it_cannot_be_used(page: Chromium, flights: Path) -> None:
    pick(page, "sample_log_small.ulg")
    type_mass(page, "1.5")
    wait_for(
        page, "document.querySelector('#airframe-state.bad')?.textContent.includes('the vehicle is a VTOL')"
    )


def test_another_tab_and_a_reload_show_the_same(
    app: Served, page: Chromium, flights: Path, tmp_path: Path
) -> None:
    rows = "[...document.querySelectorAll('#logs .row, .job h3')].map((e) => e.innerText)"
    before = page.value(rows)
    assert len(before) == 3
    with chromium(tmp_path / "profile") as other:
        other.call("Page.navigate", url=app.address)
        wait_for(other, "document.querySelectorAll('.job').length === 1")
        assert other.value(rows) == before
        wrong = tmp_path / "photo.jpg"
        wrong.write_bytes(b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(100))
        choose_files(other, wrong)
        wait_for(other, "document.querySelector('h1.error')")
        assert text_of(other, "h1.error").startswith("photo.jpg: is a JPEG picture")
        wait_for(page, "document.querySelector('#logs').textContent.includes('photo.jpg')")
        other.value("document.querySelector('[aria-label=\"Remove photo.jpg\"]').click()")
        wait_for(page, "!document.querySelector('#logs').textContent.includes('photo.jpg')")
    page.call("Page.reload")
    wait_for(page, "document.querySelectorAll('.job').length === 1")
    assert page.value(rows) == before


def test_a_ulog_is_dropped_and_tracked(app: Served, page: Chromium, flights: Path) -> None:
    content = base64.b64encode((flights / "px4_sih" / "default_logging.ulg").read_bytes()).decode()
    page.value(
        f"""(() => {{
          const bytes = Uint8Array.from(atob({json.dumps(content)}), (c) => c.charCodeAt(0));
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File([bytes], "dropped.ulg"));
          document.body.dispatchEvent(new DragEvent("drop", {{ bubbles: true, cancelable: true, dataTransfer }}));
        }})()"""
    )
    wait_for(page, "document.querySelector('#logs').textContent.includes('dropped.ulg')")
    pick(page, "dropped.ulg")
    wait_for(page, "document.querySelector('#run')?.disabled === false")
    assert "0.02 ± 0.01 m" in text_of(page, "#log").replace("\u00a0", " "), text_of(
        page, "#log"
    )  # torque ratio, with the default standard deviation
    page.value("document.querySelector('input[value=track]').click()")
    page.value("document.querySelector('input[value=ukf]:checked')?.click()")
    page.value("document.querySelector('#run').click()")
    wait_for(page, "document.querySelectorAll('.job[data-state=done]').length === 2")
    job = app.state()["jobs"][-1]
    assert (job["command"], job["state"]) == ("track", "done")
    assert {"airframe.toml", "estimates.parquet", "report.html", "summary.json"} <= set(job["files"])


def test_a_command_is_cancelled(app: Served, page: Chromium, flights: Path) -> None:
    pick(page, "cut5_line_1.BIN")
    wait_for(page, "document.querySelector('tr.wide')")
    page.value("document.querySelector('input[value=identify]').click()")
    wait_for(page, "document.querySelector('#run')?.textContent === 'Run identify'")
    page.value("document.querySelector('#run').click()")
    wait_for(page, "document.querySelector('.job[data-state=running]')")
    page.value(
        "[...document.querySelectorAll('.job[data-state=running] button')].find((b) => b.textContent === 'Cancel').click()"
    )
    wait_for(page, "document.querySelector('.job[data-state=cancelled]')")
    job = app.state()["jobs"][-1]
    assert (job["command"], job["state"], job["files"]) == ("identify", "cancelled", {})


def test_a_report_runs_but_cannot_reach_the_server(
    app: Served, page: Chromium, flights: Path, tmp_path: Path
) -> None:
    job = app.state()["jobs"][0]
    with chromium(tmp_path / "profile") as browser:
        browser.call(
            "Page.navigate",
            url=app.address.replace(app.app.token, app.app.view) + f"results/{job['id']}/report.html",
        )
        wait_for(browser, "document.querySelector('.chart svg')")
        assert browser.value("self.origin") == "null"
        target, reply = json.dumps(f"{app.address}jobs"), "then(() => 'sent', () => 'blocked')"
        assert (
            browser.value(
                f"fetch({target}, {{ method: 'POST', body: '{{}}' }}).then(() => 'sent', () => 'blocked')"
            )
            == "blocked"
        )
        assert browser.value(f"fetch({target.replace('jobs', 'stream')}).{reply}") == "blocked"


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_is_not_wider_than_the_screen(page: Chromium, flights: Path, width: int) -> None:
    page.dress(width, 844, phone=width < 500)
    wait_for(page, f"innerWidth === {width}")
    assert page.value("document.documentElement.scrollWidth") <= width
