"""Every page renders for a run in every state, says the right thing, and escapes what others wrote."""

import functools
import re
from html import unescape
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import resolve, reverse

from evalboard.core.errors import NotFound
from frontend.shell import addresses
from runs.models import Case, ProfileRecord, RunRecord
from runs.run import cancel_run
from runs.work import claim_shard, release_shard
from tests.casts import cast, with_param
from tests.frontend import stage as staged
from tests.frontend.stage import HOSTILE_ID, SLUG
from tests.nightly import few, nightly

SUITE_PAGES = ("/suites/", f"/suites/{SLUG}/", f"/suites/{SLUG}/versions/1/")
PAGES = ("/", "/endpoints/", *SUITE_PAGES, "/runs/", "/workers/", "/settings/")


def text_of(response) -> str:
    return response.content.decode()


@cast
def run(staged_rows, param):
    """A run in the state that a test says with `run_in`."""
    made = staged.run_in(param)
    assert made.status == param
    return made


run_in = functools.partial(with_param, "run")


@run_in("finished", *nightly(["running", "failed", "queued", "incomplete", "cancelled"]))
def test_every_page_renders_for_a_run_in_every_state_and_escapes_what_others_wrote(run, engineer):
    own = ("", "?part=progress", "?only=missing&q=case", "?q=%3Cscript%3E&only=failed")
    pages = [*PAGES, *(f"/runs/{run.pk}/{query}" for query in own)]
    if run.status == "finished":
        pages.append(reverse("response", args=[run.pk, 1, HOSTILE_ID]))
    for page in pages:
        response = engineer.get(page)
        assert response.status_code == 200, page
        body = text_of(response)
        assert "<script>alert" not in body, page
        assert "\u202e" not in body, page
        assert "\x07" not in body, page
    assert f'data-status="{run.status}"' in text_of(engineer.get(f"/runs/{run.pk}/"))


@pytest.mark.parametrize("page", PAGES)
def test_empty_pages_say_why_and_name_a_next_step(admin, db, page):
    response = admin.get(page)
    if SLUG in page:
        assert response.status_code == 404
        return
    assert response.status_code == 200
    assert 'class="empty"' in text_of(response)


@pytest.mark.parametrize(
    ("run", "is_live"),
    [("queued", True), ("running", True), ("finished", False), ("failed", False)],
    indirect=["run"],
)
def test_only_a_run_that_may_still_move_asks_for_its_progress(run, viewer, is_live):
    page = viewer.get(f"/runs/{run.pk}/")
    assert ('hx-trigger="every 2s"' in text_of(page)) is is_live
    part = viewer.get(f"/runs/{run.pk}/?part=progress")
    assert (part.headers.get("HX-Refresh") == "true") is not is_live
    assert "<html" not in text_of(part)


@run_in("finished")
def test_a_finished_run_says_its_range_and_what_was_unstable(run, viewer):
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert "73.3–76.7 points over 2 repeats." in page
    assert "1 case changed its score between repeats." in page
    assert "One of 30 cases is 3.3 points." in page
    assert re.search(r'href="\?only=unstable#cases">List<', page)
    assert re.search(r'class="cases".*?<tbody>.*?case-002', page, re.S)


@run_in("incomplete")
def test_an_incomplete_run_shows_no_plain_score(run, viewer):
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert "2 responses are missing, so no score is given." in page
    assert "58 of 60 responses were kept." in page
    assert "points over" not in page
    assert "timeout" in page


@pytest.mark.nightly
def test_a_broken_pin_is_a_warning_on_the_page(stage, viewer):
    run = stage.start()
    by = stage.worker()
    stage.serve(by, stage.engine(by, max_num_seqs=64))
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert re.search(r'class="warning" data-code="[^"]*pin', page)
    assert re.search(r'<tr class="broken">\s*<th scope="row"><bdi>max_num_seqs', page)


@pytest.mark.nightly
def test_a_run_says_how_many_seats_it_got(stage, viewer):
    run, by = stage.start(), stage.worker()
    stage.serve(by, stage.engine(by, max_num_seqs=64, seats=9))
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert '<td class="number" data-head="Seats">9 of 64</td>' in page
    assert page.count("9 of 64 seats fit: after the weights, memory has room for 9 of 8,192 tokens at a time.") == 1


