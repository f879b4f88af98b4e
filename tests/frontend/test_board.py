"""The board: open verdicts, expired baselines and rotations beside what needs somebody; quiet in one line."""

import re
from datetime import timedelta
from html import unescape
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from frontend.board.words import describe_release
from frontend.shell.charts import changes
from runs import board
from runs.baselines import set_baseline
from runs.catalogue import store_default_policies
from runs.models import EndpointRecord, ReleaseRecord, RepeatRecord, Rotation, RunRecord, WorkerRecord
from runs.release import Broken, create_release, release_report, sign_release, waiting_releases, with_outcome
from runs.suites import push_suite
from tests import build, probes
from tests.casts import cast, with_param
from tests.frontend import history_stage, release_runs
from tests.frontend.history_stage import SLUG
from tests.runs import judged

pytestmark = pytest.mark.django_db
MAX_STATEMENTS = 25  # however many releases wait


def words_of(response) -> str:
    assert response.status_code == 200
    page = response.content.decode().split('id="main"')[1]
    return unescape(" ".join(re.sub(r"<[^>]*>", " ", page).split()))


@cast
def released():
    """A release of the newest run against the current baseline, judged."""
    made = history_stage.make(n_old=1)
    store_default_policies()
    user = build.user("release manager", "release manager")
    gate = {"suite": SLUG, "candidate": made.candidate.pk, "baseline": "current", "tier": "critical"}
    return create_release(gates=[gate], policy="paired", user=user), user


def test_a_quiet_board_says_so_in_one_line(viewer):
    words = words_of(viewer.get("/"))
    assert "Nothing waits for you." in words
    for heading in ("Waiting for a decision", "Stuck", "In progress"):
        assert heading not in words
    assert "evalboard run" in words  # the first run


def test_a_release_without_a_sign_off_waits_with_its_ruler_a_reason_and_one_act(released, client_of, viewer):
    release, _ = released
    report = release_report(release.pk)
    page = client_of("release manager").get("/")
    words = words_of(page)
    assert "One release is not settled." in words
    assert f'href="/releases/{release.pk}/"' in page.content.decode()
    assert report.verdict == "inconclusive"
    assert "Some repeats are copies of earlier answers." in words
    row = page.content.decode().split("<tbody>")[1].split("</tbody>")[0]
    assert row.count('class="chart ruler') == 1
    assert row.count('class="button') == 1
    assert '<a class="button primary" href="/releases/' in row


POLICY = {"slug": "sample", "rule": "paired", "tolerance_points": 20.0, "looks": [3, 10, 20]}


@pytest.fixture
def wobbly():
    """Two runs of few cases that leave a release open until there are ten repeats."""
    version, by = judged.suite(n_cases=7, policy=POLICY), build.process()
    return [judged.run(version, repeats=3, by=by) for _ in range(2)]


def test_the_board_offers_an_act_as_the_release_s_page_does(wobbly, client_of):
    release = judged.release(*wobbly)
    get, page = client_of("engineer").get, f"/releases/{release.pk}/"
    settled = f'href="{page}settle/"'
    for fields, is_offered in (
        ({}, True),
        ({"is_one_draw": True}, False),
        ({"is_one_draw": False, "status": "incomplete"}, False),
        ({"status": "running"}, False),
        ({"status": "finished"}, True),
    ):
        RunRecord.objects.filter(pk=wobbly[1].pk).update(**fields)
        for address in ("/", page):
            assert (settled in get(address).content.decode()) == is_offered, (address, fields)
    assert settled not in client_of("viewer").get("/").content.decode()


@with_param("made", "ship")
def test_a_ship_is_offered_to_be_signed_to_who_may_sign(made, client_of):
    for role, is_offered in (("engineer", False), ("release manager", True)):
        assert (f'href="/releases/{made.pk}/#sign"' in client_of(role).get("/").content.decode()) == is_offered


