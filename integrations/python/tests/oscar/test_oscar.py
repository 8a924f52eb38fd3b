import json

import pytest
from support import KEY, contract, wsgi_server

PASSWORD = "customer-password-1"


def flush(api):
    from edgefront.django.conf import configuration

    assert configuration().service.flush()


@pytest.fixture
def product(oscar):
    from oscar.core.loading import get_model

    found = get_model("catalogue", "Product").objects.first()
    flush(oscar)
    oscar.calls.clear()
    return found


@pytest.fixture
def customer(oscar):
    from django.contrib.auth.models import User

    return User.objects.get(username="customer")


def client(session="none", user=None):
    from django.test import Client

    user = {"Edge-User": str(user.pk)} if user else {}
    return Client(headers={"Edge-Key": KEY, "Edge-Session": session, **user})


def cart(response):
    return json.loads(response["Edge-Cart"])


def test_oscar_keeps_the_contract(product, customer, monkeypatch):
    from django.core.wsgi import get_wsgi_application

    monkeypatch.setattr("support.PASSWORD", PASSWORD)
    with wsgi_server(get_wsgi_application()) as url:
        report = contract(
            url, "--public-url=https://shop.example", f"--product={product.get_absolute_url()}", f"--item={product.pk}",
            "--dropped-cookie=csrftoken", "--dropped-cookie=oscar_history", f"--user={customer.pk}", "--other-user=2",
            "--account=/accounts/profile/", "--mark=customer@example.com", "--login=/accounts/login/",
            "--login-form=login-username=customer%40example.com&login-password={password}&login_submit=1",
            "--logout=/accounts/logout/", "--logout-get", f"--cart=/basket/add/{product.pk}/", "--cart-form=quantity=2",
        )  # fmt: skip
    assert "0 broken" in report and f"edge-item: {product.pk}" in report
    assert f'edge-cart: [{{"op":"set","id":"{product.pk}"' in report


def test_the_cart_follows_the_basket(product):
    visitor = client()
    response = visitor.post(f"/basket/add/{product.pk}/", {"quantity": 2})
    assert cart(response) == [{"op": "set", "id": str(product.pk), "quantity": 2}]
    # One product on the page: no other quantity changes.
    response = visitor.post(f"/basket/add/{product.pk}/", {"quantity": 1})
    assert cart(response) == [{"op": "set", "id": str(product.pk), "quantity": 3}]
    line = visitor.get("/basket/").context["basket"].lines.get()
    form = {"form-TOTAL_FORMS": 1, "form-INITIAL_FORMS": 1, "form-0-id": line.pk, "form-0-quantity": 0}
    response = visitor.post("/basket/", form)
    assert cart(response) == [{"op": "set", "id": str(product.pk), "quantity": 0}]


def test_stock_is_purged_after_a_change(oscar, product):
    record = product.stockrecords.get()
    record.num_in_stock -= 1
    record.save()
    flush(oscar)
    assert oscar.names("items") == [str(product.pk)]


def test_an_order_is_reported_and_its_stock_is_purged(oscar, product):
    from django.contrib.auth.models import User

    visitor = client("user", User.objects.create_user("buyer", "buyer@example.com"))
    visitor.post(f"/basket/add/{product.pk}/", {"quantity": 2})
    address = {"title": "Ms", "first_name": "Vera", "last_name": "Visitor", "line1": "1 Road", "line4": "London",
               "postcode": "N1 9RT", "country": "GB"}  # fmt: skip
    assert visitor.post("/checkout/shipping-address/", address).status_code == 302
    visitor.get("/checkout/shipping-method/")
    visitor.get("/checkout/payment-method/")
    flush(oscar)
    oscar.calls.clear()
    response = visitor.post("/checkout/preview/", {"action": "place_order"})
    order = json.loads(response["Edge-Order"])
    assert order["items"] == [{"id": str(product.pk), "quantity": 2}]
    # The order takes its items out of the cart.
    assert "Edge-Cart" not in response
    flush(oscar)
    assert oscar.names("items") == [str(product.pk)]


def test_an_order_outside_of_a_request_is_reported_by_the_api_and_does_not_wait(oscar, product, customer):
    from django.test import RequestFactory
    from oscar.test.factories import create_basket, create_order

    basket = create_basket(empty=True)
    basket.owner = customer
    basket.save()
    basket.strategy.request = RequestFactory().get("/")
    basket.add_product(product, 1)
    oscar.gate.clear()
    try:
        order = create_order(basket=basket, user=customer, number="B-77")
    finally:
        oscar.gate.set()
    flush(oscar)
    # A call that waited would have been repeated.
    assert [call[:3] for call in oscar.calls if call[1] == "/_edge/v1/orders"] == [("POST", "/_edge/v1/orders", {
        "order_id": str(order.number), "user": str(customer.pk), "items": [{"id": str(product.pk), "quantity": 1}],
    })]  # fmt: skip
