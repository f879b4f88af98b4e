"""Figures of runs are computed once and kept, and nobody is shown what they were before something changed."""

from collections.abc import Callable
from typing import Any

import pytest

from runs.catalogue import create_policy
from runs.models import CaseFrame, RunFiguresRecord, RunRecord, Suite, SuiteNoise
from runs.run import Pick, add_repeats, case_page, delete_run, figures, run_page, run_report
from runs.run.case_table import FRAME
from runs.store import bulk
from runs.suites import rescore_run, suite_report, suite_standing
from tests import build, judged
from tests.build import case_rows
from tests.casts import cast
from tests.nightly import few

pytestmark = pytest.mark.django_db

Count = Callable[[Callable[[], Any]], int]
N_CASES = FRAME + 44


def many(*repeats: Callable[[int], str | None], **changes: Any) -> RunRecord:
    """A finished run of more cases than a frame has."""
    known = Suite.objects.filter(slug="many").first()
    version = known.versions.get() if known else build.suite("many", [f"case {n}" for n in range(N_CASES)])
    return build.finished_run(*([text(n) for n in range(N_CASES)] for text in repeats), version=version, **changes)


def blue(_: int) -> str:
    return "blue"


def shown(run: RunRecord) -> Any:
    """What is read of a run that rests on its columns."""
    report, lists, _ = run_page(
        run.pk, [Pick(), Pick(only="unstable"), Pick(only="failed", offset=1), Pick(only="passed")]
    )
    of_suite = suite_standing(suite_report(report.suite.slug))
    return report.buckets, report.noise, report.twin, report.n_cases_unscored, lists, case_page(run.pk), of_suite.noise


def forget() -> None:
    RunFiguresRecord.objects.all().delete()
    CaseFrame.objects.all().delete()
    SuiteNoise.objects.all().delete()


@pytest.fixture
def n_readings(monkeypatch: pytest.MonkeyPatch) -> Count:
    """How often something reads the columns of a run; they come over a cursor that Django keeps no log of."""
    statements: list[str] = []
    stream = bulk.stream_binary

    def listed(sql: str, given: Any, **how: Any) -> Any:
        statements.append(sql)
        return stream(sql, given, **how)

    monkeypatch.setattr(bulk, "stream_binary", listed)

    def count(read: Callable[[], Any]) -> int:
        statements.clear()
        read()
        return len(statements)

    return count


def decode_more(run: RunRecord) -> None:
    add_repeats(run_id=run.pk, n=1)
    build.decode(run, run.repeats.count(), [None if n % 50 == 7 else "blue" for n in range(N_CASES)])


def carry_policy(_: RunRecord) -> None:
    policy, _ = create_policy(slug="late", title="", settings={**judged.LENIENT, "looks": [3, 10, 20]})
    Suite.objects.update(policy=policy)


def run_before(run: RunRecord) -> None:
    """An earlier twin ends late: its columns come after figures were kept."""
    first = RunRecord.objects.earliest("pk")
    RunRecord.objects.filter(pk=first.pk).update(status=RunRecord.Status.FINISHED)


CHANGES: dict[str, Callable[[RunRecord], Any]] = {
    "repeats are added and end": decode_more,
    "the suite has another policy": carry_policy,
    "it is scored again by another scorer": lambda run: rescore_run(run_id=run.pk, scorer={"kind": "contains"}),
    "an earlier twin ends": run_before,
    "an earlier twin goes": lambda run: delete_run(run_id=RunRecord.objects.earliest("pk").pk),
    "it ends otherwise": lambda run: RunRecord.objects.filter(pk=run.pk).update(status=RunRecord.Status.INCOMPLETE),
}


@cast
def run() -> RunRecord:
    return many(blue, lambda n: "red" if n % 60 == 1 else "blue")


@cast
def twins() -> tuple[RunRecord, RunRecord]:
    by = build.process()
    early = many(blue, lambda n: "red" if n % 9 == 2 else "blue", by=by)
    return early, many(blue, lambda n: "red" if n % 60 == 1 else "blue", by=by)


@pytest.mark.parametrize("what", few(CHANGES, 2))
def test_what_is_kept_follows_what_it_rests_on(twins: tuple[RunRecord, RunRecord], what: str) -> None:
    early, run = twins
    if what == "an earlier twin ends":
        RunRecord.objects.filter(pk=early.pk).update(status=RunRecord.Status.INCOMPLETE)
    shown(run)
    CHANGES[what](run)
    told = shown(run)
    forget()
    assert told == shown(run)


def test_what_is_kept_is_read_as_it_stands(run: RunRecord, n_readings: Count) -> None:
    assert n_readings(lambda: run_report(run.pk)) == 1
    assert n_readings(lambda: shown(run)) == 0
    rows = case_rows(run.pk, only="unstable")
    assert [row.case_index for row in rows] == [n for n in range(N_CASES) if n % 60 == 1]
    assert {row.scores for row in rows} == {(1.0, 0.0)}
    assert all(row.reason and row.n_texts == 2 for row in rows)


def test_a_repeat_that_ends_leaves_its_figures(django_capture_on_commit_callbacks: Any, n_readings: Count) -> None:
    """Whoever ends it keeps them, so that no page is the first to compute them; also while others are to come."""
    run = build.run(repeats=2)
    for repeat in (1, 2):
        with django_capture_on_commit_callbacks(execute=True):
            build.decode(run, repeat, ("blue", "red", "blue"))
        assert n_readings(lambda: run_report(run.pk)) == 0


def test_figures_that_are_gone_are_computed_once(n_readings: Count) -> None:
    run = build.finished_run()
    told = shown(run)
    forget()
    assert (n_readings(lambda: run_report(run.pk)), n_readings(lambda: run_report(run.pk))) == (1, 0)
    assert shown(run) == told


def test_other_rules_come_to_figures_of_their_own(monkeypatch: pytest.MonkeyPatch, n_readings: Count) -> None:
    run = build.finished_run()
    run_report(run.pk)
    monkeypatch.setattr(figures, "FIGURES_RULES", figures.FIGURES_RULES + 1)
    assert (n_readings(lambda: run_report(run.pk)), n_readings(lambda: run_report(run.pk))) == (1, 0)


@pytest.mark.nightly
def test_lists_go_on_where_somebody_has_just_replaced_the_frames(run: RunRecord) -> None:
    told = case_rows(run.pk)
    CaseFrame.objects.filter(first=0).delete()
    assert case_rows(run.pk) == told


def test_a_run_that_nothing_has_come_of_keeps_nothing() -> None:
    run = build.run()
    assert [row.scores for row in case_rows(run.pk)] == [(None, None)] * 3
    assert not RunFiguresRecord.objects.exists()
