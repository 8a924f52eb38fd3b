"""The settings of storefronts/django-oscar, and the ten lines of the README."""

import os

from shop.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

EDGEFRONT = {
    "ORIGIN_KEY": os.environ["ORIGIN_KEY"],
    "SERVICE_KEY": os.environ["SERVICE_KEY"],
    "URL": os.environ["SHOP_URL"],
    "CSRF_COOKIE": True,
}
INSTALLED_APPS += ["edgefront.django", "edgefront.oscar"]  # noqa: F405
MIDDLEWARE.insert(0, "edgefront.django.EdgeMiddleware")  # noqa: F405
own = MIDDLEWARE.index("django.contrib.auth.middleware.AuthenticationMiddleware")  # noqa: F405
MIDDLEWARE[own] = "edgefront.django.AuthenticationMiddleware"  # noqa: F405
