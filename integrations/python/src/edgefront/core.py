"""One request as edgefront describes it, and the directives of its response."""

from __future__ import annotations

import hmac
import ipaddress
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any

log = logging.getLogger("edgefront")

_ITEM = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9._~-]{1,64}\Z")
_USER = re.compile(r"(?!\.\.?\Z)[!#-+\--\[\]-z|~]{1,128}\Z")
_TAG = re.compile(r"(?!\.\.?\Z)[!-+\--~]{1,64}\Z")
_HOST = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?\Z")
# `Edge_User` and `Edge.User` count: CGI reads them as `Edge-User`.
_EDGE = re.compile(r"edge(?![a-z0-9])", re.IGNORECASE)
_PROXY = re.compile(r"(x-forwarded(-.*)?|forwarded|x-real-ip)\Z", re.IGNORECASE)
_SESSIONS = ("user", "guest", "none", "unknown")
_MAX_TAGS = 32
_MAX_OPERATIONS = 100
_MAX_ORDER_ITEMS = 500


class Refused(Exception):
    """The request has no right `Edge-Key`: answer 403."""


class BadRequest(Exception):
    """The request has the right key, but breaks the contract: answer 400."""


class Keys:
    """The origin's key. A list has the new key and, until edgefront sends the new one, the old key."""

    def __init__(self, keys: str | Iterable[str]):
        self._keys = [key.encode() for key in ([keys] if isinstance(keys, str) else keys)]
        if not self._keys or any(len(key) < 16 for key in self._keys):
            raise ValueError("ORIGIN_KEY must have at least 16 characters")

    def match(self, key: str | None) -> bool:
        """Compares in constant time."""
        given = (key or "").encode("latin-1", "replace")
        # No early end: each key is compared.
        return any([hmac.compare_digest(given, own) for own in self._keys])


def is_edge(name: str) -> bool:
    """Returns whether a header belongs to the contract, in any spelling."""
    return _EDGE.match(name) is not None


def is_claim(name: str) -> bool:
    """Returns whether a header is believed only with the right key: `Edge-*`, and those about client, host and scheme."""
    return is_edge(name) or _PROXY.match(name.replace("_", "-")) is not None


