"""`EdgeMiddleware` is the first middleware. `AuthenticationMiddleware` replaces Django's own."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import auth
from django.contrib.auth.middleware import AuthenticationMiddleware as DjangoAuthenticationMiddleware
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from django.utils.functional import SimpleLazyObject

from .. import wsgi
from ..core import BadRequest, Edge, Refused, _current
from .conf import configuration


class EdgeMiddleware:
    """Checks the key, sets client, host and scheme, and writes the directives."""

    def __init__(self, get_response: Any):
        self.get_response = get_response
        self.configuration = configuration()

    def __call__(self, request: Any) -> Any:
        edge = self._read(request)
        if isinstance(edge, HttpResponse):
            return edge
        request.edge = edge
        edge.request = request
        token = _current.set(edge)
        try:
            response = self.get_response(request)
            self._finish(request, response)
        finally:
            _current.reset(token)
            if edge.purges and self.configuration.service is not None:
                self.configuration.service.purge(edge.purges)
        return response

    def _read(self, request: Any) -> Edge | HttpResponse:
        claims = wsgi.claims(request.META)
        if self.configuration.keys is None:
            return Edge()
        try:
            edge = Edge.read(claims, self.configuration.keys)
        except Refused:
            if request.path_info in self.configuration.exempt:
                return Edge()
            return _plain(403, "This address answers edgefront only.\n")
        except BadRequest as error:
            return _plain(400, f"{error} is not valid.\n")
        wsgi.apply_forwarded(edge, request.META)
        # The names that Django's own settings for proxies read.
        request.META.update({f"HTTP_{name.upper().replace('-', '_')}": value for name, value in claims if value and name[:2] == "X-"})
        if hasattr(request, "scope") and edge.scheme is not None:
            request.scope = {**request.scope, "scheme": edge.scheme}
        return edge

    def _finish(self, request: Any, response: Any) -> None:
        edge, ignored = request.edge, []
        session = getattr(request, "session", None)
        if session is not None and (session.accessed or session.modified):
            edge.touch("the session")
        if self.configuration.csrf_cookie:
            ignored.append(settings.CSRF_COOKIE_NAME)
        cookies = [("Set-Cookie", f"{name}=") for name in response.cookies]
        headers = [*response.items(), *cookies]
        changed = {name: value for name, value in edge.finish(response.status_code, headers, ignored) if name != "Set-Cookie"}
        for name in [name for name, _ in response.items() if name not in changed]:
            del response[name]
        for name, value in changed.items():
            response[name] = value


class AuthenticationMiddleware(DjangoAuthenticationMiddleware):
    """`request.user` is the user of edgefront's session. A login of Django's own ends with that session."""

    def process_request(self, request: Any) -> None:
        super().process_request(request)
        edge = getattr(request, "edge", None)
        if edge is None:
            raise ImproperlyConfigured("MIDDLEWARE must begin with edgefront.django.EdgeMiddleware")
        if not edge.verified or edge.session == "unknown":
            return
        if edge.shared:
            # A shared render has no visitor.
            _set_user(request, AnonymousUser())
            return
        if edge.session is None:
            return
        own = _own_login(request)
        if own is not None and own != edge.user:
            # Not `auth.logout`: it would end the guest's session at edgefront, too.
            request.session.flush()
        if edge.user is None:
            _set_user(request, AnonymousUser())
        elif own != edge.user:
            _set_user(request, SimpleLazyObject(lambda: _load(edge)))


def _own_login(request: Any) -> str | None:
    """The user of Django's own session. The look-up does not count as a use of the session."""
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return None
    was_accessed = request.session.accessed
    own = request.session.get(auth.SESSION_KEY)
    request.session.accessed = was_accessed
    return own


def _set_user(request: Any, user: Any) -> None:
    request.user = request._cached_user = user

    async def auser() -> Any:
        if isinstance(user, SimpleLazyObject):
            from asgiref.sync import sync_to_async

            await sync_to_async(bool)(user)
        return user

    request.auser = auser


def _load(edge: Edge) -> Any:
    edge.touch("request.user")
    for backend in auth.get_backends():
        try:
            # Django's backend refuses users that are not active.
            user = backend.get_user(edge.user)
        except (AttributeError, TypeError, ValueError):
            continue
        if user is not None:
            return user
    return AnonymousUser()


def _plain(status: int, text: str) -> HttpResponse:
    return HttpResponse(text, status=status, content_type="text/plain", headers={"Cache-Control": "no-store"})