@pytest.mark.nightly
def test_many_releases_that_may_be_settled_are_read_in_as_many_statements_as_one(
    wobbly, client_of, django_assert_max_num_queries
):
    client = client_of("engineer")
    judged.release(*wobbly)
    client.get("/")
    with CaptureQueriesContext(connection) as statements:
        client.get("/")
    # More are the runs of their gates and what is beside them, what serves now, and the seals of verdicts.
    assert len(statements) <= MAX_STATEMENTS + 4
    for treatment in ("service", "stack"):
        judged.release(*wobbly, treatment=treatment)
    judged.release(*(judged.run(wobbly[0].suite_version, repeats=3, by=build.process()) for _ in range(2)))
    with django_assert_max_num_queries(len(statements)):
        page = client.get("/").content.decode()
    assert page.count("/settle/") > 1


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("not_settled", "The interval includes a larger drop than you accept (1.5)."),
        ("no_metric", "The policy's metric needs samples that are right or wrong."),
        ("a_later_reason", "The release says what is missing."),
    ],
)
def test_an_interval_is_spoken_of_only_where_it_is_the_reason(reason, words):
    row = SimpleNamespace(verdict="inconclusive", outcome="", tolerance_points=1.5)
    each = SimpleNamespace(row=row, reason=reason, gates=("inconclusive",), headline_gate=0, n_more=None, chance=None)
    assert describe_release(each).rest == words


def test_a_rejected_release_no_longer_waits_and_a_void_one_does_again(released, viewer):
    release, user = released
    digest = release_report(release.pk).input_digest
    asked = {"release_id": release.pk, "decision": "reject", "note": "Not this one.", "user": user}
    sign_release(**asked, input_digest=digest)
    words = words_of(viewer.get("/"))
    assert "Waiting for a decision" not in words
    assert f"release {release.pk} Inconclusive, rejected by release manager" in words
    verdict = ReleaseRecord.objects.get(pk=release.pk).verdict
    verdict.pk, verdict.input_digest = None, "0" * 64
    verdict.save()
    ReleaseRecord.objects.filter(pk=release.pk).update(verdict=verdict)
    words = words_of(viewer.get("/"))
    assert "Waiting for a decision" in words
    assert "Its sign-off is void." in words


def test_what_nobody_signed_for_two_weeks_does_not_wait_on_the_board(released, viewer):
    ReleaseRecord.objects.update(created_at=timezone.now() - timedelta(days=15))
    assert "Waiting for a decision" not in words_of(viewer.get("/"))


def test_a_newer_release_of_the_same_folds_the_older(released, viewer):
    release, user = released
    gate = {"suite": SLUG, "candidate": release.gates.get().candidate_run_id, "baseline": "current", "tier": "critical"}
    newer = create_release(gates=[gate], policy="paired", user=user)
    assert [(int(each.row.id), [int(row.id) for row in each.earlier]) for each in waiting()] == [
        (newer.pk, [release.pk])
    ]
    words = words_of(viewer.get("/"))
    assert "One release is not settled." in words
    assert re.search(rf"release {newer.pk} · {SLUG} · [^+]+ \+1 earlier release {release.pk} , inconclusive", words)


def waiting():
    return waiting_releases(with_outcome(ReleaseRecord.objects.all()))


@pytest.mark.nightly
def test_a_no_ship_says_which_tag_and_what_broke(viewer):
    release_runs.policies()
    cases = [
        {"id": f"case-{n}", "prompt": "?", "target": {"a": 1}, "tags": ["all", "simple" if n % 5 else "nested"]}
        for n in range(20)
    ]
    document = {"slug": "calls", "title": "Calls", "max_tokens": 9, "scorer": {"kind": "json"}, "cases": cases}
    of = push_suite(document=document)[0]
    right, lacks, prose = '{"a": 1}', '{"b": 1}', "Sure!"
    worse = [right] * 8 + [lacks] * 8 + [prose] * 4
    baseline = build.finished_run(*[[right] * 20] * 5, version=of, by=build.process())
    candidate = build.finished_run(*[worse] * 5, version=of, by=release_runs.worse())
    made = release_runs.release(release_runs.gate(baseline, candidate))
    assert waiting()[0].broken == Broken(("simple", 10), ())  # nobody has compared the two runs yet
    assert viewer.get(f"/releases/{made.pk}/").status_code == 200
    assert waiting()[0].broken == Broken(("simple", 10), (("missing key", 8), ("not JSON", 4)))
    words = words_of(viewer.get("/"))
    assert "12 cases broke , 10 of them in simple. 8 × missing key, 4 × not JSON." in words
    assert "See the 12" in words


def test_the_limit_is_at_one_place_in_every_row():
    rulers = [
        changes.accepted_ruler(-2.2, (-2.9, -1.5), 1.0),
        changes.accepted_ruler(0.1, (-0.2, 0.4), 0.5),
        changes.accepted_ruler(-40.0, (-43.0, -37.0), 10.0),
    ]
    assert [(each.tolerance_x, each.zero_x) for each in rulers] == [(33.333, 50.0)] * 3
    assert [each.words for each in rulers] == [
        "−2.2 points, accepts 1.0", "+0.1 points, accepts 0.5", "−40.0 points, accepts 10.0",
    ]  # fmt: skip
    assert [each.middle for each in rulers] == [13.333, 53.333, None]
    assert [each.beyond for each in rulers] == ["", "", "low"]


