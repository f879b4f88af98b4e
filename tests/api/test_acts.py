"""What may be done to what: a page offers it, and REST does it, by one rule and with one reason."""

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.test import Client
from django.utils import timezone
from typer.main import get_command

from evalboard.cli.main import app
from runs import acts
from runs.access import ROLES, scopes_of
from runs.lab import cancel_experiment, plan_experiment, start_experiment
from runs.models import (
    CaseColumns,
    DeletionRecord,
    EndpointRecord,
    ExperimentRecord,
    JudgingRecord,
    ReleaseRecord,
    RepeatRecord,
    Rotation,
    RunRecord,
    ScheduleRecord,
    Scorer,
    ScoringRecord,
    Suite,
    WebhookRecord,
)
from runs.release import SETTLE_ACTS, settle_plans
from runs.run import cancel_run, order_again, run_again
from runs.work.shards import fail_run
from tests import build, judged
from tests.api.conftest import Api
from tests.nightly import few, nightly
from tests.runs import judged as runs_judged
from tests.runs import logs

pytestmark = pytest.mark.django_db
SOME = (build.TARGET, build.TARGET, "red")


def queued() -> RunRecord:
    return build.run()


def running() -> RunRecord:
    run = build.run()
    build.decode(run, 1, SOME)
    return run


def incomplete() -> RunRecord:
    return build.finished_run((build.TARGET, None, "red"))


def failed() -> RunRecord:
    run = build.run()
    fail_run(run_id=run.pk, code="endpoint_refused", reason="It answered 401.")
    return run


def cancelled() -> RunRecord:
    return cancel_run(run_id=build.run().pk)


def cancelling() -> RunRecord:
    run = running()
    RunRecord.objects.filter(pk=run.pk).update(is_cancel_wanted=True)
    return run


def logged() -> RunRecord:
    return logs.stored(logs.log())


def one_draw() -> RunRecord:
    run = build.finished_run()
    RunRecord.objects.filter(pk=run.pk).update(is_one_draw=True)
    return run


def of_chosen_cases() -> RunRecord:
    run = build.finished_run()
    RepeatRecord.objects.filter(run=run).update(cases=b"\x07")
    return run


RUNS: dict[str, Callable[[], RunRecord]] = {
    each.__name__: each
    for each in (queued, running, build.finished_run, incomplete, failed, cancelled, cancelling, logged, one_draw)
} | {"of chosen cases": of_chosen_cases}

GATE = ("finished_run", "incomplete")

# How REST is asked for each act on a run: method, address, body.
ASKED: dict[str, Callable[[RunRecord, RunRecord], tuple[str, str, Any]]] = {
    "again": lambda run, _: ("POST", f"/runs/{run.pk}/again/", {}),
    "complete": lambda run, _: ("POST", f"/runs/{run.pk}/complete/", {}),
    "cancel": lambda run, _: ("POST", f"/runs/{run.pk}/cancel/", {}),
    "delete": lambda run, _: ("DELETE", f"/runs/{run.pk}/", None),
    "add_repeats": lambda run, _: ("POST", f"/runs/{run.pk}/repeats/", {"n": 1}),
    "rescore": lambda run, _: ("POST", f"/runs/{run.pk}/rescore/", {"scorer": {"kind": "contains"}}),
    "label": lambda run, _: (
        *("POST", f"/runs/{run.pk}/labels/"),
        {"labels": [{"case": "sky", "repeat": 1, "is_right": True}]},
    ),
    "force": lambda run, _: ("POST", f"/runs/{run.pk}/forced/", {"endpoint": "local", "profile": "pinned"}),
    "replay": lambda run, _: ("POST", f"/runs/{run.pk}/replays/", {"case": "sky"}),
    "bisect": lambda run, other: (
        *("POST", "/experiments/"),
        {"kind": "bisect", "baseline": run.pk, "candidate": other.pk},
    ),
    "judge": lambda run, other: (
        *("POST", "/releases/"),
        {"suite": "colours", "candidate": str(run.pk), "baseline": str(other.pk)},
    ),
    "baseline": lambda run, _: ("POST", "/suites/colours/baselines/", {"run": str(run.pk), "reason": "Good."}),
    "compare": lambda run, other: ("GET", f"/compare/?baseline={run.pk}&candidate={other.pk}", None),
}
WITHOUT_CALL = {"replace"}  # what an import asks for
# By which mark the page of a run has the act; bisect, replay and rescore are offered elsewhere or within a fold.
MARKS = {
    "again": 'action="/runs/{run}/again/"',
    "complete": 'action="/runs/{run}/complete/"',
    "cancel": 'action="/runs/{run}/cancel/"',
    "delete": 'href="/runs/{run}/delete/"',
    "add_repeats": 'action="/runs/{run}/repeats/"',
    "force": 'href="/runs/{run}/forced/"',
    "baseline": 'id="baseline-reason"',
}


