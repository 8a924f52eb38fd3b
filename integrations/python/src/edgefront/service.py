"""Calls of edgefront's service API. A background thread sends purges, so no visitor and no transaction waits for them."""

from __future__ import annotations

import atexit
import json
import logging
import os
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from typing import Any

from .core import is_item, is_tag

log = logging.getLogger("edgefront")

#: The kinds of names that a purge has.
KINDS = ("items", "tags", "urls")
#: Bytes of names in one call. edgefront accepts a body of 16 KiB.
_MAX_BYTES = 12_000
#: If more names wait, one soft purge of all pages replaces them.
_MAX_WAITING = 5_000


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would send the key to another address."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Service:
    """`url` is the public address of the shop, `key` its `SERVICE_KEY`. `pauses` are the seconds before each retry."""

    def __init__(self, url: str, key: str, timeout: float = 5, pauses: Iterable[float] = (0.5, 2, 8)):
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise ValueError("URL must begin with http:// or https://")
        self._api, self._key = url.rstrip("/") + "/_edge/v1", key
        self._timeout, self._pauses = timeout, tuple(pauses)
        self._opener = urllib.request.build_opener(_NoRedirect())
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        """A forked process has no thread of its parent, and its parent sends what waits."""
        self._lock = threading.Condition()
        self._waiting: dict[tuple[str, str], None] = {}
        self._is_sending = self._has_thread = False

    def purge(self, names: Iterable[tuple[str, str]]) -> None:
        """Purges names such as `("items", "mug")` soon. Returns at once and never raises for a name."""
        valid = {}
        for kind, name in names:
            name = str(name)
            if (kind == "items" and is_item(name)) or (kind == "tags" and is_tag(name)) or (kind == "urls" and name):
                valid[kind, name] = None
            else:
                log.error("edgefront cannot purge %s %r: the name is not valid", kind, name)
        if not valid:
            return
        with self._lock:
            self._waiting.update(valid)
            if len(self._waiting) > _MAX_WAITING:
                log.warning("more than %d names wait for a purge: purging all pages", _MAX_WAITING)
                self._waiting = {("all", ""): None}
            if not self._has_thread:
                self._has_thread = True
                threading.Thread(target=self._run, name="edgefront", daemon=True).start()
                atexit.register(self.flush, 10)
            self._lock.notify_all()

    def flush(self, timeout: float = 10) -> bool:
        """Waits until all purges were sent or given up."""
        end = time.monotonic() + timeout
        with self._lock:
            return self._lock.wait_for(lambda: not self._waiting and not self._is_sending, end - time.monotonic())

    def end_sessions(self, user: object) -> bool:
        """Ends all sessions of a user at edgefront, with retries."""
        return self._send("DELETE", f"/users/{urllib.parse.quote(str(user), safe='')}/sessions", None)

    def report_order(self, order: dict[str, Any]) -> bool:
        """Reports an order that no visitor's request placed."""
        return self._send("POST", "/orders", order)

    def schedule_row(self, row: object, every: float) -> bool:
        """Refreshes a row every `every` seconds. 0 deletes its schedule and its copy."""
        return self._send("PUT", f"/rows/{urllib.parse.quote(str(row), safe='')}/schedule", {"every": every})

    def _run(self) -> None:
        while True:
            with self._lock:
                self._is_sending = False
                self._lock.notify_all()
                self._lock.wait_for(lambda: self._waiting)
                names, self._waiting, self._is_sending = list(self._waiting), {}, True
            for body in _bodies(names):
                self._send("POST", "/purge", body)

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> bool:
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        for pause in (*self._pauses, None):
            request = urllib.request.Request(self._api + path, data, headers, method=method)
            try:
                with self._opener.open(request, timeout=self._timeout):
                    return True
            except urllib.error.HTTPError as error:
                cause, is_temporary = f"status {error.code}", error.code >= 500 or error.code == 429
                error.close()
            except Exception as error:
                cause, is_temporary = type(error).__name__, True
            if pause is None or not is_temporary:
                log.error("%s %s failed: %s", method, path, cause)
                return False
            log.warning("%s %s failed, again in %s s: %s", method, path, pause, cause)
            time.sleep(pause)
        return False


def _bodies(names: list[tuple[str, str]]) -> Iterable[dict[str, Any]]:
    """Splits names into bodies that edgefront accepts."""
    if ("all", "") in names:
        yield {"all": True, "soft": True}
        return
    body: dict[str, Any] = {}
    size = 0
    for kind, name in names:
        length = len(json.dumps(name)) + 1
        if size + length > _MAX_BYTES and body:
            yield body
            body, size = {}, 0
        body.setdefault(kind, []).append(name)
        size += length
    if body:
        yield body
