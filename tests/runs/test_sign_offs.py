"""Sign-offs: by whom, on what, until when; and a history that nobody edits without its showing."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, connections, transaction
from django.utils import timezone

from evalboard.contract.release import CasesChanged
from evalboard.core.errors import Conflict, InvalidInput, NotFound, Refused
from evalboard.core.release import FIRST_VERDICT_RULES, VERDICT_RULES
from runs import sign_off_chain
from runs.access import remove_person
from runs.models import ReleaseRecord, ResponseRecord, RunRecord, SignOffRecord, Token
from runs.release import decide_release, release_report, sign_offs, sign_release, verdict_inputs, verdicts
from runs.release.read_list import sign_off_lines
from runs.run import add_repeats
from tests import build
from tests.casts import cast
from tests.nightly import few
from tests.runs import judged
from tests.runs.judged import ALWAYS

pytestmark = pytest.mark.django_db
# Under which eight cases and three repeats suffice.
POLICY = {"slug": "quick", "rule": "paired", "tolerance_points": 20.0, "looks": [3, 10, 20]}


@cast
def pair() -> tuple[RunRecord, RunRecord]:
    version, process = judged.suite(n_cases=8, policy=POLICY), build.process()
    return judged.run(version, repeats=3, by=process), judged.run(version, repeats=3, by=process)


@cast
def ship(pair: tuple[RunRecord, RunRecord]) -> ReleaseRecord:
    return judged.release(*pair)


@cast
def open_one(pair: tuple[RunRecord, RunRecord]) -> ReleaseRecord:
    return judged.release(*pair, policy="strict")


@cast
def person() -> Any:
    return build.user("mary", "release manager")


def sign(release: ReleaseRecord, by: Any, decision: str = "approve", **changes: Any) -> SignOffRecord:
    assert release.verdict is not None
    asked = {"release_id": release.pk, "decision": decision, "note": "", "input_digest": release.verdict.input_digest}
    return sign_release(**{**asked, **changes}, user=by)[0]


def soon(days: float = 30) -> Any:
    return timezone.now() + timedelta(days=days)


def problems() -> list[str]:
    return [line.problem or "" for line in sign_off_lines(lambda verdict_id: "")]


def past_the_trigger(statement: str, *values: Any) -> None:
    """What somebody with the database's own account could do."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # a table with checks to come cannot be altered
        cursor.execute("ALTER TABLE runs_signoff DISABLE TRIGGER runs_signoff_append_only")
        cursor.execute(statement, values)
        cursor.execute("ALTER TABLE runs_signoff ENABLE TRIGGER runs_signoff_append_only")


def test_a_ship_is_approved(ship: ReleaseRecord, person: Any) -> None:
    row = sign(ship, person, note=" Go. ")
    stored = SignOffRecord.objects.get()
    assert (stored.decision, stored.note, stored.person_name, stored.verdict) == (
        "approve",
        "Go.",
        "mary",
        ship.verdict,
    )
    assert (stored.previous_digest, stored.digest) == ("", row.digest)
    assert stored.digest == sign_off_chain.digest_of(stored)


def test_each_follows_from_the_one_before_across_releases(
    ship: ReleaseRecord, open_one: ReleaseRecord, person: Any
) -> None:
    rows = [
        sign(ship, person),
        sign(open_one, person, "waive", note="Known.", expires_at=soon()),
        sign(ship, person, "reject", note="Found a fault."),
    ]
    assert [row.previous_digest for row in rows] == ["", rows[0].digest, rows[1].digest]
    assert problems() == ["", "", ""]


@pytest.mark.parametrize("role", ["viewer", "engineer", None])
def test_who_may_not_sign(ship: ReleaseRecord, role: str | None) -> None:
    with pytest.raises(Refused, match="right to sign"):
        sign(ship, build.user("eve", role))
    assert not SignOffRecord.objects.exists()


