"""A search over everything."""

from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.find import ANSWER, KINDS, SearchResult
from runs import find
from runs.access import READ
from runs.api import query, wire
from runs.api.describe import describe, one_of, text
from runs.api.resource import resource

QUERY = {
    "q": text("what is looked for; `run:`, `case:` and the like before it narrow to a kind"),
    "kind": one_of((*KINDS, ANSWER), "narrows to a kind; `answer` reads the texts of all responses"),
}


@resource(GET=READ)
@describe("GET", "Search over everything", name="find", answer=SearchResult, query=QUERY)
def search(request: Request) -> Response:
    sent = query.read(request, QUERY, is_paged=False)
    wanted = find.parse_wanted(sent.get("q", ""), query.choice(sent, "kind", (*KINDS, ANSWER)))
    origin = request.build_absolute_uri("/").removesuffix("/")
    return wire.answer(find.search(wanted, origin=origin), request)
