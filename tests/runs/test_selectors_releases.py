"""What lists, pages and exports learn of baselines, policies, releases and sign-offs."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evalboard.core.errors import NotFound
from runs import exports, sign_off_chain
from runs.baselines import baseline_row, baseline_rows, current_baselines, rotation_rows
from runs.catalogue import policy_rows
from runs.models import BaselineRecord, ReleaseRecord, RunRecord, SignOffRecord, Suite
from runs.pairs.pair_facts import forget_names
from runs.release import ReleaseFilter, release_report, sortable_releases
from runs.release.read_list import sign_off_lines
from runs.run import judged
from tests import build
from tests import release_rows as rows
from tests.casts import cast

pytestmark = pytest.mark.django_db


@cast
def pair() -> tuple[RunRecord, RunRecord]:
    """A baseline and a candidate, both finished in one bucket."""
    served_by = build.process()
    return build.finished_run(by=served_by), build.finished_run(by=served_by)


def n_queries(read: Any) -> int:
    forget_names()  # as the first request of a process
    with CaptureQueriesContext(connection) as queries:
        read()
    return len(queries)


def signed(pair: tuple[RunRecord, RunRecord], decision: str = "approve", **changes: Any) -> ReleaseRecord:
    release = rows.release(pair[1], pair[0])
    rows.sign(release, decision, **changes)
    return release


# Baselines and rotations


def test_the_newest_baseline_of_a_key_is_the_current_one(pair: tuple[RunRecord, RunRecord]) -> None:
    ada = build.user("ada")
    first, second = rows.baseline(pair[0], by=ada), rows.baseline(pair[1], reason="Better.")
    other_profile = rows.baseline(pair[0], profile_slug="fast")
    baselines = baseline_rows("colours")
    assert [(int(row.id), row.is_current) for row in baselines] == [
        (other_profile.pk, True),
        (second.pk, True),
        (first.pk, False),
    ]
    assert [int(row.id) for row in current_baselines()] == [other_profile.pk, second.pk]
    newest = baselines[1]
    assert (newest.suite, newest.line, newest.profile) == ("colours", "paint", "pinned")
    assert (newest.reason, newest.set_by, baselines[2].set_by) == ("Better.", None, "ada")
    assert (newest.run_id, newest.run.range) == (pair[1].pk, (pytest.approx(100 / 3), pytest.approx(200 / 3)))
    assert (newest.is_expired, newest.expired) == (False, None)


def test_a_baseline_of_another_suite_makes_none_of_this_suite_old(pair: tuple[RunRecord, RunRecord]) -> None:
    mine = rows.baseline(pair[0])
    other = build.finished_run(version=build.suite("shapes"))
    theirs = rows.baseline(other)
    assert [row.is_current for row in baseline_rows()] == [True, True]
    assert [int(row.id) for row in baseline_rows("shapes")] == [theirs.pk]
    assert [int(row.id) for row in current_baselines("colours")] == [mine.pk]


def test_a_current_baseline_may_have_expired_and_says_by_which_rotation(pair: tuple[RunRecord, RunRecord]) -> None:
    expired = rows.baseline(pair[0])
    run = build.finished_run(by=build.process(build.bucket("bfloat16")))
    before = pair[0].bucket.fingerprint  # type: ignore[union-attr]
    rotation = rows.rotation(run, before=before, expires=[expired])
    [row] = current_baselines("colours")
    assert (row.is_current, row.is_expired) == (True, True)
    assert row.expired is not None
    assert (row.expired.id, row.expired.run_id, row.expired.n_expired) == (rotation.pk, run.pk, 1)
    assert (row.expired.before.label, row.expired.after.label) == (
        "vLLM 0.32.0, CPU, float32",
        "vLLM 0.32.0, CPU, bfloat16",
    )


def test_rotations_are_filtered_by_time_and_endpoint(pair: tuple[RunRecord, RunRecord]) -> None:
    before = pair[0].bucket.fingerprint  # type: ignore[union-attr]
    first = rows.rotation(build.finished_run(by=build.process(build.bucket("bfloat16"))), before=before)
    elsewhere = build.finished_run(on="other", by=build.process(build.bucket("bfloat16")))
    second = rows.rotation(elsewhere, before=before)
    assert [row.id for row in rotation_rows()] == [second.pk, first.pk]
    assert [row.id for row in rotation_rows(endpoints=["local"])] == [first.pk]
    assert [row.endpoint for row in rotation_rows(limit=1)] == ["other"]
    assert rotation_rows(endpoints=[]) == ()
    assert rotation_rows(since=timezone.now() + timedelta(hours=1)) == ()
    assert len(rotation_rows(since=timezone.now() - timedelta(hours=1))) == 2


def test_baselines_come_in_pages(pair: tuple[RunRecord, RunRecord]) -> None:
    made = [rows.baseline(pair[0]).pk for _ in range(4)][::-1]
    assert [int(row.id) for row in baseline_rows("colours", after=made[1], limit=1)] == made[2:3]
    assert [int(row.id) for row in baseline_rows("colours", before=made[3], limit=2)] == made[1:3]


def test_a_baseline_that_is_not_there_is_not_found(db: None) -> None:
    with pytest.raises(NotFound):
        baseline_row(7)


# Policies


def test_policies_come_in_their_newest_version_with_the_suites_that_carry_them(
    pair: tuple[RunRecord, RunRecord],
) -> None:
    old = rows.policy("sample")
    rows.policy("sample", version=2)
    rows.policy("strict")
    Suite.objects.filter(slug="colours").update(policy=old)
    sample, strict = policy_rows()
    assert (sample.slug, sample.version, sample.suites) == ("sample", 2, ("colours",))
    assert (strict.slug, strict.version, strict.suites) == ("strict", 1, ())


# Releases in lists


def test_a_row_has_the_verdict_and_the_numbers_of_its_headline_gate(pair: tuple[RunRecord, RunRecord]) -> None:
    release = rows.release(pair[1], pair[0], verdict="", by=build.user("ada"))
    rows.add_gate(release, pair[1], pair[0], tier="advisory")
    low = rows.gate("no_ship", difference=-4.0, low=-5.0, high=-3.0, tolerance_points=2.0)
    rows.decide(release, rows.document(rows.gate(), low, verdict="no_ship", headline_gate=1))
    [row] = sortable_releases().rows()
    assert (row.id, row.verdict, row.outcome, row.summary) == (str(release.pk), "no_ship", "unsigned", "It is no_ship.")
    assert (row.difference, row.interval, row.tolerance_points) == (-4.0, (-5.0, -3.0), 2.0)
    assert (row.suites, row.policy, row.treatment) == (("colours", "colours"), "strict", "model")
    assert (row.candidate.model, row.candidate.run, row.baseline.run) == ("paint-1b", str(pair[1].pk), str(pair[0].pk))
    assert (row.labels, row.created_by, row.decided_at is None) == ({"commit": "1f3a"}, "ada", False)


def test_a_release_without_a_verdict_yet_is_a_row_too(pair: tuple[RunRecord, RunRecord]) -> None:
    rows.release(pair[1], pair[0], verdict="")
    [row] = sortable_releases().rows()
    assert (row.verdict, row.summary, row.difference, row.interval, row.decided_at) == (None, "", None, None, None)


@pytest.mark.parametrize(
    ("decision", "outcome"), [("approve", "approved"), ("reject", "rejected"), ("waive", "waived")]
)
def test_the_newest_sign_off_is_the_outcome(pair: tuple[RunRecord, RunRecord], decision: str, outcome: str) -> None:
    release = rows.release(pair[1], pair[0])
    rows.sign(release, "reject" if decision != "reject" else "approve")
    rows.sign(release, decision, expires_at=timezone.now() + timedelta(days=1) if decision == "waive" else None)
    assert sortable_releases().rows()[0].outcome == outcome


def test_a_waiver_ends_and_a_sign_off_on_other_inputs_is_void(pair: tuple[RunRecord, RunRecord]) -> None:
    ended = signed(pair, "waive", note="Trust me.", expires_at=timezone.now() - timedelta(seconds=1))
    moved = signed(pair)
    rows.decide(moved, rows.document(), inputs="second")
    undecided = signed(pair)
    ReleaseRecord.objects.filter(pk=undecided.pk).update(verdict=None)
    outcomes = {int(row.id): row.outcome for row in sortable_releases().rows()}
    assert outcomes == {ended.pk: "expired", moved.pk: "void", undecided.pk: "void"}


def test_a_verdict_that_comes_back_to_what_was_signed_is_signed_again(pair: tuple[RunRecord, RunRecord]) -> None:
    release = signed(pair)
    first = release.verdict
    rows.decide(release, rows.document(), inputs="second")
    ReleaseRecord.objects.filter(pk=release.pk).update(verdict=first)
    assert sortable_releases().rows()[0].outcome == "approved"


def test_releases_are_filtered_by_suite_verdict_and_outcome(pair: tuple[RunRecord, RunRecord]) -> None:
    ship, no_ship = signed(pair), rows.release(pair[1], pair[0], verdict="no_ship")
    other = build.finished_run(version=build.suite("shapes"))
    shapes = rows.release(other, other)
    found = {
        "suite": ReleaseFilter(suite="shapes"),
        "verdict": ReleaseFilter(verdict="no_ship"),
        "outcome": ReleaseFilter(outcome="approved"),
        "all": ReleaseFilter(),
        "none": ReleaseFilter(suite="shapes", outcome="approved"),
    }
    assert {name: [int(row.id) for row in sortable_releases(wanted).rows()] for name, wanted in found.items()} == {
        "suite": [shapes.pk],
        "verdict": [no_ship.pk],
        "outcome": [ship.pk],
        "all": [shapes.pk, no_ship.pk, ship.pk],
        "none": [],
    }


def test_releases_come_in_pages(pair: tuple[RunRecord, RunRecord]) -> None:
    made = [rows.release(pair[1], pair[0]).pk for _ in range(4)][::-1]
    assert [int(row.id) for row in sortable_releases().rows(after=made[1], limit=1)] == made[2:3]
    assert [int(row.id) for row in sortable_releases().rows(before=made[3], limit=2)] == made[1:3]


# One release


def test_a_report_has_what_the_document_says_beside_the_runs(pair: tuple[RunRecord, RunRecord]) -> None:
    release = rows.release(pair[1], pair[0])
    report = release_report(release.pk)
    assert (report.verdict, report.policy.name, report.policy.version) == ("ship", "strict", 1)
    assert report.input_digest == release.verdict.input_digest  # type: ignore[union-attr]
    assert [(line.code, line.gate) for line in report.reasons] == [("within_tolerance", 0)]
    assert [(line.code, line.gate) for line in report.next] == [("sign", None)]
    assert [line.code for line in report.warnings] == ["coarse_suite"]
    [gate] = report.gates
    assert (gate.suite, gate.suite_version, gate.n_cases, gate.tier) == ("colours", 1, 3, "critical")
    assert (gate.difference, gate.interval, gate.level) == (-0.25, (-0.75, 0.25), 0.94)
    assert (gate.reach.interval, gate.reach.level) == ((-3.0, 2.5), 0.9)
    assert (gate.expected.interval, gate.expected.repeats) == ((-0.5, 0.0), 10)
    assert (gate.cases_needed, gate.changed.broken, gate.changed.n_fixed) == ({"5": 93, "10": 57}, ("a/b c", "sea"), 1)
    assert (gate.baseline.run_id, gate.candidate.run_id) == (pair[0].pk, pair[1].pk)
    assert (gate.baseline.repeats, gate.range_baseline, gate.baseline.interval) == (
        (80.0, 81.0),
        (80.0, 81.0),
        (80.1, 80.9),
    )
    assert (gate.candidate.interval, gate.candidate.noise.sd_points) == (None, 0.2)
    assert (gate.candidate.status, gate.candidate.n_repeats, gate.candidate.n_buckets) == ("finished", 2, 1)


def test_warnings_are_alike_that_say_the_same_of_another_run_or_suite(pair: tuple[RunRecord, RunRecord]) -> None:
    def of_run(run: int, **facts: Any) -> dict[str, Any]:
        return {"code": "one_process", "text": f"Run {run}.", "gate": 0, "facts": {"run": run, "side": "x", **facts}}

    few = [{"code": "few_cases", "text": text} for text in ("One case is worth 3.3.", "One case is worth 0.5.")]
    gates = [rows.gate(warnings=[line]) for line in (few[0], few[0], few[1])]
    named = [
        {**line, "gate": at, "text": f"suite-{at}: {line['text']}"} for at, line in enumerate((few[0], few[0], few[1]))
    ]
    warnings = [of_run(5, n=3), of_run(6, n=3), of_run(7, n=4), *named]
    release = rows.release(pair[1], pair[0], gates=gates, warnings=warnings)
    for slug in ("suite-1", "suite-2"):
        rows.add_gate(release, pair[1], pair[0], suite=Suite.objects.create(slug=slug))
    findings = release_report(release.pk).warnings
    assert [finding.run for finding in findings] == ["5", "6", "7", None, None, None]
    alike = [finding.alike for finding in findings]
    assert [alike.index(each) for each in alike] == [0, 0, 2, 3, 3, 5]


def test_a_gate_that_may_not_be_compared_has_no_numbers(pair: tuple[RunRecord, RunRecord]) -> None:
    unknown = "difference low high level reach noise resolution_points look expected cases_needed changed missing"
    nothing = dict.fromkeys(f"{unknown} range_baseline range_candidate points_baseline points_candidate".split())
    blocked = rows.gate("not_comparable", **nothing)
    release = rows.release(pair[1], pair[0], verdict="not_comparable", gates=[blocked])
    report = release_report(release.pk)
    [gate] = report.gates
    assert (gate.verdict, gate.difference, gate.interval, gate.reach) == ("not_comparable", None, None, None)
    assert (gate.baseline.repeats, gate.range_baseline, gate.baseline.noise.sd_points) == ((), None, None)
    assert (gate.cases_needed, gate.changed.broken, gate.expected) == ({}, (), None)
    [row] = sortable_releases().rows()
    assert (row.difference, row.interval) == (None, None)


def test_a_release_without_a_verdict_yet_shows_who_stands_in_it(pair: tuple[RunRecord, RunRecord]) -> None:
    report = release_report(rows.release(pair[1], pair[0], verdict="").pk)
    assert (report.verdict, report.input_digest, report.reasons) == (None, None, ())
    assert [(gate.verdict, gate.candidate.run_id, gate.n_cases) for gate in report.gates] == [(None, pair[1].pk, 3)]
    assert [line.code for line in report.story] == ["created"]


@pytest.mark.nightly
def test_a_baseline_that_expired_before_its_candidate_was_run_is_marked(pair: tuple[RunRecord, RunRecord]) -> None:
    rotated = build.finished_run(by=build.process(build.bucket("bfloat16")))
    rows.rotation(rotated, before=pair[0].bucket.fingerprint, expires=[rows.baseline(pair[0])])  # type: ignore[union-attr]
    late = build.finished_run()
    early, after = rows.release(pair[1], pair[0]), rows.release(late, pair[0])
    marks = {release.pk: release_report(release.pk).gates[0].baseline.is_baseline_expired for release in (early, after)}
    RunRecord.objects.filter(pk=late.pk).update(created_at=timezone.now())
    assert marks[early.pk] is False
    assert release_report(after.pk).gates[0].baseline.is_baseline_expired is True


def test_candidates_are_counted_against_their_baseline_up_to_this_release(pair: tuple[RunRecord, RunRecord]) -> None:
    first, again = rows.release(pair[1], pair[0]), rows.release(pair[1], pair[0])
    other = build.finished_run()
    second = rows.release(other, pair[0])
    elsewhere = rows.release(other, pair[1])
    counts = [release_report(each.pk).candidates_tried for each in (first, again, second, elsewhere)]
    assert counts == [1, 1, 2, 1]


def test_sign_offs_stay_in_order_and_say_why_they_no_longer_hold(pair: tuple[RunRecord, RunRecord]) -> None:
    ada = build.user("ada", "release manager")
    release = rows.release(pair[1], pair[0])
    rows.sign(release, "reject", by=ada, note="Not yet.")
    rows.decide(release, rows.document(), inputs="second")
    rows.sign(release, "waive", by=ada, note="For the demo.", expires_at=timezone.now() - timedelta(days=1))
    rows.sign(release, "approve", by=ada)
    first, second, third = release_report(release.pk).signoffs
    assert (first.person, first.decision, first.note) == ("ada", "reject", "Not yet.")
    assert first.void.startswith("Its inputs have changed since")
    assert second.void.startswith("The waiver ended on 20")
    assert third.void is None


def test_the_story_tells_everything_oldest_first(pair: tuple[RunRecord, RunRecord]) -> None:
    ada = build.user("ada", "release manager")
    release = rows.release(pair[1], pair[0], verdict="inconclusive", by=ada)
    plan = [{"run": pair[0].pk, "n_before": 5, "n_more": 5}, {"run": pair[1].pk, "n_before": 10, "n_more": 0}]
    release.settlings.create(look=10, plan=plan, asked_by=ada)
    rows.decide(release, rows.document(verdict="ship"), inputs="second")
    rows.sign(release, by=ada, note="Good.")
    story = release_report(release.pk).story
    assert [line.code for line in story] == ["created", "decided", "settling", "decided", "signed"]
    assert [line.person for line in story] == ["ada", "", "ada", "", "ada"]
    assert (story[1].text, story[1].summary) == ("Inconclusive.", "It is inconclusive.")
    assert story[2].text == f"Repeats up to 10 a side asked for: 5 more of run {pair[0].pk}."
    assert story[4].text == "Approved: Good."


def test_repeats_under_way_are_told_until_the_runs_have_ended(pair: tuple[RunRecord, RunRecord]) -> None:
    release = rows.release(pair[1], pair[0], verdict="inconclusive")
    release.settlings.create(look=10, plan=[{"run": run.pk, "n_before": 5, "n_more": 5} for run in pair])
    assert release_report(release.pk).settling is None
    RunRecord.objects.filter(pk__in=[run.pk for run in pair]).update(status="running")
    told = f"Repeats up to 10 a side are at work on runs {pair[0].pk} and {pair[1].pk}."
    assert release_report(release.pk).settling == told


def test_a_release_that_is_not_there_is_not_found(db: None) -> None:
    with pytest.raises(NotFound):
        release_report(7)


# The export of sign-offs


def exported() -> list[dict[str, Any]]:
    return [json.loads(line) for line in exports.sign_off_lines()]


def test_every_sign_off_is_exported_with_its_place_in_the_chain(pair: tuple[RunRecord, RunRecord]) -> None:
    until = timezone.now() + timedelta(days=3)
    release = signed(pair, "waive", note="Zeile\n„zwei“", expires_at=until)
    signed(pair)
    first, second = exported()
    assert (first["release"], first["decision"], first["note"]) == (str(release.pk), "waive", "Zeile\n„zwei“")
    assert (first["person"], first["verdict"]) == ("signer-0", "ship")
    assert first["policy"] == {"name": "strict", "version": 1}
    assert first["expires_at"].endswith("Z")
    assert (first["previous_digest"], second["previous_digest"]) == ("", first["digest"])
    assert [(line["is_intact"], line["problem"]) for line in (first, second)] == [(True, None), (True, None)]


def forge(statement: str, *values: Any) -> None:
    """Write past the trigger, as somebody with the database's own rights could."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(statement, values)
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")


