"""Writing `ship` into the database: nobody signs it, no export calls it whole, and nobody empties the table.

Each attack is a statement by the application's own account, on PostgreSQL.
"""

import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.utils import timezone

from evalboard.core.digest import digest_json
from evalboard.core.errors import Conflict, Refused
from runs import exports, sign_off_chain
from runs.models import ReleaseRecord, RunRecord, SignOffRecord, Verdict
from runs.release import decide_release, sign_release, suite_badge, verdict_change, verdict_check, verdict_inputs
from tests import build
from tests.api.conftest import Api
from tests.casts import cast
from tests.nightly import few
from tests.runs import judged

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
def inconclusive(pair: tuple[RunRecord, RunRecord]) -> ReleaseRecord:
    release = judged.release(*pair, policy="strict")
    assert release.verdict is not None
    assert release.verdict.word == "inconclusive"
    return release


@cast
def mary() -> Any:
    return build.user("mary", "release manager")


def execute(statement: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # a table with checks to come cannot be altered
        cursor.execute(statement, values)


def sign(release: ReleaseRecord, by: Any, decision: str = "approve", **more: Any) -> SignOffRecord:
    digest = Verdict.objects.get(release=release).input_digest
    return sign_release(release_id=release.pk, decision=decision, input_digest=digest, user=by, **more)[0]


def exported() -> list[dict[str, Any]]:
    return [json.loads(line) for line in exports.sign_off_lines()]


def test_a_word_written_into_the_database_is_not_signed(
    inconclusive: ReleaseRecord, mary: Any, caplog: pytest.LogCaptureFixture
) -> None:
    execute("UPDATE runs_verdict SET word = 'ship'")
    with pytest.raises(Conflict, match="it says ship, and recomputed it is inconclusive"):
        sign(inconclusive, mary)
    assert not SignOffRecord.objects.exists()
    [line] = [line for line in caplog.records if line.levelno == logging.ERROR]
    assert line.getMessage().startswith(f"verdict_changed release={inconclusive.pk} ")


@pytest.mark.parametrize(
    ("path", "value"),
    [("{verdict}", '"ship"'), ("{reasons}", "[]"), ("{gates,0,difference}", "12.5"), ("{gates,0,low}", "null")],
)
def test_whoever_changes_reasons_or_numbers_too_gains_nothing(
    inconclusive: ReleaseRecord, mary: Any, path: str, value: str
) -> None:
    execute("UPDATE runs_verdict SET document = jsonb_set(document, %s::text[], %s::jsonb)", path, value)
    with pytest.raises(Conflict, match="differs when it is recomputed"):
        sign(inconclusive, mary, "reject", note="Not like this.")


def test_loosened_thresholds_are_not_signed_under_the_old_name(inconclusive: ReleaseRecord, mary: Any) -> None:
    execute("UPDATE runs_policy SET settings = jsonb_set(settings, '{tolerance_points}', '99.0')")
    with pytest.raises(Conflict, match="are not those of its digest"):
        sign(inconclusive, mary)


@pytest.mark.nightly
def test_a_verdict_under_another_policy_is_not_signed(
    ship: ReleaseRecord, inconclusive: ReleaseRecord, mary: Any
) -> None:
    execute("UPDATE runs_verdict SET policy_id = %s WHERE release_id = %s", ship.policy_id, inconclusive.pk)
    with pytest.raises(Conflict, match="it has another policy than strict"):
        sign(inconclusive, mary)


def test_a_verdict_that_pretends_to_be_by_earlier_rules_is_held_against_what_was_signed(
    inconclusive: ReleaseRecord, mary: Any
) -> None:
    """Such a verdict stays as it was signed, and cannot be taken anew."""
    sign(inconclusive, mary, "waive", note="Known.", expires_at=build.timezone.now() + build.timedelta(days=30))
    inputs = verdict_inputs.find(inconclusive, verdict_inputs.read_release_gates(inconclusive))
    execute(
        "UPDATE runs_verdict SET word = 'ship', input_digest = %s, document = document || %s::jsonb",
        inputs.digest_by("verdict 0.9"),
        '{"rules": "verdict 0.9"}',
    )
    assert "not the one that was signed before" in verdict_change(Verdict.objects.get(release=inconclusive))


def test_what_moved_by_right_is_no_attack(ship: ReleaseRecord, pair: tuple[RunRecord, RunRecord], mary: Any) -> None:
    """Another release on the same runs changes what the first one would warn of, and no more."""
    judged.release(*pair, policy="strict")
    assert sign(ship, mary).version == 3
    assert [line["is_intact"] for line in exported()] == [True]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE runs_verdict SET word = 'no_ship'", "changed in the database afterwards"),
        ('UPDATE runs_verdict SET document = document || \'{"summary": "x"}\'', "changed in the database afterwards"),
        ("UPDATE runs_policy SET settings = settings || '{\"tolerance_points\": 1}'", "changed in the database"),
    ],
)
def test_a_verdict_changed_after_it_was_signed_shows_in_the_export(
    ship: ReleaseRecord, mary: Any, statement: str, problem: str
) -> None:
    sign(ship, mary)
    assert [line["problem"] for line in exported()] == [None]
    execute(statement)
    [line] = exported()
    assert line["is_intact"] is False
    assert problem in line["problem"]


