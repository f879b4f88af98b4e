"""The server answers as its own schema says: to what is right, to what is made up, and to what is wrong.

The schema is closed for this: a field or a status that it does not name fails. tests/api/everything.py has the data.
"""

import copy
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.test import Client
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as made_up
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from runs.access.roles import ROLES
from runs.audit import check_trail
from runs.models import AuditLineRecord, ImportReadingRecord, Token
from tests.api import everything
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),  # an export wants a transaction of its own
    pytest.mark.filterwarnings("default"),  # the generators' own
]

ANSWERED = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
REFUSED = [*ANSWERED, checks.negative_data_rejection]
IS_SOAK = os.environ.get("EVALBOARD_SOAK") == "1"
# Examples of one operation: right and wrong ones as admin, and right ones that everybody else sends too.
RIGHT, WRONG, OTHERS = (25, 25, 5) if IS_SOAK else (1, 1, 1)
# Whom each address refuses is what test_access.py is about.
OTHER_ROLES = ("anonymous", *(role for role in ROLES if role != "admin")) if IS_SOAK else ("viewer",)


@schemathesis.serializer(everything.JSONL)
def jsonl(context: Any, value: Any) -> bytes:
    """JSONL as it is sent: text."""
    return value if isinstance(value, bytes) else str(value).encode()


@dataclass(frozen=True)
class Site:
    """The closed schema of this process's server, a session for each role and the rows that it has."""

    schema: Any
    sessions: dict[str, requests.Session]
    rows: everything.Rows

    def operations(self) -> dict[str, Any]:
        found = (each.ok() for each in self.schema.get_all_operations())
        return {each.definition.raw["operationId"]: each for each in found}


@pytest.fixture
def site(database_url: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("DATABASE_URL", database_url)  # of the process that reads a large log
    settings.IMPORT_WAIT_BYTES = len(everything.LARGE_LOG) - 1
    settings.ALLOWED_HOSTS = ["*"]
    settings.RATES = dict.fromkeys(settings.RATES, 0)
    settings.LEASE_SECONDS = 3600  # or a slow machine's server says meanwhile that no worker is there any more
    secrets = everything.secrets()
    rows = everything.make(Token.objects.get(user__username="admin").user)
    sessions = {"anonymous": requests.Session()}
    for role, secret in secrets.items():
        sessions[role] = requests.Session()
        sessions[role].headers["Authorization"] = f"Bearer {secret}"
    schema = schemathesis.openapi.from_dict(closed(Client().get("/api/schema/").json()))
    schema.app = get_wsgi_application()
    yield Site(schema, sessions, rows)
    wait_until(lambda: not ImportReadingRecord.objects.filter(status="reading").exists())


def closed(document: Any) -> Any:
    """The schema without `default` answers, and with every object shut that has its fields listed."""
    document = copy.deepcopy(document)
    for methods in document["paths"].values():
        for operation in methods.values():
            operation["responses"].pop("default")
    _shut(document["components"]["schemas"])
    _shut(document["paths"])
    return document


def _shut(found: Any) -> None:
    if isinstance(found, list):
        for each in found:
            _shut(each)
    if isinstance(found, dict):
        if "properties" in found and found.get("type") == "object":
            found.setdefault("additionalProperties", False)
        for each in found.values():
            _shut(each)


# Calls with a body that only read.
WRITES_NOTHING = {"forced_cost_of", "probe_estimate"}


def test_every_success_is_answered_as_described_and_every_write_is_audited(site: Site) -> None:
    """One good request for each, so that no schema of an answer stays unread, and no writing call without a line."""
    answers: dict[str, Any] = {}
    audited: set[str] = set()
    operations, problems = site.operations(), []
    seen: set[tuple[str, str]] = set()
    for make_request in everything.good_requests(site.rows, answers):
        asked = make_request()
        case = operations[asked.operation].Case(
            path_parameters=asked.path,
            query=asked.query,
            headers=asked.headers,
            body=schemathesis.core.NOT_SET if asked.body is None else asked.body,
            media_type=None if asked.body is None else asked.media,
        )
        answer = case.call(session=site.sessions["admin"])
        problems += failures(case, answer, ANSWERED)
        written = {"request_id": answer.headers["x-request-id"][0], "person": "admin", "actor": "token"}
        if AuditLineRecord.objects.filter(**written).exists():
            audited.add(asked.operation)
        if answer.status_code >= 400:
            problems.append(f"{asked.operation}: {answer.status_code} {answer.content[:500]!r}")
        seen.add((asked.operation, str(answer.status_code)))
        if answer.headers.get("content-type", [""])[0] == "application/json":
            answers[asked.operation] = answer.json()
        answers[f"{asked.operation} ETag"] = answer.headers.get("etag", [""])[0]
    assert not problems, "\n".join(problems)
    described = {
        (name, status)
        for name, operation in operations.items()
        for status in operation.definition.raw["responses"]
        if status < "400"
    }
    assert described - seen == set()
    writing = {name for name, operation in operations.items() if operation.method.upper() != "GET"}
    assert writing - audited == WRITES_NOTHING
    assert audited - writing == set()
    assert check_trail().is_whole


@pytest.mark.nightly
@pytest.mark.drawn
def test_made_up_requests_are_answered_as_described(site: Site) -> None:
    """No 5xx, and no status, header, type or field that the schema does not have, whatever comes."""
    problems: list[str] = []
    for operation in site.operations().values():
        try:
            _try(site, operation)
        except Exception as found:  # noqa: BLE001  # the generators' own kinds; all are shown together
            problems.append("\n".join([f"{operation.label}: {found}", *getattr(found, "__notes__", ())]))
    assert not problems, "\n\n".join(problems)


def _try(site: Site, operation: Any) -> None:
    """Right requests with the ids of real rows; as admin also with made-up ones, and wrong ones, which are refused."""
    names = {parameter.name for parameter in operation.path_parameters}
    known = {name: value for name, value in site.rows.known.items() if name in names} or None
    asked = {parameter.name for parameter in operation.query}
    runs = {"baseline": site.rows.baseline, "candidate": site.rows.candidate}
    query = runs if runs.keys() <= asked else None
    _send(site, OTHER_ROLES, operation.as_strategy(path_parameters=known), OTHERS, ANSWERED)
    _send(site, ["admin"], operation.as_strategy(path_parameters=known, query=query), RIGHT, ANSWERED)
    if known:
        _send(site, ["admin"], operation.as_strategy(), OTHERS, ANSWERED)
    if _can_be_wrong(operation):
        wrong = operation.as_strategy(GenerationMode.NEGATIVE, path_parameters=known)
        _send(site, ["admin"], wrong, WRONG, REFUSED)


def _can_be_wrong(operation: Any) -> bool:
    """Whether there is anything that the generators could send wrongly beside what the path names."""
    return bool(list(operation.query) or list(operation.headers) or list(operation.body))


def _send(site: Site, roles: Iterable[str], cases: Any, n: int, wanted: list[Any]) -> None:
    """Draw n requests and send each as every one of the roles."""

    @made_up(
        max_examples=n,
        derandomize=not IS_SOAK,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def each(case: Case) -> None:
        for role in roles:
            answer = case.call(session=site.sessions[role])
            try:
                case.validate_response(answer, checks=wanted)
            except Exception as found:
                found.add_note(f"Sent as {role}.")
                raise

    each()


def failures(case: Case, answer: Any, wanted: list[Any]) -> list[str]:
    try:
        case.validate_response(answer, checks=wanted)
    except Exception as found:  # noqa: BLE001  # a group of the generators' own kinds
        return [f"{case.operation.label}: {found}"]
    return []
