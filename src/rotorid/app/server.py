"""The routes of the app, and who may use them.

    /TOKEN/                          the page and its files
    /TOKEN/stream                    server-sent events: the state of the session, again after each change
    /TOKEN/files?name=NAME   POST    a log or an airframe (.toml), the bytes of the file
    /TOKEN/logs/ID           DELETE  remove a log
    /TOKEN/vehicle           POST    {"logs": [ID], "airframe", "mass", "span"}: the form of the vehicle
    /TOKEN/jobs              POST    {"command", "logs": [ID], "estimators", "observer"}: run a command
    /TOKEN/jobs/ID/cancel    POST    cancel it
    /TOKEN/jobs/ID           DELETE  remove it with its files
    /VIEW/logs/ID/FILE, /VIEW/results/ID/FILE    a file of an inspection or a result

Both tokens are random. A report is served in a sandbox of its own origin: its scripts run, but they know VIEW only and cannot
send requests. A request is refused where its Host is not an address of this computer (DNS rebinding), where a page of another
site has sent it, and where it changes something and is of a type that a form of another site could send.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from rotorid.app.requests import to_run, to_vehicle
from rotorid.app.store import MAX_AIRFRAME, MAX_LOG, files_of
from rotorid.app.workspace import Workspace
from rotorid.documents import file_sha256
from rotorid.errors import RotoridError
from rotorid.local_server import (
    FOREIGN_SITES,
    HEADERS,
    TOO_MANY_PAGES,
    WRONG_HOST,
    WRONG_SITE,
    WRONG_TOKEN,
    Connections,
    host_name,
    is_own_name,
    page_files,
)
from rotorid.models.airframe.shipped_names import airframe_names

_REPORT_POLICY: Final = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_MAX_JSON: Final = 65536  # bytes
_PERIOD: Final = 0.1  # minimum time between two messages of a stream, s
_KEEP_ALIVE: Final = 10.0  # s
_PAUSE: Final = 30.0  # longest time in which no block of a request or an answer passes, s


class Guard:
    """Lets requests pass that know a token and are of this page. host: that the server listens on."""

    def __init__(self, app: ASGIApp, connections: Connections, host: str, token: str, view: str) -> None:
        self._app, self._connections, self._host = app, connections, host
        self._tokens = {"page": token, "view": view}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with its path below /page or /view, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError("only HTTP is served")

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                extra = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message["headers"], *(h for h in extra if h[0] not in own)]
            try:
                async with asyncio.timeout(_PAUSE):
                    await send(message)
            except TimeoutError:
                self._connections.close(peer)

        peer = scope["client"] or ("", 0)
        refusal = self._refusal(Request(scope))
        kind, rest = self._split(scope["path"])
        if refusal is None and not self._connections.admit(peer, is_page=(kind, rest) == ("page", "/stream")):
            refusal = PlainTextResponse(f"{TOO_MANY_PAGES}\n", 503)
        if refusal is not None:
            refusal.headers["Connection"] = "close"  # the body of the request is not read
            await refusal(scope, receive, send_with_headers)
            return
        path = f"/{kind}{rest}"
        scope = {**scope, "path": path, "raw_path": path.encode(), "root_path": ""}
        try:
            await self._app(scope, receive, send_with_headers)
        finally:
            self._connections.finish(peer)

    def _split(self, path: str) -> tuple[str, str]:
        """The kind of the token in a path, empty for a wrong one, and the path after it."""
        given, slash, rest = path.removeprefix("/").partition("/")
        kinds = [
            kind
            for kind, token in self._tokens.items()
            if hmac.compare_digest(given.encode(), token.encode())
        ]
        return (kinds[0] if kinds and slash else ""), f"/{rest}"

    def _refusal(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        if not is_own_name(host_name(host), self._host):
            return PlainTextResponse(f"{WRONG_HOST}\n", 421)
        kind, rest = self._split(request.url.path)
        if not kind:
            return PlainTextResponse(f"{WRONG_TOKEN}\n", 403)
        is_page = kind == "page" and rest == "/" and request.method in ("GET", "HEAD")
        if request.headers.get("sec-fetch-site") in FOREIGN_SITES and not is_page:
            return PlainTextResponse(f"{WRONG_SITE}\n", 403)
        origin = request.headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return PlainTextResponse(f"{WRONG_SITE}\n", 403)
        return None


class App:
    """The ASGI application over a workspace. max_log: bytes."""

    def __init__(self, workspace: Workspace, host: str, max_log: int = MAX_LOG) -> None:
        self.token, self.view = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self._workspace, self._max_log = workspace, max_log
        self._files = page_files("rotorid.app")
        routes = [
            Route("/page/", self._page),
            Route("/page/stream", self._stream),
            Route("/page/files", self._upload, methods=["POST"]),
            Route("/page/vehicle", self._vehicle, methods=["POST"]),
            Route("/page/logs/{key}", self._remove_log, methods=["DELETE"]),
            Route("/page/jobs", self._run, methods=["POST"]),
            Route("/page/jobs/{key}/cancel", self._cancel, methods=["POST"]),
            Route("/page/jobs/{key}", self._remove_job, methods=["DELETE"]),
            Route("/page/{name}", self._page),
            Route("/view/{kind}/{key}/{name}", self._result),
        ]
        handlers: dict[Any, Any] = {
            RotoridError: _rotorid_error,
            OSError: _os_error,
            HTTPException: _http_error,
        }
        app = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)
        self.connections = Connections()
        self.asgi = Guard(app, self.connections, host, self.token, self.view)

    def stop(self) -> None:
        """End the streams, so that the server can end."""
        self._workspace.is_closed = True
        self._workspace.change()

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self._workspace.start()
        closing = asyncio.create_task(self._close_idle())
        yield
        closing.cancel()
        await self._workspace.close()

    async def _close_idle(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            self.connections.close_idle()

    async def _page(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in self._files:
            raise HTTPException(404, "Not found.")
        kind, body = self._files[name]
        return Response(body, media_type=kind)

    async def _stream(self, request: Request) -> Response:
        return StreamingResponse(self._messages(), media_type="text/event-stream")

    async def _messages(self) -> AsyncIterator[str]:
        version = -1
        yield "retry: 1000\n\n"
        while not self._workspace.is_closed:
            if await self._workspace.wait(version, _KEEP_ALIVE):
                version = self._workspace.version
                state = self._workspace.state() | {"view": self.view}
                yield f"data: {json.dumps(state, separators=(',', ':'))}\n\n"
                await asyncio.sleep(_PERIOD)
            else:
                yield ": \n\n"

    async def _upload(self, request: Request) -> Response:
        _require_type(request, "application/octet-stream")
        name = request.query_params.get("name", "")
        is_airframe = name.lower().endswith(".toml")
        largest = MAX_AIRFRAME if is_airframe else self._max_log
        if int(request.headers.get("content-length", "0") or 0) > largest:
            raise _too_large(name, largest)
        with self._workspace.store.upload() as path:
            await _save(request, path, name, largest)
            if is_airframe:
                return JSONResponse({"airframe": await self._workspace.add_airframe(path, name)})
            digest = await asyncio.to_thread(file_sha256, path)
            return JSONResponse({"log": self._workspace.add_log(path, name, digest)})

    async def _vehicle(self, request: Request) -> Response:
        data = await _body(request)
        vehicle = to_vehicle(data, airframe_names(), self._workspace.store.airframes())
        keys = data.get("logs")
        if not isinstance(keys, list) or any(key not in list(self._workspace.logs) for key in keys):
            raise HTTPException(404, "There is no such log.")
        self._workspace.set_vehicle(keys, vehicle)
        return JSONResponse({})

    async def _remove_log(self, request: Request) -> Response:
        self._workspace.remove_log(_known(request, self._workspace.logs))
        return JSONResponse({})

    async def _run(self, request: Request) -> Response:
        run = to_run(await _body(request), self._workspace.logs)
        return JSONResponse({"job": self._workspace.add_job(run)})

    async def _cancel(self, request: Request) -> Response:
        await _body(request)
        self._workspace.cancel_job(_known(request, self._workspace.jobs))
        return JSONResponse({})

    async def _remove_job(self, request: Request) -> Response:
        self._workspace.remove_job(_known(request, self._workspace.jobs))
        return JSONResponse({})

    async def _result(self, request: Request) -> Response:
        kind, key, name = (request.path_params[part] for part in ("kind", "key", "name"))
        store = self._workspace.store
        if kind == "logs" and key in self._workspace.logs:
            folder = store.log_folder(key)
            folder = folder if name == "airframe.toml" else folder / "inspect"
        elif kind == "results" and key in self._workspace.jobs:
            folder = store.result_folder(key)
        else:
            raise HTTPException(404, "Not found.")
        if name not in files_of(folder):
            raise HTTPException(404, "Not found.")
        if name.endswith(".html") and "download" not in request.query_params:
            frames = {"Content-Security-Policy": _REPORT_POLICY, "X-Frame-Options": "SAMEORIGIN"}
            return FileResponse(folder / name, media_type="text/html", headers=frames)
        return FileResponse(folder / name, media_type="application/octet-stream", filename=name)


async def _save(request: Request, path: Path, name: str, largest: int) -> None:
    """Write the body of a request into a file, block by block."""
    size = 0
    with open(path, "wb") as file:
        async for block in _blocks(request):
            size += len(block)
            if size > largest:
                raise _too_large(name, largest)
            await asyncio.to_thread(file.write, block)


async def _blocks(request: Request) -> AsyncIterator[bytes]:
    """The body of a request, block by block. Raises HTTPException where it ends early or makes a long pause."""
    blocks = request.stream()
    try:
        while True:
            async with asyncio.timeout(_PAUSE):
                block = await anext(blocks)
            yield block
    except StopAsyncIteration:
        return
    except ClientDisconnect:
        raise HTTPException(400, "The request was interrupted; send it again.") from None
    except TimeoutError:
        raise HTTPException(408, f"Nothing was received for {_PAUSE:.0f} s; send it again.") from None


def _too_large(name: str, largest: int) -> HTTPException:
    return HTTPException(413, f"{name}: is larger than {largest / 1e6:.0f} MB")


def _require_type(request: Request, kind: str) -> None:
    """Refuse what a form of another site could send without asking first."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != kind:
        raise HTTPException(415, f"The content type must be {kind}.")


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object of a request."""
    _require_type(request, "application/json")
    text = b""
    async for block in _blocks(request):
        text += block
        if len(text) > _MAX_JSON:
            raise HTTPException(413, "The request is too long.")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise HTTPException(400, "The request is not JSON.") from None
    if not isinstance(data, dict):
        raise HTTPException(400, "The request is not a JSON object.")
    return data


def _known(request: Request, entries: dict[str, Any]) -> str:
    key = request.path_params["key"]
    if key not in entries:
        raise HTTPException(404, "Not found.")
    return key


async def _rotorid_error(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": " ".join(str(error).split())}, 400)


async def _os_error(request: Request, error: Exception) -> Response:
    reason = error.strerror if isinstance(error, OSError) else None
    return JSONResponse({"error": f"the folder cannot be written: {reason or error}"}, 507)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)
