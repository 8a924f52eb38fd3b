import os
import sys
from pathlib import Path

import pytest
from support import KEY, PASSWORD, Api

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def api():
    api = Api()
    yield api
    api.close()


@pytest.fixture(scope="session")
def shop(api, tmp_path_factory):
    """The Django project with a database, a product and two accounts."""
    database = tmp_path_factory.mktemp("shop") / "shop.sqlite3"
    os.environ |= {"SHOP_DATABASE": str(database), "SHOP_URL": api.url, "ORIGIN_KEY": KEY,
                   "SERVICE_KEY": "the service key", "DJANGO_SETTINGS_MODULE": "shop.settings"}  # fmt: skip
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test.utils import setup_test_environment
    from shop.models import Product

    setup_test_environment()
    call_command("migrate", run_syncdb=True, verbosity=0)
    Product.objects.create(slug="mug", stock=3, price="4.50")
    User.objects.create_user("ada", password=PASSWORD)
    User.objects.create_user("bob", password=PASSWORD)
    # Their passwords change.
    User.objects.create_user("carol", password=PASSWORD)
    User.objects.create_user("dave", password=PASSWORD)
    return Shop(api)


class Shop:
    def __init__(self, api):
        from django.contrib.auth.models import User

        self.api = api
        self.users = {user.username: user for user in User.objects.all()}
        self.flush()

    def flush(self):
        from edgefront.django.conf import configuration

        assert configuration().service.flush()
        self.api.calls.clear()

    def visitor(self, session="none", user=None, **options):
        """A client whose requests come through edgefront."""
        from django.test import Client

        return Client(headers=headers(session, user), **options)


def headers(session, user=None):
    headers = {"Edge-Key": KEY, "X-Real-IP": "192.0.2.7", "X-Forwarded-Host": "shop.example", "X-Forwarded-Proto": "https"}
    if session == "shared":
        return {**headers, "Edge-Shared": "1"}
    return {**headers, "Edge-Session": session, **({"Edge-User": str(user.pk)} if user else {})}
