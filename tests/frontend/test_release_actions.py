"""What people do to a release: ask for one, sign it, settle it, run a side again. A refusal becomes words beside it."""

import json
import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from runs.access.roles import ROLES, RUN, SIGN
from runs.baselines import set_baseline
from runs.models import EngineProcess, ReleaseRecord, RunRecord, SignOffRecord
from runs.release import release_report
from runs.run import add_repeats
from runs.suites import push_suite
from tests import build
from tests.casts import cast
from tests.frontend import release_runs
from tests.frontend.conftest import form_key
from tests.frontend.test_releases import HOSTILE, of_kind, page_of, part, words_of
from tests.nightly import nightly

pytestmark = pytest.mark.django_db
POSTS = (
    ("/releases/new/", RUN),
    ("/releases/{release}/signoffs/", SIGN),
    ("/releases/{release}/settle/", RUN),
    ("/releases/{release}/rerun/", RUN),
)


@pytest.fixture
def manager(client_of: Any) -> Client:
    return client_of("release manager")


def digest_of(made: ReleaseRecord) -> str:
    return release_report(made.pk).input_digest


def sign(client: Client, made: ReleaseRecord, decision: str = "approve", **changes: str) -> Any:
    fields = {"decision": decision, "note": "", "input_digest": digest_of(made)}
    return client.post(f"/releases/{made.pk}/signoffs/", fields | changes)


@cast
def two_runs(baseline_run: RunRecord) -> tuple[RunRecord, RunRecord]:
    by = EngineProcess.objects.get()
    return baseline_run, release_runs.run(baseline_run.suite_version, by=by)


@pytest.mark.parametrize(("path", "scope"), POSTS)
@pytest.mark.parametrize("role", ["anonymous", *ROLES])
@of_kind("ship")
def test_only_who_has_the_right_may_post(client_of, path, scope, role, made):
    answer = client_of(role).post(path.format(release=made.pk))
    if role == "anonymous":
        assert answer.headers["Location"].startswith("/login/?next=")
    else:
        assert (answer.status_code == 403) == (scope not in ROLES[role])
    assert not SignOffRecord.objects.exists()
    assert ReleaseRecord.objects.count() == 1
    assert RunRecord.objects.count() == 2


def test_the_form_comes_filled_in_from_a_run_and_makes_the_release(manager, two_runs):
    baseline, candidate = two_runs
    set_baseline(suite="colours", run=baseline.pk, reason="The last release.", user=build.user("mira", "admin"))
    RunRecord.objects.filter(pk=candidate.pk).update(labels={"commit": "8f21c0e"})
    page = manager.get(f"/releases/new/?candidate={candidate.pk}").content.decode()
    assert re.search(rf'<option value="{candidate.pk}" selected>', page)
    assert '<option value="current" selected>' in page
    assert "commit=8f21c0e" in page
    fields = {"n_gates": "1", "gate-0-candidate": candidate.pk, "gate-0-baseline": "current", "gate-0-tier": "critical"}
    answer = manager.post("/releases/new/", fields | {"policy": "wide", "treatment": "model", "labels": "branch=main"})
    made = ReleaseRecord.objects.get()
    assert answer.headers["Location"] == f"/releases/{made.pk}/"
    assert made.gates.get().baseline_run_id == baseline.pk
    assert made.labels == {"branch": "main"}
    assert made.created_by.username == "release manager"
    assert made.policy.slug == "wide"


def test_the_form_says_what_each_choice_means(manager, two_runs):
    words = words_of(manager.get("/releases/new/").content.decode())
    assert "No verdict if five repeats of a side vary by more than 1.0." in words
    assert "wide Ships if a drop over 5.0 points is ruled out" in words
    assert "The serving stack an engine upgrade or a quantisation. One model on both sides" in words
    assert "An advisory one never changes the verdict." in words


