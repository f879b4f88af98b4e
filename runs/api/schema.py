"""The OpenAPI schema: what each view says of itself (describe.py), put together by drf-spectacular."""

import functools
import re
from collections.abc import Iterator
from typing import Any

from drf_spectacular.drainage import error
from drf_spectacular.extensions import OpenApiSerializerExtension, OpenApiSerializerFieldExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import Direction
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from evalboard.contract.base import Problem
from runs.access import roles
from runs.api import pages, query
from runs.api.describe import JSON, WHOLE, ApiCall, StatusAnswer, describe
from runs.api.resource import open_to_anyone
from runs.api.schema_types import Refer, object_schema, schema_of
from runs.api.serializers import ID, Id, IdOrCurrent, Object, Strict

Json = dict[str, Any]

PROBLEM = "application/problem+json"
FAILURES = {
    400: "The request is not valid; `fields` names what is wrong with it.",
    401: "The sender is unknown.",
    403: "The caller's roles, or the token's scopes, do not include this.",
    404: "What is named does not exist.",
    409: "This cannot be done as things are.",
    410: "It is gone.",
    413: "It is larger than what is read at a time.",
    422: "The request is understood and cannot be followed.",
    429: "More requests in a minute than one caller may send; `Retry-After` says when to go on.",
    503: "This cannot be answered now.",
}
OTHERWISE = "Any other failure, in the same shape: docs/api.md has the codes."
SECURITY = {
    "token": {"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer evb_…`"},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "evalboard_session",
        "description": "The session of someone signed in to the pages; what writes also carries `X-CSRFToken`.",
    },
}
PAGE: dict[str, Json] = {
    "cursor": {"type": "string", "description": "from `next` or `previous`"},
    "page_size": {"type": "integer", "minimum": 1, "maximum": pages.PAGE_SIZE_MAX, "default": pages.PAGE_SIZE},
}
FIRST_TAGS = ("runs", "suites", "releases", "compare")
ABOUT = """Runs, comparisons and releases of Evalboard. JSON in and out, strict: no NaN, no infinity, no key twice, and
an unknown field or parameter is refused by its name. Ids are strings, times are RFC 3339 in UTC, scores are points
from 0 to 100. Every answer carries `X-Request-Id`."""


class Described(AutoSchema):
    """Builds an operation from the view's own description, without the framework's guesses."""

    def get_operation(self, path: str, path_regex: str, path_prefix: str, method: str, registry: Any) -> Json | None:
        self.path, self.path_regex, self.path_prefix, self.method = path, path_regex, path_prefix, method.upper()
        self.registry = registry
        view: Any = self.view
        call: ApiCall | None = view.described.get(self.method)
        if call is None:
            error(f"{self.method} {path} is not described; runs/api/describe.py says how.")
            return None
        scope = view.required_scopes[self.method]
        parameters = [*self._in_path(), *self._in_query(call), *_in_headers(call)]
        body = self._body(call)
        return {
            "operationId": call.name,
            "summary": call.summary,
            "tags": [_tag(path)],
            **({"description": f"Scope: `{scope}`."} if scope != roles.ANYONE else {}),
            **({"parameters": parameters} if parameters else {}),
            **({"requestBody": body} if body else {}),
            "security": [] if scope == roles.ANYONE else [{kind: [scope]} for kind in SECURITY],
            "responses": dict(self._responses(call, scope)),
        }

    def _in_path(self) -> Iterator[Json]:
        for name in re.findall(r"{(\w+)}", self.path):
            is_number = re.search(rf"<int:{name}>", self.path_regex)
            yield {"name": name, "in": "path", "required": True, "schema": WHOLE if is_number else {"type": "string"}}

    def _in_query(self, call: ApiCall) -> Iterator[Json]:
        for name, schema in {**call.query, **(PAGE if call.is_paged else {})}.items():
            about = {"description": schema["description"]} if "description" in schema else {}
            plain = {key: value for key, value in schema.items() if key not in ("description", "required")}
            must = {"required": True} if schema.get("required") else {}
            yield {"name": name, "in": "query", **must, **about, "schema": plain}

    def _body(self, call: ApiCall) -> Json | None:
        if not call.body:
            return None
        content = {media: {"schema": self._schema(body, "request")} for media, body in call.body.items()}
        return {
            "content": content,
            "required": not any(getattr(body, "may_be_left_out", False) for body in call.body.values()),
        }

    def _responses(self, call: ApiCall, scope: str) -> Iterator[tuple[str, Json]]:
        for status, answer in sorted(call.answers.items()):
            yield str(status), self._response(answer)
        for status in sorted(_failures(call, scope, self.path)):
            headers = {"Retry-After": "seconds"} if status == 429 else {}
            yield str(status), self._response(StatusAnswer(FAILURES[status], {PROBLEM: Problem}, headers))
        yield "default", self._response(StatusAnswer(OTHERWISE, {PROBLEM: Problem}))

    def _response(self, answer: StatusAnswer) -> Json:
        content = {media: {"schema": self._schema(body, "response")} for media, body in answer.bodies.items()}
        headers = {
            name: {"description": text, "required": True, "schema": {"type": "string"}}
            for name, text in answer.headers.items()
        }
        return {
            "description": answer.text,
            **({"headers": headers} if headers else {}),
            **({"content": content} if content else {}),
        }

    def _schema(self, body: Any, direction: Direction) -> Json:
        if isinstance(body, dict):
            return body
        if isinstance(body, tuple):
            return {"oneOf": [self._schema(each, direction) for each in body]}
        if isinstance(body, type) and issubclass(body, Serializer):
            component = self.resolve_serializer(body(), direction)
            return component.ref if component else {"type": "object", "additionalProperties": False}
        return schema_of(body, self._refer_strictly if direction == "request" else self._refer)

    def _refer(self, hint: type) -> Json:
        """Return a reference to a contract's component, which is registered on first use."""
        return self._component(hint, self._refer, {})

    def _refer_strictly(self, hint: type) -> Json:
        """Return the same for request bodies, where unknown fields are refused."""
        return self._component(hint, self._refer_strictly, {"additionalProperties": False})

    def _component(self, hint: type, refer: Refer, more: Json) -> Json:
        kind = ResolvedComponent.SCHEMA
        name = hint.__name__
        component = ResolvedComponent(name=name, type=kind, object=name)  # type: ignore[no-untyped-call]
        if component not in self.registry:
            self.registry.register(component)  # before its fields, one of which may be its own kind
            component.schema = object_schema(hint, refer) | more
        return component.ref


