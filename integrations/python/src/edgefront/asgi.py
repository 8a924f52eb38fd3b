"""ASGI middleware, for Starlette, FastAPI and others. `scope["edgefront"]` is the request's `Edge`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .core import BadRequest, Edge, Keys, Refused, _current, is_claim


class EdgefrontMiddleware:
    """Refuses requests that did not come through edgefront, except those of the paths in `exempt`."""

    def __init__(self, app: Any, origin_key: str | Iterable[str], exempt: Iterable[str] = ()):
        self.app, self.keys, self.exempt = app, Keys(origin_key), frozenset(exempt)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            # edgefront forwards no WebSocket, so a WebSocket comes from another client.
            return await send({"type": "websocket.close", "code": 1008})
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        try:
            edge = Edge.read(headers, self.keys)
        except Refused:
            if scope["path"] not in self.exempt:
                return await _plain(send, 403, b"This address answers edgefront only.\n")
            edge = Edge()
        except BadRequest as error:
            return await _plain(send, 400, f"{error} is not valid.\n".encode())
        kept = [(name, value) for name, value in scope["headers"] if not is_claim(name.decode("latin-1"))]
        scope = {**scope, "headers": kept, "edgefront": edge}
        if edge.address is not None:
            scope["client"] = (edge.address, 0)
        if edge.scheme is not None:
            scope["scheme"] = edge.scheme
        if edge.host is not None:
            scope["headers"] = [pair for pair in kept if pair[0].lower() != b"host"]
            scope["headers"].append((b"host", edge.host.encode("latin-1")))

        async def finish(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]]
                headers = edge.finish(message["status"], headers)
                message = {**message, "headers": [(n.lower().encode("latin-1"), v.encode("latin-1")) for n, v in headers]}
            await send(message)

        token = _current.set(edge)
        try:
            await self.app(scope, receive, finish)
        finally:
            _current.reset(token)


async def _plain(send: Any, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"text/plain"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
