import pytest
from conftest import headers
from support import PASSWORD, asgi_server, contract, wsgi_server


def options(shop):
    return [
        "--public-url=https://shop.example", "--product=/products/mug/", "--item=mug", f"--user={shop.users['ada'].pk}",
        f"--other-user={shop.users['bob'].pk}", "--account=/account/", "--mark=Hello ada!", "--login=/login/",
        "--login-form=username=ada&password={password}", "--logout=/logout/", "--cart=/cart/", "--cart-form=id=mug",
        "--cart-page=/cart/", "--order=/checkout/", "--rows=/edge/rows", "--row=mug",
    ]  # fmt: skip


def test_a_wsgi_shop_keeps_the_contract(shop):
    from django.core.wsgi import get_wsgi_application

    with wsgi_server(get_wsgi_application()) as url:
        assert "27 hold, 0 broken, 0 not checked" in contract(url, *options(shop))


def test_an_asgi_shop_keeps_the_contract(shop):
    from django.core.asgi import get_asgi_application

    with asgi_server(get_asgi_application()) as url:
        assert "27 hold, 0 broken, 0 not checked" in contract(url, *options(shop))


def test_a_request_without_the_key_is_refused(shop):
    from django.test import Client

    for claims in ({}, {**headers("user", shop.users["ada"]), "Edge-Key": "wrong"}):
        assert Client(headers=claims).get("/account/").status_code == 403


def test_a_request_has_the_visitors_address(shop):
    assert "192.0.2.7" in shop.visitor().get("/account/").content.decode()


def test_a_deactivated_user_is_not_signed_in(shop):
    bob = shop.users["bob"]
    client = shop.visitor("user", bob)
    assert "Hello bob" in client.get("/account/").content.decode()
    type(bob).objects.filter(pk=bob.pk).update(is_active=False)
    try:
        assert "Hello" not in client.get("/account/").content.decode()
    finally:
        type(bob).objects.filter(pk=bob.pk).update(is_active=True)


def test_a_user_that_django_does_not_know_is_a_guest(shop):
    client = shop.visitor("user", type("User", (), {"pk": "no-number"}))
    response = client.get("/account/")
    assert (response.status_code, "Hello" in response.content.decode()) == (200, False)


def test_a_public_page_is_shared(shop):
    for session in ("shared", "none", "unknown"):
        response = shop.visitor(session).get("/products/mug/")
        assert response["Cache-Control"] == "public, max-age=300, stale-while-revalidate=60", session


@pytest.mark.parametrize("kind", ["user", "session", "form", "error"])
def test_a_page_that_touches_its_visitor_is_not_shared(shop, kind, caplog):
    response = shop.visitor("user", shop.users["ada"]).get(f"/personal/{kind}/")
    assert response["Cache-Control"] == "private, no-store"
    assert "a response is not shared" in caplog.text


def test_a_form_may_be_shared_if_edgefront_has_the_csrf_cookie(shop, settings_of_edgefront):
    with settings_of_edgefront(CSRF_COOKIE=True):
        assert shop.visitor("shared").get("/personal/form/")["Cache-Control"].startswith("public")


def test_a_save_is_purged_once_after_the_request(shop):
    shop.flush()
    shop.visitor().post("/stock/")
    flush_only(shop)
    assert shop.api.names("items") == ["mug"] and len(shop.api.calls) == 1


def test_a_rollback_purges_nothing(shop):
    shop.flush()
    with pytest.raises(RuntimeError):
        shop.visitor().post("/stock/?fail=1")
    flush_only(shop)
    assert shop.api.calls == []


def test_a_save_outside_of_a_request_is_purged(shop):
    from shop.models import Product

    shop.flush()
    Product.objects.get(slug="mug").save()
    flush_only(shop)
    assert shop.api.names("items") == ["mug"]


def test_a_failing_purge_does_not_break_the_save(shop):
    from django.db.models.signals import post_delete, post_save
    from shop.models import Product

    from edgefront.django import purge_on_save

    receivers = post_save.receivers[:], post_delete.receivers[:]
    purge_on_save(Product, lambda product: 1 / 0)
    try:
        shop.visitor().post("/stock/")
    finally:
        post_save.receivers[:], post_delete.receivers[:] = receivers
        post_save.sender_receivers_cache.clear()
        post_delete.sender_receivers_cache.clear()


def test_a_new_password_ends_the_sessions_at_edgefront(shop):
    bob, new = shop.users["bob"], "another-password-of-bob"
    client = shop.visitor("unknown")
    client.force_login(bob)
    shop.flush()
    form = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    response = client.post("/password/", form, headers=headers("user", bob))
    assert response.status_code == 302
    assert [call[:2] for call in shop.api.calls] == [("DELETE", f"/_edge/v1/users/{bob.pk}/sessions")]
    # The visitor who changed it stays signed in.
    assert response["Edge-Login"] == str(bob.pk)


