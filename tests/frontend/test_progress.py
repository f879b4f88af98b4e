"""A run under way in words: who works on it, what is tried again, and a history that says equal things once."""

from datetime import UTC, datetime, timedelta

from evalboard.contract.run import EventOfRun, Repeat, ShardOfRun
from frontend.runs import progress

START = datetime(2026, 11, 21, 7, 0, tzinfo=UTC)


def event(second: int, what: str, *, place: str = "", code: str = "shard_released", level: str = "info") -> EventOfRun:
    text = f"{place}: {what}" if place else what
    return EventOfRun(at=START + timedelta(seconds=second), level=level, code=code, text=text, what=what)


def cell(first: int, status: str, *, worker: str = "", is_silent: bool = False, n_failures: int = 0) -> ShardOfRun:
    return ShardOfRun(
        first=first,
        last=first + 9,
        status=status,
        attempt=1,
        n_done=0,
        worker=worker,
        error="",
        n_cases=10,
        is_silent=is_silent,
        n_failures=n_failures,
    )


def repeats(*cells: ShardOfRun) -> tuple[Repeat, ...]:
    return (
        Repeat(
            index=2,
            status="running",
            score=None,
            n_missing=0,
            n_left_out=0,
            attempts=1,
            engine_processes=(),
            open_shards=cells,
        ),
    )


def test_equal_lines_in_a_row_are_told_once_with_their_first_and_last_time():
    why = "given back by node-1: the run must stay on the serving stack that it began on."
    alike = [event(n, why, place=f"Repeat 1, cases {n}–{n + 9}") for n in range(12)]
    (line,) = progress.story(alike)
    assert (line.text, line.at, line.until) == (f"12 × {why}", alike[0].at, alike[-1].at)
    assert line.events == tuple(alike)


def test_cases_that_an_engine_lost_one_by_one_are_told_once():
    for case in ("case-{}", "a: b/{}"):  # whatever a case is called
        places = [f"Case {case.format(n)}" for n in range(3)]
        lost = [
            event(n, "The engine died.", place=place, code="engine_error", level="error")
            for n, place in enumerate(places)
        ]
        assert [line.text for line in progress.story(lost)] == ["3 × The engine died."]


def test_two_lines_another_level_and_another_event_between_are_left_as_they_are():
    two = [event(n, "lost.", place=f"Repeat 1, cases {n}–9, attempt {n}") for n in range(2)]
    assert [line.text for line in progress.story(two)] == [line.text for line in two]
    mixed = [event(0, "Lost."), event(1, "Lost.", level="error"), event(2, "Lost.")]
    assert [line.level for line in progress.story(mixed)] == ["info", "error", "info"]
    parted = [event(0, "Lost."), event(1, "Lost."), event(2, "Found.", code="attempt"), event(3, "Lost.")]
    assert len(progress.story(parted)) == 4


def test_who_is_at_work_and_what_is_tried_again():
    of_run = repeats(
        cell(0, "finished", worker="node-1"),
        cell(10, "running", worker="node-1"),
        cell(20, "running", worker="node-2", is_silent=True),
        cell(30, "queued", n_failures=1),
        cell(40, "queued"),
    )
    at_work = progress.at_work(of_run)
    assert [line.place for line in at_work] == ["repeat 2, cases 10–19", "repeat 2, cases 20–29"]
    assert progress.n_workers(at_work) == 1
    assert [line.place for line in progress.tried_again(of_run)] == ["repeat 2, cases 30–39"]