def ask(api: Api, method: str, path: str, body: Any) -> Any:
    if method == "GET":
        return api.get(path)
    return api.delete(path) if method == "DELETE" else api.post(path, body)


def test_every_act_on_a_run_is_asked_for_here() -> None:
    assert {act for act, kind in acts.RULES if kind is RunRecord} == ASKED.keys() | WITHOUT_CALL


@pytest.mark.parametrize("kind", [*GATE, *nightly(kind for kind in RUNS if kind not in GATE)])
def test_rest_refuses_a_run_s_act_where_the_rule_does_and_a_page_offers_it_where_not(api: Api, kind: str) -> None:
    judged.policy()
    other = build.finished_run()
    run = RunRecord.objects.get(pk=RUNS[kind]().pk)
    admin = build.user("boss", "admin")
    pages = Client()
    pages.force_login(admin)
    page = unescape(pages.get(f"/runs/{run.pk}/").content.decode())
    known = {act: acts.can(act, run, admin) for act in ASKED}
    for act, answer in known.items():
        with transaction.atomic():
            given = ask(api, *ASKED[act](run, other))
            transaction.set_rollback(True)
        no = acts.refusal(act, run)
        if act in ("delete", "force"):  # each has a page of its own, with its form
            form = pages.get(f"/runs/{run.pk}/{act.replace('force', 'forced')}/").content.decode()
            mark = f">Delete run {run.pk}</button>" if act == "delete" else 'class="inline-form" method="post"'
            assert (mark in form) == bool(answer), act
        is_refused = given.status_code == 409 and given.json()["detail"] == answer.reason
        assert is_refused == (no is not None and not no.is_done), (act, answer, given.status_code, given.content[:300])
        if act in MARKS and act != "force":
            assert (MARKS[act].format(run=run.pk) in page) == bool(answer), (act, answer)
        if not answer and answer.is_shown and act in MARKS:
            assert answer.reason in re.sub(r"</?bdi>", "", page), (act, answer)
    assert any(known.values())


