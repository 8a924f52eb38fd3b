from django.apps import AppConfig
from django.db.models.signals import post_delete, post_save


class EdgefrontOscarConfig(AppConfig):
    name = "edgefront.oscar"
    label = "edgefront_oscar"

    def ready(self) -> None:
        from oscar.apps.catalogue.signals import product_viewed
        from oscar.apps.order.signals import order_placed
        from oscar.core.loading import get_model

        from ..django.purges import connect
        from . import receivers

        product_viewed.connect(receivers.product_viewed, dispatch_uid="edgefront")
        order_placed.connect(receivers.order_placed, dispatch_uid="edgefront")
        line = get_model("basket", "Line")
        post_save.connect(receivers.basket_changed, sender=line, dispatch_uid="edgefront")
        post_delete.connect(receivers.basket_changed, sender=line, dispatch_uid="edgefront")
        for app, model in [("catalogue", "Product"), ("partner", "StockRecord"), ("catalogue", "ProductImage")]:
            connect(get_model(app, model), receivers.pages)
