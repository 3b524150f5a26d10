"""The HTTP server of the app: uvicorn with limits of requests and connections. Requests that are not valid print nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from rotorid.local_server import MAX_HEAD

if TYPE_CHECKING:
    from rotorid.app.server import App


def configuration(application: App) -> uvicorn.Config:
    """The settings of uvicorn for the app."""
    connections = application.connections

    class Protocol(H11Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            """Count the connection, or close it where there are too many."""
            transport = cast(asyncio.Transport, transport)
            super().connection_made(transport)
            if not (self.client and connections.open(self.client, transport.abort)):
                transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            """Remove the connection."""
            if self.client:
                connections.remove(self.client)
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            """Answer a request that is not valid, unless an answer has begun."""
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                super().send_400_response(msg)
            else:
                self.transport.close()

    protocol: Any = Protocol
    return uvicorn.Config(
        application.asgi, http=protocol, ws="none", log_level="error", access_log=False, lifespan="on",
        server_header=False, timeout_graceful_shutdown=2, h11_max_incomplete_event_size=MAX_HEAD,
    )  # fmt: skip