# Every act: its calls of REST, its command with the option, and what a template says before it offers its address.
WALK: dict[tuple[str, type], tuple[tuple[str, ...], str, dict[str, str]]] = {
    ("again", RunRecord): (
        ("run_again", "rerun"),
        "run --again",
        {"run_again": "acts.again", "baseline_again": "in again"},
    ),
    ("complete", RunRecord): (("complete_run",), "run --complete", {"run_complete": "acts.complete"}),
    ("cancel", RunRecord): (("cancel_run",), "", {"run_cancel": "acts.cancel"}),
    ("delete", RunRecord): (("delete_run",), "", {"run_delete": "acts.delete"}),
    ("replace", RunRecord): (("import_log",), "import", {}),
    ("add_repeats", RunRecord): (("add_repeats",), "", {"run_repeats": "acts.add_repeats"}),
    ("rescore", RunRecord): (("rescore",), "scorer test", {"run_rescore": "acts.rescore"}),
    ("label", RunRecord): (("label_answers", "delete_label"), "labels --import", {"label": "may_label"}),
    ("adopt", Suite): (("adopt_scorer",), "scorer adopt", {}),
    ("compare", RunRecord): (("compare",), "compare", {}),
    ("force", RunRecord): (
        ("create_forced", "create_forced_pair"),
        "force",
        {"forced_pair": "may_force"},
    ),
    ("judge", RunRecord): (("create_release",), "release", {"release_new": "acts.judge|^ +viewer.may_run"}),
    ("replay", RunRecord): (("create_replay",), "replay", {"pair_replay": "replay"}),
    ("bisect", RunRecord): (("create_experiment",), "bisect", {}),
    ("baseline", RunRecord): (("set_baseline",), "baseline set", {"suite_baselines": "acts.baseline|eligible"}),
    ("pause", ScheduleRecord): (("pause_schedule",), "schedule pause", {"schedule_pause": "line.acts.pause"}),
    ("resume", ScheduleRecord): (("resume_schedule",), "schedule resume", {"schedule_resume": "line.acts.resume"}),
    # Of a person's own address it needs no right; its rule is this one fact of its row.
    ("test", WebhookRecord): (
        ("send_webhook_test",),
        "",
        {"webhook_test": "row.is_active", "address_test": "row.is_active"},
    ),
    ("run", EndpointRecord): (("create_run",), "run --endpoint", {}),
    ("probe", EndpointRecord): (("create_probe",), "probe", {}),
    ("check", EndpointRecord): (("create_probe",), "endpoint check", {}),
    ("try_now", EndpointRecord): (("try_endpoint",), "endpoint try", {"endpoint_try": "try"}),
    ("start", ExperimentRecord): (("start_experiment",), "experiment start", {"experiment_start": "acts.start"}),
    ("resume", ExperimentRecord): (("resume_experiment",), "experiment resume", {"experiment_resume": "acts.resume"}),
    ("cancel", ExperimentRecord): (("cancel_experiment",), "experiment cancel", {"experiment_cancel": "acts.cancel"}),
    ("delete", ExperimentRecord): (("delete_experiment",), "", {"experiment_delete": "acts.delete"}),
    ("sign", ReleaseRecord): (("sign_release",), "", {"release_sign_offs": "sign_form"}),
    ("settle", ReleaseRecord): (("settle",), "settle --start", {}),
    ("settle_targeted", ReleaseRecord): (("settle",), "settle --targeted", {}),
}
# Done in a browser, or by REST: what cannot be taken back, what a person signs, and small corrections of a run.
WITHOUT_COMMAND = {(act, RunRecord) for act in ("cancel", "delete", "add_repeats")}
WITHOUT_COMMAND |= {("delete", ExperimentRecord), ("sign", ReleaseRecord), ("test", WebhookRecord)}
TAG = re.compile(
    r"""{% (if|elif|else|endif)\b(.*?)%}|(?:<form[^>]*action|<a class="button[^>]*href)="{% url '(\w+)'|"""
    r"""{% include "([^"]*)\""""
)


def read_offers() -> list[tuple[str, str]]:
    """Return each address that a form or a button of a template has, with the conditions that it stands under."""
    offers: list[tuple[str, str, str]] = []
    included: dict[str, list[str]] = {}
    for path in (Path(settings.BASE_DIR) / "frontend").rglob("*.html"):
        conditions = [""]
        for word, condition, address, part in TAG.findall(path.read_text()):
            if address:
                offers.append((f"{path.parent.name}/{path.name}", address, " ".join(conditions)))
            elif part:
                included.setdefault(part, []).append(" ".join(conditions))
            elif word == "if":
                conditions.append(condition)
            elif word == "endif":
                conditions.pop()
            else:
                conditions[-1] = condition
    return [(address, under + outer) for name, address, under in offers for outer in included.get(name, [""])]


