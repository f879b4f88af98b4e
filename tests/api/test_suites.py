"""/suites/: uploaded as JSON and JSONL, listed, versions, history."""

import json
from typing import Any

import pytest

from runs.models import SuiteVersionRecord
from tests import build
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db


def document(*targets: str) -> dict[str, Any]:
    cases = [{"id": f"case {n}", "prompt": "Which?", "target": target} for n, target in enumerate(targets)]
    return {"slug": "colours", "title": "Colours", "max_tokens": 24, "scorer": {"kind": "exact"}, "cases": cases}


def test_a_new_suite_is_version_1_and_says_where_it_is(api: Api) -> None:
    answer = api.post("/suites/", document("blue", "red"))
    assert answer.status_code == 201
    body = answer.json()
    assert (body["slug"], body["version"], body["n_cases"], body["max_tokens"]) == ("colours", 1, 2, 24)
    assert body["scorer"]["default"]["kind"] == "exact"
    assert api.get(answer["Location"]).json() == body
    assert body["url"].endswith("/suites/colours/versions/1/")


def test_the_same_content_again_is_the_version_that_is_there(api: Api) -> None:
    first = api.post("/suites/", document("blue"))
    again = api.post("/suites/", document("blue"))
    assert (again.status_code, again.json()) == (200, first.json())
    assert not again.has_header("Location")
    assert SuiteVersionRecord.objects.count() == 1


def test_other_content_is_the_next_version(api: Api) -> None:
    api.post("/suites/", document("blue"))
    assert api.post("/suites/", document("green")).json()["version"] == 2
    assert api.get("/suites/colours/").json()["version"] == 2
    assert api.get("/suites/colours/?version=1").json()["version"] == 1
    versions = api.get("/suites/colours/versions/").json()["results"]
    assert [line["version"] for line in versions] == [2, 1]


@pytest.mark.parametrize("type_", ["text/plain", "application/x-ndjson", "text/plain; charset=utf-8"])
def test_cases_one_a_line_are_the_same_suite(api: Api, type_: str) -> None:
    whole = api.post("/suites/", document("blue", "rød")).json()
    header = {"suite": {"title": "Colours", "max_tokens": 24, "scorer": {"kind": "exact"}}}
    lines = "\n".join(json.dumps(line, ensure_ascii=False) for line in (header, *document("blue", "rød")["cases"]))
    answer = api.send("POST", "/suites/?slug=colours", lines.encode(), type_)
    assert (answer.status_code, answer.json()["digest"]) == (200, whole["digest"])


def test_lines_without_a_slug_are_refused(api: Api) -> None:
    answer = api.send("POST", "/suites/", "{}", "text/plain")
    assert (answer.status_code, answer.json()["fields"].keys()) == (400, {"slug"})


def test_a_text_sent_as_json_is_no_suite_of_lines(api: Api) -> None:
    answer = api.send("POST", "/suites/?slug=colours", '"x"', "application/json; charset=utf-8")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert "slug" in answer.json()["detail"] or "slug" in answer.json()["fields"]


def test_what_is_wrong_is_named_by_its_place_and_nothing_is_stored(api: Api) -> None:
    wrong = document("blue", "red")
    del wrong["cases"][1]["target"]
    answer = api.post("/suites/", wrong)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert "cases[1].target" in answer.json()["fields"]
    assert SuiteVersionRecord.objects.count() == 0


def test_suites_are_listed_with_their_last_run(api: Api) -> None:
    run = build.run()
    build.suite("shapes")
    colours, shapes = api.get("/suites/").json()["results"]
    assert (colours["slug"], colours["n_runs"], colours["last_run"]) == ("colours", 1, str(run.pk))
    assert (shapes["slug"], shapes["n_runs"], shapes["last_run"]) == ("shapes", 0, None)


def test_the_history_has_a_row_for_each_run_newest_first(api: Api) -> None:
    first, second = build.finished_run(), build.finished_run()
    rows = api.get("/suites/colours/history/").json()["results"]
    assert [row["run"] for row in rows] == [str(second.pk), str(first.pk)]
    assert rows[0]["range"] == [pytest.approx(100 / 3), pytest.approx(200 / 3)]
    assert rows[0]["repeats"] == [pytest.approx(200 / 3), pytest.approx(100 / 3)]
    assert rows[0]["bucket"]["batch_class"] == "alone"
    assert rows[0]["date"].endswith("Z")


@pytest.mark.parametrize("path", ["", "versions/", "history/"])
def test_a_suite_that_is_not_there_is_not_found(api: Api, path: str) -> None:
    assert api.get(f"/suites/nothing/{path}").status_code == 404
