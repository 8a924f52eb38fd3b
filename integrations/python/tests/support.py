"""Servers on free ports, and the conformance kit."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import socketserver
import subprocess
import threading
from wsgiref import simple_server

KEY = "the key of the test origin"
PASSWORD = "test-account-password-1"


def contract(url: str, *options: str) -> str:
    """Runs the conformance kit, which must find no broken clause."""
    program = os.environ.get("EDGEFRONT_CONTRACT")
    assert program, "set EDGEFRONT_CONTRACT to the program edgefront-contract, or run: cargo xtask test --integrations"
    environment = {**os.environ, "ORIGIN_KEY": KEY, "CONTRACT_PASSWORD": PASSWORD}
    run = subprocess.run([program, url, *options], capture_output=True, text=True, env=environment, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


class _WsgiServer(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    """The server of the standard library. Like CGI, it takes `Edge_User` for `Edge-User`."""


class _WsgiHandler(simple_server.WSGIRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def wsgi_server(app, port=0):
    server = simple_server.make_server("127.0.0.1", port, app, _WsgiServer, _WsgiHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@contextlib.contextmanager
def asgi_server(app):
    import asyncio
    import socket

    import uvicorn

    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    started = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            started.set()

    server = Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([sock])))
    thread.start()
    try:
        assert started.wait(20)
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        sock.close()


class Api:
    """edgefront's service API: it records the calls, and answers with the next of `statuses`, then with 200. It answers
    while `gate` is set."""

    def __init__(self):
        self.calls, self.statuses, self.gate = [], [], threading.Event()
        self.gate.set()
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                call = (self.command, self.path, json.loads(body or "null"))
                api.calls.append((*call, self.headers["Authorization"]))
                api.gate.wait(60)
                status = api.statuses.pop(0) if api.statuses else 200
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{api.url}/elsewhere")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            do_DELETE = do_GET = do_POST

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def names(self, kind):
        return [name for _, path, body, _ in self.calls if path == "/_edge/v1/purge" for name in body.get(kind, [])]

    def close(self):
        self._server.shutdown()
        self._server.server_close()
