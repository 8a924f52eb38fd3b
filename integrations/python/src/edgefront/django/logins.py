"""Django's login signals as directives."""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction

from ..core import current
from .conf import configuration

log = logging.getLogger("edgefront")


def logged_in(sender: Any, request: Any, user: Any, **_: Any) -> None:
    edge = getattr(request, "edge", None)
    if edge is not None:
        edge.login(user.pk)


def logged_out(sender: Any, request: Any, user: Any, **_: Any) -> None:
    edge = getattr(request, "edge", None)
    if edge is not None:
        edge.logout()


def user_saved(sender: Any, instance: Any, created: bool, raw: bool = False, using: str | None = None, **_: Any) -> None:
    """A new password or a deactivation ends the user's sessions at edgefront. A visitor who changes the own password gets
    a new session. `_password` is the raw password until the end of `save`."""
    is_over = getattr(instance, "_password", None) is not None or not getattr(instance, "is_active", True)
    if created or raw or not is_over:
        return

    def end() -> None:
        service, edge = configuration().service, current()
        if service is None:
            log.error("the sessions of user %s stay at edgefront: EDGEFRONT has no URL or SERVICE_KEY", instance.pk)
            return
        service.end_sessions(instance.pk)
        if edge is not None and edge.user == str(instance.pk) and instance.is_active:
            edge.login(instance.pk)

    transaction.on_commit(end, using=using, robust=True)
