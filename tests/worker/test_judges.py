"""Judges: runs scored by a model in a run of its own, against scripted servers and a real engine."""

import itertools
import math
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from evalboard.contract.release import Release
from evalboard.core.errors import Conflict, InvalidInput
from evalboard.core.trace import unpack_reasons, unpack_scores
from runs.judging import judgings, judgings_of
from runs.models import Case, EndpointRecord, JudgingRecord, RepeatScore, RunRecord, Shard, SuiteVersionRecord
from runs.release import create_release, release_report
from runs.run import cancel_run, case_page, create_run, delete_run, run_report, run_rows
from runs.suites import push_suite, rescore_run, rescored_run, suite_rows
from runs.sweep import reconcile
from tests import build
from tests.own_scorers import running
from tests.runs import logs
from tests.scripted import Received, Reply, ScriptedServer, ok, status
from worker.runner import Runner

pytestmark = pytest.mark.django_db(transaction=True)

CASES = [{"id": f"case-{n}", "prompt": f"Question {n}?", "target": "Oslo", "tags": ["towns"]} for n in range(6)]
JUDGE = {
    "kind": "judge",
    "endpoint": "jury",
    "profile": "pinned",
    "template": "Is {{answer}} right for {{prompt}}? It is {{target}}.",
    "reads": {"choice": {"yes": 1, "no": 0}},
    "twice": 2,
    "anchors": 3,
    "anchor_draws": 2,
}


def say(text: str, **fields: Any) -> Reply:
    return ok(choices=[{"index": 0, "message": {"content": text}, "finish_reason": "stop"}], **fields)


def is_even(received: Received) -> Reply:
    """Answer yes to even questions and no to odd ones."""
    number = re.search(r"Question (\d+)", received.prompt)
    return say("Yes." if number and int(number[1]) % 2 == 0 else "No.")


@pytest.fixture
def servers(settings: Any) -> Iterator[tuple[ScriptedServer, ScriptedServer]]:
    """The server of the model, and that of the judge."""
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1"})
    with ScriptedServer(say("Oslo")) as model, ScriptedServer(is_even) as jury:
        build.profile()
        for slug, server in (("hosted", model), ("jury", jury)):
            named = {"slug": slug, "engine": "openai", "model_repo": f"lab/{slug}", "dtype": "", "max_model_len": None}
            EndpointRecord.objects.create(**named, base_url=server.base_url)
        yield model, jury


@pytest.fixture
def worker() -> Iterator[Runner]:
    with running() as runner:
        yield runner


def push(**judge: Any) -> None:
    push_suite(document={"slug": "towns", "scorer": {**JUDGE, **judge}, "cases": CASES})


def started(**fields: Any) -> RunRecord:
    return create_run(**{"suite": "towns", "endpoint": "hosted", "profile": "pinned", "repeats": 2, **fields})


def rows(run: RunRecord) -> list[RepeatScore]:
    own = RepeatScore.objects.filter(repeat__run=run, scorer=run.suite_version.scorer_id)
    return list(own.order_by("repeat"))


def test_a_run_ends_with_the_scores_of_its_judge(
    servers: tuple[ScriptedServer, ScriptedServer], worker: Runner
) -> None:
    push()
    run = started()
    worker.work()
    run.refresh_from_db()
    assert (run.status, [row.points for row in rows(run)]) == ("finished", [50.0, 50.0])
    assert unpack_scores(bytes(rows(run)[0].scores)).tolist() == [1.0, 0.0] * 3
    assert unpack_reasons(bytes(rows(run)[0].reasons))[:2] == ['Judged "Yes.".', 'Judged "No.".']
    judging = JudgingRecord.objects.get(run=run)
    assert judging.status == "finished"
    assert judging.judge_run is not None
    assert (judging.judge_run.status, judging.judge_run.is_judge) == ("finished", True)
    asked = Case.objects.filter(suite_version=judging.judge_run.suite_version)
    assert asked.count() == 2 * 6 + 3 * 2
    assert len({case.content["messages"][0]["content"] for case in asked}) == 6


