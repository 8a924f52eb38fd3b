"""Oscar's signals as directives and purges."""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction

from ..core import current
from ..django.conf import configuration

log = logging.getLogger("edgefront")

#: edgefront's limits of one order, and its default CART_MAX_QUANTITY.
_MAX_LINES = 100
_MAX_QUANTITY = 999


def _products(product: Any) -> list[int]:
    """The product, and the parent whose page shows it."""
    return [product.pk] if product.parent_id is None else [product.pk, product.parent_id]


def pages(instance: Any) -> dict[str, list[int]]:
    return {"items": _products(getattr(instance, "product", instance))}


def product_viewed(sender: Any, product: Any, request: Any, **_: Any) -> None:
    edge = getattr(request, "edge", None)
    if edge is not None:
        edge.item(product.pk)


def basket_changed(sender: Any, instance: Any, **_: Any) -> None:
    """Collects the changed products of the visitor's basket. The response sets their quantities."""
    edge = current()
    basket = getattr(getattr(edge, "request", None), "basket", None)
    if edge is None or basket is None or basket.pk is None or instance.basket_id != basket.pk:
        return
    changed = edge.__dict__.setdefault("_oscar_products", set())
    if not changed:
        edge.finishers.append(lambda: _mirror(edge, basket, changed))
    changed.add(instance.product_id)


def _mirror(edge: Any, basket: Any, changed: set[int]) -> None:
    if edge._order is not None:
        # The order takes its items out of the cart.
        return
    try:
        totals = dict.fromkeys(sorted(changed)[:_MAX_LINES], 0)
        for product, quantity in basket.lines.filter(product__in=changed).values_list("product_id", "quantity"):
            if product in totals:
                totals[product] += quantity
        for product, quantity in totals.items():
            edge.cart.set(product, min(quantity, _MAX_QUANTITY))
    except Exception:
        log.exception("the cart at edgefront does not follow the basket")


def order_placed(sender: Any, order: Any, user: Any = None, **_: Any) -> None:
    try:
        items: dict[int, int] = {}
        for product, quantity in order.lines.values_list("product_id", "quantity"):
            if product is not None and len(items) < _MAX_LINES:
                items[product] = items.get(product, 0) + quantity
        if not items:
            return
        edge = current()
        if edge is not None and edge.verified:
            # A rollback reports nothing.
            transaction.on_commit(lambda: edge.order(order.number, items), robust=True)
        elif order.user_id is not None:
            _report(order, items)
    except Exception:
        # The order stands, also if edgefront does not learn of it.
        log.exception("order %s was not reported to edgefront", order.number)


def _report(order: Any, items: dict[int, int]) -> None:
    lines = [{"id": str(product), "quantity": quantity} for product, quantity in items.items()]
    report = {"order_id": str(order.number), "user": str(order.user_id), "items": lines}

    def send() -> None:
        service = configuration().service
        if service is not None:
            service.report_order(report, later=True)

    transaction.on_commit(send, robust=True)