def test_every_act_has_a_call_and_a_command_and_no_page_offers_one_without_its_rule() -> None:
    assert acts.RULES.keys() == WALK.keys()
    document = yaml.safe_load((Path(settings.BASE_DIR) / "docs" / "openapi.yaml").read_text())
    calls = {
        call["operationId"] for path in document["paths"].values() for call in path.values() if "operationId" in call
    }
    for (act, kind), (operations, line, _) in WALK.items():
        assert set(operations) <= calls, (act, kind)
        assert bool(line) != ((act, kind) in WITHOUT_COMMAND), (act, kind)
        found: Any = get_command(app)
        for word in line.split():
            if word.startswith("--"):
                assert any(word in each.opts for each in found.params), (act, line)
            else:
                found = found.commands[word]
    guards = {name: guard for _, _, addresses in WALK.values() for name, guard in addresses.items()}
    offers = [(address, under) for address, under in read_offers() if address in guards]
    assert {address for address, _ in offers} == guards.keys()
    for address, under in offers:
        assert re.search(guards[address], under), (address, under)


def words_of(answer: Any) -> str:
    return re.sub(r"</?bdi>", "", unescape(answer.content.decode()))


def test_a_run_that_is_cancelled_is_cancelled_again_without_a_word(api: Api) -> None:
    run = cancelled()
    assert not acts.require("cancel", run)
    assert api.post(f"/runs/{run.pk}/cancel/", {}).status_code == 200


@pytest.mark.parametrize("role", few(ROLES, 2))
def test_an_act_beyond_a_person_s_rights_is_left_out(role: str) -> None:
    run, person = build.finished_run(), build.user("eve", role)
    for act, kind in acts.RULES:
        if kind is RunRecord:
            right = acts.RULES[act, kind][0]
            if right not in scopes_of(person):
                answer = acts.can(act, run, person)
                assert (answer.reason, answer.is_shown) == (f"This needs the {right} right.", False)
    assert not acts.can("again", run, AnonymousUser())


@pytest.mark.nightly
def test_a_plan_a_working_and_a_stopped_experiment_have_the_acts_that_rest_does(api: Api) -> None:
    build.suite(), build.endpoint(), build.profile()
    admin = build.user("boss", "admin")
    made = plan_experiment(suite="colours", endpoint="local", profile="pinned", runs=5, user=admin)
    calls = {"start": "start/", "resume": "resume/", "cancel": "cancel/"}
    for step in (lambda **_: None, start_experiment, cancel_experiment):
        step(experiment_id=made.pk)
        experiment = ExperimentRecord.objects.get(pk=made.pk)
        page = acts.offers_on(ExperimentRecord, made.pk, admin)
        for act, address in calls.items():
            with transaction.atomic():
                given = api.post(f"/experiments/{made.pk}/{address}", {})
                transaction.set_rollback(True)
            no = acts.refusal(act, experiment)
            assert (given.status_code == 409) == (no is not None and not no.is_done), (act, experiment.status)
            assert given.status_code != 409 or given.json()["detail"] == page[act].reason
        with transaction.atomic():
            given = api.delete(f"/experiments/{made.pk}/")
            transaction.set_rollback(True)
        assert (given.status_code == 204) == bool(page["delete"])


def test_an_endpoint_of_logs_is_neither_run_nor_probed_nor_checked(api: Api) -> None:
    endpoint, own = logged().endpoint, EndpointRecord.objects.get(slug=build.endpoint())
    build.profile()
    for act, kind in {"probe": "canary", "check": "capability"}.items():
        for each in (endpoint, own):
            answer = acts.can(act, each, build.user(f"{act}-{each.slug}"))
            given = api.post("/probes/", {"endpoint": each.slug, "kind": kind, "parameters": {}})
            assert (given.status_code < 400) == bool(answer), (act, each, given.content)
            assert answer or answer.reason in given.json()["fields"].values()
    asked = {"suite": "colours", "endpoint": endpoint.slug, "profile": "pinned"}
    no = acts.refusal("run", endpoint)
    assert no is not None
    assert api.post("/runs/", asked).json()["fields"]["endpoint"] == no.reason