def reasons(run: RunRecord) -> list[str | None]:
    return unpack_reasons(bytes(rows(run)[0].reasons))


def test_a_judge_that_says_neither_word_leaves_an_answer_unscored_in_its_words(
    servers: tuple[ScriptedServer, ScriptedServer], worker: Runner
) -> None:
    _, jury = servers
    jury.script = lambda received: say("Who knows?") if "Question 0" in received.prompt else is_even(received)
    push(anchors=0)
    run = started(repeats=1)
    worker.work()
    run.refresh_from_db()
    assert run.status == "finished"
    assert math.isnan(unpack_scores(bytes(rows(run)[0].scores))[0])
    why = 'Unscored: The judge neither began nor ended with "no" or "yes": "Who knows?".'
    assert reasons(run)[0] == why
    assert [case.reason for case in case_page(run.pk)][:2] == [why, 'Judged "No.".']


@pytest.mark.nightly
def test_cases_beside_a_judge_keep_their_own_scorers(
    servers: tuple[ScriptedServer, ScriptedServer], worker: Runner
) -> None:
    cases = [{**case, "scorer": {"kind": "exact"}} if case["id"] in ("case-1", "case-2") else case for case in CASES]
    push_suite(
        document={"slug": "towns", "scorer": JUDGE, "cases": [*cases[:2], {**cases[2], "target": "Rome"}, *cases[3:]]}
    )
    run = started(repeats=1)
    worker.work()
    assert unpack_scores(bytes(rows(run)[0].scores)).tolist() == [1.0, 1.0, 0.0, 0.0, 1.0, 0.0]


def test_a_judge_is_told_who_it_must_be_and_what_it_is_asked(servers: tuple[ScriptedServer, ScriptedServer]) -> None:
    with pytest.raises(InvalidInput) as refused:
        push(endpoint="court", profile="law")
    assert list(refused.value.fields) == ["scorer.endpoint", "scorer.profile"]
    other = {**JUDGE, "draws": 3}
    with pytest.raises(InvalidInput, match="another judge"):
        push_suite(document={"slug": "towns", "scorer": JUDGE, "cases": [{**CASES[0], "scorer": other}, CASES[1]]})


@pytest.mark.nightly
def test_a_run_waits_for_its_judge_and_says_so(servers: tuple[ScriptedServer, ScriptedServer], worker: Runner) -> None:
    push()
    run = started()
    while Shard.objects.filter(status="queued", repeat__run=run).exists():
        worker.claim_and_run()
    report = run_report(run.pk)
    assert (report.status, report.waiting) == (
        "running",
        "All answers are in. The judge jury begins within 15 seconds.",
    )
    reconcile()
    judge_run = JudgingRecord.objects.get(run=run).judge_run
    assert judge_run is not None
    waiting = f"All answers are in. It waits for its judge: 0 of 18 judgements are done, in run {judge_run.pk}."
    assert run_report(run.pk).waiting == waiting
    until = datetime(2099, 1, 1, 7, 2, 11, tzinfo=UTC)
    paused = EndpointRecord.objects.filter(slug="jury")
    paused.update(rests_until=until, rest_reason="HTTP 503", n_failures=5)
    pause = "Endpoint jury is paused after 5 failed calls: HTTP 503. Next try 07:02:11 UTC."
    assert run_report(run.pk).waits_for == f"{waiting} {pause}"
    paused.update(rests_until=None)
    assert [row.id for row in run_rows()] == [str(run.pk)]
    assert [row.slug for row in suite_rows()] == ["towns"]
    assert run_report(judge_run.pk).judge_of == str(run.pk)
    while worker.claim_and_run():
        pass
    run.refresh_from_db()
    assert run.status == "running"  # its worker died before it stored the scores
    reconcile()
    reconcile()
    run.refresh_from_db()
    assert (run.status, [row.points for row in rows(run)]) == ("finished", [50.0, 50.0])


