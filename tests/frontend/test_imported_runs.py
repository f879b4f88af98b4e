"""Pages of runs that were read from other tools' logs: nothing on them takes an engine for granted."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.test import Client
from django.utils.html import strip_tags

from evalboard.importers.records import LoggedRun
from runs.baselines import set_baseline
from runs.catalogue import store_default_profiles
from runs.compare import compare
from runs.models import BucketRecord, RunRecord
from runs.release import create_release
from tests import build
from tests.nightly import nightly
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


def pages_of(run: RunRecord, other: RunRecord) -> list[str]:
    version = run.suite_version
    prints = BucketRecord.objects.filter(engine_processes__repeats__run__in=[run, other]).values_list(
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
        "/endpoints/",
        "/settings/",
        "/runs/new/",
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("made", [tokens, *nightly([texts, unknown, unscored, broken_off])])
def test_every_page_of_an_imported_run_opens(engineer: Client, made: Callable[[], LoggedRun]) -> None:
    run = logs.stored(made())
    answers = logs.log(*(logs.response(case, 1, "it", " is", " red", served_by=logs.BFLOAT16) for case in logs.CASES))
    other = logs.stored(answers, "two")
    compare(baseline=run.pk, candidate=other.pk)
    answered = {page: engineer.get(page).status_code for page in pages_of(run, other)}
    assert set(answered.values()) == {200}, answered
    page = engineer.get(f"/runs/{run.pk}/").content.decode()
    assert "Read from a log of eval_tool 1.2.3" in page


@pytest.mark.nightly
def test_a_release_of_two_imported_runs_opens(engineer: Client) -> None:
    one, two = (logs.stored(logs.log(), name) for name in ("one", "two"))
    release = create_release(gates=[{"suite": "colours", "candidate": two.pk, "baseline": one.pk}])
    assert engineer.get(f"/releases/{release.pk}/").status_code == 200


def test_what_a_cache_answered_is_marked_and_said_to_be_left_out(viewer: Client) -> None:
    given = [
        logs.response(case, repeat, flags=("cached",) if repeat > 1 else ())
        for case in logs.CASES
        for repeat in range(1, 6)
    ]
    run = logs.stored(logs.log(*given))
    page = viewer.get(f"/runs/{run.pk}/").content.decode()
    assert "100.0 points in one repeat." in page
    told = "12 answers came from a cache or a fallback. The range leaves out 4 repeats with"
    assert told in page
    assert page.count('<span class="tag">4 cached</span>') == 3
    assert "An independent second repeat measures" in page
    cached = viewer.get(f"/runs/{run.pk}/repeats/2/cases/sky/").content.decode()
    assert "This answer is not a fresh sample: it came from a cache." in cached
    assert "fresh sample" not in viewer.get(f"/runs/{run.pk}/repeats/1/cases/sky/").content.decode()
    left_out = viewer.get(f"/runs/{run.pk}/?only=left_out").content.decode()
    assert "1–3" in left_out


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("cached", "score", "claim"),
    [
        ((1, 2), 1.0, "Finished, but every repeat has answers from a cache or a fallback, so there is no range."),
        ((2,), None, "Finished, without a score."),
    ],
)
def test_a_run_without_a_range_says_why(
    viewer: Client, cached: tuple[int, ...], score: float | None, claim: str
) -> None:
    given = [
        logs.response(case, repeat, score=score, flags=("cached",) if case == "sky" and repeat in cached else ())
        for case in logs.CASES
        for repeat in (1, 2)
    ]
    scorers: dict[str, tuple[str, ...]] = {} if score else {"scorers": ()}
    run = logs.stored(logs.log(*given, **scorers))
    assert claim in strip_tags(page_of(viewer, f"/runs/{run.pk}/"))


def page_of(client: Client, path: str) -> str:
    answer = client.get(path, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.nightly
def test_a_release_of_imported_runs_offers_no_run_that_nobody_here_can_make(engineer: Client) -> None:
    one, two = (logs.stored(logs.log(), name) for name in ("one", "two"))
    release = create_release(gates=[{"suite": "colours", "candidate": two.pk, "baseline": one.pk}])
    page = page_of(engineer, f"/releases/{release.pk}/")
    assert "Import new logs" in page
    assert not any(words in page for words in ("/runs/new/", "/rerun/", "/settle/"))
    assert "was read from a log" in page_of(engineer, f"/releases/{release.pk}/rerun/?side=candidate")


@pytest.mark.nightly
def test_a_log_that_broke_off_is_not_offered_to_be_judged_and_one_that_lacks_little_is(engineer: Client) -> None:
    short = page_of(engineer, f"/runs/{logs.stored(broken_off()).pk}/")
    again = logs.response("sea", 2, error="HTTP 500")
    whole = logs.log(*(logs.response(case) for case in logs.CASES), logs.response("sky", 2), again)
    lacking = logs.stored(whole, "two", suite=None)
    assert "Judge as a release" not in short
    assert "Judge as a release" in page_of(engineer, f"/runs/{lacking.pk}/")


def test_a_suite_whose_scores_were_read_from_a_log_is_not_offered_to_be_run(engineer: Client) -> None:
    slug = logs.stored(logs.log()).suite_version.suite.slug
    pushed = build.suite("pushed").suite.slug
    build.endpoint()
    store_default_profiles()
    page = page_of(engineer, f"/suites/{slug}/")
    assert "Import a log" in page
    assert "/runs/new/" not in page
    assert f"/runs/new/?suite={pushed}" in page_of(engineer, f"/suites/{pushed}/")
    form = page_of(engineer, f"/runs/new/?suite={slug}")
    assert f'value="{pushed}"' in form
    assert f'value="{slug}"' not in form


def test_nothing_of_a_log_is_offered_to_be_decoded_again(engineer: Client) -> None:
    one, two = (logs.stored(logs.log(), name) for name in ("one", "two"))
    pages = (f"/runs/{two.pk}/repeats/1/cases/sky/", f"/compare/{one.pk}/{two.pk}/cases/sky/")
    assert not any("evalboard replay" in page_of(engineer, page) for page in pages)


@pytest.mark.nightly
def test_a_release_over_a_cached_log_says_why_and_leads_to_the_import_of_a_fresh_one(
    client_of: Callable[[str], Client],
) -> None:
    baseline, candidate = (
        logs.stored(
            logs.log(
                *(
                    logs.response(case, repeat, f"blue {repeat}", flags=("cached",) if repeat >= cached_from else ())
                    for case in logs.CASES
                    for repeat in range(1, 6)
                )
            ),
            name,
        )
        for name, cached_from in (("one", 6), ("two", 2))
    )
    gate = {"suite": "colours", "baseline": baseline.pk, "candidate": candidate.pk}
    release = create_release(gates=[gate], policy="paired")
    page = client_of("release manager").get(f"/releases/{release.pk}/")
    assert page.status_code == 200
    text = page.content.decode()
    assert "12 responses of the candidate came from a cache" in text
    assert "Without them the candidate has 1 repeat and the baseline 5, and a verdict takes 5." in text
    assert "answers from a cache are not counted" in text
    assert "Import the new log" in text


@pytest.mark.nightly
def test_an_endpoint_known_by_logs_alone_offers_no_run(engineer: Client) -> None:
    run = logs.stored(tokens())
    set_baseline(suite=run.suite_version.suite.slug, run=run.pk, reason="As logged.", user=build.user("setter"))
    page = engineer.get(f"/endpoints/{run.endpoint.slug}/").content.decode()
    assert "evalboard import my-log.eval" in page
    assert "evalboard run" not in page
    assert "Run the reference set" not in page


@pytest.mark.nightly
def test_a_run_says_when_it_ran_and_when_it_was_imported(viewer: Client) -> None:
    run = logs.stored(logs.log(started_at=datetime(2026, 3, 1, 12, 30, tzinfo=UTC)))
    page = words_of(viewer, f"/runs/{run.pk}/")
    assert "ran 2026-03-01 12:30 UTC, as its log says" in page
    assert f"imported {run.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" in page
    assert "2026-03-01 12:30" in words_of(viewer, "/runs/")
    timeless = logs.stored(logs.log(), name="timeless")
    assert "ran not in the log; shown at its import" in words_of(viewer, f"/runs/{timeless.pk}/")


def words_of(client: Client, path: str) -> str:
    return " ".join(strip_tags(page_of(client, path)).split())
