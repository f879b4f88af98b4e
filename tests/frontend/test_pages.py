"""Every page renders for a run in every state, says the right thing, and escapes what others wrote."""

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
from runs.models import Profile, Run
from runs.run import cancel_run
from runs.work import claim_shard, release_shard
from tests.frontend.stage import HOSTILE_ID, SLUG, STATES

SUITE_PAGES = ("/suites/", f"/suites/{SLUG}/", f"/suites/{SLUG}/versions/1/")
PAGES = ("/", "/endpoints/", *SUITE_PAGES, "/runs/", "/workers/", "/settings/")


def text_of(response) -> str:
    return response.content.decode()


@pytest.mark.parametrize("state", STATES)
def test_every_page_renders_for_a_run_in_every_state(stage, engineer, state):
    run = stage.run_in(state)
    assert run.status == state
    for page in (*PAGES, f"/runs/{run.pk}/", f"/runs/{run.pk}/?part=progress", f"/runs/{run.pk}/?only=missing&q=case"):
        response = engineer.get(page)
        assert response.status_code == 200, page
    assert f'data-status="{state}"' in text_of(engineer.get(f"/runs/{run.pk}/"))


@pytest.mark.parametrize("page", PAGES)
def test_empty_pages_say_why_and_name_a_next_step(admin, db, page):
    response = admin.get(page)
    if SLUG in page:
        assert response.status_code == 404
        return
    assert response.status_code == 200
    assert 'class="empty"' in text_of(response)


@pytest.mark.parametrize(
    ("state", "is_live"), [("queued", True), ("running", True), ("finished", False), ("failed", False)]
)
def test_only_a_run_that_may_still_move_asks_for_its_progress(stage, viewer, state, is_live):
    run = stage.run_in(state)
    page = viewer.get(f"/runs/{run.pk}/")
    assert ('hx-trigger="every 2s"' in text_of(page)) is is_live
    part = viewer.get(f"/runs/{run.pk}/?part=progress")
    assert (part.headers.get("HX-Refresh") == "true") is not is_live
    assert "<html" not in text_of(part)


def test_a_finished_run_says_its_range_and_what_was_unstable(stage, viewer):
    run = stage.run_in("finished")
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert "73.3–76.7 points over 2 repeats." in page
    assert "1 case changed its score between repeats." in page
    assert "One of 30 cases is worth 3.3 points." in page
    assert re.search(r'href="\?only=unstable#cases">List<', page)
    assert re.search(r'class="cases".*?<tbody>.*?case-002', page, re.S)


def test_an_incomplete_run_shows_no_plain_score(stage, viewer):
    run = stage.run_in("incomplete")
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert "2 responses are missing, so no score is given." in page
    assert "58 of 60 responses were kept." in page
    assert "points over" not in page
    assert "timeout" in page


def test_a_broken_pin_is_a_warning_on_the_page(stage, viewer):
    run = stage.start()
    by = stage.worker()
    stage.serve(by, stage.engine(by, max_num_seqs=64))
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert re.search(r'class="warning" data-code="[^"]*pin', page)
    assert re.search(r'<tr class="broken">\s*<th scope="row"><bdi>max_num_seqs', page)


def test_a_run_says_how_many_seats_it_got(stage, viewer):
    run, by = stage.start(), stage.worker()
    stage.serve(by, stage.engine(by, max_num_seqs=64, seats=9))
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert '<td class="number" data-head="Seats">9 of 64</td>' in page
    assert page.count("64 seats asked, 9 got: after the weights, memory has room for 9 of 8,192 tokens at a time.") == 1


def test_a_second_equal_run_is_called_byte_identical(stage, viewer):
    first, by = stage.start(), stage.worker()
    process = stage.engine(by)
    stage.serve(by, process)
    second = stage.start()
    stage.serve(by, process)
    page = text_of(viewer.get(f"/runs/{second.pk}/"))
    assert re.search(rf'Byte-identical to <a href="/runs/{first.pk}/">', page)
    assert "same seed" not in page


def test_a_second_attempt_is_a_number_in_its_cell(stage, viewer):
    run, by = stage.start(), stage.worker()
    lease = claim_shard(worker=by)
    release_shard(lease=lease, reason="the runner died", is_crash=True)
    stage.serve(by, stage.engine(by), n_shards=1)
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert re.search(r'class="cell-attempt[^"]*"[^>]*>2</text>', page)