@pytest.mark.nightly
def test_cancelling_a_run_cancels_its_judge_and_deleting_it_deletes_both(
    servers: tuple[ScriptedServer, ScriptedServer], worker: Runner
) -> None:
    push()
    run = started()
    while Shard.objects.filter(status="queued", repeat__run=run).exists():
        worker.claim_and_run()
    reconcile()
    cancel_run(run_id=run.pk)
    worker.work()
    run.refresh_from_db()
    judging = JudgingRecord.objects.get(run=run)
    assert judging.judge_run is not None
    assert (run.status, judging.status, judging.judge_run.status) == ("cancelled", "failed", "cancelled")
    assert rows(run) == []
    assert judgings_of(run.pk)[0].text == f"The judge was stopped with run {run.pk}, which was cancelled."
    with pytest.raises(Conflict, match="is deleted with that run"):
        delete_run(run_id=judging.judge_run.pk)
    scorer = rescore_run(run_id=run.pk, judge_again=True)  # its answers are there, and nothing stops the judge now
    worker.work()
    assert (judgings_of(run.pk)[0].status, rescored_run(run.pk, scorer.pk).waiting) == ("finished", False)
    assert [row.points for row in rows(run)] == [50.0, 50.0]
    delete_run(run_id=run.pk)
    assert not RunRecord.objects.exists()
    assert SuiteVersionRecord.objects.count() == 1


def test_a_run_is_scored_again_by_a_judge_once(servers: tuple[ScriptedServer, ScriptedServer], worker: Runner) -> None:
    _, jury = servers
    push_suite(document={"slug": "towns", "scorer": {"kind": "exact"}, "cases": CASES})
    run = started()
    worker.work()
    scorer = rescore_run(run_id=run.pk, scorer=JUDGE)
    assert rescored_run(run.pk, scorer.pk).waits_for == "All answers are in. The judge jury begins within 15 seconds."
    worker.work()
    assert not rescored_run(run.pk, scorer.pk).waiting
    judged = RepeatScore.objects.filter(repeat__run=run).exclude(scorer=run.suite_version.scorer)
    assert [row.points for row in judged] == [50.0, 50.0]
    n_asked = len(jury.requests)
    jury.script = say("no")
    rescore_run(run_id=run.pk, scorer=JUDGE)
    worker.work()
    assert len(jury.requests) == n_asked
    assert [row.points for row in judged.all()] == [50.0, 50.0]


def test_a_judge_that_cannot_be_reached_fails_in_words_and_can_be_asked_again(
    servers: tuple[ScriptedServer, ScriptedServer], worker: Runner
) -> None:
    _, jury = servers
    jury.script = status(401)
    push()
    run = started(repeats=1)
    worker.work()
    run.refresh_from_db()
    judging = JudgingRecord.objects.get(run=run)
    assert (run.status, judging.status) == ("finished", "failed")
    assert judging.error.startswith(f"Run {judging.judge_run_id}, in which the judge scores, ended as failed.")
    assert all((reason or "").startswith("Unscored: The judge gave no answer") for reason in reasons(run))
    jury.script = is_even
    rescore_run(run_id=run.pk)
    worker.work()
    assert [row.points for row in rows(run)] == [50.0]
    assert RunRecord.objects.filter(is_judge=True).count() == 1