class StrictBody(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Serializers that refuse unknown fields say so."""

    target_class = Strict
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> Json:
        schema: Json = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {**schema, "additionalProperties": False}


class AnyObject(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    target_class = Object

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> Json:
        return {"type": "object", "additionalProperties": True}


class AnId(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    target_class = Id

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> Json:
        return {"type": "string", "pattern": f"^{ID.pattern}$"}


class AnIdOrCurrent(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    target_class = IdOrCurrent

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> Json:
        return {"type": "string", "pattern": f"^({ID.pattern}|current)$"}


def routes(endpoints: list[Any]) -> list[Any]:
    """Return the described routes: views that state scopes, without the catch-all."""
    return [
        (re.sub(r"/?\?$", "", path) if path.endswith("?") else path, path_regex, method, view)
        for path, path_regex, method, view in endpoints
        if getattr(view, "required_scopes", None) and not path_regex.endswith("^")
    ]


@functools.cache
def document() -> Json:
    """Return the whole schema, built once per process since it depends only on code."""
    schema: Json = SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]
    return schema


@open_to_anyone("GET")
@describe("GET", "This schema", name="schema", answer={JSON: {"type": "object"}})
def schema(request: Request) -> Response:
    query.read(request, is_paged=False)
    return Response(document())


def _tag(path: str) -> str:
    """Return the group of an address: its first word below the base."""
    return re.sub("^/(api/)?(v1/)?", "", path).split("/")[0]


def _in_headers(call: ApiCall) -> Iterator[Json]:
    for name, schema in call.headers.items():
        about = {"description": schema["description"]} if "description" in schema else {}
        plain = {key: value for key, value in schema.items() if key != "description"}
        yield {"name": name, "in": "header", **about, "schema": plain}


def _failures(call: ApiCall, scope: str, path: str) -> set[int]:
    """Return the failure statuses that a call implies or lists."""
    statuses = {400, *call.refuses}
    if scope != roles.ANYONE:
        statuses |= {401, 403, 429}
    if "{" in path:
        statuses.add(404)
    return statuses


def finish(result: Json, **context: Any) -> Json:
    """Add the parts around the operations: the description and the security schemes."""
    result["info"] = {"title": "Evalboard's REST API", "version": "v1", "description": " ".join(ABOUT.split())}
    used = {tag for methods in result["paths"].values() for call in methods.values() for tag in call["tags"]}
    result["tags"] = [{"name": tag} for tag in (*FIRST_TAGS, *sorted(used - set(FIRST_TAGS)))]
    result["components"] = {**result["components"], "securitySchemes": SECURITY}
    return result