@pytest.mark.nightly
def test_a_release_is_signed_and_settled_where_the_rules_say_so(api: Api) -> None:
    policy = {"slug": "quick", "rule": "paired", "tolerance_points": 20.0, "looks": [3, 10, 20]}
    version, by = runs_judged.suite(n_cases=8, policy=policy), build.process()
    release = runs_judged.release(*(runs_judged.run(version, repeats=3, by=by) for _ in range(2)))
    manager = build.user("mary", "release manager")
    assert acts.can("sign", release, manager)
    assert not acts.can("settle", release, manager)
    candidate = release.gates.get().candidate_run_id
    RunRecord.objects.filter(pk=candidate).update(status=RunRecord.Status.RUNNING)
    client = Client()
    client.force_login(manager)
    again = acts.can_on_runs("again", [candidate], manager)
    assert "run it again when it has ended" in again.reason
    shown = client.get(f"/releases/{release.pk}/rerun/?side=candidate", follow=True)
    assert again.reason in words_of(shown)
    answer = acts.can("sign", release, manager)
    sent = {"decision": "approve", "input_digest": release.verdict.input_digest if release.verdict else ""}
    assert api.post(f"/releases/{release.pk}/signoffs/", sent).json()["detail"] == answer.reason
    page = words_of(client.get(f"/releases/{release.pk}/"))
    assert answer.reason in page
    assert f'action="/releases/{release.pk}/signoffs/' not in page


@pytest.mark.nightly
def test_each_choice_of_the_repeats_that_settle_a_release_has_its_rule(api: Api) -> None:
    version, by = runs_judged.suite(n_cases=7, policy=runs_judged.SAMPLE_POLICY), build.process()
    release = runs_judged.release(*(runs_judged.run(version, repeats=3, by=by) for _ in range(2)))
    manager = build.user("mary", "release manager")
    pages = Client()
    pages.force_login(manager)
    candidate = RunRecord.objects.filter(pk=release.gates.get().candidate_run_id)
    for status in (RunRecord.Status.FINISHED, RunRecord.Status.INCOMPLETE):
        candidate.update(status=status)
        offers = {cases: acts.can(act, release, manager) for cases, act in SETTLE_ACTS.items()}
        for cases, offer in offers.items():
            plan = settle_plans(release_id=release.pk).of(cases)
            sent = {"cases": cases, "look": plan.look if plan else 3, "n_responses": plan.n_responses if plan else 9}
            with transaction.atomic():
                given = api.post(f"/releases/{release.pk}/settle/", sent)
                transaction.set_rollback(True)
            assert (given.status_code == 200) == bool(offer), (cases, offer, given.content[:300])
            assert offer or given.json()["detail"] == offer.reason
            page = words_of(pages.get(f"/releases/{release.pk}/settle/?cases={cases}", follow=True))
            assert ('class="actions confirm"' in page) == bool(offer)
            assert offer or offer.reason in page
        assert bool(offers["all"]) == (status == RunRecord.Status.FINISHED)
        assert not offers["noisiest"]  # nothing foretells which cases flip
    page = words_of(pages.get(f"/releases/{release.pk}/"))
    assert f'disabled aria-describedby="why-not-1" title="{offers["all"].reason}"' in page