@pytest.mark.nightly
def test_a_judge_that_nothing_can_be_read_of_fails_in_its_words_and_breaks_no_chain_of_anchors(
    servers: tuple[ScriptedServer, ScriptedServer], worker: Runner, client: Client
) -> None:
    _, jury = servers
    push()
    first = started()
    worker.work()
    assert "which later runs are compared by" in judgings_of(first.pk)[0].text
    jury.script = say("Who knows?")
    silent = started()
    worker.work()
    [judging] = judgings_of(silent.pk)
    assert (judging.status, judging.anchors) == ("failed", None)
    assert judging.text.startswith(f"No judgement in run {judging.judge_run} could be read. ")
    assert "Who knows?" in judging.text
    jury.script = say("yes")
    third = started()
    worker.work()
    [judging] = judgings_of(third.pk)
    assert judging.anchors is not None
    assert judging.anchors.before == str(first.pk)
    client.force_login(build.user())
    page = client.get(f"/runs/{silent.pk}/").content.decode()
    banner = page.partition('data-code="judge">')[2].partition("</div>")[0]
    assert re.search(r"</svg>\s*<p>\s*<a href=", banner), "a banner is a sign and one paragraph"
    assert "No judgement in run" in banner
    page = client.get(f"/runs/{third.pk}/").content.decode()
    assert 'id="judge"' in page
    assert "The judge disagrees with itself on" in page
    assert 'id="judge"' not in client.get(f"/runs/{judging.judge_run}/").content.decode()


@pytest.mark.nightly
def test_noise_and_anchors_are_measured(servers: tuple[ScriptedServer, ScriptedServer], worker: Runner) -> None:
    """A judge that wavers on one answer in six, and then moves."""
    _, jury = servers
    wavering = itertools.count()

    def script(received: Received) -> Reply:
        return say("yes" if next(wavering) % 2 else "no") if "Question 5" in received.prompt else is_even(received)

    jury.script = script
    push(draws=3, twice=6, anchors=6, anchor_draws=20)
    first = started()
    worker.work()
    [judging] = judgings_of(first.pk)
    assert judging.noise is not None
    assert judging.anchors is not None
    assert (judging.anchors.n_anchors, judging.anchors.n_draws, judging.anchors.before) == (6, 20, None)
    assert 0 < judging.noise.disagreement < 0.2
    assert "The judge disagrees with itself on " in judging.text
    second = started()
    worker.work()
    [stayed] = judgings_of(second.pk)
    assert stayed.anchors is not None
    assert stayed.anchors.before == str(first.pk)
    assert stayed.anchors.shift is not None
    assert not stayed.anchors.shift.has_moved
    jury.script = say("yes")
    third = started()
    worker.work()
    [moved] = judgings_of(third.pk)
    assert moved.anchors is not None
    assert moved.anchors.shift is not None
    assert moved.anchors.shift.has_moved
    assert f"points apart from run {second.pk} (" in moved.text


@pytest.mark.nightly
def test_too_many_judgements_are_refused_in_words(
    servers: tuple[ScriptedServer, ScriptedServer], worker: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judgings, "MAX_JUDGEMENTS", 10)
    push()
    run = started()
    worker.work()
    run.refresh_from_db()
    assert run.status == "finished"
    why = "Unscored: The judge could not begin: 18 judgements would be needed, and the most of one run are 10."
    assert (reasons(run)[0] or "").startswith(why)
    assert not RunRecord.objects.filter(is_judge=True).exists()


def released(baseline: RunRecord, candidate: RunRecord) -> Release:
    gate = {"suite": "towns", "baseline": baseline.pk, "candidate": candidate.pk}
    return release_report(create_release(gates=[gate], treatment="service").pk)


def test_a_judge_that_moved_behind_its_name_is_named_by_a_release(
    servers: tuple[ScriptedServer, ScriptedServer], worker: Runner
) -> None:
    _, jury = servers
    push(anchors=6, anchor_draws=8, twice=0)
    baseline = started()
    worker.work()
    jury.script = lambda received: say("no", system_fingerprint="fp-b")
    candidate = started()
    worker.work()
    report = released(baseline, candidate)
    assert (report.verdict, [reason.code for reason in report.reasons]) == ("not_comparable", ["judge_changed"])
    assert "jury" in report.reasons[0].text


