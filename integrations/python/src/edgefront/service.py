"""Calls of edgefront's service API. A background thread sends purges and the calls with `later`, so no visitor and
no transaction waits for them."""

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
from collections import deque
from collections.abc import Iterable
from typing import Any

from .core import is_item, is_tag

log = logging.getLogger("edgefront")

#: The kinds of names that a purge has.
KINDS = ("items", "tags", "urls")
#: Bytes of names in one call. edgefront accepts a body of 64 KiB.
_MAX_BYTES = 12_000
#: If more names wait, one soft purge of all pages replaces them. If as many other calls wait, further ones are dropped.
_MAX_WAITING = 5_000

#: Method, path, body.
_Call = tuple[str, str, "dict[str, Any] | None"]


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
        self._calls: deque[_Call] = deque()
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
            self._wake()

    def flush(self, timeout: float = 10) -> bool:
        """Waits until all purges and the calls with `later` were sent or given up."""
        with self._lock:
            return self._lock.wait_for(lambda: not (self._waiting or self._calls or self._is_sending), timeout)

    def end_sessions(self, user: object, later: bool = False, retries: bool = True) -> bool:
        """Ends all sessions of a user at edgefront. Waits for the answer: at most about 30 s, 5 s without retries. With
        `later` it returns at once, and the thread sends the call. False then means that too many calls wait."""
        call: _Call = "DELETE", f"/users/{urllib.parse.quote(str(user), safe='')}/sessions", None
        return self._send_later(call) if later else self._send(*call, retries)

    def report_order(self, order: dict[str, Any], later: bool = False) -> bool:
        """Reports an order that no visitor's request placed. Waits for the answer, except with `later`."""
        call: _Call = "POST", "/orders", order
        return self._send_later(call) if later else self._send(*call)

    def schedule_row(self, row: object, every: float) -> bool:
        """Refreshes a row every `every` seconds. 0 deletes its schedule and its copy."""
        return self._send("PUT", f"/rows/{urllib.parse.quote(str(row), safe='')}/schedule", {"every": every})

    def _send_later(self, call: _Call) -> bool:
        """Returns False if too many calls wait."""
        with self._lock:
            if len(self._calls) >= _MAX_WAITING:
                log.error("%s %s was dropped: more than %d calls wait", *call[:2], _MAX_WAITING)
                return False
            self._calls.append(call)
            self._wake()
            return True

    def _wake(self) -> None:
        """Needs the lock."""
        if not self._has_thread:
            self._has_thread = True
            threading.Thread(target=self._run, name="edgefront", daemon=True).start()
            atexit.register(self._end)
        self._lock.notify_all()

    def _end(self) -> None:
        if not self.flush():
            log.error("the process ended before all calls of edgefront were sent")

    def _run(self) -> None:
        while True:
            with self._lock:
                self._is_sending = False
                self._lock.notify_all()
                self._lock.wait_for(lambda: self._waiting or self._calls)
                names, self._waiting, self._is_sending = list(self._waiting), {}, True
                # One at a time: purges do not wait for the retries of many calls.
                call = self._calls.popleft() if self._calls else None
            for body in _bodies(names):
                self._send("POST", "/purge", body)
            if call is not None:
                self._send(*call)

    def _send(self, method: str, path: str, body: dict[str, Any] | None, retries: bool = True) -> bool:
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        for pause in (*(self._pauses if retries else ()), None):
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
