"""The middleware in real servers, checked by the conformance kit."""

from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from flask import Flask, request
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from support import KEY, asgi_server, contract, wsgi_server

import edgefront
from edgefront import asgi, wsgi

OPTIONS = ["--public-url=https://shop.example", "--product=/products/mug", "--item=mug", "--user=ada",
           "--account=/account", "--mark=Hello ada"]  # fmt: skip


def product(edge, url):
    edge.item("mug")
    edge.tags("goods", "kitchen")
    edge.share(300)
    return f"<link rel=canonical href='{url}'>"


def flask_app():
    app = Flask("shop")
    app.add_url_rule("/", "home", lambda: "shop")
    app.add_url_rule("/products/mug", "product", lambda: product(request.environ["edgefront"], request.url))
    app.add_url_rule("/account", "account", lambda: f"Hello {request.environ['edgefront'].user}")
    app.add_url_rule("/address", "address", lambda: f"{request.remote_addr} {edgefront.current().verified}")
    return wsgi.EdgefrontMiddleware(app, KEY, exempt=["/address"])


def starlette_app():
    def page(text):
        async def endpoint(request: Request):
            return PlainTextResponse(text(request))

        return endpoint

    routes = {
        "/": lambda request: "shop",
        "/products/mug": lambda request: product(request.scope["edgefront"], str(request.url)),
        "/account": lambda request: f"Hello {request.scope['edgefront'].user}",
        "/address": lambda request: f"{request.client.host} {edgefront.current().verified}",
    }
    app = Starlette(routes=[Route(path, page(text)) for path, text in routes.items()])
    return asgi.EdgefrontMiddleware(app, KEY, exempt=["/address"])


@pytest.mark.parametrize("server,app", [(wsgi_server, flask_app), (asgi_server, starlette_app)])
def test_a_server_keeps_the_contract(server, app):
    with server(app()) as url:
        report = contract(url, *OPTIONS)
        assert "links name https://shop.example" in report
        assert "edge-tags: goods, kitchen" in report
        # An exempt path needs no key, and believes nothing.
        assert urlopen(f"{url}/address").read() == b"127.0.0.1 False"
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{url}/account")
        assert refused.value.code == 403
        refused.value.close()