@pytest.mark.nightly
def test_another_suite_is_added_without_a_script_and_keeps_what_was_typed(manager, two_runs):
    baseline, candidate = two_runs
    typed = {"n_gates": "1", "gate-0-candidate": candidate.pk, "gate-0-baseline": baseline.pk, "labels": "x=y"}
    answer = manager.post("/releases/new/", typed | {"gate-0-tier": "advisory", "add": "1", "policy": "paired"})
    page = answer.content.decode()
    assert answer.status_code == 200
    assert 'name="n_gates" value="2"' in page
    assert 'name="gate-1-candidate"' in page
    assert re.search(rf'name="gate-0-candidate".*?<option value="{candidate.pk}" selected>', page, re.S)
    assert re.search(r'<option value="advisory" selected>', page)
    assert "x=y" in page
    assert re.search(r'value="paired"[^>]*checked', page)
    assert 'class="problem"' not in page
    assert not ReleaseRecord.objects.exists()


def test_a_row_left_empty_is_no_gate(manager, two_runs):
    baseline, candidate = two_runs
    fields = {"n_gates": "2", "gate-0-candidate": candidate.pk, "gate-0-baseline": baseline.pk}
    fields |= {"gate-0-tier": "critical", "gate-1-candidate": "", "gate-1-baseline": "current", "treatment": "model"}
    manager.post("/releases/new/", fields | {"gate-1-tier": "critical"})
    assert ReleaseRecord.objects.get().gates.count() == 1


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"gate-0-candidate": ""}, "gate-0-candidate", "required"),
        ({"gate-0-baseline": "itself"}, "gate-0-baseline", "not judged against itself"),
        ({"labels": "nothing"}, "labels", "is not name=value"),
        ({"gate-0-tier": "advisory"}, None, "at least one must be critical"),
        ({"gate-0-baseline": "current"}, None, "has no baseline for model line paint"),
    ],
)
def test_a_refused_release_says_why_at_the_field(manager, changes, field, words, two_runs):
    baseline, candidate = two_runs
    fields = {"n_gates": "1", "gate-0-candidate": candidate.pk, "gate-0-baseline": baseline.pk, "treatment": "model"}
    fields |= {"gate-0-tier": "critical"} | changes
    if fields["gate-0-baseline"] == "itself":
        fields["gate-0-baseline"] = candidate.pk
    answer = manager.post("/releases/new/", fields)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert words in words_of(part(page, "<main.*</main>"))
    if field:
        assert f'id="id_{field}-problem"' in page
    assert not ReleaseRecord.objects.exists()


def test_without_a_run_that_ended_the_form_names_the_command(manager):
    page = manager.get("/releases/new/").content.decode()
    assert "there is none yet" in page
    assert "evalboard run" in page


@of_kind("ship")
def test_an_approved_ship_says_who_and_offers_nothing_more_urgent(manager, made):
    answer = sign(manager, made, note="Reviewed.")
    assert answer.headers["Location"] == f"/releases/{made.pk}/#sign-offs"
    page = page_of(manager, made)
    assert "Approved by release manager" in words_of(page)
    assert "Reviewed." in part(page, r'<table class="sign-offs">.*?</table>')
    assert "Not signed for the current verdict." not in page
    assert 'class="button primary"' not in page


@of_kind("ship")
def test_only_a_ship_may_be_approved_and_only_what_is_none_waived(manager, made):
    ship = page_of(manager, made)
    assert 'value="approve"' in ship
    assert 'value="waive"' not in ship
    assert sign(manager, made, "waive", note="Because.").status_code == 422
    assert not SignOffRecord.objects.exists()


@pytest.mark.parametrize(
    ("decision", "changes", "field"),
    [
        ("reject", {}, "note"),
        *nightly(
            [
                ("waive", {"expires_at": "2099-01-01", "note": "Why not."}, "expires_at"),
                ("waive", {"note": "Why not."}, "expires_at"),
                ("", {}, "decision"),
            ]
        ),
    ],
)
@of_kind("no_ship")
def test_a_sign_off_that_lacks_something_says_what_and_keeps_the_rest(manager, decision, changes, field, made):
    answer = sign(manager, made, decision, **changes)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert f'id="id_{field}-problem"' in page
    assert changes.get("note", "") in part(page, r'<textarea name="note".*?</textarea>')
    assert not SignOffRecord.objects.exists()