@pytest.mark.nightly
def test_the_page_of_a_pair_decodes_the_side_again_that_the_rule_allows(api: Api) -> None:
    own, log = build.finished_run(), logged()
    pages = Client()
    pages.force_login(build.user("eve", "engineer"))
    for candidate in (log, own):
        for baseline in (own, log):
            page = pages.get(f"/compare/{baseline.pk}/{candidate.pk}/cases/sky/?repeat=1,1").content.decode()
            decoded = next((run for run in (candidate, baseline) if acts.refusal("replay", run) is None), None)
            sent = re.findall(r'name="run" value="(\d+)"', page)
            assert sent == ([] if decoded is None else [str(decoded.pk)])


@pytest.mark.nightly
def test_a_schedule_is_paused_once_and_resumed_once(api: Api) -> None:
    build.suite(), build.endpoint(), build.profile()
    order = {"suite": "colours", "endpoint": "local", "profile": "pinned"}
    sent = {"slug": "nightly", "cron": "0 3 * * *", "time_zone": "UTC", "run": order}
    made = api.post("/schedules/", sent).json()["id"]
    pages = Client()
    pages.force_login(build.user("eve", "engineer"))
    for act in ("pause", "pause", "resume", "resume"):
        schedule = ScheduleRecord.objects.get(pk=made)
        is_open = acts.refusal(act, schedule) is None
        before = schedule.next_at
        assert (f'action="/schedules/{made}/{act}/"' in words_of(pages.get("/schedules/"))) == is_open
        assert api.post(f"/schedules/{made}/{act}/", {}).status_code == 200
        assert (ScheduleRecord.objects.get(pk=made).next_at != before) == is_open


EVERY_ACT = {act for act, kind in acts.RULES if kind is RunRecord}


def closed(run: RunRecord, **changes: Any) -> set[str]:
    """Return the acts that are refused to a run, as if these fields of it were others."""
    found = acts.load_subject(RunRecord, run.pk)
    for name, value in changes.items():
        setattr(found, name, value)
    return {act for act in EVERY_ACT if acts.refusal(act, found) is not None}


def test_what_is_refused_to_a_run_follows_from_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    judged.policy()
    whole, short, now = build.finished_run(), incomplete(), timezone.now()
    ended = {"cancel"}
    more = {"complete", "add_repeats"}
    assert closed(whole) == ended | {"complete"}  # it misses nothing
    short_of = {"baseline", "bisect"}  # no repeat of it is whole
    assert closed(short) == ended | short_of
    going = {"again", "complete", "delete", "label", "judge"} | short_of
    assert closed(short, status="running") == closed(short, status="queued") == going
    assert closed(short, status="running", is_cancel_wanted=True) == going | {"cancel", "add_repeats"}
    assert closed(whole, is_cancel_wanted=True) == ended | more  # it came too late
    for status in ("failed", "cancelled"):
        assert closed(short, status=status) == ended | short_of | {"add_repeats"}
        assert closed(whole, status=status) == ended | more | {"baseline"}
    of_judge = {"again", "rescore", "judge", "bisect", "baseline"}
    assert closed(whole, is_judge=True) == ended | more | of_judge
    assert "complete" in closed(short, is_judge=True)
    assert closed(short, is_one_draw=True) == closed(short) | {"add_repeats"}
    assert closed(short, texts_deleted_at=now) == closed(short) | more | {"rescore", "label", "force"}
    assert closed(whole, traces_deleted_at=now) == closed(whole) | {"replay", "bisect"}
    assert closed(whole, is_reported=True) == closed(whole) | {"replay", "bisect"}
    assert closed(whole, bucket=None) == closed(whole) | {"bisect", "baseline"}
    source = {"source_id": logged().source_id}
    assert closed(whole, **source) == closed(whole) | more | {"again", "replay", "bisect"}
    assert "complete" in closed(short, **source)
    monkeypatch.setattr(acts, "MAX_REPEATS", 2)
    assert "add_repeats" in closed(whole)
    assert "add_repeats" not in closed(short)  # it has one


