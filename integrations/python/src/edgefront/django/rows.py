"""The view for `ROWS_URL`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from ..core import is_item

#: Ids in one request of edgefront.
_MAX_IDS = 100


def view(source: Callable[[list[str]], Iterable[dict[str, Any]]]) -> Any:
    @require_safe
    def answer(request: Any) -> HttpResponse:
        if not request.edge.verified:
            return HttpResponse("This address answers edgefront only.\n", status=403, content_type="text/plain")
        ids = list(dict.fromkeys(request.GET.get("ids", "").split(",")))
        if len(ids) > _MAX_IDS or not all(is_item(id_) for id_ in ids):
            return HttpResponse("ids is not valid.\n", status=400, content_type="text/plain")
        found = [row for row in source(ids) if str(row["id"]) in ids]
        # safe=False: edgefront expects a list.
        return JsonResponse(found, DjangoJSONEncoder, safe=False, headers={"Cache-Control": "no-store"})

    return answer
