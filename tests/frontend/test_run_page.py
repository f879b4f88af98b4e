"""A run's page: its result first, its cases with their answers second; where backends differ, each by itself."""

import re
from html import unescape
from typing import Any

import pytest
from django.conf import settings

from runs.catalogue import create_endpoint
from runs.models import RunRecord, WorkerRecord
from runs.work import claim_shard, fail_refused, rest_endpoint
from tests import build
from tests.casts import cast
from tests.frontend import toolcalls_stage

pytestmark = pytest.mark.django_db
N_CASES = 24
ACT = re.compile(r'<div class="actions">(.*?)\n    </div>', re.S)


@cast
def pair() -> tuple[RunRecord, RunRecord]:
    return toolcalls_stage.pair(model_root=settings.MODEL_ROOTS[0], n_cases=N_CASES)


def page_of(client: Any, run: RunRecord, query: str = "") -> str:
    answer = client.get(f"/runs/{run.pk}/{query}")
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def chips(page: str) -> dict[str, int]:
    group = page[page.index('aria-label="Show"') :].partition("</p>")[0]
    return {label: int(n) for label, n in re.findall(r">([^<>]+) <b>([\d,]+)</b></a>", group)}


def rows(page: str) -> dict[str, str]:
    table = page[page.index('class="cases') :].partition("</table>")[0]
    return {
        re.search(r"<bdi>(.*?)</bdi>", row)[1]: row
        for row in re.findall(r"<tr>(.*?)</tr>", table, re.S)
        if "<td" in row
    }


def test_the_result_stands_before_the_cases_and_all_else_is_folded(pair, viewer):
    page = page_of(viewer, pair[1])
    places = [page.index(mark) for mark in ('class="run-score"', "Needs looking at", 'id="cases"', 'class="folded"')]
    assert places == sorted(places)
    assert "<details open" not in page
    assert re.search(r"Statistics</h2> <span class=\"result\">Noise floor [\d.]+ points; detects changes of", page)
    assert "50 of 50 finished" in page or re.search(r"\d+ of \d+ finished", page)


def test_the_head_has_three_acts_at_most(pair, client_of):
    acts = ACT.search(page_of(client_of("admin"), pair[1]))[1]
    outer = re.sub(r'<div class="sheet".*?</div>\s*(?=<button [^>]*popovertarget|\Z)', "", acts, flags=re.S)
    assert len(re.findall(r'class="button', outer)) == 3
    assert "Delete run" in acts


@pytest.mark.nightly
def test_what_a_case_is_adds_up_to_all_cases(pair, viewer):
    counts = chips(page_of(viewer, pair[1]))
    assert counts["all"] == N_CASES
    assert counts["unstable"] + counts["failed"] + counts["passed"] == N_CASES
    assert counts["unstable"] > 0 < counts["failed"]
    for label, only in (("unstable", "unstable"), ("failed", "failed_alike"), ("passed", "passed")):
        assert len(rows(page_of(viewer, pair[1], f"?only={only}"))) == counts[label]


def test_a_row_has_the_answer_of_the_first_repeat_that_failed(pair, viewer):
    listed = rows(page_of(viewer, pair[1], "?only=unstable"))
    marks = {case: re.findall(r"repeat \d: (pass|fail)", row) for case, row in listed.items()}
    case = next(case for case, those in marks.items() if those[0] == "pass")
    wrong = toolcalls_stage.PROMPTS[int(case.removeprefix("tool-")) % len(toolcalls_stage.PROMPTS)][2]
    assert wrong[:40] in listed[case]
    assert f'/repeats/{marks[case].index("fail") + 1}/cases/{case}/" title' in listed[case]


@pytest.mark.nightly
def test_the_search_looks_into_answers_and_its_counts_are_of_what_it_lists(pair, viewer):
    page = page_of(viewer, pair[1], "?q=Shall+I+tell")
    listed = rows(page)
    assert listed
    assert {int(case.removeprefix("tool-")) % len(toolcalls_stage.PROMPTS) for case in listed} == {2}
    counts = chips(page)
    assert counts["all"] == len(listed) == sum(counts.get(name, 0) for name in ("unstable", "failed", "passed"))
    assert "No case of this run holds" in page_of(viewer, pair[1], "?q=nobody+wrote+this")


@pytest.mark.nightly
def test_of_a_mixed_run_each_backend_is_scored_and_listed_by_itself(pair, viewer):
    mixed = toolcalls_stage.mixed(N_CASES)
    page = page_of(viewer, mixed)
    assert 'class="run-score"' not in page
    assert "2 backends, 2 scores" in page
    odd = re.search(r"\d\d\.\d without the \d+\s% that backend (\w) answered", page)[1]
    assert len(chips(page)) == 4
    assert f"answered by {odd}" in chips(page)
    differing = rows(page_of(viewer, mixed, "?only=differ"))
    assert len(differing) == chips(page)["differ by backend"] > 0
    assert all(f'<span class="odd"><bdi>{odd}</bdi></span>' in row for row in differing.values())
    bucket = re.search(rf"\?bucket=(\d+)#cases\">Show {odd} alone", page)[1]
    alone = page_of(viewer, mixed, f"?bucket={bucket}")
    assert len(rows(alone)) == min(chips(page)[f"answered by {odd}"], 25)
    on = {label: n for label, n in chips(alone).items() if label.endswith(f" on {odd}")}
    assert sum(on.values()) == chips(page)[f"answered by {odd}"]


