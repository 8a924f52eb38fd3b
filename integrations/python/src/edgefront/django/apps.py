from django.apps import AppConfig, apps
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.db.models.signals import post_save
from django.utils.module_loading import import_string


class EdgefrontConfig(AppConfig):
    name = "edgefront.django"
    label = "edgefront"

    def ready(self) -> None:
        from . import logins, purges
        from .conf import configuration

        user_logged_in.connect(logins.logged_in, dispatch_uid="edgefront")
        user_logged_out.connect(logins.logged_out, dispatch_uid="edgefront")
        post_save.connect(logins.user_saved, sender=get_user_model(), dispatch_uid="edgefront")
        for label, names in configuration().purge.items():
            purges.connect(apps.get_model(label), import_string(names) if isinstance(names, str) else names)