@pytest.mark.parametrize(
    ("decision", "note", "ends", "field"),
    [
        pytest.param("bless", "", None, "decision", id="no such decision"),
        pytest.param("reject", "", None, "note", id="reject without a reason"),
        pytest.param("reject", "  ", None, "note", id="blank reason"),
        pytest.param("approve", "x" * 2001, None, "note", id="long"),
        pytest.param("approve", "x" * 2000, None, None, id="as long as may be"),
        pytest.param("approve", "a\0b", None, "note", id="not storable"),
        pytest.param("approve", "", 30, "expires_at", id="approval with an end"),
        pytest.param("reject", "No.", 30, "expires_at", id="rejection with an end"),
        pytest.param("waive", "Known.", None, "expires_at", id="waiver without an end"),
        pytest.param("waive", "Known.", 0, "expires_at", id="past"),
        pytest.param("waive", "Known.", 366.1, "expires_at", id="too long"),
        pytest.param("waive", "Known.", 366, None, id="as late as may be"),
        pytest.param("waive", "", 30, "note", id="waiver without a reason"),
    ],
)
def test_what_is_malformed_is_named(decision: str, note: str, ends: float | None, field: str | None) -> None:
    now = timezone.now()
    expires_at = None if ends is None else now + timedelta(days=ends)
    if field is None:
        sign_offs._refuse_wrong_input(decision, note, expires_at, now)
        return
    with pytest.raises(InvalidInput) as refused:
        sign_offs._refuse_wrong_input(decision, note, expires_at, now)
    assert list(refused.value.fields) == [field]


