"""Answer polling cheaply: 304 if the caller has the present answer, which is then not computed.

A tag represents the state that the answer is made of, and is read before it: what changes in between gives the next
poll another tag, never an old answer a new one.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from django.utils.http import parse_etags
from rest_framework.request import Request
from rest_framework.response import Response

from runs.api.describe import StatusAnswer

# What a described call says of it: describe("GET", …, **DESCRIBED).
DESCRIBED: dict[str, Any] = {
    "takes_headers": {"If-None-Match": {"type": "string", "description": "the `ETag` of an earlier answer"}},
    "gives_headers": {"ETag": "stands for this answer; send it back as `If-None-Match`"},
    "also": {304: StatusAnswer("Nothing has changed", headers={"ETag": "as sent"})},
}


def answer(request: Request, state: str, body: Callable[[], Any]) -> Response:
    """Answer 304 if `If-None-Match` has the tag of this state, else 200 with the body.

    Tags are weak: they promise equal meaning, not equal bytes.
    """
    tag = f'W/"{hashlib.sha256(state.encode()).hexdigest()[:32]}"'
    known = parse_etags(request.headers.get("If-None-Match", ""))
    if tag in known or tag.removeprefix("W/") in known or known == ["*"]:
        return Response(status=304, headers={"ETag": tag})
    return Response(body(), headers={"ETag": tag})
