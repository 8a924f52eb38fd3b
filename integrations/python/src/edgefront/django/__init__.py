"""A Django shop behind edgefront. The README lists the settings.

`request.edge` is the request's `edgefront.Edge`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any


def shared(max_age: int = 300, stale: int = 60) -> Callable[[Any], Any]:
    """Declares the responses of a view shared, for `max_age` seconds. A response that touched the session, the user or a
    cookie stays private, and a warning names the cause."""

    def decorate(view: Any) -> Any:
        @wraps(view)
        def wrapped(request: Any, *args: Any, **kwargs: Any) -> Any:
            request.edge.share(max_age, stale)
            return view(request, *args, **kwargs)

        return wrapped

    return decorate


def rows(source: Callable[[list[str]], Iterable[dict[str, Any]]]) -> Any:
    """A view for `ROWS_URL`. `source` maps ids to rows; each row has an `id`."""
    from .rows import view

    return view(source)


def purge(items: Iterable[object] = (), tags: Iterable[object] = (), urls: Iterable[object] = ()) -> None:
    """Purges pages after the transaction and the request."""
    from .purges import purge as implementation

    implementation({"items": items, "tags": tags, "urls": urls})


def purge_on_save(model: Any, names: Callable[[Any], dict[str, Iterable[object]]]) -> None:
    """Purges the pages of an object when it was saved or deleted: `lambda product: {"items": [product.slug]}`."""
    from .purges import connect

    connect(model, names)


def __getattr__(name: str) -> Any:
    # Django must be configured before these are imported.
    if name in ("EdgeMiddleware", "AuthenticationMiddleware"):
        from . import middleware

        return getattr(middleware, name)
    raise AttributeError(name)
