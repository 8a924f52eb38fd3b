"""WSGI middleware, for Flask, Pyramid and others. `environ["edgefront"]` is the request's `Edge`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .core import BadRequest, Edge, Keys, Refused, _current, is_claim


def claims(environ: dict[str, Any]) -> list[tuple[str, str]]:
    """Removes the headers that count only with the right key, and returns them."""
    found = []
    for variable in [name for name in environ if name.startswith("HTTP_")]:
        name = variable[5:].replace("_", "-")
        if is_claim(name):
            found.append((name, environ.pop(variable)))
    return found


def apply_forwarded(edge: Edge, environ: dict[str, Any]) -> None:
    """Sets the address of the client, the host and the scheme."""
    if edge.address is not None:
        environ["REMOTE_ADDR"] = edge.address
    if edge.host is not None:
        environ["HTTP_HOST"] = edge.host
    if edge.scheme is not None:
        environ["wsgi.url_scheme"] = edge.scheme


class EdgefrontMiddleware:
    """Refuses requests that did not come through edgefront, except those of the paths in `exempt`."""

    def __init__(self, app: Any, origin_key: str | Iterable[str], exempt: Iterable[str] = ()):
        self.app, self.keys, self.exempt = app, Keys(origin_key), frozenset(exempt)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        try:
            edge = Edge.read(claims(environ), self.keys)
        except Refused:
            if environ.get("PATH_INFO") not in self.exempt:
                return _plain(start_response, "403 Forbidden", b"This address answers edgefront only.\n")
            edge = Edge()
        except BadRequest as error:
            return _plain(start_response, "400 Bad Request", f"{error} is not valid.\n".encode())
        apply_forwarded(edge, environ)
        environ["edgefront"] = edge
        token = _current.set(edge)

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            return start_response(status, edge.finish(int(status[:3]), headers), exc_info)

        try:
            return self.app(environ, start)
        finally:
            _current.reset(token)


def _plain(start_response: Any, status: str, body: bytes) -> list[bytes]:
    headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body))), ("Cache-Control", "no-store")]
    start_response(status, headers)
    return [body]