def test_the_response_page_shows_text_tokens_and_the_position_of_the_address(stage, viewer):
    run = stage.run_in("finished")
    address = reverse("response", args=[run.pk, 1, "case-004"])
    page = text_of(viewer.get(address))
    assert 'data-position="2"' in page
    assert re.search(r'class="token margin-3"[^>]*aria-label="2: [^"]*margin 0.000"[^>]*aria-current="true"', page)
    chosen = text_of(viewer.get(f"{address}?at=1&part=alternatives"))
    assert "At 1" in chosen
    assert "<html" not in chosen
    beyond = text_of(viewer.get(f"{address}?at=999999"))
    assert "At 2" in beyond


def test_cases_with_slashes_and_signs_in_their_id_have_an_address(stage, viewer):
    run = stage.run_in("finished")
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


def test_copy_as_curl_asks_for_the_very_same_run(stage, viewer):
    run = stage.run_in("finished")
    Profile.objects.filter(pk=run.profile_id).update(version=2)
    Run.objects.filter(pk=run.pk).update(model_override={"path": "/models/checkpoint-7"})
    page = unescape(text_of(viewer.get(f"/runs/{run.pk}/")))
    assert f'"profile": "{run.profile.slug}"' in page
    assert f'"suite_version": {run.suite_version.number}' in page
    assert '"model": {"path": "/models/checkpoint-7"}' in page


def test_a_running_run_never_shows_its_score_as_if_it_were_whole(stage, viewer):
    run = stage.run_in("finished")
    Run.objects.filter(pk=run.pk).update(status=Run.Status.RUNNING)
    page = text_of(viewer.get("/runs/"))
    assert "so far" in page
    assert "all equal" not in page


def test_a_failure_is_one_sentence_and_the_traceback_is_folded_away(stage, viewer):
    run = stage.run_in("failed")
    words = "FileNotFoundError: there is no model\nTraceback (most recent call last):\n  File x"
    Run.objects.filter(pk=run.pk).update(failure=words)
    run.events.filter(code="engine_start_failed").update(text=words)
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert "The run failed, so it has no score. FileNotFoundError: there is no model</bdi>" in page
    assert page.count("Traceback (most recent call last)") == 1
    assert "In the engine’s own words" in page


@pytest.mark.parametrize("state", ["finished", "incomplete", "failed"])
def test_what_others_wrote_is_escaped_and_drawn_on_every_page(stage, viewer, state):
    run = stage.run_in(state)
    pages = [*PAGES, f"/runs/{run.pk}/", f"/runs/{run.pk}/?q=%3Cscript%3E&only=failed"]
    if state == "finished":
        pages.append(reverse("response", args=[run.pk, 1, HOSTILE_ID]))
    for page in pages:
        body = text_of(viewer.get(page))
        assert "<script>alert" not in body, page
        assert "\u202e" not in body, page
        assert "\x07" not in body, page


@pytest.mark.parametrize("page", [*PAGES, "/runs/new/", "/login/", "/no-such-page/"])
def test_no_page_holds_inline_script_or_style(stage, admin, page):
    stage.run_in("finished")
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
    assert "The form could not be trusted" in text_of(response)


def test_a_fault_is_a_page_that_needs_no_database(viewer, db, monkeypatch):
    def fail() -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("runs.board.pool_rows", lambda *_: fail())
    response = viewer.get("/")
    assert response.status_code == 500
    assert "Evalboard could not answer" in text_of(response)
    assert response.headers["X-Request-Id"] in text_of(response)
    assert "a fault of ours" not in text_of(response)


def test_deleting_is_confirmed_and_final(stage, admin):
    run = stage.run_in("finished")
    asked = text_of(admin.get(f"/runs/{run.pk}/delete/"))
    assert "60 responses" in asked
    assert Run.objects.filter(pk=run.pk).exists()
    assert admin.post(f"/runs/{run.pk}/delete/").headers["Location"] == "/runs/"
    with pytest.raises(NotFound):
        cancel_run(run_id=run.pk)


def test_the_rest_of_a_live_page_is_fetched_anew_once_it_is_no_longer_true(stage, engineer):
    run = stage.run_in("running")
    address = f"/runs/{run.pk}/" + unescape(
        re.search(r'hx-get="([^"]+)"', text_of(engineer.get(f"/runs/{run.pk}/")))[1]
    )
    assert "HX-Refresh" not in engineer.get(address).headers
    cancel_run(run_id=run.pk)
    assert engineer.get(address).headers["HX-Refresh"] == "true"
    page = text_of(engineer.get(f"/runs/{run.pk}/"))
    assert "data-cancelling" in page
    assert "Cancel run…" not in page