@of_kind("no_ship")
def test_a_waiver_needs_a_reason_and_ends_with_its_day(manager, made):
    day = (timezone.now() + timedelta(days=30)).date()
    sign(manager, made, "waive", note="A customer waits.", expires_at=day.isoformat())
    row = SignOffRecord.objects.get()
    assert row.expires_at.isoformat() == f"{day.isoformat()}T23:59:59+00:00"
    page = words_of(page_of(manager, made))
    assert "Waived by release manager" in page
    assert f"until {day.isoformat()}" in page


@of_kind("inconclusive")
def test_a_stale_sign_off_comes_back_with_what_changed(manager, made):
    report = release_report(made.pk)
    read = {"input_digest": report.input_digest, "read_at": report.decided_at.isoformat()}
    _more_repeats(made)
    answer = sign(manager, made, "reject", note="It scatters too much.", **read)
    page = answer.content.decode()
    assert answer.status_code == 409
    stale = words_of(part(page, r'<div class="banner error" role="alert">.*?</div>\s*</div>'))
    assert "Nothing was signed." in stale
    gate = made.gates.get()
    assert f"run {gate.candidate_run_id}: 3 repeats added" in stale
    assert "It scatters too much." in part(page, r'<textarea name="note".*?</textarea>')
    assert f'name="input_digest" value="{digest_of(made)}"' in page
    assert digest_of(made) != report.input_digest
    assert not SignOffRecord.objects.exists()


@pytest.mark.nightly
@of_kind("inconclusive")
def test_a_void_sign_off_stays_struck_through_with_the_reason(manager, made):
    sign(manager, made, "reject", note="Too early.")
    _more_repeats(made)
    page = page_of(manager, made)
    row = part(page, r'<tr class="void">(.*?)</tr>')
    assert "<s>reject</s>" in row
    assert "<s><bdi>Too early.</bdi></s>" in row
    assert f"Inputs changed since: run {made.gates.get().baseline_run_id}: 3 repeats added" in words_of(row)
    assert "Not signed for the current verdict." in page


def _more_repeats(made: ReleaseRecord) -> None:
    """Three further repeats of both sides, as somebody would add them from the runs' pages."""
    gate = made.gates.get()
    for run in (gate.baseline_run, gate.candidate_run):
        add_repeats(run_id=run.pk, n=3)
        for index in (6, 7, 8):
            build.decode(run, index, ["blue"] * release_runs.N_CASES, by=build.process())


@of_kind("inconclusive")
def test_settling_asks_for_the_budget_and_runs_what_was_confirmed(client_of, made):
    engineer = client_of("engineer")
    page = engineer.get(f"/releases/{made.pk}/settle/").content.decode()
    words = words_of(page)
    assert "Run repeats until each side has 10?" in words
    assert "300 further responses" in words
    assert RunRecord.objects.filter(repeats__status="queued").count() == 0
    fields = dict(re.findall(r'<input type="hidden" name="(look|n_responses)" value="(\d+)"', page))
    assert fields == {"look": "10", "n_responses": "300"}
    answer = engineer.post(f"/releases/{made.pk}/settle/", fields, follow=True)
    assert "at work on runs" in words_of(answer.content.decode())
    gate = made.gates.get()
    assert [run.repeats.count() for run in (gate.baseline_run, gate.candidate_run)] == [10, 10]


@pytest.mark.nightly
@of_kind("inconclusive")
def test_a_budget_that_nobody_saw_is_refused(client_of, made):
    asked = {"look": "10", "n_responses": "299"}
    answer = client_of("engineer").post(f"/releases/{made.pk}/settle/", asked, follow=True)
    assert "The plan has changed" in words_of(answer.content.decode())
    assert made.gates.get().candidate_run.repeats.count() == 5


@pytest.mark.nightly
@of_kind("noisy")
def test_where_repeats_do_not_help_settling_leads_back(client_of, made):
    answer = client_of("engineer").get(f"/releases/{made.pk}/settle/", follow=True)
    assert answer.redirect_chain[-1][0] == f"/releases/{made.pk}/"
    assert "Repeats cannot decide this release" in answer.content.decode()


