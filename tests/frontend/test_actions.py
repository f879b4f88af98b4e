"""What people do: each act is one service call, and a refusal becomes words beside what they asked."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from django.utils import timezone
from sesame.utils import get_parameters

from frontend.shell.forms import FORM_KEY
from runs.catalogue import create_endpoint
from runs.models import (
    EndpointRecord,
    ExperimentRecord,
    ForcedScoringRecord,
    ProbeRecord,
    ProfileRecord,
    ReleaseRecord,
    ReplayRecord,
    RunRecord,
    ScheduleRecord,
)
from tests import build
from tests.frontend.conftest import form_key
from tests.frontend.stage import SLUG
from tests.nightly import nightly

GOOD = {"suite": SLUG, "endpoint": "local", "profile": "pinned", "repeats": "3", "checkpoint": "", "labels": ""}


def test_a_paused_endpoint_is_the_last_choice_of_a_form(stage, engineer):
    build.endpoint("aa-paused")
    EndpointRecord.objects.filter(slug="aa-paused").update(rests_until=timezone.now() + timedelta(minutes=4))
    page = engineer.get("/runs/new/").content.decode()
    assert page.index('value="local"') < page.index('value="aa-paused"')


def test_a_run_is_started_from_the_form_with_its_labels(stage, engineer):
    answer = engineer.post("/runs/new/", GOOD | {"labels": "commit=8f21c0e\n\nbranch = main "})
    run = RunRecord.objects.get()
    assert answer.headers["Location"] == f"/runs/{run.pk}/"
    assert run.labels == {"commit": "8f21c0e", "branch": "main"}
    assert run.repeats.count() == 3
    assert run.created_by.username == "engineer"


def test_two_endpoints_answer_in_turn_from_the_form(stage, engineer):
    build.endpoint("other")
    answer = engineer.post("/runs/new/", GOOD | {"in_turn_with": "other", "labels": "branch=main"})
    baseline, candidate = RunRecord.objects.order_by("pk")
    assert answer.headers["Location"] == f"/runs/{candidate.pk}/"
    assert (baseline.endpoint.slug, candidate.endpoint.slug) == ("other", "local")
    assert baseline.labels == candidate.labels == {"branch": "main"}
    assert f"in turn with run {baseline.pk}" in candidate.events.get(code="created").text


def test_a_form_sent_twice_starts_one_run_and_a_changed_one_another(stage, engineer):
    key = form_key(engineer.get("/runs/new/"))
    first, again = (engineer.post("/runs/new/", GOOD | key) for _ in range(2))
    assert first.headers["Location"] == again.headers["Location"]
    changed = engineer.post("/runs/new/", GOOD | key | {"repeats": "4"})
    assert changed.headers["Location"] != first.headers["Location"]
    assert RunRecord.objects.count() == 2


@pytest.mark.nightly
def test_what_is_sent_twice_is_done_once(stage, engineer):
    run = stage.run_in("finished")
    page = engineer.get(f"/runs/{run.pk}/")
    key, page = form_key(page), page.content.decode()
    have = re.search(r'name="have" value="(\d+)"', page)[1]
    for _ in range(2):
        again = engineer.post(f"/runs/{run.pk}/again/", key, follow=True)
    assert "This form was sent before and led here. Nothing was added." in again.content.decode()
    for _ in range(2):
        more = engineer.post(f"/runs/{run.pk}/repeats/", {"n": "2", "have": have}, follow=True)
    assert f"by now, not {have}; nothing was added." in more.content.decode()
    assert RunRecord.objects.count() == 2
    assert run.repeats.count() == int(have) + 2


REQUEST = '{{"messages": [{{"role": "user", "content": "Red?"}}]}}'
MAKERS = {
    "/releases/new/": (
        ReleaseRecord,
        {"gate-0-baseline": "{0}", "gate-0-candidate": "{1}", "gate-0-tier": "critical", "treatment": "model"},
    ),
    "/probes/": (ProbeRecord, {"endpoint": "local", "kind": "batch", "profile": "pinned", "parameters": ""}),
    "/replays/": (
        ReplayRecord,
        {"endpoint": "local", "profile": "pinned", "body": REQUEST},
    ),
    "/lab/": (ExperimentRecord, {"suite": SLUG, "endpoint": "local", "profile": "pinned", "runs": "5"}),
    "/schedules/": (
        ScheduleRecord,
        {"slug": "weekly", "endpoint": "local", "probe_kind": "canary", "cron": "0 4 * * 1", "time_zone": "UTC"},
    ),
    "/runs/{0}/forced/": (ForcedScoringRecord, {"endpoint": "local"}),
    "/compare/{0}/{1}/replay/": (ReplayRecord, {"run": "{0}", "case": "case-002", "batch_sizes": "1, 2"}),
    "/endpoints/hosted/": (ProbeRecord, {}),
}


@pytest.mark.parametrize("address", [*list(MAKERS)[:2], *nightly(list(MAKERS)[2:])])
def test_each_form_makes_one_however_often_it_is_sent(stage, admin, address):
    runs = [stage.run_in("finished").pk for _ in range(2)]
    create_endpoint(slug="hosted", engine="openai", base_url="https://models.example/v1", model_name="m")
    records, fields = MAKERS[address]
    sent = {name: value.format(*runs) for name, value in fields.items()}
    n_before = records.objects.count()
    made = []
    for n_forms in (1, 2):
        page = admin.get(address.format(*runs), follow=True)
        if address == "/schedules/":  # its name may be used once
            sent = {f"probe-{name}": value for name, value in fields.items()} | {"probe-slug": f"weekly-{n_forms}"}
        first, again = (admin.post(address.format(*runs), sent | form_key(page)) for _ in range(2))
        assert first.status_code == again.status_code == 302, re.findall(r"<p>.*?</p>", first.content.decode())[:9]
        assert first["Location"] == again["Location"]
        assert records.objects.count() - n_before == n_forms
        made.append(again["Location"])
    assert "This form was sent before and led here. Nothing was added." in admin.get(made[-1]).content.decode()


def test_a_form_that_was_refused_may_be_sent_again(stage, engineer):
    run = stage.run_in("running")
    key = form_key(engineer.get(f"/runs/{run.pk}/"))
    for _ in range(2):
        refused = engineer.post(f"/runs/{run.pk}/again/", key, follow=True).content.decode()
        assert "run it again when it has ended" in refused
        assert "sent before" not in refused
    RunRecord.objects.filter(pk=run.pk).update(status="cancelled")
    engineer.post(f"/runs/{run.pk}/again/", key)
    assert RunRecord.objects.count() == 2


NUL, LONG = "a\x00b", "9" * 5000
HOSTILE = ("again", "cancel", "complete", "repeats", "rescore", "forced", "delete")


@pytest.mark.parametrize("value", [NUL, *nightly([LONG, "\ud800", "-1", "<script>"])])
def test_no_value_of_a_form_is_a_fault_of_ours(stage, admin, value):
    run = stage.run_in("finished")
    fields = (FORM_KEY, "endpoint", "profile", "n", "have", "scorer", "reason", "run", "kind", "name", "what", "sides")
    sent = dict.fromkeys((*fields, "look", "n_responses", "cases", "decision", "note", "input_digest", "after"), value)
    addresses = [f"/runs/{run.pk}/{act}/" for act in HOSTILE]
    addresses += [
        f"/suites/{SLUG}/baselines/",
        "/endpoints/local/",
        "/endpoints/local/try/",
        "/follows/",
        "/releases/new/",
    ]
    addresses += ["/runs/new/", "/probes/", "/replays/", "/lab/", "/schedules/", "/imports/", "/settings/tokens/"]
    data = {name: text.encode("utf-8", "surrogatepass") for name, text in sent.items()}
    body = encode_multipart(BOUNDARY, data)
    for address in addresses:
        answer = admin.generic("POST", address, body, MULTIPART_CONTENT)
        assert answer.status_code < 500, (address, value[:9])


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"repeats": "0"}, "repeats"),
        ({"suite": "none"}, "suite"),
        ({"labels": "no equals sign"}, "labels"),
        ({"checkpoint": "/etc"}, "checkpoint"),
    ],
)
def test_a_refused_run_says_why_at_the_field(stage, engineer, change, field):
    answer = engineer.post("/runs/new/", GOOD | change)
    assert answer.status_code == 422
    assert f'id="id_{field}-problem"' in answer.content.decode()
    assert re.search(
        rf'id="id_{field}"[^>]*aria-invalid="true"|aria-invalid="true"[^>]*id="id_{field}"', answer.content.decode()
    )
    assert not RunRecord.objects.exists()


def test_what_was_typed_survives_a_refusal(stage, engineer):
    answer = engineer.post("/runs/new/", GOOD | {"repeats": "0", "labels": "commit=8f21c0e"})
    assert "commit=8f21c0e" in answer.content.decode()


@pytest.mark.nightly
def test_a_refused_number_of_repeats_is_named(stage, engineer):
    run = stage.run_in("finished")
    refused = engineer.post(f"/runs/{run.pk}/repeats/", {"n": "-1"}, follow=True).content.decode()
    assert "Repeats to add: This must be at least 1." in refused


def test_the_search_that_finds_an_act_alone_does_not_say_that_it_found_nothing(stage, engineer):
    run = stage.run_in("finished")
    found = engineer.get(f"/find/?q=run+again&part=list&of=/runs/{run.pk}/").content.decode()
    assert "data-summary>1 act</p>" in found
    assert "Run again" in found


@pytest.mark.nightly
def test_cancelling_and_adding_repeats_lead_back_to_the_run(stage, engineer):
    run = stage.run_in("finished")
    added = engineer.post(f"/runs/{run.pk}/repeats/", {"n": "2"}, follow=True)
    assert "2 more repeats queued." in added.content.decode()
    cancelled = engineer.post(f"/runs/{run.pk}/cancel/", follow=True)
    assert cancelled.redirect_chain[-1][0] == f"/runs/{run.pk}/"
    run.refresh_from_db()
    assert run.is_cancel_wanted


@pytest.mark.nightly
def test_a_refusal_of_the_service_is_shown_on_the_page(stage, engineer):
    run = stage.run_in("finished")
    answer = engineer.post(f"/runs/{run.pk}/cancel/", follow=True)
    assert 'role="alert"' in answer.content.decode()
    assert "already ended as finished" in answer.content.decode()


@pytest.mark.nightly
def test_stored_responses_are_scored_again_and_both_scores_are_shown(stage, engineer):
    run = stage.run_in("finished")
    answer = engineer.post(f"/runs/{run.pk}/rescore/", {"scorer": '{"kind": "contains"}'}, follow=True)
    page = answer.content.decode()
    assert "both scores are kept" in page
    assert "scored again" in page


@pytest.mark.parametrize(
    ("scorer", "words"),
    [("{", "not valid JSON"), *nightly([("[]", "JSON object"), ('{"kind": "magic"}', "must be one of exact")])],
)
def test_a_scorer_that_cannot_be_read_says_so(stage, engineer, scorer, words):
    run = stage.run_in("finished")
    answer = engineer.post(f"/runs/{run.pk}/rescore/", {"scorer": scorer}, follow=True)
    assert words in answer.content.decode()


def test_an_admin_adds_an_endpoint_and_a_profile(stage, admin, settings):
    path = str(settings.MODEL_ROOTS[0] / "other")
    asked = {
        "slug": "other",
        "model_path": path,
        "dtype": "bfloat16",
        "line": "paint",
        "max_model_len": 512,
        "pool": "default",
    }
    assert admin.post("/settings/endpoints/new/", asked).headers["Location"] == "/endpoints/other/"
    assert EndpointRecord.objects.get(slug="other").dtype == "bfloat16"
    taken = admin.post("/settings/endpoints/new/", asked)
    assert taken.status_code == 422
    assert "already" in taken.content.decode()
    page = admin.get("/settings/profiles/new/?from=pinned").content.decode()
    assert "&quot;" in page
    wrong = admin.post("/settings/profiles/new/", {"slug": "mine", "title": "Mine", "settings": '{"nonsense": 1}'})
    assert wrong.status_code == 422
    assert not ProfileRecord.objects.filter(slug="mine").exists()


def test_the_sign_in_link_works_once(db):
    user = get_user_model().objects.create_user("mira")
    link = get_parameters(user)
    first, second = Client(), Client()
    page = first.get("/signin/", link).content.decode()
    assert "Sign in as" in page
    assert "mira" in page
    assert first.get("/").status_code == 302, "looking at the link signs nobody in"
    assert first.post("/signin/", link).headers["Location"] == "/"
    assert first.get("/").status_code == 200
    for refused in (second.get("/signin/", link), second.post("/signin/", link)):
        assert refused.status_code == 403
        page = refused.content.decode()
        assert "used already or is too old" in page
        assert "role" not in re.sub("<[^>]*>", "", page.partition("<main")[2]), "no role helps there"


def test_signing_in_leads_back_and_signing_out_ends_it(db):
    get_user_model().objects.create_user("mira", password="a long enough password")
    client = Client()
    asked = client.get("/runs/?status=failed")
    assert asked.headers["Location"] == "/login/?next=/runs/%3Fstatus%3Dfailed"
    signed_in = client.post(
        "/login/", {"username": "mira", "password": "a long enough password", "next": "/runs/?status=failed"}
    )
    assert signed_in.headers["Location"] == "/runs/?status=failed"
    assert client.post("/logout/").headers["Location"] == "/login/"
    assert client.get("/").status_code == 302


def test_a_page_that_polls_after_its_session_ended_is_told_to_load_anew(stage):
    run = stage.run_in("running")
    answer = Client().get(f"/runs/{run.pk}/?part=progress", headers={"HX-Request": "true"}, follow=True)
    assert answer.redirect_chain[0][0].startswith("/login/")
    assert answer.headers["HX-Refresh"] == "true"


@pytest.mark.parametrize(
    ("role", "may_start", "may_delete"),
    [("viewer", False, False), *nightly([("engineer", True, False), ("admin", True, True)])],
)
def test_what_a_role_may_not_do_is_not_offered_and_refused(stage, client_of, role, may_start, may_delete):
    run = stage.run_in("finished")
    client = client_of(role)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert ("Add repeats" in page) is may_start
    assert ("Delete run" in page) is may_delete
    assert client.get("/runs/new/").status_code == (200 if may_start else 403)
    assert client.get(f"/runs/{run.pk}/delete/").status_code == (200 if may_delete else 403)
    assert client.post(f"/runs/{run.pk}/repeats/", {"n": "1"}).status_code == (302 if may_start else 403)
    assert client.get(f"/runs/{run.pk}/delete/").status_code == (302 if may_delete else 403)  # it is at work again
