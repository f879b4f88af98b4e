"""Who answered by day on an endpoint's page: the chart, the table behind it, and who came beside whom."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from evalboard.core.probes import ProbeExchange
from frontend.endpoints.shares import STACKS_SHOWN, draw_hours, draw_shares
from runs.fingerprints import DailyShares, Stack, daily_shares, endpoint_report, timelines
from runs.models import EngineProcess, ProbeRecord, RepeatRecord, Rotation, RunRecord, SuiteVersionRecord
from tests import build, probes
from tests.frontend.test_fingerprints import words
from tests.probes import backend

pytestmark = pytest.mark.django_db
CASES = [f"case-{number}" for number in range(15)]


def days_ago(n: float) -> datetime:
    return timezone.now() - timedelta(days=n)


def answered(ago: float, by: str, *, odd: str = "") -> RunRecord:
    """A run on the hosted endpoint, so many days ago; `odd` gave its first answer."""
    version = SuiteVersionRecord.objects.filter(suite__slug="words").first() or build.suite("words", CASES)
    probes.remote("hosted")
    processes = {name: build.process(backend(name)) for name in (by, odd) if name}
    run = build.run(version, repeats=1, on="hosted")
    build.decode(run, 1, ["blue"] * 15, by=[processes[odd if odd and place == 0 else by] for place in range(15)])
    at = days_ago(ago)
    EngineProcess.objects.filter(pk__in=[each.pk for each in processes.values()]).update(started_at=at)
    RunRecord.objects.filter(pk=run.pk).update(started_at=at, finished_at=at)
    RepeatRecord.objects.filter(run=run).update(finished_at=at)
    run.refresh_from_db()
    build.rotated(run, at)
    return run


def probed(ago: float, names: list[str]) -> ProbeRecord:
    """A routing probe whose calls these backends answered, one after the other."""
    probes.ask("routing", on="hosted", parameters={"calls": len(names)})
    left = iter(names)

    def answer(call: ProbeExchange) -> ProbeExchange:
        return replace(call, text="blue", finish_reason="stop", backend=next(left))

    probe = probes.served_by_others(answer)
    ProbeRecord.objects.filter(pk=probe.pk).update(finished_at=days_ago(ago))
    Rotation.objects.filter(probe=probe).update(at=days_ago(ago))
    return probe


def history() -> None:
    """Backend a, then b in its place, and c beside that; a probe sees d beside b, another one e in its place."""
    for ago in (40, 39, 38, 30, 29):
        answered(ago, "a")
    for ago in (20, 19, 18, 12):
        answered(ago, "b")
    for ago in (5, 4):
        answered(ago, "b", odd="c")
    probed(3, ["b"] * 17 + ["d"] * 3)
    probed(2, ["e"] * 20)


def read() -> DailyShares:
    [line] = timelines(endpoint="hosted", turns=9)
    return daily_shares("hosted", first_seen={each.fingerprint.id: each.first_at for each in line.fingerprints})


def test_answers_are_counted_by_day_and_stack_in_runs_and_probes(db: None) -> None:
    history()
    daily = read()
    named = [stack.name.partition(" ")[0] for stack in daily.stacks]
    assert named == ["a", "b", "c", "d", "e"]
    assert (daily.n_runs, daily.n_probes) == (11, 2)
    counts = dict(daily.days)
    assert counts[days_ago(40).astimezone(UTC).date()] == (15, 0, 0, 0, 0)
    assert counts[days_ago(5).astimezone(UTC).date()] == (0, 14, 1, 0, 0)
    assert counts[days_ago(3).astimezone(UTC).date()] == (0, 17, 0, 3, 0)  # the probe's b is the run's b
    assert counts[days_ago(2).astimezone(UTC).date()] == (0, 0, 0, 0, 20)


@pytest.mark.nightly
def test_what_comes_beside_is_no_rotation_and_what_a_probe_sees_is_dated(viewer: Client) -> None:
    history()
    came = {each.stack.name.partition(" ")[0]: each for each in read().arrivals}
    assert came.keys() == {"b", "c", "d", "e"}
    assert [came[name].is_beside for name in "bcde"] == [False, True, True, False]
    assert [came[name].probe is not None for name in "bcde"] == [False, False, True, True]
    assert came["c"].share == pytest.approx(1 / 15)
    page = words(viewer, "/endpoints/hosted/")
    assert "backend c joined: it gave 7 % of the answers" in page
    assert f"seen by probe {came['e'].probe}" in page  # a rotation as of a run
    assert "backend e took over" not in page
    assert page.count("joined: it gave") == 2  # b took over in a run, which is a rotation and stands among these
    assert "The same numbers as a table" in page


@pytest.mark.nightly
def test_a_stack_older_than_the_days_read_does_not_come_anew(db: None) -> None:
    answered(100, "a")
    answered(90, "b")
    answered(3, "a")
    answered(2, "b")
    daily = read()
    assert len(daily.days) == 2
    assert daily.arrivals == ()


def test_an_endpoint_of_many_backends_draws_as_many_as_can_be_told_apart(db: None) -> None:
    stacks = tuple(Stack(f"backend-{number}", None) for number in range(30))
    counts = tuple(30 - number for number in range(30))
    chart = draw_shares(DailyShares(stacks, ((days_ago(1).date(), counts),), (), 1, 0), ())
    assert chart is not None
    assert [row.name for row in chart.key] == [*(f"backend-{n}" for n in range(STACKS_SHOWN - 1)), "25 others"]
    assert sum(chart.rows[0][1]) == sum(counts)


@pytest.mark.nightly
def test_an_endpoint_that_only_probes_used_has_its_shares_and_its_lanes(viewer: Client) -> None:
    probes.remote("hosted")
    probed(9, ["a"] * 20)
    probed(2, ["a"] * 16 + ["b"] * 4)
    page = words(viewer, "/endpoints/hosted/")
    assert "It has no run yet. Its probes are below." in page
    assert "40 answers to 2 probes" in page
    names = {name: f"backend {name}" for name in "ab"}
    assert f"{names['b']} joined: it gave 20 % of the answers" in page
    lanes = page[page.index("Last seen", page.index("newest first")) :]  # the table, below the chart's own numbers
    assert lanes.index(names["b"]) < lanes.index(names["a"])
    [line] = timelines(endpoint="hosted", turns=9)
    assert [(each.n_runs, each.n_probes) for each in line.fingerprints] == [(0, 1), (0, 2)]
    assert "It served 0 runs and 2 probes" in words(viewer, f"/fingerprints/{backend('a').fingerprint_id}/")
    assert names["b"] in words(viewer, "/fingerprints/?endpoint=hosted")


def test_without_answers_there_is_no_chart(viewer: Client) -> None:
    probes.remote("hosted")
    assert "Shares by day" not in words(viewer, "/endpoints/hosted/")


@pytest.mark.nightly
def test_the_shares_of_an_hour_add_up_to_its_answers(db: None) -> None:
    answered(0.2, "a")
    answered(0.1, "a", odd="c")
    hours = endpoint_report("hosted").hours
    assert sum(hour.n_responses for hour in hours) == 30
    assert all(sum(seen.share for seen in hour.backends) == pytest.approx(1.0) for hour in hours)
    chart = draw_hours(hours)
    assert chart is not None
    assert sorted(map(sum, zip(*(counts for _, counts in chart.rows), strict=True))) == [1, 29]
    assert all(0 <= column.x <= 100 for column in chart.columns)
    assert draw_hours(()) is None