def test_a_paused_endpoint_and_a_failed_run_are_stuck_with_what_helps(viewer):
    run = build.run()
    RunRecord.objects.update(status=RunRecord.Status.FAILED, failure="PROD_API_KEY is not set on worker gpu-2.")
    waits = build.run()
    EndpointRecord.objects.update(
        rests_until=timezone.now() + timedelta(minutes=4), n_failures=7, rest_reason="No backend is free."
    )
    page = viewer.get("/")
    words = words_of(page)
    assert "An endpoint is paused, a run needs a look, " in words
    assert (
        "Endpoint paused local: 1 run waits. The endpoint is paused after 7 failed calls: no backend is free. Next try"
        in words
    )
    assert re.search(
        rf"Run failed run {run.pk}, colours on local, .*: PROD_API_KEY is not set on worker gpu-2\.", words
    )
    assert f'href="/runs/{run.pk}/" data-row>Open</a>' in page.content.decode()
    assert f"run {waits.pk} colours" in words


@pytest.mark.nightly
def test_the_worst_comes_first_and_within_a_word_the_oldest():
    by, worse = build.process(), build.process(build.bucket(weights="e" * 64))
    for slug in ("one", "two", "three", "four"):
        release_runs.suite(slug)
    release_runs.policies()
    made = []
    for slug, changed in (
        ("one", {}),
        ("two", {"unstable": [3]}),
        ("three", {"n_failed": 10}),
        ("four", {"n_failed": 12}),
    ):
        of = release_runs.suite(slug)
        candidate = release_runs.run(of, by=worse if "n_failed" in changed else by, **changed)
        gate = release_runs.gate(release_runs.run(of, by=by), candidate)
        made.append(release_runs.release(gate).pk)
    rows = waiting()
    assert [each.row.verdict for each in rows] == ["no_ship", "no_ship", "inconclusive", "ship"]
    assert [int(each.row.id) for each in rows] == [made[2], made[3], made[1], made[0]]
    clauses = [describe_release(each) for each in rows]
    assert f"{clauses[0].claim}{clauses[0].rest}" == "10 cases broke in three."
    assert f"{clauses[3].claim}{clauses[3].rest}" == "A larger drop than you accept is ruled out."
    for clause in clauses:
        assert len(f"{clause.claim}{clause.rest}".split()) <= 12


def test_an_expired_baseline_needs_somebody_until_there_is_a_new_one(settings, viewer, django_user_model):
    expired, noticed = history_stage.rotated()
    page = viewer.get("/")
    words = words_of(page)
    assert "A baseline expired" in words
    assert re.search(rf"Baseline expired {SLUG} on acme-7b-ft, fast: run {expired.run_id}, .* since 2026-09-06", words)
    assert f'href="/suites/{SLUG}/#baselines" data-row>Open</a>' in page.content.decode()
    user = django_user_model.objects.get(username="mira")
    set_baseline(suite=SLUG, run=noticed.pk, reason="Held.", user=user)
    assert "Baseline expired" not in words_of(viewer.get("/"))


@pytest.mark.nightly
@pytest.mark.parametrize(("days", "is_shown"), [(6.9, True), (7.1, False)])
def test_rotations_are_news_for_a_week(settings, viewer, days, is_shown):
    history_stage.rotated()
    Rotation.objects.update(at=timezone.now() - timedelta(days=days))
    assert ("1 baseline expired." in words_of(viewer.get("/"))) is is_shown


@pytest.mark.nightly
def test_a_probe_that_found_something_bad_stands_here_until_a_newer_one_does_not(viewer):
    probes.ask("seed")
    bad = probes.served(probes.ignored())
    page = viewer.get("/")
    assert "A probe found something." in words_of(page)
    assert bad.finding["sentence"] in words_of(page)
    assert f'href="/probes/{bad.pk}/"' in page.content.decode()
    probes.ask("seed")
    probes.served(probes.honoured)
    assert "Stuck" not in words_of(viewer.get("/"))