def test_a_row_that_was_changed_shows_in_the_export(pair: tuple[RunRecord, RunRecord]) -> None:
    signed(pair, "reject", note="No.")
    signed(pair)
    forge("UPDATE runs_signoff SET decision = 'approve' WHERE note = 'No.'")
    first, second = exported()
    assert (first["is_intact"], second["is_intact"]) == (False, True)
    assert "changed after it was signed" in first["problem"]


def test_a_row_that_was_taken_out_shows_in_the_next_one(pair: tuple[RunRecord, RunRecord]) -> None:
    for note in ("one", "two", "three"):
        signed(pair, note=note)
    forge("DELETE FROM runs_signoff WHERE note = 'two'")
    assert [(line["note"], line["is_intact"]) for line in exported()] == [("one", True), ("three", False)]


def test_a_row_that_was_changed_with_its_digest_shows_in_the_next_one(pair: tuple[RunRecord, RunRecord]) -> None:
    signed(pair, note="one")
    signed(pair, note="two")
    row = SignOffRecord.objects.get(note="one")
    row.note = "uno"
    digest = sign_off_chain.digest_of(row)
    forge("UPDATE runs_signoff SET note = 'uno', digest = %s WHERE id = %s", digest, row.pk)
    assert [line["is_intact"] for line in exported()] == [True, False]


