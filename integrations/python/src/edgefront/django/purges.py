"""Purges of saved objects: after the transaction, collected and sent once for each request."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete, post_save

from ..core import current
from .conf import configuration

log = logging.getLogger("edgefront")

Names = dict[str, Iterable[object]]


def purge(names: Names, using: str | None = None) -> None:
    """Purges after the commit. A rollback purges nothing. No error reaches the caller."""
    pairs = [(kind, str(name)) for kind, list_ in names.items() for name in list_]
    if pairs:
        transaction.on_commit(lambda: _collect(pairs), using=using, robust=True)


def _collect(pairs: list[tuple[str, str]]) -> None:
    edge, service = current(), configuration().service
    if edge is not None:
        edge.purges.extend(pairs)
    elif service is not None:
        service.purge(pairs)


def connect(model: Any, names: Callable[[Any], Names]) -> None:
    def changed(sender: Any, instance: Any, using: str | None = None, raw: bool = False, **_: Any) -> None:
        try:
            purge(names(instance), using)
        except Exception:
            # A purge must not break the transaction.
            log.exception("cannot name the pages of %r", instance)

    uid = f"edgefront {model._meta.label} {id(names)}"
    post_save.connect(changed, sender=model, weak=False, dispatch_uid=uid)
    post_delete.connect(changed, sender=model, weak=False, dispatch_uid=uid)
