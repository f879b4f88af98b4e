"""Files over the API: what is sent, what is refused before anything is sent, and what the pages link to."""

import csv
import io
import json
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from evalboard.core import table
from evalboard.core.archive import RunArchive
from runs import exports
from runs.compare import compare
from runs.exports.api import PAIR_NAMES
from runs.models import Case, ComparisonRecord, ResponseRecord, RunRecord
from tests import build
from tests.api.conftest import Api
from tests.frontend import stage, two_runs

pytestmark = pytest.mark.django_db(transaction=True)

EVIL = ["=1+1", "+cmd", "-2", "@SUM(A1:A9)", "\t=x", "\r=x", '"; =x', "line\r\nline", "'=x", "a,b;c"]


def whole(answer: Any) -> bytes:
    assert answer.status_code == 200, answer.content
    return b"".join(answer.streaming_content)


def csv_rows(answer: Any) -> list[dict[str, str]]:
    found = list(csv.DictReader(io.StringIO(whole(answer).decode(), newline="")))
    assert len(found) == int(answer["X-Row-Count"])
    return [{name: table.unescaped(cell) for name, cell in row.items()} for row in found]


def json_rows(answer: Any) -> list[dict[str, Any]]:
    lines = whole(answer).decode().split("\n")[:-1]
    assert len(lines) == int(answer["X-Row-Count"])
    return [json.loads(line) for line in lines]


def pair(settings: Any) -> tuple[RunRecord, RunRecord]:
    stage.stage(model_root=settings.MODEL_ROOTS[0], n_cases=6)
    ours, theirs = two_runs.near_tie(2)
    return two_runs.make({2: ours}, {2: theirs}, repeats=2)


def test_a_run_is_sent_as_an_archive_with_a_name(api: Api) -> None:
    run = build.finished_run()
    answer = api.get(f"/runs/{run.pk}/export/")
    assert answer["Content-Type"] == "application/zip"
    assert answer["Content-Disposition"] == f'attachment; filename="run-{run.pk}.zip"'
    assert "no-store" in answer["Cache-Control"]
    archive = RunArchive(io.BytesIO(whole(answer)))
    archive.check()
    assert archive.manifest["run"]["id"] == str(run.pk)


@pytest.mark.parametrize("path", ["export/", "cases.csv", "cases.jsonl"])
def test_what_cannot_be_exported_is_refused_as_a_problem(api: Api, path: str) -> None:
    queued = build.run()
    refused = api.get(f"/runs/{queued.pk}/{path}")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "no repeat that has ended" in refused.json()["detail"]
    assert api.get(f"/runs/999/{path}").status_code == 404
    unknown = api.get(f"/runs/{queued.pk}/{path}?onyl=failed")
    assert (unknown.status_code, "onyl" in unknown.json()["fields"]) == (400, True)


def test_another_form_than_the_addresss_own_is_refused(api: Api) -> None:
    run = build.finished_run()
    assert api.get(f"/runs/{run.pk}/cases.csv", Accept="application/json").status_code == 406
    assert api.get(f"/runs/{run.pk}/export/", Accept="application/json").json()["code"] == "not_acceptable"


def test_csv_has_a_row_for_each_case_and_repeat(api: Api) -> None:
    run = build.finished_run(("blue", "red", None), ("blue", "blue", "red"))
    rows = csv_rows(api.get(f"/runs/{run.pk}/cases.csv"))
    assert tuple(rows[0]) == exports.CASE_NAMES
    assert [(row["repeat"], row["case"], row["score"], row["text"], row["is_missing"]) for row in rows] == [
        ("1", "sky", "1.0", "blue", "false"),
        ("1", "sea", "0.0", "red", "false"),
        ("1", "a/b c", "", "", "true"),
        ("2", "sky", "1.0", "blue", "false"),
        ("2", "sea", "1.0", "blue", "false"),
        ("2", "a/b c", "0.0", "red", "false"),
    ]


def test_jsonl_and_csv_say_the_same(api: Api) -> None:
    run = build.finished_run(("blue", "=1+1", None))
    rows, lines = csv_rows(api.get(f"/runs/{run.pk}/cases.csv")), json_rows(api.get(f"/runs/{run.pk}/cases.jsonl"))
    for row, line in zip(rows, lines, strict=True):
        assert {name: "" if value is None else _as_cell(value) for name, value in line.items()} == row


def _as_cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, separators=(",", ":")) if isinstance(value, list | dict) else str(value)


def test_no_cell_of_a_csv_is_a_formula_and_every_text_comes_back(api: Api) -> None:
    """Case ids, tags, prompts, texts and reasons are all others' words."""
    ids = [text for text in EVIL if not set(text) & set("\t\r\n")]
    version = build.suite("evil", ids)
    run = build.finished_run(ids, version=version)
    for index, text in enumerate(EVIL[: len(ids)]):
        ResponseRecord.objects.filter(repeat__run=run, case_index=index).update(text=text, error_detail=text)
        messages = [{"role": "user", "content": text}]
        Case.objects.filter(suite_version=version, index=index).update(
            content={"messages": messages, "target": text}, group=text
        )
    answer = api.get(f"/runs/{run.pk}/cases.csv")
    cells = [cell for row in csv.reader(io.StringIO(whole(answer).decode(), newline="")) for cell in row]
    formulas = [cell for cell in cells if cell[:1] in tuple("=+-@\t\r")]
    assert [cell for cell in formulas if not re.fullmatch(r"-[0-9.e-]+", cell)] == []  # numbers are none
    found = csv_rows(api.get(f"/runs/{run.pk}/cases.csv"))
    assert [row["case"] for row in found] == ids
    for name in ("text", "prompt", "target", "group"):
        assert [row[name] for row in found] == EVIL[: len(ids)]
    assert [row["text"] for row in json_rows(api.get(f"/runs/{run.pk}/cases.jsonl"))] == EVIL[: len(ids)]