@pytest.mark.nightly
def test_a_second_equal_run_is_called_byte_identical(stage, viewer):
    first, by = stage.start(), stage.worker()
    process = stage.engine(by)
    stage.serve(by, process)
    second = stage.start()
    stage.serve(by, process)
    page = text_of(viewer.get(f"/runs/{second.pk}/"))
    assert re.search(rf'Byte-identical to <a href="/runs/{first.pk}/">', page)
    assert "same seed" not in page


@pytest.mark.nightly
def test_a_second_attempt_is_a_number_in_its_cell(stage, viewer):
    run, by = stage.start(), stage.worker()
    lease = claim_shard(worker=by)
    release_shard(lease=lease, reason="the runner died", is_crash=True)
    stage.serve(by, stage.engine(by), n_shards=1)
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert re.search(r'class="cell-attempt[^"]*"[^>]*>2</text>', page)


@run_in("finished")
def test_the_response_page_shows_text_tokens_and_the_position_of_the_address(run, viewer):
    address = reverse("response", args=[run.pk, 1, "case-004"])
    page = text_of(viewer.get(address))
    assert 'data-position="2"' in page
    assert re.search(r'class="token margin-3"[^>]*aria-label="2: [^"]*margin 0.000"[^>]*aria-current="true"', page)
    assert '<svg class="chart"' not in page  # of three tokens
    assert '<details class="fold" open><summary>Margins, position by position</summary>' in page
    assert "3 tokens, as the model read them" in page
    chosen = text_of(viewer.get(f"{address}?at=1&part=alternatives"))
    assert "At 1" in chosen
    assert "<html" not in chosen
    beyond = text_of(viewer.get(f"{address}?at=999999"))
    assert "At 2" in beyond


@run_in("finished")
def test_cases_with_slashes_and_signs_in_their_id_have_an_address(run, viewer):
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    address = reverse("response", args=[run.pk, 1, HOSTILE_ID])
    assert f'href="{address}"' in page
    assert viewer.get(address).status_code == 200


@pytest.mark.parametrize("case_id", ["..", "../../etc", "a/./b", ".hidden", "a..b/c"])
def test_no_browser_resolves_dots_in_the_address_of_a_case(case_id):
    address = addresses.response_url(7, 1, case_id)
    assert urlsplit(urljoin("http://127.0.0.1/", address)).path == address
    assert not {".", "..", "%2e", "%2E%2E"} & set(address.split("/"))
    assert resolve(unquote(address)).kwargs == {"run_id": 7, "repeat": 1, "case": case_id}


@run_in("finished")
def test_the_lists_of_cases_name_no_address_that_a_browser_resolves(run, viewer):
    Case.objects.filter(suite_version=run.suite_version, index=0).update(case_id="..")
    pages = (f"/runs/{run.pk}/", f"/suites/{SLUG}/cases%2F../", "/find/?q=..", f"/api/v1/runs/{run.pk}/cases/")
    for page in pages:
        addresses = re.findall(r'(?:href|"url")[=:]\s?"([^"]+)"', text_of(viewer.get(unquote(page))))
        assert any("%2F.." in address for address in addresses), page
        assert not [address for address in addresses if "/../" in address], page


@run_in("finished")
def test_copy_as_curl_asks_for_the_very_same_run(run, viewer):
    ProfileRecord.objects.filter(pk=run.profile_id).update(version=2)
    RunRecord.objects.filter(pk=run.pk).update(model_override={"path": "/models/checkpoint-7"})
    page = unescape(text_of(viewer.get(f"/runs/{run.pk}/")))
    assert f'"profile": "{run.profile.slug}"' in page
    assert f'"suite_version": {run.suite_version.number}' in page
    assert '"model": {"path": "/models/checkpoint-7"}' in page


@run_in("finished")
def test_a_running_run_never_shows_its_score_as_if_it_were_whole(run, viewer):
    RunRecord.objects.filter(pk=run.pk).update(status=RunRecord.Status.RUNNING)
    page = text_of(viewer.get("/runs/"))
    assert "so far" in page
    assert "all equal" not in page