def old_sign_off(release: ReleaseRecord, by: Any, decision: str = "approve") -> SignOffRecord:
    """As the version before wrote it: its digest covers neither verdict nor credential."""
    verdict = Verdict.objects.get(release=release)
    last = SignOffRecord.objects.order_by("-id").first()
    row = SignOffRecord(
        release=release,
        verdict=verdict,
        person=by,
        person_name="mary",
        decision=decision,
        input_digest=verdict.input_digest,
        created_at=verdict.decided_at,
        version=1,
        previous_digest=last.digest if last else "",
        made_with="",
        verdict_digest="",
    )
    row.digest = sign_off_chain.digest_of(row)
    row.save(force_insert=True)
    return row


def test_sign_offs_of_the_version_before_hold_and_new_ones_follow_from_them(ship: ReleaseRecord, mary: Any) -> None:
    old = old_sign_off(ship, mary)
    known = {"previous": "", "release": ship.pk, "verdict": old.verdict_id, "person": mary.pk, "person_name": "mary"}
    known |= {"decision": "approve", "note": "", "expires_at": None, "input_digest": old.input_digest}
    known |= {"created_at": old.created_at.isoformat(timespec="microseconds")}
    assert old.digest == digest_json(known), "what was signed before this version is proved as it was"
    new = sign(ship, mary)
    assert (new.previous_digest, new.version) == (old.digest, 3)
    assert [(line["version"], line["is_intact"]) for line in exported()] == [(1, True), (3, True)]


def test_an_old_sign_off_is_held_against_its_verdict_taken_anew(inconclusive: ReleaseRecord, mary: Any) -> None:
    """What today's attack left behind: `ship` was written into the database, and somebody approved it."""
    execute("UPDATE runs_verdict SET word = 'ship'")
    old_sign_off(inconclusive, mary)
    [line] = exported()
    assert line["is_intact"] is False
    assert "it says ship, and recomputed it is inconclusive" in line["problem"]


def test_the_table_cannot_be_emptied(ship: ReleaseRecord, mary: Any) -> None:
    sign(ship, mary)
    for statement in ("TRUNCATE runs_signoff", "TRUNCATE runs_release CASCADE"):
        with pytest.raises(IntegrityError, match="append-only; TRUNCATE is refused"), transaction.atomic():
            execute(statement)
    assert SignOffRecord.objects.count() == 1


def test_a_sign_off_names_the_token_it_was_made_with(ship: ReleaseRecord, mary: Any) -> None:
    secret = build.token(mary, "read", "sign")
    label = mary.evalboard_tokens.get().label
    digest = Verdict.objects.get(release=ship).input_digest
    made = Api(secret).post(f"/releases/{ship.pk}/signoffs/", {"decision": "approve", "input_digest": digest})
    assert made.status_code == 201, made.content
    assert made.json()["made_with"] == f"token {label} (test)"
    assert exported()[0]["made_with"] == f"token {label} (test)"
    execute("ALTER TABLE runs_signoff DISABLE TRIGGER runs_signoff_append_only")
    execute("UPDATE runs_signoff SET made_with = 'session 0'")
    assert exported()[0]["is_intact"] is False