def test_a_malformed_sign_off_is_not_stored(ship: ReleaseRecord, person: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        sign(ship, person, "waive", note="Known.", expires_at=soon().replace(tzinfo=None))
    assert list(refused.value.fields) == ["expires_at"]
    assert not SignOffRecord.objects.exists()


def test_only_a_ship_is_approved_and_nothing_else_waived(
    ship: ReleaseRecord, open_one: ReleaseRecord, person: Any
) -> None:
    with pytest.raises(Conflict, match="Only ship can be approved"):
        sign(open_one, person)
    with pytest.raises(Conflict, match="needs no waiver"):
        sign(ship, person, "waive", note="Known.", expires_at=soon())
    with pytest.raises(NotFound):
        sign(ship, person, release_id=999_999)
    assert not SignOffRecord.objects.exists()


def test_what_was_looked_at_must_be_what_is_there(
    ship: ReleaseRecord, pair: tuple[RunRecord, RunRecord], person: Any
) -> None:
    with pytest.raises(Conflict, match="replaced"):
        sign(ship, person, input_digest="0" * 64)
    ResponseRecord.objects.filter(repeat__run=pair[1], case_index=0).update(is_vouched=False)
    with pytest.raises(Conflict, match="replaced"):
        sign(ship, person)
    ship.refresh_from_db()
    assert sign(ship, person).input_digest == ship.verdict.input_digest  # type: ignore[union-attr]


def test_a_sign_off_is_void_once_what_it_rests_on_changes(
    ship: ReleaseRecord, pair: tuple[RunRecord, RunRecord], person: Any
) -> None:
    sign(ship, person)
    assert [line.void for line in release_report(ship.pk).signoffs] == [None]
    ResponseRecord.objects.filter(repeat__run=pair[1], case_index=0).update(is_vouched=False)
    decide_release(release_id=ship.pk)
    report = release_report(ship.pk)
    assert report.outcome == "void"
    assert report.signoffs[0].void.startswith("Its inputs have changed since")


def test_nobody_signs_while_repeats_are_at_work(
    ship: ReleaseRecord, pair: tuple[RunRecord, RunRecord], person: Any
) -> None:
    add_repeats(run_id=pair[1].pk, n=1)
    with pytest.raises(Conflict, match=f"Run {pair[1].pk} is queued"):
        sign(ship, person)


@pytest.mark.parametrize(
    "statement",
    ["UPDATE runs_signoff SET note = 'other'", "DELETE FROM runs_signoff", "UPDATE runs_signoff SET id = id"],
)
def test_the_database_refuses_any_change(ship: ReleaseRecord, person: Any, statement: str) -> None:
    sign(ship, person)
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        SignOffRecord.objects.update(decision="reject")
    assert SignOffRecord.objects.get().decision == "approve"


@pytest.mark.parametrize(
    ("statement", "found"),
    few(
        [
            pytest.param("UPDATE runs_signoff SET note = 'Never.' WHERE id = %s", ["", "changed", ""], id="changed"),
            pytest.param(
                "UPDATE runs_signoff SET decision = 'approve' WHERE id = %s", ["", "changed", ""], id="turned"
            ),
            pytest.param("UPDATE runs_signoff SET created_at = now() WHERE id = %s", ["", "changed", ""], id="redated"),
            pytest.param("DELETE FROM runs_signoff WHERE id = %s", ["", "taken out"], id="taken out"),
            pytest.param(
                "UPDATE runs_signoff SET digest = repeat('e', 64) WHERE id = %s",
                ["", "changed", "taken out"],
                id="resealed",
            ),
        ],
        2,
    ),
)
def test_a_change_made_past_the_trigger_shows(
    ship: ReleaseRecord, person: Any, statement: str, found: list[str]
) -> None:
    rows = [sign(ship, person, "reject", note=f"Fault {n}.") for n in range(3)]
    past_the_trigger(statement, rows[1].pk)
    for problem, words in zip(problems(), found, strict=True):
        assert words in problem
        assert bool(words) == bool(problem)


def test_a_person_who_signed_can_be_shut_out_and_their_sign_off_stays(ship: ReleaseRecord, person: Any) -> None:
    build.token(person, "sign")
    sign(ship, person)
    remove_person(name="mary")
    assert not Token.objects.filter(revoked_at=None).exists()
    assert (SignOffRecord.objects.get().person_name, problems()) == ("mary", [""])
    person.refresh_from_db()
    with pytest.raises(Refused):
        sign(ship, person)


def test_the_same_sign_off_again_is_the_one_that_is_there(ship: ReleaseRecord, person: Any) -> None:
    first = sign(ship, person, note="Go.")
    assert sign(ship, person, note="Go. ", after="") == first
    assert SignOffRecord.objects.count() == 1
    other = sign(ship, person, "reject", note="Found a fault.")
    again = sign(ship, person, note="Go.", after=str(other.pk))
    assert [row.decision for row in SignOffRecord.objects.all()] == ["approve", "reject", "approve"]
    assert again.previous_digest == other.digest


def test_who_has_not_seen_a_sign_off_is_told_of_it_and_may_then_add_theirs(ship: ReleaseRecord, person: Any) -> None:
    first, other = sign(ship, person), build.user("bob", "release manager")
    for unseen in ({}, {"after": ""}, {"after": str(first.pk + 1)}):
        with pytest.raises(Conflict, match="mary has signed this verdict: approve"):
            sign(ship, other, **unseen)
    with pytest.raises(Conflict, match="mary has signed"):  # another tab of hers
        sign(ship, person, "reject", note="No.", after="")
    assert sign(ship, other, after=str(first.pk)).person_name == "bob"
    assert SignOffRecord.objects.count() == 2


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_two_who_sign_at_the_same_moment_store_one_sign_off() -> None:
    version, process = judged.suite(n_cases=8, policy=POLICY), build.process()
    release = judged.release(*(judged.run(version, repeats=3, by=process) for _ in range(2)))
    people = [build.user(name, "release manager") for name in ("mary", "bob")]
    clicks = [*people, people[0]]  # mary clicks twice
    together = threading.Barrier(len(clicks))

    def once(by: Any) -> str:
        try:
            together.wait()
            return f"{by}: {sign(release, by, after='').person_name}"
        except Conflict as problem:
            return f"{by}: {problem.detail}"
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(clicks)) as pool:
        answers = sorted(each.result() for each in [pool.submit(once, by) for by in clicks])
    signed = SignOffRecord.objects.get()
    first, second = ("mary", "bob") if signed.person_name == "mary" else ("bob", "mary")
    assert answers.count(f"{first}: {first}") == (2 if first == "mary" else 1)
    assert sum(answer.startswith(f"{second}: {first} has signed this verdict") for answer in answers) == (
        1 if first == "mary" else 2
    )


