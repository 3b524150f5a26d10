"""`rotorid app`: a page in the browser to drop logs on, and to run the commands."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.errors import SettingError
from rotorid.terminal.arguments import folder_option

if TYPE_CHECKING:
    from rotorid.app.server import App

INSTALL = "the page needs Starlette and uvicorn: pip install 'rotorid[app]'"
_BACKLOG = 128


def app(
    port: Annotated[int, typer.Option("--port", metavar="N", help="Port; 0 for a free one.")] = 8089,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="HOST",
            help="Address to listen on; with 0.0.0.0, other computers can use the page too, with its token.",
        ),
    ] = "127.0.0.1",
    output: Annotated[Path, folder_option("Folder for logs and results. Default: rotorid-app.")] = Path(
        "rotorid-app"
    ),
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = True,
) -> None:
    """Open a page in the browser: drop logs on it, see their checks, and run track, identify, wrench and compare.

    The page is served by this computer and works offline. Logs and results are kept in a folder, where the next start finds
    them again. Press Ctrl-C to stop.
    """
    try:
        import uvicorn  # noqa: F401  # pyright: ignore[reportUnusedImport]

        from rotorid.app.server import App
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "anyio", "h11"):
            raise
        raise SettingError(INSTALL) from None
    from rotorid.app.store import Store
    from rotorid.app.workspace import Workspace
    from rotorid.local_server import page_address
    from rotorid.terminal.console import out
    from rotorid.terminal.garbage import collect_as_usual

    collect_as_usual()
    host = host.removeprefix("[").removesuffix("]")
    store = Store(output)
    listening = _listen(host, port)
    application = App(Workspace(store), host)
    address = page_address(host, listening.getsockname()[1], application.token)
    console = out()
    console.print(f"Page:   {address}", markup=False, soft_wrap=True)
    console.print(f"Folder: {output}", markup=False, soft_wrap=True)
    console.print("Press Ctrl-C to stop.")
    if open_browser:
        import webbrowser

        webbrowser.open(address)
    serve(application, listening)


def _listen(host: str, port: int) -> socket.socket:
    from rotorid.local_server import address_error

    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        raise SettingError(address_error(host, port, error)) from None
    return listening


def serve(application: App, listening: socket.socket) -> None:
    """Serve the page until Ctrl-C or SIGTERM."""
    import asyncio
    import signal

    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Leave the signals to this command."""
            yield

    from rotorid.app.http import configuration

    server = Server(configuration(application))

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            application.stop()
            server.should_exit = True

        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, stop)
            except NotImplementedError:  # Windows
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
        await server.serve(sockets=[listening])

    asyncio.run(run())