@pytest.mark.nightly
@of_kind("not_comparable")
def test_the_baseline_is_run_again_as_it_was_asked_for(client_of, made):
    baseline = made.gates.get().baseline_run
    engineer = client_of("engineer")
    page = engineer.get(f"/releases/{made.pk}/rerun/?gate=0&side=baseline").content.decode()
    assert "The whole suite: 30 cases, 5 repeats." in page
    assert "/suites/colours/#baselines" in page
    assert "reference set" not in page  # this suite has none
    answer = engineer.post(f"/releases/{made.pk}/rerun/?side=baseline", {"what": "suite", "endpoint": "local"})
    again = RunRecord.objects.latest("id")
    assert answer.headers["Location"] == f"/runs/{again.pk}/"
    assert (again.suite_version, again.endpoint, again.profile) == (
        baseline.suite_version,
        baseline.endpoint,
        baseline.profile,
    )
    assert again.repeats.count() == 5


@pytest.mark.nightly
@of_kind("not_comparable")
def test_a_form_that_is_sent_twice_runs_a_side_again_once(client_of, made):
    engineer, address = client_of("engineer"), f"/releases/{made.pk}/rerun/?side=baseline"
    fields = {"sides": "alone", "what": "suite", "endpoint": "local"} | form_key(engineer.get(address))
    first, second = (engineer.post(address, fields) for _ in range(2))
    assert first.headers["Location"] == second.headers["Location"]
    assert RunRecord.objects.count() == 3
    assert "Nothing was added." in words_of(engineer.get(second.headers["Location"]).content.decode())


@pytest.mark.nightly
@of_kind("noisy")
def test_both_sides_that_a_step_names_are_run_again_in_turn_under_its_profile(client_of, made):
    engineer = client_of("engineer")
    address = f"/releases/{made.pk}/rerun/?gate=0&side=baseline&side=candidate&profile=pinned"
    form = engineer.get(address).content.decode()
    assert "Run both sides under <bdi>pinned</bdi>" in form
    assert form.count("run again") == 0
    assert 'name="endpoint"' not in form
    engineer.post(address, {"sides": "both", "what": "suite"})
    baseline, candidate = RunRecord.objects.order_by("pk")[2:]
    assert {run.profile.slug for run in (baseline, candidate)} == {"pinned"}
    assert f"in turn with run {baseline.pk}" in candidate.events.get(code="created").text
    assert engineer.get(address.replace("pinned", "nothing")).status_code == 404


@pytest.mark.nightly
def test_the_reference_set_may_be_run_first(client_of):
    release_runs.policies()
    cases: list[dict[str, Any]] = [{"id": f"c{n}", "prompt": "?", "target": "blue"} for n in range(3)]
    cases[0]["reference"] = True
    document = {"slug": "small", "title": "Small", "max_tokens": 24, "scorer": {"kind": "exact"}, "cases": cases}
    of = push_suite(document=document)[0]
    sides = [release_runs.run(of, by=build.process(build.bucket(dtype))) for dtype in ("float32", "bfloat16")]
    made = release_runs.release(release_runs.gate(*sides))
    address = f"/releases/{made.pk}/rerun/?side=baseline"
    assert "Its reference set first: 1 case" in client_of("engineer").get(address).content.decode()
    client_of("engineer").post(address, {"what": "reference", "endpoint": "local"})
    again = RunRecord.objects.latest("id")
    assert again.suite_version.suite.slug == "small-reference"
    assert again.suite_version.n_cases == 1


@pytest.mark.nightly
def test_the_baselines_own_model_goes_with_it_to_another_endpoint(client_of):
    release_runs.policies()
    of = release_runs.suite(n_cases=3)
    baseline = release_runs.run(of, by=build.process())
    other = build.process(build.bucket("bfloat16"))
    candidate = release_runs.run(of, by=other, on="local-bf16")
    made = release_runs.release(release_runs.gate(baseline, candidate))
    fields = {"what": "suite", "endpoint": "local-bf16"}
    client_of("engineer").post(f"/releases/{made.pk}/rerun/?side=baseline", fields)
    again = RunRecord.objects.latest("id")
    assert again.endpoint.slug == "local-bf16"
    assert again.model_override == {"path": baseline.endpoint.model_path}


