"""django-oscar behind edgefront: product pages, stock, baskets and orders. An item has the id of its product."""
