"""From what a person follows to their chat or mailbox, through the outbox that webhooks have."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core import mail
from django.db.models.functions import Now
from django.test import Client

from evalboard.core.errors import Conflict, InvalidInput, NotFound
from runs.access import remove_person
from runs.catalogue import note_rotation
from runs.models import EndpointRecord, FollowRecord, OutboxMessage, ReplayRecord, RunRecord, Shard, WebhookRecord
from runs.release import create_release
from runs.replays import REPLAYS, create_replay
from runs.run import add_repeats
from runs.webhooks import delete_webhook, webhook_rows
from runs.webhooks.follows import NO_EMAIL, create_address, follow, follow_rows, unfollow
from runs.work import rollup
from tests import build, judged
from tests.api.conftest import Api
from tests.receiver import Receiver, receiver
from tests.runs import logs
from worker.sending import send_next

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def configured(settings: Any) -> None:
    settings.WEBHOOK_ALLOW_PRIVATE = frozenset({"127.0.0.1"})
    settings.PUBLIC_ADDRESS = "https://evalboard.example.com"
    settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = "mail.example.com", "evalboard@example.com"


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as started:
        yield started


def told(there: Receiver) -> list[str]:
    """Send all that waits; the texts that arrived."""
    while send_next():
        pass
    return [json.loads(each.body)["text"] for each in there.received]


def ended(run: RunRecord) -> RunRecord:
    Shard.objects.filter(repeat__run=run).update(status="finished")
    for repeat in run.repeats.all():
        rollup.finish_repeat(repeat_id=repeat.pk)
    return run


@pytest.mark.parametrize(("kind", "name"), [("run", ""), ("suite", "colours"), ("endpoint", "local")])
def test_a_runs_end_reaches_who_follows_it_its_suite_or_its_endpoint(there: Receiver, kind: str, name: str) -> None:
    person, run = build.user(), build.run(repeats=1)
    create_address(url=there.url, person=person)
    follow(kind=kind, name=name or str(run.pk), person=person)
    follow(kind=kind, name=name or str(run.pk), person=person)
    ended(run)
    link = f"https://evalboard.example.com/runs/{run.pk}/"
    assert told(there) == [f"Run {run.pk} of colours on local ended: incomplete. {link}"]


@pytest.mark.nightly
def test_a_case_that_turns_in_a_newer_finished_run_reaches_who_follows_it(there: Receiver) -> None:
    person = build.user()
    create_address(url=there.url, person=person)
    right, wrong, cut = (build.TARGET,) * 3, (build.TARGET, "red", "red"), (build.TARGET, None, "red")
    early = build.run(repeats=1)
    for name in ("colours/sea", "colours/a/b c", "colours/sky"):
        follow(kind="case", name=name, person=person)
    last = [build.finished_run(right, right) for _ in range(2)][-1]
    build.finished_run(cut, cut)  # did not finish
    build.finished_run(right, wrong)  # its repeats differ
    assert told(there) == []
    turned = build.finished_run(wrong, wrong)
    build.decode(early, 1, right)  # older than what was told
    texts = [
        f"Case {case} of colours fails every time in run {turned.pk} on local (2 of 2); it passed every time in run "
        f"{last.pk} (2 of 2). https://evalboard.example.com/suites/colours/cases/{place}/"
        for case, place in (("sea", "sea"), ("a/b c", "a/b%20c"))
    ]
    assert sorted(told(there)) == sorted(texts)
    (sea,) = follow_rows(person, name="colours/sea")
    assert (sea.kind, sea.url) == ("case", "/suites/colours/cases/sea/")


@pytest.mark.nightly
def test_a_turn_is_told_once_however_often_its_run_ends(there: Receiver) -> None:
    person = build.user()
    create_address(url=there.url, person=person)
    right, wrong = (build.TARGET,) * 3, (build.TARGET, "red", "red")
    early = build.finished_run(right)
    follow(kind="case", name="colours/sea", person=person)
    turned = build.finished_run(wrong)
    assert [text.partition(".")[0] for text in told(there)] == [
        f"Case sea of colours fails every time in run {turned.pk} on local (1 of 1); it passed every time in run "
        f"{early.pk} (1 of 1)"
    ]
    add_repeats(run_id=turned.pk, n=1)
    build.decode(turned, 2, wrong)
    assert RunRecord.objects.get(pk=turned.pk).status == "finished"
    assert len(told(there)) == 1
    add_repeats(run_id=turned.pk, n=1)
    build.decode(turned, 3, right)  # its repeats differ now, which is no turn back
    back = build.finished_run(right)
    assert [f"run {back.pk} " in text and f"run {turned.pk} (2 of 2)" in text for text in told(there)] == [False, True]


@pytest.mark.nightly
def test_two_endpoints_that_answer_a_case_in_turn_are_no_turns_of_it(there: Receiver) -> None:
    person = build.user()
    create_address(url=there.url, person=person)
    right, wrong = (build.TARGET,) * 3, (build.TARGET, "red", "red")
    build.finished_run(right)
    build.finished_run(wrong, on="other")
    follow(kind="case", name="colours/sea", person=person)
    for _ in range(2):
        build.finished_run(right)
        build.finished_run(wrong, on="other")
    assert told(there) == []
    build.finished_run(right, on="other")
    (text,) = told(there)
    assert "passes every time" in text
    assert "on other" in text


@pytest.mark.nightly
def test_an_import_is_not_followed_and_tells_who_follows_its_suite_or_case(there: Receiver, client: Client) -> None:
    person = build.user()
    create_address(url=there.url, person=person)
    with pytest.raises(InvalidInput) as refused:
        follow(kind="import", name="1", person=person)
    assert "An import has ended when it is answered; follow its suite or a case." in refused.value.fields["kind"]
    asked = Api(build.token(person)).post("/follows/", {"kind": "import", "name": "1"})
    assert (asked.status_code, asked.json()["fields"]) == (400, refused.value.fields)
    client.force_login(person)
    page = client.post("/follows/", {"kind": "import", "name": "1"}, follow=True)
    assert "An import has ended when it is answered; follow its suite or a case." in page.content.decode()
    first = logs.stored(logs.log())
    slug, case = first.suite_version.suite.slug, first.suite_version.cases.get(index=0).case_id
    follow(kind="suite", name=slug, person=person)
    follow(kind="case", name=f"{slug}/{case}", person=person)
    worse = [logs.response(each, repeat, score=float(each != case)) for each in logs.CASES for repeat in (1, 2)]
    second = logs.stored(logs.log(*worse), "two")
    ended, turned = sorted(told(there), key=lambda text: text.startswith("Case"))
    assert ended.startswith(f"Run {second.pk} of {slug} on")
    assert turned.startswith(f"Case {case} of {slug} fails every time in run {second.pk} on")


def test_one_message_for_each_address_and_none_for_others(there: Receiver) -> None:
    person, other, run = build.user(), build.user("bo"), build.run(repeats=1)
    create_address(url=there.url, person=person)
    create_address(url="mailto:ada@example.com", person=person)
    create_address(url=there.url, person=other)
    for kind, name in (("run", str(run.pk)), ("suite", "colours")):
        follow(kind=kind, name=name, person=person)
    ended(run)
    assert len(told(there)) == 1
    (letter,) = mail.outbox
    assert (letter.to, letter.from_email) == (["ada@example.com"], "evalboard@example.com")
    assert letter.subject.startswith(f"Evalboard: Run {run.pk} of colours")
    assert f"You follow run {run.pk}. Stop: https://evalboard.example.com/unsubscribe/" in letter.body


def test_a_mail_program_unsubscribes_with_one_press(there: Receiver) -> None:
    person, run = build.user(), build.run(repeats=1)
    create_address(url="mailto:ada@example.com", person=person)
    follow(kind="suite", name="colours", person=person)
    ended(run)
    told(there)
    sent = mail.outbox[0].message()
    assert sent["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    link = sent["List-Unsubscribe"].strip("<>").removeprefix("https://evalboard.example.com")
    anybody = Client(enforce_csrf_checks=True)
    assert "You get e-mails about <b>suite" in anybody.get(link).content.decode()
    assert FollowRecord.objects.count() == 1  # opening it changes nothing
    assert anybody.post(f"{link[:-2]}/", {"List-Unsubscribe": "One-Click"}).status_code == 404
    assert FollowRecord.objects.count() == 1
    for _ in range(2):
        answer = anybody.post(link, {"List-Unsubscribe": "One-Click"})
        assert (answer.status_code, "You get no more e-mails" in answer.content.decode()) == (200, True)
    assert not FollowRecord.objects.exists()


def test_no_name_becomes_a_header(there: Receiver) -> None:
    person, run = build.user(), build.run(repeats=1)
    create_address(url="mailto:ada@example.com", person=person)
    follow(kind="run", name=str(run.pk), person=person)
    EndpointRecord.objects.update(slug="local\r\nBcc: eve@example.com")
    ended(run)
    told(there)
    (letter,) = mail.outbox
    sent = letter.message()
    assert sent["Bcc"] is None
    assert "\n" not in letter.subject
    assert letter.recipients() == ["ada@example.com"]


@pytest.mark.nightly
def test_a_rotation_and_a_verdict_reach_who_follows(there: Receiver) -> None:
    person = build.user(role="release manager")
    create_address(url=there.url, person=person)
    judged.policy()
    one, other = judged.run(), judged.run()
    follow(kind="suite", name="colours", person=person)
    gate = {"suite": "colours", "baseline": one.pk, "candidate": other.pk, "tier": "critical"}
    release = create_release(gates=[gate], policy="lenient")
    (text,) = told(there)
    assert text.startswith(f"Release {release.pk}: ")
    assert "It waits for a sign-off." in text
    create_release(gates=[gate], policy="paired")
    assert "Open it to see what to do next." in told(there)[-1]
    follow(kind="endpoint", name="local", person=person)
    texts, later = judged.answers(judged.N_CASES), build.process(build.bucket("bfloat16"))
    moved = build.finished_run(texts, version=judged.suite(), by=later)
    note_rotation(shown_by=moved)
    assert any("is served by" in each for each in told(there))


def test_work_that_ends_is_told_once_and_followed_no_more(there: Receiver) -> None:
    person, run = build.user(), build.finished_run()
    create_address(url=there.url, person=person)
    replay = create_replay(run_id=run.pk, case_id="sky")
    follow(kind="replay", name=str(replay.pk), person=person)
    lease = REPLAYS.claim(ReplayRecord.objects.all(), worker=build.worker("replayer"))
    assert lease is not None
    REPLAYS.finish(lease=lease, status="failed", error="No engine.")
    (text,) = told(there)
    assert text.startswith(f"Replay {replay.pk} ended: failed. No engine. https://")
    assert not FollowRecord.objects.exists()


def test_who_lost_access_is_told_nothing(there: Receiver) -> None:
    person, run = build.user(), build.run(repeats=1)
    create_address(url=there.url, person=person)
    follow(kind="run", name=str(run.pk), person=person)
    ended(run)
    remove_person(name=person.username)
    assert told(there) == []
    assert OutboxMessage.objects.get().last_error == "This person has no access any more."


def test_a_mailbox_that_is_not_taken_is_tried_again(there: Receiver, settings: Any) -> None:
    person, run = build.user(), build.run(repeats=1)
    create_address(url="mailto:ada@example.com", person=person)
    follow(kind="run", name=str(run.pk), person=person)
    ended(run)
    settings.EMAIL_HOST = ""
    told(there)
    assert (OutboxMessage.objects.get().status, mail.outbox) == ("waiting", [])
    assert webhook_rows(owner=person)[0].last_error == NO_EMAIL
    settings.EMAIL_HOST = "mail.example.com"
    OutboxMessage.objects.update(next_at=Now())
    told(there)
    assert len(mail.outbox) == 1


def test_addresses_are_checked_and_a_persons_own(settings: Any) -> None:
    person, other = build.user(), build.user("bo", "admin")
    for url, words in (("mailto:ada", "not an e-mail address"), ("http://10.0.0.1/", "is not on the open internet")):
        with pytest.raises(InvalidInput) as refused:
            create_address(url=url, person=person)
        assert words in refused.value.fields["url"]
    made, _ = create_address(url="https://hooks.slack.com/services/T0/B0/secretpath", person=person)
    assert [row.url for row in webhook_rows(owner=person)] == ["https://hooks.slack.com/***path"]
    assert (webhook_rows(), webhook_rows(owner=other)) == ((), ())
    for owner in (None, other):
        with pytest.raises(NotFound):
            delete_webhook(webhook_id=made.pk, owner=owner)
    for _ in range(4):
        create_address(url="https://hooks.slack.com/services/T0/B0/x", person=person)
    with pytest.raises(Conflict, match="5 addresses already"):
        create_address(url="https://hooks.slack.com/services/T0/B0/x", person=person)
    settings.EMAIL_HOST = ""
    with pytest.raises(InvalidInput) as refused:
        create_address(url="mailto:ada@example.com", person=other)
    assert refused.value.fields["url"] == NO_EMAIL
    delete_webhook(webhook_id=made.pk, owner=person)
    assert WebhookRecord.objects.count() == 4


def test_only_what_is_there_is_followed() -> None:
    person = build.user()
    for kind, name in (("run", "7"), ("run", "x"), ("suite", "none"), ("case", "none/sky"), ("case", "sky")):
        with pytest.raises(NotFound):
            follow(kind=kind, name=name, person=person)
    with pytest.raises(InvalidInput):
        follow(kind="worker", name="1", person=person)
    build.suite()
    followed = follow(kind="suite", name="colours", person=person)
    with pytest.raises(NotFound):
        unfollow(follow_id=followed.pk, person=build.user("bo"))
    unfollow(follow_id=followed.pk, person=person)
    assert not FollowRecord.objects.exists()