@of_kind("not_comparable")
def test_a_newer_baseline_is_what_to_judge_against(manager, made):
    gate = made.gates.get()
    of = gate.candidate_run.suite_version
    newer = release_runs.run(of, by=build.process(build.bucket("bfloat16")))
    set_baseline(suite="colours", run=newer.pk, reason="Today's stack.", user=build.user("mira", "admin"))
    page = page_of(manager, made)
    link = unescape(part(page, r'<a class="button primary" href="([^"]*)">'))
    assert f"Judge against run {newer.pk}" in words_of(page)
    assert link == f"/releases/new/?candidate={gate.candidate_run_id}"


@of_kind("not_comparable")
def test_a_gate_that_is_not_there_is_not_found(client_of, made):
    assert client_of("engineer").get(f"/releases/{made.pk}/rerun/?gate=7&side=baseline").status_code == 404


@of_kind("ship")
def test_a_second_click_signs_nothing_more_and_who_has_not_seen_a_sign_off_is_told(client_of, manager, made):
    for _ in range(2):
        page = manager.get(sign(manager, made, after="").headers["Location"]).content.decode()
    assert "Approved already, by you. Nothing was added." in page
    told = sign(client_of("admin"), made, after="")
    assert told.status_code == 409
    assert "has signed this verdict: approve" in told.content.decode()
    sent = re.search(r'name="after" value="(\d+)"', told.content.decode())[1]
    assert sign(client_of("admin"), made, after=sent).status_code == 302
    assert [row.decision for row in SignOffRecord.objects.all()] == ["approve", "approve"]


@pytest.mark.nightly
@of_kind("ship")
def test_the_export_has_a_line_a_sign_off_and_says_that_the_chain_holds(manager, made):
    sign(manager, made, note=HOSTILE)
    sign(manager, made, "reject", note="On second thought.")
    answer = manager.get("/releases/signoffs.jsonl")
    assert answer.streaming
    assert "attachment" in answer.headers["Content-Disposition"]
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).decode().splitlines()]
    assert [line["decision"] for line in lines] == ["approve", "reject"]
    assert lines[1]["previous_digest"] == lines[0]["digest"]
    assert all(line["is_intact"] for line in lines)
    page = page_of(manager, made)
    assert HOSTILE not in page


@pytest.mark.nightly
def test_where_the_load_moves_bits_both_sides_are_run_again_in_turn(client_of):
    release_runs.policies()
    of, by = release_runs.suite(n_cases=3), build.process(build.bucket(batch_class="mixed"))
    sides = [release_runs.run(of, by=by, under="fast") for _ in range(2)]
    made = release_runs.release(release_runs.gate(*sides))
    engineer = client_of("engineer")
    assert "not run in turn" in words_of(page_of(engineer, made))
    page = engineer.get(f"/releases/{made.pk}/rerun/?side=candidate").content.decode()
    assert "Both sides, alternating repeat by repeat" in page
    engineer.post(f"/releases/{made.pk}/rerun/?side=candidate", {"sides": "both", "what": "suite", "endpoint": "local"})
    candidate, baseline = RunRecord.objects.order_by("-id")[:2]
    assert f"in turn with run {baseline.pk}" in candidate.events.get(code="created").text
    assert (baseline.repeats.count(), candidate.repeats.count()) == (5, 5)


@pytest.mark.nightly
@of_kind("not_comparable")
def test_a_pinned_side_is_run_again_alone(client_of, made):
    page = client_of("engineer").get(f"/releases/{made.pk}/rerun/?side=baseline").content.decode()
    assert "Both sides in turn" not in page


@pytest.mark.nightly
@of_kind("ship")
def test_the_page_says_in_which_order_the_repeats_ran(manager, made):
    words = words_of(page_of(manager, made))
    assert "the repeats of both sides did not run in turn" in words
    assert " not run in turn" not in words.replace("did not run in turn", "")  # pinned: no load moves a bit