@run_in("failed")
def test_a_failure_is_one_sentence_and_the_traceback_is_folded_away(run, viewer):
    words = "FileNotFoundError: there is no model\nTraceback (most recent call last):\n  File x"
    RunRecord.objects.filter(pk=run.pk).update(failure=words)
    run.events.filter(code="engine_start_failed").update(text=words)
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert re.search(r'<h2 id="trouble">(<bdi>)?FileNotFoundError: there is no model(</bdi>)?</h2>', page)
    assert page.count("Traceback (most recent call last)") == 1
    assert "In the engine’s own words" in page


@pytest.mark.parametrize("page", few([*PAGES, "/runs/new/", "/login/", "/no-such-page/"], 5))
@run_in("finished")
def test_no_page_holds_inline_script_or_style(run, admin, page):
    response = admin.get(page)
    body = text_of(response)
    assert not re.findall(r"\sstyle=|\son\w+=|<script(?![^>]*(?:src=|application/json))", body)
    assert re.search(r"script-src 'self'(;|$)", response.headers["Content-Security-Policy"])
    assert "unsafe" not in response.headers["Content-Security-Policy"]


def test_the_cost_of_a_page_does_not_grow_with_its_rows(stage, viewer):
    run = stage.run_in("finished")
    addresses = ["/", "/runs/", f"/suites/{SLUG}/", f"/runs/{run.pk}/", "/workers/"]

    def costs() -> list[int]:
        counted = []
        for address in addresses:
            with CaptureQueriesContext(connection) as queries:
                assert viewer.get(address).status_code == 200
            counted.append(len(queries))
        return counted

    kinds = ("running", "cancelled", "incomplete", "queued")
    for state in kinds:
        stage.run_in(state)
    costs()  # what is kept of runs and suites is computed by whoever reads it first
    before = costs()
    for state in (*kinds, "finished", "finished", *kinds):
        stage.run_in(state)
    costs()
    assert costs() == before


def test_pages_of_what_is_not_there_answer_404_with_the_request_id(viewer, db):
    for address in ("/runs/999999/", "/suites/none/", "/runs/1/repeats/1/cases/x/", "/nowhere/"):
        response = viewer.get(address)
        assert response.status_code == 404
        assert response.headers["X-Request-Id"] in text_of(response)


def test_an_api_address_that_does_not_exist_answers_in_the_shape_of_the_api(viewer, db):
    response = viewer.get("/api/v1/no-such-thing/")
    assert response.status_code == 404
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == "not_found"


def test_a_form_without_its_mark_is_refused_in_words(stage, db):
    response = Client(enforce_csrf_checks=True).post("/login/", {"username": "x", "password": "y"})
    assert response.status_code == 403
    assert "The form is no longer valid" in text_of(response)


def test_a_fault_is_a_page_that_needs_no_database(viewer, db, monkeypatch):
    def fail() -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("runs.board.pool_rows", lambda *_: fail())
    response = viewer.get("/")
    assert response.status_code == 500
    assert "Evalboard could not answer" in text_of(response)
    assert response.headers["X-Request-Id"] in text_of(response)
    assert "a fault of ours" not in text_of(response)


@run_in("finished")
def test_deleting_is_confirmed_and_final(run, admin):
    asked = text_of(admin.get(f"/runs/{run.pk}/delete/"))
    assert "60 responses" in asked
    assert RunRecord.objects.filter(pk=run.pk).exists()
    assert admin.post(f"/runs/{run.pk}/delete/").headers["Location"] == "/runs/"
    with pytest.raises(NotFound):
        cancel_run(run_id=run.pk)


@run_in("running")
def test_the_rest_of_a_live_page_is_fetched_anew_once_it_is_no_longer_true(run, engineer):
    address = f"/runs/{run.pk}/" + unescape(
        re.search(r'hx-get="([^"]+)"', text_of(engineer.get(f"/runs/{run.pk}/")))[1]
    )
    assert "HX-Refresh" not in engineer.get(address).headers
    cancel_run(run_id=run.pk)
    assert engineer.get(address).headers["HX-Refresh"] == "true"
    page = text_of(engineer.get(f"/runs/{run.pk}/"))
    assert "data-cancelling" in page
    assert "Cancel run…" not in page
