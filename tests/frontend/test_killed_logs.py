"""A log that was killed after 5 of 20 responses counts 5 wherever it is counted."""

import re
from collections.abc import Callable
from html import unescape

import pytest
from django.test import Client

from evalboard.client.answers import parse
from evalboard.contract.run import RunRow
from evalboard.wording.results import describe_end
from runs.models import RunRecord
from runs.run import run_report, run_rows
from runs.suites import rescore_run
from tests.runs import logs

pytestmark = pytest.mark.django_db

CASES = [f"case-{number:02}" for number in range(20)]


@pytest.fixture
def killed(db: None) -> RunRecord:
    """Of 20 cases the log has five, of which one came to an error."""
    answers = [logs.response(case) for case in CASES[:4]]
    answers.append(logs.response(CASES[4], error="HTTP 500", text="", positions=None))
    return logs.stored(logs.log(*answers, cases=tuple(map(logs.case, CASES)), status="cancelled"))


def test_what_the_log_lacks_is_not_done(killed: RunRecord, client_of: Callable[[str], Client]) -> None:
    report = run_report(killed.pk)
    [row] = run_rows()
    assert (row.progress.n_done, row.progress.n_total) == (report.progress.n_done, report.progress.n_total) == (4, 20)
    assert (report.progress.n_done, report.errors.by_code) == (4, {"source_error": 1})
    assert report.repeats[0].n_missing == 16
    api = client_of("viewer")
    for path in (f"/api/v1/runs/{killed.pk}/", "/api/v1/runs/", f"/api/v1/imports/{killed.source_id}/"):
        body = api.get(path).json()
        [found] = body.get("results") or body.get("runs") or [body]
        assert (found["progress"]["n_done"], found["progress"]["n_total"]) == (4, 20), path
        run = parse(RunRow, found, url="")
        assert describe_end(run) == f"Run {killed.pk} is cancelled: 4 of 20 responses, no score."


def test_pages_say_how_many_came(killed: RunRecord, viewer: Client) -> None:
    page = unescape(viewer.get(f"/runs/{killed.pk}/").content.decode())
    assert '<b class="keep">4 of 20</b>' in page
    assert "The run was cancelled at 4 of 20 responses, so it has no score." in page
    assert "20 of 20 responses" not in re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", page))
    assert "4 of 20" in unescape(viewer.get("/runs/").content.decode())


@pytest.mark.nightly
def test_an_incomplete_one_says_what_is_missing_and_stands_on_the_board(viewer: Client) -> None:
    five = tuple(logs.response(case) for case in CASES[:5])
    run = logs.stored(logs.log(*five, cases=tuple(map(logs.case, CASES))))
    warned = {warning.code: warning.text for warning in run_report(run.pk).warnings}
    assert warned["incomplete"] == "15 of 20 responses are missing (15 not in the log), so there is no score."
    assert "lacks 15 of 20 responses" in unescape(viewer.get("/").content.decode())
    rescore_run(run_id=run.pk, scorer={"kind": "contains"})
    assert run_report(run.pk).progress.n_done == 5
