"""Whether the server is alive, and whether it can take work. Neither needs a login nor looks at one."""

from django.http import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from runs import selectors
from runs.api import answers, problems, query
from runs.api.access import open_to_anyone
from runs.api.describe import describe


@open_to_anyone("GET")
@describe("GET", "Whether the server is alive; asks nothing of the database", name="health", answer=answers.Health)
def health(request: Request) -> Response:
    query.read(request, is_paged=False)
    return Response({"status": "alive"})


@open_to_anyone("GET")
@describe("GET", "Whether it can take work", name="ready", answer=answers.Readiness, refuses=[503])
def ready(request: Request) -> HttpResponseBase:
    """503 names in `fields` each part that is missing. A silent doorbell is none: workers look by themselves."""
    query.read(request, is_paged=False)
    missing = selectors.what_is_missing()
    if not missing:
        late = selectors.doorbell_problem()
        return Response({"status": "ready", "warnings": [{"code": "queue_delayed", "text": late}] if late else []})
    detail = " ".join(f"{part}: {words}" for part, words in missing.items())
    request_id = getattr(request, "request_id", "")
    return problems.problem(503, "Not ready to take work", detail, "not_ready", request_id, fields=missing)


@open_to_anyone("GET", "POST", "PUT", "PATCH", "DELETE")
def unknown(request: Request) -> HttpResponseBase:
    """Whatever stands under the API and is no route of it."""
    detail = f"There is no {request.path} in this API. Addresses end with a slash; docs/api.md lists them."
    return problems.problem(404, "There is no such thing", detail, "not_found", getattr(request, "request_id", ""))
