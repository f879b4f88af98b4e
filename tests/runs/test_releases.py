"""Releases: the word that stored runs get, what it rests on, and that it is taken anew when that moves, only then."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evalboard.core.errors import Conflict, InvalidInput, NotFound
from runs.baselines import set_baseline
from runs.models import ComparisonRecord, GateRecord, ReleaseRecord, ResponseRecord, RunRecord, Verdict
from runs.release import create_release, decide_release, verdicts
from runs.run import add_repeats, cancel_run, delete_run
from runs.suites import push_suite
from runs.sweep import reconcile
from tests import build
from tests.casts import cast
from tests.runs import judged
from tests.runs.judged import ALWAYS, SAMPLE_POLICY, codes

pytestmark = pytest.mark.django_db
UNSTABLE = {3: (1, 4), 7: (2,), 11: ALWAYS}


@cast
def version() -> Any:
    return judged.suite(policy=SAMPLE_POLICY)


@cast
def pair(version: Any) -> tuple[RunRecord, RunRecord]:
    process = build.process()
    return judged.run(version, {11: ALWAYS}, by=process), judged.run(version, {11: ALWAYS}, by=process)


def test_the_same_again_ships_under_the_suites_own_policy(pair: tuple[RunRecord, RunRecord]) -> None:
    release = judged.release(*pair)
    assert release.verdict is not None
    assert (release.policy.slug, release.verdict.word) == ("sample", "ship")
    document = release.verdict.document
    assert (document["gates"][0]["difference"], document["gates"][0]["look"]) == (0.0, 5)
    assert codes(document["reasons"]) == ["within_tolerance"]
    assert "96.7" in document["summary"]


def test_under_the_default_policy_thirty_cases_are_too_few(pair: tuple[RunRecord, RunRecord]) -> None:
    release = judged.release(*pair, policy="strict")
    assert release.verdict is not None
    document = release.verdict.document
    assert (release.verdict.word, codes(document["reasons"])) == ("inconclusive", ["suite_too_small"])
    assert document["gates"][0]["cases_needed"] == {"5": 93, "10": 52, "20": 26}
    assert "93" in document["reasons"][0]["text"]


@pytest.mark.nightly
def test_one_model_on_two_stacks_is_not_comparable_unless_the_stack_is_judged(version: Any) -> None:
    ours = judged.run(version, by=build.bucket("bfloat16"), on="sample-bfloat16")
    theirs = judged.run(version, by=build.bucket("float32"), on="sample-float32")
    release = judged.release(ours, theirs)
    assert release.verdict is not None
    assert (release.verdict.word, codes(release.verdict.document["reasons"])) == ("not_comparable", ["rebaseline"])
    stack = judged.release(ours, theirs, treatment="stack")
    assert stack.verdict is not None
    assert stack.verdict.word == "ship"
    assert "stack_judged" in codes(stack.verdict.document["warnings"])


def test_a_real_drop_is_no_ship_and_names_its_cases(version: Any) -> None:
    process = build.process()
    release = judged.release(
        judged.run(version, by=process),
        judged.run(version, dict.fromkeys(range(6), ALWAYS), by=build.bucket(weights="e" * 64)),
    )
    assert release.verdict is not None
    assert release.verdict.word == "no_ship"
    changed = release.verdict.document["gates"][0]["changed"]
    assert changed["broken"] == [f"case-{n:03}" for n in range(6)]


def test_deciding_again_writes_nothing(pair: tuple[RunRecord, RunRecord], django_assert_max_num_queries: Any) -> None:
    release = judged.release(*pair)
    before = Verdict.objects.get()
    with django_assert_max_num_queries(20):
        again = decide_release(release_id=release.pk)
    assert (again.pk, Verdict.objects.count(), again.decided_at) == (before.pk, 1, before.decided_at)


@pytest.mark.nightly
def test_deciding_costs_the_same_statements_for_more_repeats(version: Any) -> None:
    process = build.process()

    def n_statements(repeats: int) -> int:
        runs = [judged.run(version, repeats=repeats, by=process) for _ in range(2)]
        with CaptureQueriesContext(connection) as captured:
            judged.release(*runs)
        return len(captured)

    early = n_statements(3)  # reads earlier runs of both buckets, too
    few = n_statements(5)
    assert n_statements(8) == few
    assert early <= few + 10
    assert few < 90


def test_another_repeat_decides_anew_and_what_was_stays_beside_it(pair: tuple[RunRecord, RunRecord]) -> None:
    release = judged.release(*pair)
    first = decide_release(release_id=release.pk)
    for run in pair:
        add_repeats(run_id=run.pk, n=1)
    # Nothing is taken on half of it.
    assert decide_release(release_id=release.pk).pk == first.pk
    judged.more(pair[0], range(6, 7), {11: ALWAYS})
    assert decide_release(release_id=release.pk).pk == first.pk
    judged.more(pair[1], range(6, 7), {11: ALWAYS})
    second = decide_release(release_id=release.pk)
    assert second.pk != first.pk
    assert second.document["gates"][0]["k_candidate"] == 6
    release.refresh_from_db()
    assert (release.verdict_id, release.verdicts.count()) == (second.pk, 2)


@pytest.mark.parametrize("made", ["policy", "unvouched"])
def test_what_a_verdict_rests_on_is_in_its_digest(pair: tuple[RunRecord, RunRecord], made: str) -> None:
    release = judged.release(*pair)
    first = decide_release(release_id=release.pk)
    if made == "policy":
        other = judged.release(*pair, policy="strict")
        assert decide_release(release_id=other.pk).input_digest != first.input_digest
        return
    ResponseRecord.objects.filter(repeat__run=pair[1], repeat__index=2, case_index__lt=4).update(is_vouched=False)
    second = decide_release(release_id=release.pk)
    assert second.input_digest != first.input_digest
    [line] = [line for line in second.document["warnings"] if line["code"] == "unvouched"]
    assert line["text"].startswith(f"The candidate, run {pair[1].pk}, has 4 responses")
    assert {"code": "unvouched", "text": line["text"]} in second.document["gates"][0]["warnings"]


@pytest.mark.nightly
def test_a_run_that_two_computations_answered_is_warned_of(pair: tuple[RunRecord, RunRecord]) -> None:
    strays = {"bucket": pair[1].bucket_id, "is_steady": False, "n_cases": 9, "distance": 0.333, "noise": 0.0}
    RunRecord.objects.filter(pk=pair[1].pk).update(strays=[{**strays, "n_strays": 3, "n_stray_cases": 3}])
    verdict = decide_release(release_id=judged.release(*pair).pk)
    [line] = [line["text"] for line in verdict.document["warnings"] if line["code"] == "two_computations"]
    assert line == (
        f"The candidate, run {pair[1].pk}, has 3 outlier responses, 0.33 nats from the others of their "
        "case. Another build probably answered. See its page."
    )


def test_a_steady_run_whose_repeats_differ_is_warned_of(pair: tuple[RunRecord, RunRecord]) -> None:
    bucket = {"bucket": pair[0].bucket_id, "batch_class": "alone", "n_cases": 8, "n_apart": 1, "cases": ["case-01"]}
    RunRecord.objects.filter(pk=pair[0].pk).update(unsteady=[bucket])
    verdict = decide_release(release_id=judged.release(*pair).pk)
    [line] = [line["text"] for line in verdict.document["warnings"] if line["code"] == "unsteady"]
    assert line == (
        f"The baseline, run {pair[0].pk}, has repeats with different bits in 1 of 8 cases. At batch size 1, repeats "
        "should give the same bits. No fingerprint shows why these differ."
    )


def test_a_cancelled_repeat_is_left_out_and_said(pair: tuple[RunRecord, RunRecord]) -> None:
    release = judged.release(*pair)
    add_repeats(run_id=pair[1].pk, n=2)
    cancel_run(run_id=pair[1].pk)
    verdict = decide_release(release_id=release.pk)
    assert (verdict.word, verdict.pk) == ("ship", release.verdict_id)
    other = judged.release(*pair, policy="paired")
    assert other.verdict is not None
    assert "repeats_left_out" in codes(other.verdict.document["warnings"])
    assert other.verdict.document["gates"][0]["k_candidate"] == 5


@pytest.mark.nightly
def test_what_served_is_warned_of(version: Any) -> None:
    process = build.process()
    broken = build.process(pins=[{"name": "max_num_seqs", "wanted": 1, "found": 8, "held": False}])
    ours = judged.run(version, by=process)
    theirs = judged.run(version, repeats=1, by=broken)
    release = judged.release(ours, theirs)
    assert release.verdict is not None
    found = {line["code"]: line["text"] for line in release.verdict.document["warnings"]}
    assert found["pins_broken"].startswith(f"The candidate, run {theirs.pk}, broke pins of its profile: max_num_seqs")
    assert "one repeat" in found["noise_unmeasured"]
    assert "one engine process" in found["one_process"]
    assert codes(release.verdict.document["reasons"]) == ["too_few_repeats"]


@pytest.mark.nightly
def test_two_buckets_in_a_run_are_never_compared_and_each_is_scored(version: Any) -> None:
    one, other = build.process(), build.process(build.bucket("bfloat16"))
    mixed = build.run(version, repeats=1)
    build.decode(mixed, 1, ["red"] * 15 + ["blue"] * 15, by=[one] * 15 + [other] * 15)
    release = judged.release(judged.run(version, by=one), RunRecord.objects.get(pk=mixed.pk))
    assert release.verdict is not None
    document = release.verdict.document
    assert (document["verdict"], codes(document["reasons"])[0]) == ("not_comparable", "mixed_fingerprint")
    [line] = [line["text"] for line in document["warnings"] if line["code"] == "several_buckets"]
    assert "50 % by backend A (batch size 1, 0.0 points), 50 % by backend B (batch size 1, 100.0 points)" in line


@pytest.mark.nightly
def test_the_candidates_tried_and_a_changed_policy_are_said(version: Any) -> None:
    process = build.process()
    baseline, *candidates = [judged.run(version, by=process) for _ in range(4)]
    documents = [judged.release(baseline, candidate).verdict.document for candidate in candidates]  # type: ignore[union-attr]
    said = [[line["text"] for line in each["warnings"] if line["code"] == "candidates_tried"] for each in documents]
    assert [len(lines) for lines in said] == [0, 1, 1]
    assert said[2][0].startswith(f"3 candidates were judged against run {baseline.pk} so far")
    changed = judged.release(baseline, candidates[0], policy="strict").verdict
    assert changed is not None
    [line] = [line["text"] for line in changed.document["warnings"] if line["code"] == "policy_changed"]
    assert "tolerance 5.0 points: ship" in line
    assert "This release's tolerance is 1.0 point." in line


@pytest.mark.nightly
def test_several_gates(version: Any) -> None:
    other = judged.suite("colours", policy={**SAMPLE_POLICY, "slug": "other"})
    process = build.process()
    weights = build.bucket(weights="e" * 64)
    runs = {each: [judged.run(each, by=by) for by in (process, weights)] for each in (version, other)}
    bad = judged.run(other, dict.fromkeys(range(9), ALWAYS), by=weights)

    def gate(of: Any, candidate: RunRecord, tier: str) -> dict[str, Any]:
        return {"suite": of.suite.slug, "candidate": candidate.pk, "baseline": runs[of][0].pk, "tier": tier}

    def word(tier: str) -> str:
        gates = [gate(other, bad, tier), gate(version, runs[version][1], "critical")]
        release = create_release(gates=gates)
        assert release.verdict is not None
        assert release.policy.slug == ("other" if tier == "critical" else "sample")
        return release.verdict.word

    assert (word("critical"), word("advisory")) == ("no_ship", "ship")


def test_no_shared_case_leaves_nothing_behind(pair: tuple[RunRecord, RunRecord]) -> None:
    changed = judged.document()
    changed["cases"] = [case | {"prompt": f"{case['prompt']}!"} for case in changed["cases"]]
    other = judged.run(push_suite(document=changed)[0])
    with pytest.raises(InvalidInput, match="No case"):
        judged.release(pair[0], other)
    assert not ReleaseRecord.objects.exists()
    assert not GateRecord.objects.exists()


def test_a_changed_suite_is_not_comparable(pair: tuple[RunRecord, RunRecord]) -> None:
    changed = judged.document(n_cases=31)
    release = judged.release(pair[0], judged.run(push_suite(document=changed)[0]))
    assert release.verdict is not None
    assert (release.verdict.word, codes(release.verdict.document["reasons"])) == ("not_comparable", ["suite_changed"])


GATE: dict[str, Any] = {"suite": "sample", "candidate": 2, "baseline": 1}


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        pytest.param({"gates": []}, "gates", id="no gate"),
        pytest.param({"gates": [GATE | {"tier": "blocking"}]}, "gates[0].tier", id="no such tier"),
        pytest.param({"gates": [GATE | {"weight": 2}]}, "gates[0].weight", id="unknown field"),
        pytest.param({"gates": [GATE | {"candidate": "2"}]}, "gates[0].candidate", id="no id"),
        pytest.param({"gates": [GATE | {"candidate": 2**63}]}, "gates[0].candidate", id="too large"),
        pytest.param({"gates": [GATE | {"baseline": "newest"}]}, "gates[0].baseline", id="no baseline"),
        pytest.param({"gates": [GATE | {"tier": "advisory"}]}, "gates", id="only advisory"),
        pytest.param({"gates": [GATE], "treatment": "both"}, "treatment", id="no such treatment"),
        pytest.param({"gates": [GATE], "labels": {"a": 1}}, "labels.a", id="label"),
        pytest.param({"gates": [GATE] * 51}, "gates", id="too many gates"),
        pytest.param({"gates": [GATE | {"suite": None}]}, "gates[0].suite", id="no suite"),
        pytest.param({"gates": [GATE | {"baseline": True}]}, "gates[0].baseline", id="true is no id"),
        pytest.param({"gates": [GATE | {"baseline": 0}]}, "gates[0].baseline", id="zero is no id"),
        pytest.param({"gates": [GATE], "treatment": "prompt", "pair_by": "name"}, "pair_by", id="no such pairing"),
        pytest.param({"gates": [GATE], "pair_by": "id"}, "pair_by", id="by id, where no prompt is judged"),
    ],
)
def test_what_is_malformed_is_named(db: None, asked: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        create_release(**asked)
    assert list(refused.value.fields) == [field]


def test_what_cannot_be_judged_is_refused(pair: tuple[RunRecord, RunRecord]) -> None:
    baseline, candidate = pair
    other = judged.run(judged.suite("colours", policy=None))
    queued = build.run(candidate.suite_version)

    def refused(error: type[Exception], words: str, *gates: dict[str, Any], **asked: Any) -> None:
        with pytest.raises(error, match=words) as found:
            create_release(gates=gates, **asked)
        if isinstance(found.value, InvalidInput):
            assert all(name.startswith("gates") for name in found.value.fields)
        assert not ReleaseRecord.objects.exists()

    def gate(**changes: Any) -> dict[str, Any]:
        return {"suite": "sample", "candidate": candidate.pk, "baseline": baseline.pk, **changes}

    refused(NotFound, "no run 999", gate(candidate=999))
    refused(InvalidInput, "not valid", gate(suite="colours"))
    refused(InvalidInput, "not valid", gate(baseline=other.pk))
    refused(InvalidInput, "not valid", gate(baseline=candidate.pk))
    refused(InvalidInput, "not valid", gate(), gate())
    refused(Conflict, "queued", gate(candidate=queued.pk))
    refused(Conflict, "no baseline", gate(baseline="current"))
    refused(NotFound, "no policy lax", gate(), policy="lax")
    cancel_run(run_id=queued.pk)
    refused(Conflict, "no repeat that could be judged", gate(candidate=queued.pk))


def test_the_current_baseline_is_found_by_line_and_profile(pair: tuple[RunRecord, RunRecord]) -> None:
    set_baseline(suite="sample", run=pair[0].pk, reason="First release.", user=build.user())
    gate = {"suite": "sample", "candidate": pair[1].pk, "baseline": "current"}
    [made] = create_release(gates=[gate]).gates.all()
    assert (made.baseline_run_id, made.baseline.run_id) == (pair[0].pk, pair[0].pk)  # type: ignore[union-attr]
    other = judged.run(pair[0].suite_version, under="fixed", repeats=1)
    with pytest.raises(Conflict, match="under profile fixed"):
        create_release(gates=[gate | {"candidate": other.pk}])


def test_a_release_keeps_its_runs(pair: tuple[RunRecord, RunRecord]) -> None:
    release = judged.release(*pair)
    for run in pair:
        with pytest.raises(Conflict, match=f"Release {release.pk} uses run {run.pk}"):
            delete_run(run_id=run.pk)
    assert RunRecord.objects.count() == 2


@pytest.mark.nightly
def test_an_installation_without_policies_gets_the_defaults(db: None) -> None:
    version = judged.suite("plain")
    process = build.process()
    release = judged.release(judged.run(version, by=process), judged.run(version, by=process))
    assert release.policy.slug == "strict"


def test_the_sweep_decides_what_was_missed(pair: tuple[RunRecord, RunRecord]) -> None:
    release = judged.release(*pair)
    Verdict.objects.update(decided_at=timezone.now() - timezone.timedelta(minutes=5))
    ResponseRecord.objects.filter(repeat__run=pair[1], case_index=0).update(is_vouched=False)
    assert verdicts.undecided() == [release.pk]
    reconcile()
    assert release.verdicts.count() == 2
    assert verdicts.undecided() == []


@pytest.mark.django_db(transaction=True)
def test_the_end_of_a_run_decides_what_rests_on_it_and_makes_its_ledger(pair: tuple[RunRecord, RunRecord]) -> None:
    release = judged.release(*pair)
    assert ComparisonRecord.objects.get().status == "finished"
    add_repeats(run_id=pair[1].pk, n=1)
    judged.more(pair[1], range(6, 7))
    assert ReleaseRecord.objects.get().verdicts.count() == 2
    assert ReleaseRecord.objects.get().verdict_id != release.verdict_id


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_a_decision_that_fails_never_fails_the_runs_end(
    pair: tuple[RunRecord, RunRecord], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    judged.release(*pair)

    def broken(found: Any) -> Any:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(verdicts, "judge", broken)
    add_repeats(run_id=pair[1].pk, n=1)
    with caplog.at_level(logging.CRITICAL, "runs.release.verdicts"):
        judged.more(pair[1], range(6, 7))
    pair[1].refresh_from_db()
    assert pair[1].status == "finished"
    assert Verdict.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_who_decide_at_once_make_one_verdict(pair: tuple[RunRecord, RunRecord]) -> None:
    release = judged.release(*pair)
    ResponseRecord.objects.filter(repeat__run=pair[1], case_index=0).update(is_vouched=False)
    together = threading.Barrier(2)
    judge = verdicts.judge

    def at_once(found: Any) -> Any:
        together.wait(timeout=60)  # both have found the same inputs and no verdict on them
        return judge(found)

    def decide() -> int:
        try:
            return decide_release(release_id=release.pk).pk
        finally:
            connections.close_all()

    with pytest.MonkeyPatch.context() as patched, ThreadPoolExecutor(2) as pool:
        patched.setattr(verdicts, "judge", at_once)
        taken = [each.result(timeout=60) for each in [pool.submit(decide), pool.submit(decide)]]
    assert taken[0] == taken[1]
    assert Verdict.objects.filter(release=release).count() == 2


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_inputs_that_move_while_they_are_judged_are_judged_again(
    pair: tuple[RunRecord, RunRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    release = judged.release(*pair)
    judge = verdicts.judge
    steps = iter([{"case_index": 1}, {}])

    def moved(found: Any) -> Any:
        document = judge(found)
        if of := next(steps, {}):
            ResponseRecord.objects.filter(repeat__run=pair[1], **of).update(is_vouched=False)
        return document

    ResponseRecord.objects.filter(repeat__run=pair[1], case_index=0).update(is_vouched=False)
    monkeypatch.setattr(verdicts, "judge", moved)
    verdict = decide_release(release_id=release.pk)
    [line] = [line["text"] for line in verdict.document["warnings"] if line["code"] == "unvouched"]
    assert "has 10 responses" in line
    assert Verdict.objects.filter(release=release).count() == 2  # never one on what no longer was