@pytest.mark.nightly
def test_a_sign_off_on_the_page_names_the_session_and_does_not_give_it_away(ship: ReleaseRecord, mary: Any) -> None:
    client = Client()
    client.force_login(mary)
    digest = Verdict.objects.get(release=ship).input_digest
    asked = {"decision": "approve", "input_digest": digest, "note": "", "read_at": "0"}
    assert client.post(f"/releases/{ship.pk}/signoffs/", asked).status_code == 302
    made_with = SignOffRecord.objects.get().made_with
    assert made_with.startswith("session ")
    assert str(client.session.session_key)[:8] not in made_with
    client.post(f"/releases/{ship.pk}/signoffs/", {**asked, "decision": "reject", "note": "No."})
    assert set(SignOffRecord.objects.values_list("made_with", flat=True)) == {made_with}


def test_whoever_made_a_release_does_not_let_it_pass_where_two_are_asked_for(
    pair: tuple[RunRecord, RunRecord], mary: Any, settings: Any
) -> None:
    hers = judged.release(*pair, user=mary)
    settings.FOUR_EYES = True
    with pytest.raises(Refused, match="another person must approve or waive it"):
        sign(hers, mary)
    opened = judged.release(*pair, policy="strict", user=mary)
    with pytest.raises(Refused, match="another person must approve or waive it"):
        sign(opened, mary, "waive", note="It must.", expires_at=timezone.now() + timedelta(days=1))
    rejected = sign(hers, mary, "reject", note="No.")
    approved = sign(hers, build.user("john", "release manager"), after=str(rejected.pk))
    settings.FOUR_EYES = False
    assert sign(hers, mary, after=str(approved.pk)).decision == "approve"


KEY, OTHER_KEY = "0123456789" * 5, "abcdefghij" * 5


@pytest.fixture
def sealed(settings: Any) -> None:
    settings.VERDICT_KEYS = (KEY,)


