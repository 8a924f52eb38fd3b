"""The setting `EDGEFRONT`, checked once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from ..core import Keys
from ..service import Service

_NAMES = {"ENABLED", "ORIGIN_KEY", "SERVICE_KEY", "URL", "PURGE", "EXEMPT", "CSRF_COOKIE"}


class Configuration:
    def __init__(self, values: dict[str, Any]):
        unknown = set(values) - _NAMES
        if unknown:
            raise ImproperlyConfigured(f"EDGEFRONT has no setting {', '.join(sorted(unknown))}")
        #: Without edgefront, for local work: nothing is required and nothing is believed.
        self.enabled: bool = values.get("ENABLED", True)
        try:
            self.keys = Keys(values.get("ORIGIN_KEY") or "") if self.enabled else None
        except ValueError as error:
            raise ImproperlyConfigured(f"EDGEFRONT: {error}") from error
        #: Paths that need no key, such as a health check of the load balancer.
        self.exempt = frozenset(values.get("EXEMPT", ()))
        #: edgefront's CSRF_COOKIE names Django's cookie, so pages with forms may be shared.
        self.csrf_cookie: bool = values.get("CSRF_COOKIE", False)
        self.purge: dict[str, Any] = values.get("PURGE", {})
        self.service: Service | None = None
        if self.enabled and values.get("URL") and values.get("SERVICE_KEY"):
            self.service = Service(values["URL"], values["SERVICE_KEY"])
        elif self.enabled and self.purge:
            raise ImproperlyConfigured("EDGEFRONT: PURGE needs URL and SERVICE_KEY")


@lru_cache(maxsize=1)
def configuration() -> Configuration:
    return Configuration(getattr(settings, "EDGEFRONT", {}))


def _forget(setting: str, **_: Any) -> None:
    if setting == "EDGEFRONT":
        configuration.cache_clear()


setting_changed.connect(_forget)