class Edge:
    """One request, and the directives of its response. Each method that names a value raises `ValueError` if edgefront
    would ignore the value."""

    def __init__(self) -> None:
        #: True if the request came through edgefront.
        self.verified = False
        #: True if the request is a shared render: it has no visitor.
        self.shared = False
        #: `user`, `guest`, `none` or `unknown`; None without a visitor.
        self.session: str | None = None
        #: The id of the signed-in user.
        self.user: str | None = None
        #: Item → quantity, on the paths of `CART_ROUTES`. None: Redis did not answer.
        self.cart_items: dict[str, int] | None = None
        #: The reservation of a flash sale: `sale`, `id`, `until`.
        self.reservation: dict[str, Any] | None = None
        self.address: str | None = None
        self.host: str | None = None
        self.scheme: str | None = None
        self.cart = Cart(self)
        #: Names for a purge after the request.
        self.purges: list[tuple[str, str]] = []
        #: Called before the headers of the response are written.
        self.finishers: list[Callable[[], None]] = []
        self._operations: list[dict[str, Any]] = []
        self._login: str | None = None
        self._logout: str | None = None
        self._order: str | None = None
        self._item: str | None = None
        self._tags: dict[str, None] = {}
        self._share: str | None = None
        self._touched: str | None = None

    @classmethod
    def read(cls, headers: Iterable[tuple[str, str]], keys: Keys) -> Edge:
        """Reads the headers of a request. Raises `Refused` or `BadRequest`."""
        claims: dict[str, str] = {}
        for name, value in headers:
            name = name.lower()
            if not is_claim(name):
                continue
            # edgefront sends one header of each name; proxies behind it may add lines about the client.
            if name in claims and is_edge(name):
                raise Refused(f"two headers {name}")
            claims[name] = "" if name in claims else value
        if not keys.match(claims.get("edge-key")):
            raise Refused("no right Edge-Key")
        edge = cls()
        edge.verified = True
        edge._read_forwarded(claims)
        if "edge-shared" in claims:
            edge.shared = True
            return edge
        edge.session = claims.get("edge-session")
        if edge.session is not None and edge.session not in _SESSIONS:
            raise BadRequest("Edge-Session")
        if edge.session == "user":
            edge.user = claims.get("edge-user", "")
            if not _USER.match(edge.user):
                raise BadRequest("Edge-User")
        edge.cart_items = _read_cart(claims.get("edge-cart"))
        edge.reservation = _read_object("Edge-Reservation", claims.get("edge-reservation"))
        return edge

    def _read_forwarded(self, claims: Mapping[str, str]) -> None:
        host, scheme = claims.get("x-forwarded-host"), claims.get("x-forwarded-proto")
        if host is not None and _HOST.match(host):
            self.host = host
        if scheme in ("http", "https"):
            self.scheme = scheme
        try:
            self.address = str(ipaddress.ip_address(claims["x-real-ip"]))
        except (KeyError, ValueError):
            pass

    def login(self, user: object) -> None:
        """`Edge-Login`: starts a session of this user."""
        self._login = _checked(_USER, "user", user)

    def logout(self, everywhere: bool = False, user: object = None) -> None:
        """`Edge-Logout`: ends the visitor's session, all sessions of its user, or all sessions of the named `user`. A
        response has one `Edge-Logout`: the last call counts. A named user wins over a login, because edgefront would
        execute the login only."""
        if user is not None:
            self._logout = f"user={_checked(_USER, 'user', user)}"
        elif self.user is None or self._logout != f"user={self.user}":
            self._logout = "all" if everywhere else "1"

    def order(
        self,
        order_id: object,
        items: Mapping[Any, int],
        reservation: Mapping[str, Any] | None = None,
        in_cart: bool = True,
    ) -> None:
        """`Edge-Order`: the visitor bought these quantities.

        `in_cart=False` leaves the cart alone, such as for a piece of a flash sale.
        """
        if not 1 <= len(items) <= _MAX_ORDER_ITEMS:
            raise ValueError("an order has 1 to 500 items")
        lines = [{"id": _item(item), "quantity": _quantity(quantity, 1)} for item, quantity in items.items()]
        order: dict[str, Any] = {"order_id": _checked(_ITEM, "order_id", order_id), "items": lines}
        if not in_cart:
            order["in_cart"] = False
        if reservation is not None:
            order["reservation"] = {"sale": _item(reservation["sale"]), "id": str(reservation["id"])}
        self._order = _json(order)

    def item(self, item: object) -> None:
        """`Edge-Item`: the item that the page shows."""
        self._item = _item(item)

    def tags(self, *tags: object) -> None:
        """`Edge-Tags`: names for a purge of this page, at most 32."""
        names = dict(self._tags)
        names.update((_checked(_TAG, "tag", tag), None) for tag in tags)
        if len(names) > _MAX_TAGS:
            raise ValueError("a page has at most 32 tags")
        self._tags = names

    def share(self, max_age: int, stale: int = 60) -> None:
        """Declares the response shared, unless it depends on its visitor (see `touch`)."""
        self._share = f"public, max-age={int(max_age)}, stale-while-revalidate={int(stale)}"

    def touch(self, cause: str) -> None:
        """Records that the response depends on its visitor. It then is not shared."""
        self._touched = self._touched or cause

    def finish(
        self, status: int, response: Iterable[tuple[str, str]], ignored_cookies: Iterable[str] = ()
    ) -> list[tuple[str, str]]:
        """The headers of the response with the directives."""
        for finisher in self.finishers:
            finisher()
        # A 304 confirms the stored page, which takes over its headers.
        if status not in (200, 304):
            self.touch(f"its status {status}")
        own = self.directives(status)
        names = {name.lower() for name, _ in own}
        headers = [(name, value) for name, value in response if name.lower() not in names]
        is_personal = any(
            name.lower() in ("edge-login", "edge-logout", "edge-cart", "edge-order") for name, _ in [*headers, *own]
        )
        if self._share is not None or is_personal:
            reason = "it has a directive about its visitor" if is_personal else self._reason(headers, ignored_cookies)
            if reason is not None and self._share is not None:
                log.warning("a response is not shared: %s", reason)
            value = self._share if reason is None and self._share is not None else "private, no-store"
            removed = ("cache-control", "cdn-cache-control")
            headers = [(name, value) for name, value in headers if name.lower() not in removed]
            headers.append(("Cache-Control", value))
        return headers + own

    def _reason(self, headers: list[tuple[str, str]], ignored_cookies: Iterable[str]) -> str | None:
        if self._touched is not None:
            return f"it depends on {self._touched}"
        ignored = set(ignored_cookies)
        for name, value in headers:
            if name.lower() == "set-cookie" and value.split("=", 1)[0].strip() not in ignored:
                return "it sets a cookie"
        return None

    def directives(self, status: int = 200) -> list[tuple[str, str]]:
        """The `Edge-*` headers. None without edgefront: a client must not see them. An error of the server has only a
        logout, because its transaction may have been rolled back."""
        if not self.verified:
            return []
        headers = []
        if self._item is not None:
            headers.append(("Edge-Item", self._item))
        if self._tags:
            headers.append(("Edge-Tags", ", ".join(self._tags)))
        if self.shared:
            return headers
        is_error = status >= 500
        if self._order is not None and not is_error:
            headers.append(("Edge-Order", self._order))
        names_user = self._logout is not None and self._logout.startswith("user=")
        if self._login is not None and not is_error and not names_user:
            headers.append(("Edge-Login", self._login))
        elif self._logout is not None:
            headers.append(("Edge-Logout", self._logout))
        if self._operations and not is_error:
            headers.append(("Edge-Cart", _json(self._operations)))
        return headers