def test_what_is_refused_to_a_run_follows_from_its_repeats_and_from_what_refers_to_it() -> None:
    run = build.finished_run((build.TARGET, None, "red"), (build.TARGET, None, "red"))
    first, _ = repeats = run.repeats.order_by("index")
    open_ = {"cancel", "baseline"}
    assert closed(run) == open_ | {"bisect"}  # no repeat of it is whole
    repeats.update(status="finished")
    assert closed(run) == open_
    for status in ("failed", "cancelled"):
        repeats.update(status=status)
        assert closed(run) == open_ | {"judge", "bisect"}
        repeats.filter(pk=first.pk).update(status="incomplete")
        assert closed(run) == open_ | {"bisect"}
    repeats.update(status="finished", cases=b"\x07")
    assert closed(run) == open_ | {"again", "label", "judge", "bisect"}
    repeats.filter(pk=first.pk).update(cases=None)
    assert closed(run) == open_
    repeats.update(finished_at=None)
    assert closed(run) == open_ | {"rescore", "force"}
    CaseColumns.objects.filter(repeat__run=run).delete()
    assert closed(run) == open_ | {"rescore", "force", "compare", "label"}


def test_a_deleted_case_leaves_nothing_to_ask_or_to_score_again() -> None:
    run, other = incomplete(), incomplete()
    gone = DeletionRecord.objects.create(
        what="texts", run=other.pk, suite_version=run.suite_version, why="A rule.", n_responses=3, n_bytes=9
    )
    before = closed(run)
    assert "complete" not in before  # of another run, and no case
    DeletionRecord.objects.filter(pk=gone.pk).update(what="case", run=None, case_id="sky")
    assert closed(run) == before | {"complete", "add_repeats", "rescore"}


def test_what_history_refers_to_is_neither_deleted_nor_replaced() -> None:
    run, other = build.finished_run(), build.finished_run()
    kept = {"delete", "replace"}
    assert not kept & closed(run)
    Rotation.objects.create(
        endpoint=run.endpoint, run=run, before=build.bucket("bfloat16").fingerprint, after=build.bucket().fingerprint
    )
    assert kept <= closed(run)
    assert not kept & closed(other)
    JudgingRecord.objects.create(run=other, scorer=other.suite_version.scorer, judge_run=run, status="finished")
    assert kept & closed(other) == {"delete"}  # its judge's run would go with it
    assert "delete" in closed(run, is_judge=True)


def test_a_judge_that_is_at_work_or_has_scored_a_run_keeps_it_as_it_is() -> None:
    run = incomplete()
    version = run.suite_version
    before = closed(run, is_judged=True)
    judging = JudgingRecord.objects.create(run=run, scorer=version.scorer)
    assert closed(run, is_judged=True) == before | {"complete", "add_repeats", "delete", "judge"}
    assert "judge" not in closed(run)
    JudgingRecord.objects.filter(pk=judging.pk).update(status="finished")
    assert closed(run, is_judged=True) == before | {"complete", "add_repeats"}
    other, _ = Scorer.objects.get_or_create(digest="c" * 64, defaults={"spec": version.scorer.spec})
    JudgingRecord.objects.filter(pk=judging.pk).update(scorer=other)
    assert closed(run, is_judged=True) == before  # tried by another scorer: its own has not scored it


def test_scoring_again_is_cancelled_while_it_waits_or_runs() -> None:
    run = build.finished_run()
    row = ScoringRecord.objects.create(repeat=run.repeats.get(index=1), scorer=run.suite_version.scorer, needs=[])
    for status, is_open in {"queued": True, "running": True, "finished": False, "failed": False}.items():
        ScoringRecord.objects.filter(pk=row.pk).update(status=status)
        assert ("cancel" not in closed(run)) == is_open


