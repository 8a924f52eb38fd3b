import os
import runpy
import sys
from pathlib import Path

import pytest
from support import KEY, Api

OSCAR = Path(__file__).resolve().parents[4] / "storefronts/django-oscar"
sys.path[:0] = [str(Path(__file__).parent), str(OSCAR)]


@pytest.fixture(scope="session")
def api():
    api = Api()
    yield api
    api.close()


@pytest.fixture(scope="session")
def oscar(api, tmp_path_factory):
    """django-oscar with the products and users of storefronts/django-oscar."""
    data = tmp_path_factory.mktemp("oscar")
    (data / "secret-key").write_text("a key for tests")
    os.environ |= {"SHOP_DATA": str(data), "SHOP_URL": api.url, "ORIGIN_KEY": KEY, "SERVICE_KEY": "the service key",
                   "DJANGO_SETTINGS_MODULE": "oscar_settings"}  # fmt: skip
    import django

    django.setup()
    from django.core.management import call_command
    from django.test.utils import setup_test_environment

    setup_test_environment()
    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    runpy.run_path(str(OSCAR / "seed.py"))
    call_command("rebuild_index", interactive=False, verbosity=0)
    yield api
    from edgefront.django.conf import configuration

    # Otherwise the purges of the last test meet a closed server.
    configuration().service.flush()
