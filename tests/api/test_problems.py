"""One shape for every failure."""

import logging
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import InternalError, OperationalError, connection
from psycopg import errors

from evalboard.request_ids import RequestIdFilter
from runs.health.middleware import HEADER
from tests import build
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db


def assert_problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body.keys() - {"fields"} == {"type", "title", "status", "detail", "code", "request_id"}
    assert (body["status"], body["code"]) == (status, code)
    assert body["title"]
    assert body["detail"]
    assert body["request_id"] == answer[HEADER]
    assert all(isinstance(text, str) for text in body.get("fields", {}).values())
    return body


@pytest.mark.parametrize("path", ["/nothing/", "/runs", "/runs/1/nothing/", "/runs/x/", "/api/", "/api/v2/runs/"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_address_that_is_none_is_a_problem(path: str, method: str) -> None:
    assert_problem(Api().send(method, path), 404, "not_found")


def test_a_thing_that_is_not_there_is_a_problem(api: Api) -> None:
    assert "run 999" in assert_problem(api.get("/runs/999/"), 404, "not_found")["detail"]


@pytest.mark.parametrize("run_id", ["0", "9" * 19, "9" * 60])
def test_an_id_beyond_what_can_be_stored_is_merely_not_there(api: Api, run_id: str) -> None:
    assert_problem(api.get(f"/runs/{run_id}/"), 404, "not_found")
    assert_problem(api.post(f"/runs/{run_id}/cancel/"), 404, "not_found")
    assert_problem(api.get(f"/runs/{run_id}/responses/{run_id}/sky/trace/"), 404, "not_found")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS"])
def test_a_method_that_a_route_does_not_answer_is_a_problem(api: Api, method: str) -> None:
    assert_problem(api.send(method, "/runs/"), 405, "method_not_allowed")


def test_another_kind_of_body_is_a_problem(api: Api) -> None:
    assert_problem(api.send("POST", "/runs/", "<run/>", "text/xml"), 415, "unsupported_media_type")


def test_an_answer_that_nobody_can_give_is_a_problem(api: Api) -> None:
    assert_problem(api.get("/runs/", Accept="text/html"), 406, "not_acceptable")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("{", id="cut off"),
        pytest.param('{"repeats": NaN}', id="not a number"),
        pytest.param('{"repeats": Infinity}', id="infinite"),
        pytest.param('{"repeats": 1e999}', id="beyond float64"),
        pytest.param('{"repeats": 1, "repeats": 2}', id="one key twice"),
        pytest.param("[" * 100_000, id="nested too deep"),
        pytest.param("", id="nothing at all"),
        pytest.param(b'{"suite": "\xff"}', id="not UTF-8"),
    ],
)
def test_a_body_that_is_no_strict_json_is_a_problem(api: Api, body: str | bytes) -> None:
    answer = api.send("POST", "/runs/", body)
    assert_problem(answer, 400, answer.json()["code"])
    assert answer.json()["code"] in ("malformed", "invalid_input")


def test_characters_that_cannot_be_stored_are_named(api: Api) -> None:
    body = assert_problem(api.send("POST", "/runs/", '{"labels": {"branch": "\\u0000"}}'), 400, "invalid_input")
    assert "labels.branch" in body["fields"]


@pytest.mark.parametrize("body", [[], "suite", 7, None])
def test_a_body_that_is_no_object_is_a_problem(api: Api, body: Any) -> None:
    assert_problem(
        api.send("POST", "/runs/", "null" if body is None else repr(body).replace("'", '"')), 400, "invalid_input"
    )


def test_a_body_that_is_too_large_is_a_problem(api: Api, settings: LazySettings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    assert_problem(api.post("/suites/", {"slug": "s" * 100}), 413, "too_large")


def test_unknown_fields_are_refused_by_name(api: Api) -> None:
    sent = {"suite": "colours", "endpoint": "local", "profile": "pinned", "repeat": 5, "model": {"folder": "x"}}
    fields = assert_problem(api.post("/runs/", sent), 400, "invalid_input")["fields"]
    assert fields.keys() >= {"repeat"}
    nested = {**sent, "repeats": 5}
    del nested["repeat"]
    assert "model.folder" in assert_problem(api.post("/runs/", nested), 400, "invalid_input")["fields"]


@pytest.mark.parametrize(
    "query", ["suit=colours", "page=2", "status=done", "bucket=x", "bucket=-1", "date=2026-02-30", "date=9999-12-31"]
)
def test_unknown_parameters_and_values_are_refused_by_name(api: Api, query: str) -> None:
    fields = assert_problem(api.get(f"/runs/?{query}"), 400, "invalid_input")["fields"]
    assert fields.keys() == {query.partition("=")[0]}


def test_a_parameter_given_twice_is_refused(api: Api) -> None:
    assert "suite" in assert_problem(api.get("/runs/?suite=a&suite=b"), 400, "invalid_input")["fields"]


def test_a_nul_character_in_the_query_is_refused(api: Api) -> None:
    assert "suite" in assert_problem(api.get("/runs/?suite=%00"), 400, "invalid_input")["fields"]


def test_a_refusal_and_a_missing_login_are_problems() -> None:
    assert_problem(Api().get("/runs/"), 401, "not_authenticated")
    assert_problem(Api(build.token(build.user(), "read")).post("/runs/", {}), 403, "refused")


def failing(error: Exception) -> Any:
    """Let every query of workers fail."""

    def execute_or_fail(execute: Any, sql: str, *rest: Any) -> Any:
        if "runs_worker" in sql:
            raise error
        return execute(sql, *rest)

    return connection.execute_wrapper(execute_or_fail)


def test_what_nobody_expected_is_a_problem_with_its_id_and_logged(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR), failing(RuntimeError("the secret cause")):
        body = assert_problem(api.get("/workers/"), 500, "server_error")
    assert "secret" not in str(body)
    assert "the secret cause" in caplog.text


def test_a_database_that_is_away_asks_to_come_back(api: Api) -> None:
    with failing(OperationalError("the connection is closed")):
        answer = api.get("/workers/")
    assert_problem(answer, 503, "database_away")
    assert int(answer["Retry-After"]) > 0


def test_a_server_that_stores_nothing_yet_counts_as_away(api: Api) -> None:
    refused = InternalError("cannot execute UPDATE in a read-only transaction")
    refused.__cause__ = errors.ReadOnlySqlTransaction()
    with failing(refused):
        assert_problem(api.get("/workers/"), 503, "database_away")
    with failing(InternalError("something else")):
        assert_problem(api.get("/workers/"), 500, "server_error")


def test_a_refusal_names_the_scope_that_is_missing(api: Api) -> None:
    caller = Api(build.token(build.user(), "read"))
    assert "scope run" in assert_problem(caller.post("/runs/", {}), 403, "refused")["detail"]


def test_a_gateways_request_id_is_kept_where_it_is_sane() -> None:
    assert Api().get("/health", X_Request_Id="gateway-42")[HEADER] == "gateway-42"
    made = Api().get("/health", X_Request_Id="a b\tc")[HEADER]
    assert made != "a b\tc"
    assert len(made) == 16


def test_log_lines_carry_the_request_id(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.addFilter(RequestIdFilter())
    with caplog.at_level(logging.WARNING, "django.request"):
        api.get("/runs/999/", X_Request_Id="gateway-42")
    assert {record.request_id for record in caplog.records} == {"gateway-42"}  # type: ignore[attr-defined]