@pytest.mark.parametrize("change", ["update", "delete"])
def test_the_database_refuses_to_change_a_sign_off(pair: tuple[RunRecord, RunRecord], change: str) -> None:
    signed(pair)
    changes = {
        "update": lambda: SignOffRecord.objects.update(note="Never said."),
        "delete": SignOffRecord.objects.all().delete,
    }
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        changes[change]()
    assert SignOffRecord.objects.get().note == ""


# The cost


@pytest.mark.nightly
def test_lists_cost_the_same_for_one_and_for_many(pair: tuple[RunRecord, RunRecord]) -> None:
    ada = build.user("ada", "release manager")

    def add() -> None:
        run = build.finished_run()
        expired = rows.baseline(run, by=ada)
        rotated = build.finished_run(by=build.process(build.bucket("bfloat16")))
        rows.rotation(rotated, before=run.bucket.fingerprint, expires=[expired])  # type: ignore[union-attr]
        release = rows.release(pair[1], run, by=ada)
        rows.sign(release, by=ada)
        rows.policy(f"policy-{BaselineRecord.objects.count()}")

    reads = {
        "baselines": baseline_rows,
        "current": current_baselines,
        "rotations": rotation_rows,
        "policies": policy_rows,
        "releases": sortable_releases().rows,
        "sign-offs": lambda: list(sign_off_lines(lambda verdict_id: "")),
    }
    add()
    one = {name: n_queries(read) for name, read in reads.items()}
    for _ in range(3):
        add()
    many = {name: n_queries(read) for name, read in reads.items()}
    assert many == one
    assert one["releases"] == 3
    assert max(one.values()) <= 8


@pytest.mark.nightly
def test_a_report_costs_the_same_for_one_gate_and_for_many(pair: tuple[RunRecord, RunRecord]) -> None:
    ada = build.user("ada", "release manager")
    small = rows.release(pair[1], pair[0])
    rows.sign(small, by=ada)
    large = rows.release(pair[1], pair[0], verdict="")
    for _ in range(4):
        rows.add_gate(large, build.finished_run(), pair[0])
    rows.decide(large, rows.document(*[rows.gate() for _ in range(5)]))
    for _ in range(5):
        rows.sign(large, by=ada)
    cost = n_queries(lambda: release_report(small.pk))
    assert n_queries(lambda: release_report(large.pk)) == cost
    assert cost <= 20


def test_of_the_releases_of_a_run_the_newest_comes_first(pair: tuple[RunRecord, RunRecord]) -> None:
    baseline, candidate = pair
    older, newer = rows.release(candidate, baseline), rows.release(candidate, baseline)
    found = judged([baseline.pk, candidate.pk])
    for run in pair:
        assert [line.release_id for line in found[run.pk]] == [newer.pk, older.pk]
