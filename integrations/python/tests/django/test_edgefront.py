"""The Django shop behind a running edgefront, which `cargo xtask test --integrations` starts."""

import contextlib
import http.client
import json
import os
import re
import time
import urllib.parse

from support import PASSWORD, wsgi_server


class Visitor:
    """A browser without scripts: it keeps cookies, also secure ones."""

    def __init__(self, url):
        self.address, self.cookies = urllib.parse.urlsplit(url).netloc, {}

    def send(self, path, **form):
        connection = http.client.HTTPConnection(self.address, timeout=20)
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        if form:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request("POST" if form else "GET", path, urllib.parse.urlencode(form) or None, headers)
        response = connection.getresponse()
        for line in response.headers.get_all("Set-Cookie") or []:
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value
        body = response.read().decode()
        connection.close()
        return response.status, body, response.headers

    def submit(self, path, **form):
        """Reads the form's page and sends the form with its token."""
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.send(path)[1])
        return self.send(path, csrfmiddlewaretoken=token[1], **form)

    def api(self, path):
        return json.loads(self.send(f"/_edge/v1{path}")[1])


def eventually(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end


@contextlib.contextmanager
def behind_edgefront():
    """Starts the shop. Returns edgefront's address."""
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.test import override_settings

    url = os.environ.get("EDGEFRONT_URL")
    assert url, "run: cargo xtask test --integrations"
    values = {**settings.EDGEFRONT, "URL": url, "SERVICE_KEY": os.environ["EDGEFRONT_SERVICE_KEY"]}
    port = int(os.environ["EDGEFRONT_ORIGIN_PORT"])
    with override_settings(EDGEFRONT=values), wsgi_server(get_wsgi_application(), port):
        yield url


def test_a_save_purges_its_page_a_login_moves_the_cart_and_an_order_counts(shop):
    from shop.models import Product

    from edgefront.django.conf import configuration

    with behind_edgefront() as url:
        visitor = Visitor(url)

        def page():
            _, body, headers = visitor.send("/products/mug/")
            return body, headers["Cache-Status"]

        eventually(lambda: "; hit" in page()[1])
        Product.objects.update(stock=41)
        assert not page()[0].endswith("41"), "the page is stored"
        Product.objects.get(slug="mug").save()
        assert configuration().service.flush()
        assert page()[0].endswith("41")

        visitor.send("/cart/", id="mug")
        guest = visitor.cookies["__Host-session"]
        assert visitor.api("/session") == {"user": None, "guest": True, "cart": {"lines": 1, "quantity": 2}}
        visitor.submit("/login/", username="ada", password=PASSWORD)
        assert visitor.cookies["__Host-session"] != guest
        user = str(shop.users["ada"].pk)
        assert visitor.api("/session") == {"user": user, "guest": False, "cart": {"lines": 1, "quantity": 2}}

        assert visitor.submit("/checkout/", pay="1")[0] == 302
        assert visitor.api("/cart")["quantity"] == 0
        eventually(lambda: visitor.api("/items/mug/stats")["orders"] > 0)


def test_a_new_password_ends_the_other_sessions_and_a_reset_ends_all(shop):
    carol = str(shop.users["carol"].pk)
    with behind_edgefront() as url:
        first, second, stranger = Visitor(url), Visitor(url), Visitor(url)
        for visitor in (first, second):
            visitor.submit("/login/", username="carol", password=PASSWORD)
            assert visitor.api("/session")["user"] == carol
        first.send("/reset/", name="carol", password=PASSWORD)
        assert [visitor.api("/session")["user"] for visitor in (first, second)] == [carol, None]
        stranger.send("/reset/", name="carol", password=PASSWORD)
        assert first.api("/session")["user"] is None