def test_small_acts_follow_from_one_fact_each() -> None:
    now, later = timezone.now(), timezone.now() + timedelta(minutes=1)
    for subject, act, is_done in (
        (ScheduleRecord(slug="nightly", next_at=None), "pause", True),
        (ScheduleRecord(slug="nightly", next_at=now), "resume", True),
        (WebhookRecord(is_active=False), "test", False),
        (EndpointRecord(slug="local", rests_until=None), "try_now", True),
        (EndpointRecord(slug="local", rests_until=now), "try_now", True),  # it is over
    ):
        no = acts.refusal(act, subject)
        assert no is not None
        assert no.is_done == is_done, (act, no)
    assert acts.refusal("pause", ScheduleRecord(slug="nightly", next_at=now)) is None
    assert acts.refusal("resume", ScheduleRecord(slug="nightly", next_at=None)) is None
    assert acts.refusal("test", WebhookRecord(is_active=True)) is None
    assert acts.refusal("try_now", EndpointRecord(slug="local", rests_until=later)) is None


def test_a_scorer_is_adopted_where_it_would_score_a_case() -> None:
    version = build.suite()
    suite = version.suite
    assert acts.refusal("adopt", suite) is None
    for name in ("judged_suite_id", "reference_of_id"):
        other = Suite.objects.get(pk=suite.pk)
        setattr(other, name, suite.pk)
        assert acts.refusal("adopt", other) is not None, name
    Scorer.objects.filter(pk=version.scorer_id).update(spec={"default": None, "cases": {}})
    assert acts.refusal("adopt", suite) is not None, "every case has one of its own"


# Running again


def test_a_run_again_has_the_settings_of_the_first(api: Api) -> None:
    first = build.finished_run(SOME, labels={"commit": "1f3a"}, is_shuffled=True)
    build.profile("fast")
    made = api.post(f"/runs/{first.pk}/again/", {})
    assert made.status_code == 201
    again = RunRecord.objects.get(pk=made.json()["id"])
    assert made["Location"].endswith(f"/api/v1/runs/{again.pk}/")
    for name in ("suite_version", "endpoint", "profile", "seed", "labels", "is_shuffled", "is_restarted"):
        assert getattr(again, name) == getattr(first, name), name
    assert (again.status, again.repeats.count(), again.created_by.username) == ("queued", 1, "root")


def test_a_run_again_keeps_the_versions_that_the_first_had(api: Api) -> None:
    first = build.finished_run()
    build.suite(case_ids=("sky", "sea"))  # another version since
    stored = api.get("/profiles/").json()["results"][0]
    api.post("/profiles/", {"slug": "pinned", "title": "Other", "settings": {**stored["settings"], "max_num_seqs": 1}})
    again = run_again(run_id=first.pk)
    assert (again.suite_version_id, again.profile_id) == (first.suite_version_id, first.profile_id)


def test_what_a_release_runs_on_another_endpoint_has_the_base_of_its_adapter_too(settings: Any) -> None:
    adapter = str(settings.MODEL_ROOTS[0] / "tone")
    first = build.finished_run(model={"adapter": adapter})
    build.endpoint("second", model_path=str(settings.MODEL_ROOTS[0] / "other-base"))
    order = order_again(first.pk, endpoint="second", is_today=True)
    assert order["model"] == {"path": first.endpoint.model_path, "adapter": adapter}
    assert order_again(first.pk, is_today=True)["model"] == {"adapter": adapter}


@pytest.mark.nightly
def test_a_run_again_on_another_endpoint_by_a_key_is_one(api: Api) -> None:
    first = build.finished_run()
    build.endpoint("second")
    sent = [api.post(f"/runs/{first.pk}/again/", {"endpoint": "second"}, Idempotency_Key="k") for _ in range(2)]
    assert [each.json()["endpoint"] for each in sent] == ["second", "second"]
    assert sent[0].json()["id"] == sent[1].json()["id"]
    assert api.post(f"/runs/{first.pk}/again/", {"endpoint": "none"}).status_code == 404
    assert api.post("/runs/999999/again/", {}).status_code == 404
