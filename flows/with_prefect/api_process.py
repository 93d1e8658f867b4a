"""The process of a Prefect server that nacre starts: it ends with its parent, and answers to its own address alone.

Prefect's server looks at neither ``Host`` nor ``Origin``. Every web page in the operator's browser could write there,
for CORS forbids a page to read an answer and not to ask; a page whose name leads to this machine could read as well.
"""

import os
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

STOP_TIMEOUT = 8.0  # seconds
_WATCH_SECONDS = 0.5
_ANSWER_HEADERS = {
    # What the UI shows, and the telemetry that it would send before anybody has logged in, can reach nobody else. The
    # graph of a flow run is drawn by functions that are made while it runs, in workers.
    "content-security-policy": "default-src 'self'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
}

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Any, Send], Awaitable[None]]


class SameOrigin:
    """An ASGI app that passes on what is sent to its own address, by its own pages or by programs.

    A browser says in ``Origin`` and ``Sec-Fetch-Site`` which page asks, and no page can change that; programs leave
    them out. A link to the UI may be followed from anywhere, for what it shows is its own.
    """

    def __init__(self, app: App, address: str) -> None:
        self.app, self.address = app, address

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        """Answer a request or a websocket, or refuse it in one sentence."""
        from starlette.responses import PlainTextResponse

        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        status, reason = self.refusal(scope)
        if not status:
            return await self.app(scope, receive, _with_headers(send))
        answer = PlainTextResponse(f"{reason}\n", status, {**_ANSWER_HEADERS, "connection": "close"})
        await answer(scope, receive, send)

    def refusal(self, scope: Any) -> tuple[int, str]:
        """Return the status and the sentence by which a request is refused, or 0 and nothing."""
        origin = f"http://{self.address}"
        if _values(scope, b"host") != [self.address] or not scope["raw_path"].startswith(b"/"):
            return 421, f"This server has one address: open {origin}"
        strangers = [each for each in _values(scope, b"origin") if each != origin]
        sites = {*_values(scope, b"sec-fetch-site")} - {"same-origin", "none"}
        if strangers or (sites and not _follows_link(scope)):
            return 403, f"Pages of other sites may ask nothing here: open {origin} by itself"
        return 0, ""


def _values(scope: Any, name: bytes) -> list[str]:
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return [value.decode("latin-1") for key, value in headers if key.lower() == name]


def _follows_link(scope: Any) -> bool:
    """Tell whether a browser opens a page of the UI in a tab, which reads and writes nothing."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["path"].startswith("/api"):
        return False
    return _values(scope, b"sec-fetch-mode") == ["navigate"] and _values(scope, b"sec-fetch-dest") == ["document"]


def _with_headers(send: Send) -> Send:
    """Tell browsers with each answer to show no page of this server inside another, and to fetch from it alone."""
    fixed = [(name.encode(), value.encode()) for name, value in _ANSWER_HEADERS.items()]

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *fixed]}
        await send(message)

    return send_with_headers


def _end_with(parent: int) -> None:
    """End this process, politely at first, once ``parent`` is no longer its parent, without any help of the parent."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os.kill(os.getpid(), 15)
    time.sleep(STOP_TIMEOUT / 2)
    os._exit(1)


def _serve(descriptor: int, parent: int) -> None:
    """Run the API on an inherited listening socket."""
    os.umask(0o077)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    import uvicorn
    from prefect.server.api.server import create_app

    listener = socket.socket(fileno=descriptor)
    host, port = listener.getsockname()
    config = uvicorn.Config(
        SameOrigin(create_app(), f"{host}:{port}"),
        log_level="error",
        lifespan="on",
        timeout_graceful_shutdown=3,
        proxy_headers=False,
        server_header=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]))
