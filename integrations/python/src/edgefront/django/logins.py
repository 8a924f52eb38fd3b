"""Django's login signals as directives."""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction

from ..core import Edge, current
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
    is_active = getattr(instance, "is_active", True)
    is_over = getattr(instance, "_password", None) is not None or not is_active
    if not created and not raw and is_over:
        user = str(instance.pk)
        transaction.on_commit(lambda: _end_sessions(user, is_active), using=using, robust=True)


def _end_sessions(user: str, is_active: bool) -> None:
    edge = current()
    if edge is None or not edge.verified or edge.shared:
        _end_later(user)
        return
    ended = edge.__dict__.setdefault("_ended_users", {})
    if not ended:
        # The view may still log in or out.
        edge.finishers.append(lambda: _end_with_response(edge, ended))
    ended[user] = is_active


def _end_with_response(edge: Edge, users: dict[str, bool]) -> None:
    """`users` maps each user to whether the user is active. `Edge-Logout` names one user. The API ends the sessions of the
    others after the response."""
    stays = edge.user is not None and edge._logout is None and users.get(edge.user, False)
    signed_in = edge.user if edge._login is None and stays else edge._login
    # The user with a login is the first.
    for user in sorted(users, key=lambda user: user != signed_in):
        try:
            if user == signed_in:
                _renew(edge, user)
            elif edge._login is None and (edge._logout is None or (edge._logout in ("1", "all") and user == edge.user)):
                edge.logout(user=user)
            else:
                _end_later(user)
        except Exception:
            log.exception("the sessions of user %s stay at edgefront", user)


def _renew(edge: Edge, user: str) -> None:
    """edgefront executes a login or a logout, not both. So the API ends the old sessions before the login. If it fails, they
    end with the response, and the visitor signs in again."""
    service = configuration().service
    if service is not None and service.end_sessions(user, retries=False):
        edge.login(user)
    else:
        edge.logout(user=user)


def _end_later(user: str) -> None:
    service = configuration().service
    if service is None:
        log.error("the sessions of user %s stay at edgefront: EDGEFRONT has no URL or SERVICE_KEY", user)
    else:
        service.end_sessions(user, later=True)
