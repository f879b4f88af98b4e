"""Pages of runs that were read from other tools' logs: nothing on them takes an engine for granted."""

from collections.abc import Callable

import pytest
from django.test import Client

from runs import services
from runs.importers.records import LoggedRun
from runs.models import Bucket, Run
from tests.runs import logs


def tokens() -> LoggedRun:
    return logs.log()


def texts() -> LoggedRun:
    return logs.without_tokens(logs.log())


def unknown() -> LoggedRun:
    return logs.served(logs.log(), logs.UNKNOWN)


def unscored() -> LoggedRun:
    return logs.log(*(logs.response(case, score=None) for case in logs.CASES), scorers=())


def broken_off() -> LoggedRun:
    mixed = logs.response("sea", served_by=logs.BFLOAT16), logs.response("sun", error="HTTP 500")
    return logs.log(logs.response("sky"), *mixed, status="failed", failure="Out of quota.")


def pages_of(run: Run, other: Run) -> list[str]:
    version = run.suite_version
    prints = Bucket.objects.filter(engine_processes__repeats__run__in=[run, other]).values_list(
        "fingerprint", flat=True
    )
    first, *_, last = prints
    return [
        "/",
        "/runs/",
        f"/runs/{run.pk}/",
        f"/runs/{run.pk}/repeats/1/cases/sky/",
        f"/runs/{run.pk}/repeats/1/cases/sun/",
        f"/compare/{run.pk}/{other.pk}/",
        f"/compare/{run.pk}/{other.pk}/cases/sun/",
        f"/compare/{run.pk}/{run.pk}/cases/sky/?repeat=1,1",
        f"/suites/{version.suite.slug}/",
        f"/suites/{version.suite.slug}/versions/{version.number}/",
        "/fingerprints/",
        f"/fingerprints/{first}/",
        f"/fingerprints/{first}/diff/{last}/",
        "/workers/",
        "/settings/",
        "/runs/new/",
    ]


@pytest.mark.parametrize("made", [tokens, texts, unknown, unscored, broken_off])
def test_every_page_of_an_imported_run_opens(engineer: Client, made: Callable[[], LoggedRun]) -> None:
    run = logs.stored(made())
    answers = logs.log(*(logs.response(case, 1, "it", " is", " red", served_by=logs.BFLOAT16) for case in logs.CASES))
    other = logs.stored(answers, "two")
    services.compare(baseline=run.pk, candidate=other.pk)
    answered = {page: engineer.get(page).status_code for page in pages_of(run, other)}
    assert set(answered.values()) == {200}, answered
    page = engineer.get(f"/runs/{run.pk}/").content.decode()
    assert "Read from a log of eval_tool 1.2.3" in page


def test_a_release_of_two_imported_runs_opens(engineer: Client) -> None:
    one, two = (logs.stored(logs.log(), name) for name in ("one", "two"))
    release = services.create_release(gates=[{"suite": "colours", "candidate": two.pk, "baseline": one.pk}])
    assert engineer.get(f"/releases/{release.pk}/").status_code == 200