class Cart:
    """`Edge-Cart`: changes of the visitor's cart, all or none."""

    def __init__(self, edge: Edge):
        self._edge = edge

    def add(self, item: object, quantity: int = 1) -> None:
        self._append({"op": "add", "id": _item(item), "quantity": _quantity(quantity, 1)})

    def set(self, item: object, quantity: int) -> None:
        """0 removes the item."""
        self._append({"op": "set", "id": _item(item), "quantity": _quantity(quantity, 0)})

    def clear(self) -> None:
        self._append({"op": "clear"})

    def _append(self, operation: dict[str, Any]) -> None:
        if len(self._edge._operations) >= _MAX_OPERATIONS:
            raise ValueError("a response has at most 100 changes of the cart")
        self._edge._operations.append(operation)


def is_item(text: str) -> bool:
    """Returns whether edgefront accepts the text as the id of an item, a row or an order."""
    return _ITEM.match(text) is not None


def is_tag(text: str) -> bool:
    return _TAG.match(text) is not None


_current: ContextVar[Edge | None] = ContextVar("edgefront", default=None)


def current() -> Edge | None:
    """The request that this thread or task answers."""
    return _current.get()


def _checked(pattern: re.Pattern[str], name: str, value: object) -> str:
    text = str(value)
    if not pattern.match(text):
        raise ValueError(f"{name} is not valid for edgefront: {text!r}")
    return text


def _item(value: object) -> str:
    return _checked(_ITEM, "item", value)


def _quantity(value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"quantity must be a whole number, at least {least}: {value!r}")
    return value


def _json(value: object) -> str:
    # ASCII only, so it always is a header value.
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)


def _read_object(name: str, text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise BadRequest(name)
    return value


def _read_cart(text: str | None) -> dict[str, int] | None:
    cart = _read_object("Edge-Cart", text)
    if cart is None:
        return None
    for item, quantity in cart.items():
        if not is_item(item) or isinstance(quantity, bool) or not isinstance(quantity, int) or quantity < 1:
            raise BadRequest("Edge-Cart")
    return cart