@pytest.mark.nightly
def test_cases_are_filtered(api: Api) -> None:
    run = build.finished_run(("blue", "red", None), ("blue", "blue", "red"))
    unstable = csv_rows(api.get(f"/runs/{run.pk}/cases.csv?only=unstable"))
    assert {row["case"] for row in unstable} == {"sea"}
    found = json_rows(api.get(f"/runs/{run.pk}/cases.jsonl?query=a/b"))
    assert {row["case"] for row in found} == {"a/b c"}
    assert csv_rows(api.get(f"/runs/{run.pk}/cases.csv?query=nothing")) == []
    assert json_rows(api.get(f"/runs/{run.pk}/cases.jsonl?query=nothing")) == []
    refused = api.get(f"/runs/{run.pk}/cases.csv?only=blue")
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["only"])


@pytest.mark.nightly
def test_pairs_are_those_of_the_list(api: Api, settings: Any) -> None:
    baseline, candidate = pair(settings)
    asked = f"baseline={baseline.pk}&candidate={candidate.pk}"
    listed = api.get(f"/compare/cases/?{asked}&page_size=200").json()["results"]
    assert json_rows(api.get(f"/compare/cases.jsonl?{asked}")) == listed
    rows = csv_rows(api.get(f"/compare/cases.csv?{asked}"))
    assert tuple(rows[0]) == PAIR_NAMES
    assert [(row["case"], row["repeat_baseline"], row["cause"]) for row in rows] == [
        (row["case"], str(row["repeat_baseline"]), row["cause"]) for row in listed
    ]
    one = json_rows(api.get(f"/compare/cases.jsonl?{asked}&repeat=1,1&cause=near_tie&changed=0&query=case-002"))
    assert all(row["repeat_baseline"] == 1 and row["case"] == "case-002" for row in one)


@pytest.mark.nightly
def test_pairs_of_a_comparison_at_work_are_refused(api: Api, settings: Any) -> None:
    baseline, candidate = pair(settings)
    made = compare(baseline=baseline.pk, candidate=candidate.pk)
    ComparisonRecord.objects.filter(pk=made.pk).update(status="queued", n_pairs=5000, n_done=7)
    refused = api.get(f"/compare/cases.csv?baseline={baseline.pk}&candidate={candidate.pk}")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "7 of 5000 pairs" in refused.json()["detail"]
    assert api.get("/compare/cases.csv?baseline=1").status_code == 400


def test_exports_count_against_the_same_limit(settings: Any) -> None:
    settings.RATES = {**settings.RATES, "read": 2}
    run = build.finished_run()
    caller = Api(build.token(build.user("eve", "viewer"), "read"))
    statuses = []
    for path in ("export/", "cases.csv", "cases.jsonl"):
        answer = caller.get(f"/runs/{run.pk}/{path}")
        statuses.append(answer.status_code)
        answer.close()
    assert statuses == [200, 200, 429]


def links(page: str) -> list[str]:
    found = re.search(r'<p class="quiet exports">(.*?)</p>', page, re.DOTALL)
    return [] if found is None else [unescape(url) for url in re.findall(r'href="([^"]*)"', found[1])]


@pytest.mark.nightly
def test_the_run_page_links_to_what_it_shows(db: None) -> None:
    client = Client()
    client.force_login(build.user("ada", "viewer"))
    assert links(client.get(f"/runs/{build.run().pk}/").content.decode()) == []
    run = build.finished_run(("blue", "red", None), ("blue", "blue", "red"))
    page = client.get(f"/runs/{run.pk}/?q=s%26a&only=unstable").content.decode()
    assert links(page) == []  # no case fits
    found = links(client.get(f"/runs/{run.pk}/?q=se&only=unstable").content.decode())
    assert found[0] == f"/api/v1/runs/{run.pk}/export/"
    assert found[1:] == [f"/api/v1/runs/{run.pk}/cases.{form}?query=se&only=unstable" for form in ("csv", "jsonl")]
    assert {row["case"] for row in csv_rows(client.get(found[1]))} == {"sea"}
    for url in found:
        assert whole(client.get(url))


@pytest.mark.nightly
def test_the_compare_page_links_to_the_pairs_it_shows(settings: Any) -> None:
    client = Client()
    client.force_login(build.user("bob", "viewer"))
    baseline, candidate = pair(settings)
    page = client.get(f"/compare/{baseline.pk}/{candidate.pk}/?repeat=1,1&cause=near_tie&q=case-002")
    asked = f"baseline={baseline.pk}&candidate={candidate.pk}&repeat=1,1&cause=near_tie&query=case-002"
    assert links(page.content.decode()) == [f"/api/v1/compare/cases.{form}?{asked}" for form in ("csv", "jsonl")]
    [row] = json_rows(client.get(f"/api/v1/compare/cases.jsonl?{asked}"))
    assert row["cause"] == "near_tie"
    changed = client.get(f"/compare/{baseline.pk}/{candidate.pk}/?changed=no").content.decode()
    assert all("changed=0" in url for url in links(changed))
    listed = links(
        client.get(f"/compare/{baseline.pk}/{candidate.pk}/?show=pairs&cause=near_tie&compact=1").content.decode()
    )
    assert len(listed) == 2
    for url in listed:
        assert whole(client.get(url))