def test_the_visitor_signs_in_again_if_the_sessions_cannot_end_before_the_login(shop):
    carol = shop.users["carol"]
    shop.flush()
    shop.api.statuses = [503]
    response = shop.visitor("user", carol).post("/reset/", {"name": "carol", "password": PASSWORD})
    assert (response["Edge-Logout"], "Edge-Login" in response) == (f"user={carol.pk}", False)
    assert response["Cache-Control"] == "private, no-store"
    # No retry: the visitor waits.
    assert len(shop.api.calls) == 1


@pytest.mark.parametrize(
    "session,form,header",
    [
        (("none", None), {}, "user=carol"),
        (("user", "bob"), {}, "user=carol"),
        # The response ends the session of the visitor, who is another user.
        (("user", "bob"), {"logout": 1}, "1"),
        (("user", "carol"), {"logout": 1}, "user=carol"),
    ],
)
def test_a_reset_of_a_password_names_the_user_in_the_response(shop, session, form, header):
    carol = shop.users["carol"]
    state, name = session
    shop.flush()
    response = shop.visitor(state, shop.users.get(name)).post("/reset/", {"name": "carol", "password": PASSWORD, **form})
    assert response["Edge-Logout"] == header.replace("carol", str(carol.pk))
    # The header has one value: the API ends the sessions that it cannot name.
    flush_only(shop)
    assert ended(shop) == ([] if "user" in header else [carol.pk])


def test_a_login_after_a_reset_begins_after_the_end_of_the_sessions(shop):
    carol = shop.users["carol"]
    shop.flush()
    response = shop.visitor().post("/reset/", {"name": "carol", "password": PASSWORD, "login": 1})
    assert (response["Edge-Login"], ended(shop)) == (str(carol.pk), [carol.pk])


def test_the_api_ends_the_sessions_of_further_users(shop):
    dave, carol = shop.users["dave"], shop.users["carol"]
    shop.flush()
    response = shop.visitor().post("/reset/", {"name": ["dave", "carol"], "password": PASSWORD})
    flush_only(shop)
    assert (response["Edge-Logout"], ended(shop)) == (f"user={dave.pk}", [carol.pk])


def test_a_new_password_outside_of_a_request_does_not_wait_for_edgefront(shop):
    carol = shop.users["carol"]
    shop.flush()
    shop.api.gate.clear()
    try:
        set_password(carol, PASSWORD)
    finally:
        shop.api.gate.set()
    flush_only(shop)
    assert ended(shop) == [carol.pk]


def test_a_login_in_the_shop_ends_with_edgefronts_session(shop):
    client = shop.visitor("unknown")
    client.force_login(shop.users["ada"])
    assert "Hello ada" in client.get("/account/").content.decode()
    response = client.get("/account/", headers=headers("none"))
    assert "Hello" not in response.content.decode() and "Edge-Logout" not in response
    assert "Hello" not in client.get("/account/").content.decode()


@pytest.mark.parametrize("ids", ["", "a/b", ",".join(str(number) for number in range(101))])
def test_wrong_ids_of_rows_are_refused(shop, ids):
    assert shop.visitor().get("/edge/rows", {"ids": ids}).status_code == 400


@pytest.mark.parametrize(
    "values,message",
    [
        ({"ORIGIN_KEY": ""}, "16 characters"),
        ({"ORIGIN_KEYS": "x"}, "no setting ORIGIN_KEYS"),
        ({"ORIGIN_KEY": "x" * 16, "PURGE": {"a.B": 1}}, "needs URL and SERVICE_KEY"),
    ],
)
def test_a_wrong_setting_is_explained(shop, values, message):
    from django.core.exceptions import ImproperlyConfigured

    from edgefront.django.conf import Configuration

    with pytest.raises(ImproperlyConfigured, match=message):
        Configuration(values)


def test_a_missing_middleware_is_explained(shop):
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.test import override_settings

    with override_settings(MIDDLEWARE=settings.MIDDLEWARE[1:]), pytest.raises(ImproperlyConfigured, match="must begin"):
        shop.visitor().get("/account/")


def test_without_edgefront_the_shop_works_and_believes_nothing(shop, settings_of_edgefront):
    from django.test import Client

    with settings_of_edgefront(ENABLED=False):
        client = Client(headers=headers("user", shop.users["ada"]))
        assert "Hello" not in client.get("/account/").content.decode()
        client.force_login(shop.users["ada"])
        response = client.get("/account/")
        assert "Hello ada" in response.content.decode() and "127.0.0.1" in response.content.decode()


@pytest.fixture
def settings_of_edgefront(shop):
    from django.conf import settings
    from django.test import override_settings

    return lambda **values: override_settings(EDGEFRONT={**settings.EDGEFRONT, **values})


def set_password(user, password):
    user.set_password(password)
    user.save()


def ended(shop):
    """The users whose sessions the API has ended."""
    return [int(path.split("/")[4]) for method, path, *_ in shop.api.calls if method == "DELETE"]


def flush_only(shop):
    from edgefront.django.conf import configuration

    assert configuration().service.flush()