@pytest.fixture
def judged_again(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was judged again since, as verdicts without a known seal are."""
    known, calls = verdict_check.judge, list[Any]()

    def judge(inputs: Any, *rest: Any) -> Any:
        calls.append(inputs)
        return known(inputs, *rest)

    monkeypatch.setattr(verdict_check, "judge", judge)
    return calls


@pytest.fixture
def viewer() -> Client:
    client = Client()
    client.force_login(build.user("vera", "viewer"))
    return client


@pytest.fixture
def api() -> Api:
    return Api(build.token(build.user("eve", "viewer"), "read"))


def read_everywhere(release: ReleaseRecord, viewer: Client, api: Api) -> set[int]:
    """Return the status codes of the release's page and of REST, of every part of them that has a verdict."""
    path = f"/releases/{release.pk}/"
    return {
        viewer.get(path).status_code,
        viewer.get(path, headers={"HX-Request": "true"}).status_code,
        api.get(path).status_code,
        api.get(f"{path}export/").status_code,
    }


@pytest.mark.usefixtures("sealed")
@pytest.mark.parametrize("was_read", few([True, False], 1), ids=["sealed before", "without a seal"])
@pytest.mark.parametrize(
    "change",
    few(
        [
            "word = 'ship'",
            "word = 'ship', seal = repeat('a', 64)",
            "word = 'ship', seal_key = 'unknown'",
            "word = 'ship', seal = '', seal_key = '', document_digest = ''",
            "document = jsonb_set(document, '{gates,0,difference}', '12.5')",
            "document = jsonb_set(document, '{gates,0,difference}', '12.5'), seal = ''",
        ],
        3,
    ),
)
def test_a_verdict_written_into_the_database_is_shown_nowhere(
    inconclusive: ReleaseRecord, viewer: Client, api: Api, was_read: bool, change: str
) -> None:
    if was_read:
        assert read_everywhere(inconclusive, viewer, api) == {200}
        assert Verdict.objects.get(release=inconclusive).seal_key == sign_off_chain.key_id(KEY)
    execute(f"UPDATE runs_verdict SET {change}")  # noqa: S608  the attack
    assert read_everywhere(inconclusive, viewer, api) == {409}
    assert "was changed in the database" in viewer.get(f"/releases/{inconclusive.pk}/").content.decode()
    if "word" in change:
        listed = api.get("/releases/").json()["results"]
        assert [row["verdict"] for row in listed] == [None]
        assert suite_badge(inconclusive.gates.get().suite.slug).verdict == ""


@pytest.mark.nightly
@pytest.mark.usefixtures("sealed")
def test_loosened_thresholds_are_not_shown(ship: ReleaseRecord, viewer: Client, api: Api) -> None:
    assert read_everywhere(ship, viewer, api) == {200}
    execute("UPDATE runs_policy SET settings = jsonb_set(settings, '{tolerance_points}', '99.0')")
    assert read_everywhere(ship, viewer, api) == {409}


def test_a_key_that_is_not_known_costs_one_judgement_and_no_error(
    ship: ReleaseRecord, viewer: Client, settings: Any, judged_again: list[Any]
) -> None:
    for keys, n_judged in (((KEY,), 1), ((KEY,), 0), ((OTHER_KEY, KEY), 0), ((OTHER_KEY,), 1), ((), 0)):
        settings.VERDICT_KEYS = keys
        judged_again.clear()
        assert viewer.get(f"/releases/{ship.pk}/").status_code == 200
        assert len(judged_again) == n_judged, keys
    settings.VERDICT_KEYS = (OTHER_KEY,)
    assert sign_off_chain.is_sealed(Verdict.objects.get(release=ship))


def test_a_new_verdict_is_sealed_when_it_is_taken(
    pair: tuple[RunRecord, RunRecord], sealed: None, judged_again: list[Any]
) -> None:
    release = judged.release(*pair)
    assert release.verdict is not None
    assert sign_off_chain.is_sealed(release.verdict)
    assert sign_off_chain.has_sealed_document(release.verdict)
    assert decide_release(release_id=release.pk) == release.verdict
    assert not judged_again


@pytest.mark.usefixtures("sealed")
@pytest.mark.parametrize("seal", ["", "a" * 64])
def test_a_sign_off_written_into_the_database_approves_nothing(
    ship: ReleaseRecord, mary: Any, seal: str, api: Api
) -> None:
    """Its digest and its place in the chain are right: the code is enough to compute them."""
    sign(ship, mary, "reject", note="Not yet.")
    forged = old_sign_off(ship, mary)
    if seal:
        execute("ALTER TABLE runs_signoff DISABLE TRIGGER runs_signoff_append_only")
        SignOffRecord.objects.filter(pk=forged.pk).update(seal=seal, seal_key=sign_off_chain.key_id(KEY))
    one = api.get(f"/releases/{ship.pk}/").json()
    assert one["outcome"] == "void"
    assert [row["void"] is None for row in one["signoffs"]] == [True, False]
    assert [row["outcome"] for row in api.get("/releases/").json()["results"]] == ["void"]
    assert [line["is_intact"] for line in exported()] == [True, False]
    assert sign(ship, mary, after=str(forged.pk)).decision == "approve", "a person decides again"
    assert api.get(f"/releases/{ship.pk}/").json()["outcome"] == "approved"


def test_sign_offs_hold_when_the_key_is_exchanged(ship: ReleaseRecord, mary: Any, sealed: None, settings: Any) -> None:
    sign(ship, mary)
    api = Api(build.token(build.user("eve", "viewer"), "read"))
    settings.VERDICT_KEYS = (OTHER_KEY, KEY)
    assert api.get(f"/releases/{ship.pk}/").json()["outcome"] == "approved"
    settings.VERDICT_KEYS = (OTHER_KEY,)
    lost = api.get(f"/releases/{ship.pk}/").json()
    assert (lost["outcome"], lost["verdict"]) == ("void", "ship")
    assert "EVALBOARD_VERDICT_KEYS_BEFORE" in lost["signoffs"][0]["void"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs_repeatscore SET scores = decode(repeat('000000000000e03f', 8), 'hex')",
        "UPDATE runs_casecolumns SET text_digests = decode(repeat('00', 128), 'hex')",
    ],
)
def test_changed_scores_and_answers_are_not_judged(
    pair: tuple[RunRecord, RunRecord], statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The input digest is made of their digests, and the attack left those unchanged."""
    execute(statement)
    with pytest.raises(Conflict, match=rf"Run {pair[0].pk} cannot be judged.*were changed in the database"):
        judged.release(*pair)
    assert any(line.getMessage().startswith("columns_changed ") for line in caplog.records)
