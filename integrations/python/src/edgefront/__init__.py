"""The origin's side of edgefront's contract, docs/api.md of edgefront.

- `core`: one request and its directives. `wsgi`, `asgi`: middleware. `service`: purges and other calls of edgefront's API.
- `django`, `oscar`: Django applications.
"""

from .core import BadRequest, Edge, Keys, Refused, current
from .service import Service

__all__ = ["BadRequest", "Edge", "Keys", "Refused", "Service", "current"]
__version__ = "0.1.0"