def test_the_missing_responses_of_a_run_are_asked_for_by_a_button(engineer: Any, viewer: Any) -> None:
    whole, short = build.finished_run(), build.finished_run((build.TARGET, None, "red"))
    button = "Run the missing responses"
    pages = [client.get(f"/runs/{run.pk}/").content.decode() for client in (engineer, viewer) for run in (whole, short)]
    assert [button in page for page in pages] == [False, True, False, False]
    assert viewer.post(f"/runs/{short.pk}/complete/").status_code == 403
    engineer.post(f"/runs/{short.pk}/complete/")
    short.refresh_from_db()
    assert short.status == RunRecord.Status.QUEUED


def stops(page: str) -> list[tuple[str, str]]:
    way = page[page.index('class="way"') :].partition("</ol>")[0]
    found = re.findall(r'<li data-state="(\w+)"[^>]*>(.*?)(?: <span|</li>)', way)
    return [(state, re.sub("<[^>]+>", "", label)) for state, label in found]


def on_another_server() -> tuple[RunRecord, WorkerRecord]:
    create_endpoint(
        slug="router", engine="openai", base_url="https://llm.example.com/v1", model_name="acme", auth="PROD_API_KEY"
    )
    return build.run(on="router"), build.worker("gpu-2")


def test_a_run_that_fails_says_why_what_mends_it_and_where_it_stopped(engineer: Any) -> None:
    run, worker = on_another_server()
    lease = claim_shard(worker=worker)
    assert lease is not None
    fail_refused(lease=lease, reason="The environment variable PROD_API_KEY is not set.", code="key_unreadable")
    page = page_of(engineer, run)
    words = re.sub(r"</?bdi>", "", page)
    assert '<h2 id="trouble">The environment variable PROD_API_KEY is not set.</h2>' in words
    steps = re.findall(r"<li>(.*?)</li>", words[words.index('class="steps"') :].partition("</ol>")[0])
    assert [re.sub("<[^>]+>", "", step) for step in steps] == [
        "Set the key on that worker",
        "Start the worker again: evalboard worker --pool default",
        "Run it again",
    ]
    assert "Nothing was decoded or paid." in page
    assert stops(page) == [
        ("done", "queued"),
        ("done", "claimed by gpu-2"),
        ("failed", "call the endpoint"),
        ("open", "first answer"),
        ("open", "6 answers"),
    ]
    assert 'class="run-score"' not in page
    assert page.index('class="folds"') < page.index('id="cases"'), "no table of cases without a response"
    answer = engineer.post(f"/runs/{run.pk}/again/")
    again = RunRecord.objects.exclude(pk=run.pk).get()
    assert answer.headers["Location"] == f"/runs/{again.pk}/"
    assert (again.endpoint, again.seed, again.repeats.count()) == (run.endpoint, run.seed, run.repeats.count())


def test_a_run_that_waits_for_its_endpoint_has_not_failed(engineer: Any) -> None:
    run, worker = on_another_server()
    lease = claim_shard(worker=worker)
    assert lease is not None
    rest_endpoint(lease=lease, reason="It answered 503.", seconds=240, n_failures=7)
    assert stops(page_of(engineer, run))[2:4] == [("done", "endpoint called"), ("waiting", "first answer")]


@pytest.mark.nightly
def test_a_run_waits_for_its_endpoint_and_is_tried_by_a_click(engineer: Any, viewer: Any) -> None:
    run, worker = on_another_server()
    lease = claim_shard(worker=worker)
    assert lease is not None
    rest_endpoint(lease=lease, reason="It answered 503.", seconds=240, n_failures=7)
    page = re.sub(r"</?bdi>", "", page_of(engineer, run))
    assert '<h2 id="trouble">Waiting for router after 7 failed calls: it answered 503.</h2>' in page
    assert re.search(r"Since [\d:]+ UTC\. Next try [\d:]+ UTC\.", re.sub("<[^>]+>", "", page))
    assert "Try now" in page
    for address in (f"/runs/{run.pk}/", "/runs/", "/", "/suites/"):
        assert "waiting for endpoint" in engineer.get(address).content.decode(), address
    assert "Try now" not in page_of(viewer, run)
    assert viewer.post("/endpoints/router/try/").status_code == 403
    answer = engineer.post("/endpoints/router/try/", {"run": run.pk})
    assert answer.headers["Location"] == f"/runs/{run.pk}/"
    assert "waiting for endpoint" not in page_of(engineer, run)
    assert claim_shard(worker=worker) is not None
