"""Writes 50 products in three categories, a customer and an administrator. Runs once, after the migrations."""

from decimal import Decimal

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.db import transaction  # noqa: E402
from oscar.core.loading import get_class, get_model  # noqa: E402

Category, Product, ProductClass, ProductCategory = (
    get_model("catalogue", name) for name in ("Category", "Product", "ProductClass", "ProductCategory")
)
Partner, StockRecord = get_model("partner", "Partner"), get_model("partner", "StockRecord")
Country = get_model("address", "Country")
create_from_breadcrumbs = get_class("catalogue.categories", "create_from_breadcrumbs")

MATERIALS = ["Oak", "Steel", "Linen", "Ceramic", "Wool"]
THINGS = ["Mug", "Lamp", "Chair", "Basket", "Clock", "Kettle", "Shelf", "Apron", "Bowl", "Stool"]


@transaction.atomic
def seed():
    Country.objects.create(
        iso_3166_1_a2="GB", iso_3166_1_a3="GBR", iso_3166_1_numeric="826", printable_name="United Kingdom",
        name="United Kingdom", is_shipping_country=True,
    )
    categories = [create_from_breadcrumbs(name) for name in ("Kitchen", "Living", "Workshop")]
    goods = ProductClass.objects.create(name="Goods", requires_shipping=True, track_stock=True)
    partner = Partner.objects.create(name="Warehouse")
    for index in range(50):
        name = f"{MATERIALS[index % 5]} {THINGS[index // 5]}"
        product = Product.objects.create(
            product_class=goods, title=name, upc=f"P{index}",
            description=f"<p>{f'The {name} is made by hand and lasts. ' * 10}</p>",
        )
        ProductCategory.objects.create(product=product, category=categories[index % 3])
        StockRecord.objects.create(
            product=product, partner=partner, partner_sku=f"S{index}", price=Decimal(5 + index), num_in_stock=1_000_000,
        )
    users = get_user_model()
    users.objects.create_user("customer", "customer@example.com", "customer-password-1", first_name="Vera", last_name="Visitor")
    users.objects.create_superuser("admin", "admin@example.com", "admin-password-1", first_name="Ada", last_name="Admin")


seed()