def test_a_judge_that_moved_scores_a_run_again_beside_its_first_scores_and_then_judges_both_sides(
    servers: tuple[ScriptedServer, ScriptedServer], worker: Runner
) -> None:
    _, jury = servers
    policy = {"slug": "wide", "rule": "paired", "tolerance_points": 10.0}
    judge = {**JUDGE, "anchors": 6, "anchor_draws": 8, "twice": 0}
    push_suite(document={"slug": "towns", "scorer": judge, "cases": CASES, "policy": policy})
    baseline = started()
    earlier = started()
    worker.work()
    before = released(baseline, earlier)
    jury.script = say("no")
    candidate = started()
    worker.work()
    apart = released(baseline, candidate)
    assert [(step.code, step.sides) for step in apart.next] == [("judge_again", ("baseline",))]
    assert apart.next[0].text == (
        f"Let the judge, as it is now, score the baseline again: evalboard scorer judge-again {baseline.pk}. Then make "
        "the release again."
    )
    again = rescore_run(run_id=baseline.pk, judge_again=True)
    with pytest.raises(Conflict, match="A judge scores run"):
        rescore_run(run_id=baseline.pk, judge_again=True)
    with pytest.raises(Conflict, match="scores run"):
        released(baseline, candidate)
    worker.work()
    newest, first = judgings_of(baseline.pk)
    assert (newest.number, first.number, newest.scorer) == (2, 1, again.digest)
    assert newest.anchors is not None
    assert newest.anchors.shift is not None
    assert newest.anchors.shift.points == 0  # since the candidate's run
    assert [row.points for row in rows(baseline)] == [50.0, 50.0]
    report = released(baseline, candidate)
    assert report.verdict != "not_comparable", report.reasons
    [line] = [line for line in report.gates[0].warnings if line.code == "judged_again"]
    assert line.text == (
        "The baseline was judged again, and the newest judging counts. It moves the score by −50.0 points over 3 cases."
    )
    assert report.gates[0].difference == 0
    kept = release_report(int(before.id))
    assert (kept.verdict, kept.input_digest) == (before.verdict, before.input_digest)


@pytest.mark.nightly
def test_two_runs_of_one_model_under_a_noisy_judge_ship(
    servers: tuple[ScriptedServer, ScriptedServer], worker: Runner
) -> None:
    """The judge's noise is in every score, so that it widens the interval and changes no verdict."""
    model, jury = servers
    chance, different = random.Random(7), itertools.count()
    turn = {"yes": "no", "no": "yes"}
    model.script = lambda _: say(f"Oslo, I think: {next(different)}.")

    def script(received: Received) -> Reply:
        even = int(str(re.search(r"Question (\d+)", received.prompt)[1])) % 2 == 0  # type: ignore[index]
        word = "yes" if even else "no"
        return say(turn[word] if chance.random() < 0.05 else word)

    jury.script = script
    cases = [{"id": f"case-{n}", "prompt": f"Question {n}?", "target": "Oslo"} for n in range(30)]
    policy = {"slug": "wide", "rule": "paired", "tolerance_points": 10.0}
    judge = {**JUDGE, "anchors": 10, "anchor_draws": 5}
    push_suite(document={"slug": "towns", "scorer": judge, "cases": cases, "policy": policy})
    runs = [started(repeats=5) for _ in range(2)]
    worker.work()
    report = released(*runs)
    assert report.verdict == "ship", report.reasons


@pytest.mark.nightly
def test_a_log_that_was_imported_waits_for_the_judge_of_its_suite(
    servers: tuple[ScriptedServer, ScriptedServer], worker: Runner
) -> None:
    _, jury = servers
    jury.script = say("yes")
    cases = [{"id": case, "prompt": f"Which colour has {case}?", "target": "blue"} for case in logs.CASES]
    push_suite(document={"slug": "colours", "scorer": JUDGE, "cases": cases})
    run = logs.stored(logs.log(), suite="colours")
    assert (run.status, rows(run)) == ("running", [])
    worker.work()
    run.refresh_from_db()
    assert run.status == "finished"
    assert {row.points for row in rows(run)} == {100.0}