@pytest.mark.django_db(transaction=True)
def test_many_who_sign_at_once_make_one_chain() -> None:
    version, process = judged.suite(n_cases=3), build.process()
    pairs = [judged.run(version, {0: ALWAYS}, repeats=1, by=process) for _ in range(2)]
    releases = [judged.release(*pairs, policy="strict" if n % 2 else "paired") for n in range(6)]
    people = [build.user(f"person-{n}", "release manager") for n in range(6)]
    together = threading.Barrier(len(people))

    def once(place: int) -> None:
        try:
            together.wait()
            sign(releases[place], people[place], "reject", note="At once.")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(people)) as pool:
        for each in [pool.submit(once, place) for place in range(len(people))]:
            each.result()
    assert SignOffRecord.objects.count() == len(people)
    assert problems() == [""] * len(people)


def under_earlier_rules(monkeypatch: pytest.MonkeyPatch, rules: str) -> None:
    """As before an upgrade: verdicts are taken under these rules, and their documents name them or not."""
    for module in ("evalboard.core.release.verdict", "runs.release.read", "runs.release.verdict_inputs"):
        monkeypatch.setattr(f"{module}.VERDICT_RULES", rules)


@pytest.mark.nightly
@pytest.mark.parametrize("rules", few(["verdict 0.9", FIRST_VERDICT_RULES], 1))
def test_an_upgrade_of_the_rules_leaves_what_was_signed_as_it_was_signed(
    pair: tuple[RunRecord, RunRecord], person: Any, monkeypatch: pytest.MonkeyPatch, rules: str
) -> None:
    with monkeypatch.context() as earlier:
        under_earlier_rules(earlier, rules)
        release = judged.release(*pair)
        if rules == FIRST_VERDICT_RULES:  # its documents did not name them
            release.verdict.document.pop("rules")
            release.verdict.save(update_fields=["document"])
        sign(release, person)
    kept = decide_release(release_id=release.pk)
    assert kept == release.verdict
    report = release_report(release.pk)
    assert (report.outcome, report.signoffs[0].void) == ("approved", None)
    assert [line.code for line in report.warnings].count("earlier_rules") == 1
    sign(release, person, "reject", note="On second thoughts.")  # on the very verdict that is shown
    assert SignOffRecord.objects.filter(verdict=kept).count() == 2


def test_a_field_that_a_later_version_adds_leaves_what_was_signed_as_it_was_signed(
    ship: ReleaseRecord, person: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wider(CasesChanged):
        n_new: int | None = None

    sign(ship, person)
    monkeypatch.setattr("evalboard.core.release.evidence.CasesChanged", Wider)
    inputs = verdict_inputs.find(ship, verdict_inputs.read_release_gates(ship))
    assert "n_new" in verdicts.judge(inputs)["gates"][0]["changed"]
    assert "n_new" not in ship.verdict.document["gates"][0]["changed"]
    sign(ship, person, "reject", note="Signed once more, by code that knows the field.")
    assert problems() == ["", ""]
    assert release_report(ship.pk).gates[0].changed.n_broken == 0


@pytest.mark.nightly
def test_an_upgrade_of_the_rules_decides_what_nobody_signed_anew(
    pair: tuple[RunRecord, RunRecord], person: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        under_earlier_rules(earlier, "verdict 0.9")
        unsigned, waived = judged.release(*pair), judged.release(*pair, policy="strict")
        sign(waived, person, "waive", note="Until then.", expires_at=soon())
    assert decide_release(release_id=unsigned.pk) != unsigned.verdict
    assert decide_release(release_id=waived.pk) == waived.verdict
    past_the_trigger("UPDATE runs_signoff SET expires_at = now()")  # the waiver has ended
    taken = decide_release(release_id=waived.pk)
    assert (taken != waived.verdict, taken.document["rules"]) == (True, VERDICT_RULES)
    assert [line.code for line in release_report(waived.pk).warnings].count("earlier_rules") == 0


def test_what_was_signed_under_earlier_rules_is_void_once_its_inputs_move(
    pair: tuple[RunRecord, RunRecord], person: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        under_earlier_rules(earlier, "verdict 0.9")
        release = judged.release(*pair)
        sign(release, person)
    ResponseRecord.objects.filter(repeat__run=pair[0]).update(is_vouched=False)
    assert decide_release(release_id=release.pk) != release.verdict
    assert release_report(release.pk).outcome == "void"