def test_which_runs_need_a_look_and_which_are_news(db):
    run = build.run()
    now, runs = timezone.now(), RunRecord.objects.filter(pk=run.pk)
    plain = {"status": "finished", "is_judge": False, "is_reported": False, "strays": [], "unsteady": None}
    plain |= {"ran_at": now, "finished_at": now}
    served = RepeatRecord.engine_processes.through.objects.create(
        repeat=run.repeats.get(index=1), engineprocess=build.process(pins=[{"name": "max_num_seqs", "held": False}])
    )
    for fields, is_needed in (
        ({}, True),  # a pin broke
        ({"is_reported": True}, False),  # nothing of it is attested
        ({"is_judge": True}, False),
        ({"ran_at": now - timedelta(days=13)}, True),
        ({"ran_at": now - timedelta(days=15)}, False),
    ):
        runs.update(**plain | fields)
        assert board._need_somebody().exists() == is_needed, fields
    served.delete()
    for fields, is_needed in (
        ({}, False),
        ({"strays": None, "unsteady": []}, False),
        ({"strays": [{"bucket": 1}]}, True),
        ({"unsteady": [{"bucket": 1}]}, True),
        ({"status": "failed"}, True),
        ({"status": "incomplete"}, True),
        ({"status": "cancelled"}, False),
    ):
        runs.update(**plain | fields)
        assert board._need_somebody().exists() == is_needed, fields
    for fields, n_finished, n_incomplete in (
        ({}, 1, 0),
        ({"status": "incomplete"}, 0, 1),
        ({"is_judge": True}, 0, 0),
        ({"finished_at": now - timedelta(days=6)}, 1, 0),
        ({"finished_at": now - timedelta(days=8)}, 0, 0),
    ):
        runs.update(**plain | fields)
        assert board._ended_this_week() == {"n_finished": n_finished, "n_incomplete": n_incomplete}, fields
        assert len(board._newest_finished()) == n_finished


def test_a_pause_that_is_over_is_no_news_and_a_run_that_has_ended_waits_for_no_endpoint(db):
    build.run()
    for rests, status, seen in ((1, "running", [1]), (1, "failed", [0]), (-1, "queued", [])):
        EndpointRecord.objects.update(rests_until=timezone.now() + timedelta(minutes=rests))
        RunRecord.objects.update(status=status)
        assert [each.n_runs for each in board._paused()] == seen


def test_many_silent_workers_of_a_pool_are_one_line(viewer):
    for n in range(6):
        build.worker(f"node-{n}", pool="gpu" if n < 4 else "cpu")
    WorkerRecord.objects.update(seen_at=timezone.now() - timedelta(hours=1))
    words = words_of(viewer.get("/"))
    assert "Workers silent 4 of pool gpu. What they held goes to others when their leases end." in words
    assert "node-3" not in words
    for n in (4, 5):
        assert f"node-{n} of pool cpu. What it held goes to others" in words


def test_a_run_under_way_says_what_it_waits_for(viewer):
    run = build.run()
    words = words_of(viewer.get("/"))
    assert f"run {run.pk} colours" in words
    assert "no worker in pool default" in words
    assert "One run is under way." in words
    build.worker()
    assert "waits in the queue" in words_of(viewer.get("/"))
    for is_reported in (False, True):
        RunRecord.objects.update(status=RunRecord.Status.RUNNING, is_reported=is_reported)
        assert ("an engine starts" in words_of(viewer.get("/"))) != is_reported


def test_an_arm_of_an_experiment_leads_to_it_and_a_label_of_somebody_s_own_does_not(viewer):
    build.run(labels={"experiment": "7"})
    build.run(labels={"experiment": "mine"})
    page = viewer.get("/").content.decode()
    assert page.count('for <a href="/lab/7/">experiment 7</a>') == 1
    assert "experiment mine" not in page


def test_an_open_board_is_drawn_anew_only_where_it_has_changed(viewer):
    page = viewer.get("/").content.decode()
    poll = unescape(re.search(r'hx-get="([^"]*)"', page)[1])
    assert viewer.get(poll).status_code == 204
    build.run()
    changed = viewer.get(poll)
    assert changed.status_code == 200
    assert changed.content.decode().lstrip().startswith('<div id="bands"')
    assert changed.headers["Cache-Control"] == "no-store"


@pytest.mark.nightly
def test_the_board_asks_as_often_for_many_releases_as_for_one(released, viewer, django_assert_max_num_queries):
    release, user = released
    gate = release.gates.get()
    for _ in range(4):
        create_release(
            gates=[{"suite": SLUG, "candidate": gate.candidate_run_id, "baseline": "current", "tier": "critical"}],
            policy="paired",
            user=user,
        )
    viewer.get("/")  # names the backend, which the stage stores without a rollup
    with django_assert_max_num_queries(MAX_STATEMENTS):
        viewer.get("/")
