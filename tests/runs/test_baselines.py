"""Baselines: set by a person with a reason, kept in history, and refused where a run cannot be one."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections, transaction

from evalboard.core.errors import Conflict, InvalidInput, NotFound
from runs.baselines import baselines, set_baseline
from runs.models import BaselineRecord, Case, Event, RunRecord, Suite
from runs.run import delete_run
from runs.suites import reference_suite
from tests import build
from tests.casts import cast
from tests.runs import judged
from tests.runs.judged import SAMPLE_POLICY
from tests.waiting import wait_until, waits_for_lock

pytestmark = pytest.mark.django_db


@cast
def run() -> RunRecord:
    return judged.run(judged.suite("small", n_cases=3), repeats=1)


def current(run: RunRecord) -> BaselineRecord | None:
    line, profile = run.endpoint.line, run.profile.slug
    return baselines.current_baseline(suite=run.suite_version.suite, line=line, profile_slug=profile)


def test_the_newest_is_current_and_the_others_are_history(run: RunRecord) -> None:
    person = build.user()
    first = set_baseline(suite="small", run=run.pk, reason=" First release. ", user=person)
    assert (first.line, first.profile_slug, first.reason, first.set_by) == ("paint", "pinned", "First release.", person)
    other = judged.run(run.suite_version, repeats=1)
    set_baseline(suite="small", run=other.pk, reason="Better prompts.", user=person)
    found = current(run)
    assert found is not None
    assert found.run == other
    assert BaselineRecord.objects.count() == 2
    [event] = Event.objects.filter(run=run, code="baseline")
    assert event.text == "Made the baseline of small, model line paint, profile pinned by ada: First release."


def test_one_current_for_each_model_line_and_profile(run: RunRecord) -> None:
    person = build.user()
    build.endpoint("second", line="other")
    runs = [run, judged.run(run.suite_version, repeats=1, under="fixed")]
    runs.append(judged.run(run.suite_version, repeats=1, on="second"))
    for each in runs:
        set_baseline(suite="small", run=each.pk, reason="Ours.", user=person)
    assert [found.run for each in runs if (found := current(each))] == runs


def test_what_cannot_be_a_baseline_is_refused(run: RunRecord) -> None:
    person = build.user()

    def refused(error: type[Exception], words: str, **changes: Any) -> None:
        with pytest.raises(error, match=words):
            set_baseline(**{"suite": "small", "run": run.pk, "reason": "Ours.", "user": person, **changes})
        assert not BaselineRecord.objects.exists()

    refused(NotFound, "no suite", suite="nothing")
    refused(NotFound, "no run 999", run=999)
    judged.suite("other", n_cases=4)
    refused(InvalidInput, "not valid", suite="other")
    for reason in ("", "  ", "a\0b", "x" * 2001):
        refused(InvalidInput, "not valid", reason=reason)
    refused(Conflict, "is queued", run=build.run(run.suite_version).pk)
    missing = build.run(run.suite_version, repeats=1)
    build.decode(missing, 1, ["blue", None, "blue"])
    refused(Conflict, "is incomplete", run=missing.pk)
    mixed = build.run(run.suite_version, repeats=1)
    one, other = build.process(), build.process(build.bucket("bfloat16"))
    build.decode(mixed, 1, ["blue"] * 3, by=[one, one, other])
    refused(Conflict, "2 buckets served", run=mixed.pk)


def test_the_same_run_twice_is_refused(run: RunRecord) -> None:
    person = build.user()
    set_baseline(suite="small", run=run.pk, reason="Ours.", user=person)
    with pytest.raises(Conflict, match="the current baseline already"):
        set_baseline(suite="small", run=run.pk, reason="Ours again.", user=person)


def test_a_baseline_keeps_its_run_also_when_it_is_no_longer_current(run: RunRecord) -> None:
    person = build.user()
    other = judged.run(run.suite_version, repeats=1)
    for each in (run, other):
        set_baseline(suite="small", run=each.pk, reason="Ours.", user=person)
    with pytest.raises(Conflict, match="history of suite small's baselines"):
        delete_run(run_id=run.pk)


@pytest.mark.django_db(transaction=True)
def test_a_run_that_becomes_a_baseline_while_it_is_deleted_is_kept() -> None:
    run = judged.run(judged.suite("small", n_cases=3), repeats=1)
    person = build.user()

    def delete() -> str:
        try:
            delete_run(run_id=run.pk)
        except Conflict as refused:
            return refused.detail
        finally:
            connections.close_all()
        return ""

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            set_baseline(suite="small", run=run.pk, reason="Ours.", user=person)
            deletion = pool.submit(delete)
            wait_until(waits_for_lock)
        assert "baselines" in deletion.result()
    assert RunRecord.objects.filter(pk=run.pk).exists()


def test_the_reference_set_is_a_suite_of_its_own() -> None:
    cases = [
        {"id": f"case-{n}", "prompt": f"Number {n}?", "target": "blue", "reference": n % 2 == 0, "group": "even"}
        for n in range(5)
    ]
    cases[4] = {"id": "free", "prompt": "Say anything.", "reference": True, "scorer": {"kind": "regex", "pattern": "."}}
    version = judged.suite(policy=SAMPLE_POLICY, cases=cases, stop=["\n"], title="Sample")
    made = reference_suite(slug="sample")
    suite = Suite.objects.get(slug="sample-reference")
    assert (made.suite, suite.reference_of, suite.policy) == (suite, version, Suite.objects.get(slug="sample").policy)
    assert (made.title, made.max_tokens, made.stop) == ("Sample: reference set", 24, ["\n"])
    assert list(made.cases.values_list("case_id", flat=True)) == ["case-0", "case-2", "free"]
    # As they are there, to the digest, so that their responses can be laid side by side.
    digests = Case.objects.filter(suite_version=version, is_reference=True).order_by("index")
    assert list(made.cases.values_list("digest", flat=True)) == list(digests.values_list("digest", flat=True))
    assert reference_suite(slug="sample") == made
    judged.suite(policy={**SAMPLE_POLICY, "tolerance_points": 4.0}, cases=cases[1:])
    newer = reference_suite(slug="sample")
    assert (newer.number, newer.n_cases) == (2, 2)
    assert Suite.objects.get(slug="sample-reference").reference_of.number == 2  # type: ignore[union-attr]


def test_no_reference_set_and_a_name_that_is_taken() -> None:
    judged.suite()
    with pytest.raises(Conflict, match="no reference set"):
        reference_suite(slug="sample")
    with pytest.raises(NotFound):
        reference_suite(slug="nothing")
    judged.suite("sample-reference")
    cases = [{"id": "one", "prompt": "One?", "target": "blue", "reference": True}]
    judged.suite(cases=cases)
    with pytest.raises(Conflict, match="not the reference set"):
        reference_suite(slug="sample")
