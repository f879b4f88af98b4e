"""What lists and pages learn of cases, responses, suites and fingerprints."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalboard.contract.response import CaseOfRun
from evalboard.core.errors import NotFound
from runs.fingerprints import fingerprint_report
from runs.health import what_is_missing
from runs.models import Case, RunRecord
from runs.pairs.pair_facts import forget_names
from runs.run import response_page, response_rows, show_trace, stored_trace
from runs.suites import cases_report, push_suite, suite_report
from runs.suites.read_history import histories
from tests import build
from tests.build import case_rows
from tests.casts import cast
from tests.nightly import few

pytestmark = pytest.mark.django_db


def n_queries(read: Any) -> int:
    forget_names()  # as the first request of a process
    with CaptureQueriesContext(connection) as queries:
        read()
    return len(queries)


@cast
def mixed_run() -> RunRecord:
    """Five cases: always right, always wrong, unstable, missing once, and wrong with another text each time."""
    version = build.suite(case_ids=["right", "wrong", "unstable", "missing", "wandering"])
    return build.finished_run(
        ("blue", "red", "blue", "blue", "green"), ("blue", "red", "red", None, "grey"), version=version
    )


def ids(rows: tuple[CaseOfRun, ...]) -> list[str]:
    return [row.case for row in rows]


def test_unstable_cases_come_first_then_missing_then_failed(mixed_run: RunRecord) -> None:
    assert ids(case_rows(mixed_run.pk)) == ["unstable", "missing", "wrong", "wandering", "right"]


@pytest.mark.parametrize(
    ("only", "found"),
    [
        ("unstable", ["unstable"]),
        ("missing", ["missing"]),
        ("failed", ["unstable", "wrong", "wandering"]),
        ("passed", ["right"]),
    ],
)
def test_cases_can_be_cut_down_to_one_kind(mixed_run: RunRecord, only: str, found: list[str]) -> None:
    assert ids(case_rows(mixed_run.pk, only=only)) == found


def test_a_case_says_its_scores_texts_and_errors(mixed_run: RunRecord) -> None:
    rows = {row.case: row for row in case_rows(mixed_run.pk)}
    assert rows["unstable"].scores == (1.0, 0.0)
    assert rows["unstable"].is_unstable
    assert (rows["unstable"].n_texts, rows["unstable"].n_traces) == (2, 2)
    assert rows["missing"].scores == (1.0, None)
    assert rows["missing"].errors == ("prompt_too_long",)
    assert rows["missing"].n_texts == 1
    assert rows["wandering"].n_texts == 2
    assert rows["right"].n_traces == 1


def test_the_reason_is_that_of_the_worst_repeat(mixed_run: RunRecord) -> None:
    [unstable] = case_rows(mixed_run.pk, only="unstable")
    assert "red" in unstable.reason


@pytest.mark.parametrize(
    ("query", "found"),
    [("UNSTA", ["unstable"]), ("has wrong", ["wrong"]), ("tag-0", ["right"]), ("100%", []), ('"', [])],
)
def test_cases_are_found_by_id_prompt_and_tag(mixed_run: RunRecord, query: str, found: list[str]) -> None:
    assert ids(case_rows(mixed_run.pk, query=query)) == found


def test_a_quote_in_a_prompt_can_be_looked_for() -> None:
    document = {
        "slug": "quotes",
        "scorer": {"kind": "exact"},
        "cases": [
            {"id": "said", "prompt": 'Say "yes\\no"', "target": "yes"},
            {"id": "bare", "prompt": "x", "target": "x"},
        ],
    }
    run = build.run(push_suite(document=document)[0])
    assert ids(case_rows(run.pk, query='"yes\\no"')) == ["said"]


def test_cases_are_given_in_slices(mixed_run: RunRecord) -> None:
    assert ids(case_rows(mixed_run.pk, offset=1, limit=2)) == ["missing", "wrong"]


def test_a_run_without_any_response_lists_its_cases() -> None:
    rows = case_rows(build.run(repeats=2).pk)
    assert ids(rows) == ["sky", "sea", "a/b c"]
    assert rows[0].scores == (None, None)
    assert not rows[0].errors


def test_a_response_stands_with_its_tokens_and_neighbours() -> None:
    run = build.finished_run(("blue", "red", "blue"), ("blue", "blue", "blue"), ("blue", "red", "blue"))
    report = response_page(run.pk, repeat=1, case_id="sea")
    assert (report.response.text, report.target, report.n_repeats) == ("red", "blue", 3)
    assert (report.previous_case_id, report.next_case_id) == ("sky", "a/b c")
    assert report.same_trace_repeats == (3,)
    assert report.trace is not None
    first, last = report.trace.tokens
    assert (first.drawn, first.logprob, first.margin) == ("·red", -0.25, 1.75)
    selected = report.trace.selected
    assert [cell.drawn for cell in selected.alternatives] == ["·red", "blue"]
    assert [cell.token_id == first.token_id for cell in selected.alternatives] == [True, False]
    assert last.drawn == "⟨end⟩"
    assert last.margin is None
    [score] = report.scores
    assert (score.is_own, score.score) == (True, 0.0)
    assert report.response.provenance["seed_sent"] == 42


def test_the_first_and_last_case_have_one_neighbour() -> None:
    run = build.finished_run()
    assert response_page(run.pk, repeat=1, case_id="sky").previous_case_id is None
    assert response_page(run.pk, repeat=1, case_id="a/b c").next_case_id is None


def test_a_missing_response_has_no_token_and_says_why() -> None:
    run = build.finished_run((None, "blue", "blue"), (None, "blue", "blue"))
    report = response_page(run.pk, repeat=1, case_id="sky")
    response = report.response
    assert (response.error and response.error.code, response.trace_digest) == ("prompt_too_long", None)
    assert report.trace is None
    assert report.same_trace_repeats == ()
    assert report.scores[0].score is None
    with pytest.raises(NotFound, match="prompt_too_long"):
        show_trace(*stored_trace(run.pk, repeat=1, case_id="sky"))


@pytest.mark.parametrize(("repeat", "case_id"), [(9, "sky"), (1, "no such case"), (10**12, "sky")])
def test_a_response_that_is_not_there_is_said_to_be_missing(repeat: int, case_id: str) -> None:
    run = build.finished_run()
    with pytest.raises(NotFound):
        response_page(run.pk, repeat=repeat, case_id=case_id)


def test_positions_carry_exact_texts_and_no_infinity() -> None:
    run = build.finished_run(("red", "blue", "blue"))
    first, last = show_trace(*stored_trace(run.pk, repeat=1, case_id="sky")).positions
    assert (first.token, first.drawn, first.logprob) == (" red", "·red", -0.25)
    assert last.alternatives[1].to_json() == {"token_id": 3, "token": "\n", "drawn": "⏎", "logprob": None}


def test_part_of_a_character_is_no_text_but_can_be_drawn() -> None:
    run = build.finished_run(("grey", "blue", "blue"))
    first = show_trace(*stored_trace(run.pk, repeat=1, case_id="sky")).positions[0]
    assert (first.token, first.drawn) == (None, "⟨0xE2⟩⟨0x9C⟩")


@pytest.mark.nightly
def test_nine_repeats_of_a_case_cost_as_many_queries_as_one() -> None:
    by = build.process()
    few = build.finished_run(("blue",) * 3, by=by)
    many = build.finished_run(*[("blue",) * 3] * 9, by=by)
    read = response_page
    read(few.pk, repeat=1, case_id="sky")  # the vocabulary is kept from here on
    assert n_queries(lambda: read(many.pk, repeat=1, case_id="sky")) == n_queries(
        lambda: read(few.pk, repeat=1, case_id="sky")
    )


def test_responses_are_listed_by_repeat_then_case() -> None:
    run = build.finished_run()
    rows = response_rows(run.pk)
    assert [(row.repeat, row.case) for row in rows] == [(n, case) for n in (1, 2) for case in ("sky", "sea", "a/b c")]
    assert rows[2].score == 0.0
    assert rows[0].reason


@pytest.mark.parametrize("limit", few([1, 2, 4, 6], 1))
def test_pages_of_responses_meet_without_gap_or_overlap(limit: int) -> None:
    run = build.finished_run()
    whole = [row.place for row in response_rows(run.pk)]
    forward: list[int] = []
    while rows := response_rows(run.pk, after=forward[-1] if forward else None, limit=limit):
        forward += [row.place for row in rows]
    assert forward == whole
    backward: list[int] = [whole[-1] + 1]
    while rows := response_rows(run.pk, before=backward[0], limit=limit):
        backward = [row.place for row in rows] + backward
    assert backward[:-1] == whole


def test_fifty_responses_cost_as_many_queries_as_one() -> None:
    version = build.suite("many", [f"case {number}" for number in range(30)])
    run = build.finished_run(("blue",) * 30, ("red",) * 30, version=version)
    assert len(response_rows(run.pk, limit=50)) == 50
    assert n_queries(lambda: response_rows(run.pk, limit=50)) == n_queries(lambda: response_rows(run.pk, limit=1))


def test_a_suite_shows_the_runs_of_the_version_that_is_shown() -> None:
    first = build.suite()
    run = build.finished_run(version=first)
    build.suite(case_ids=["other"])
    newest, older = suite_report("colours"), suite_report("colours", version=1)
    assert (newest.suite.version, newest.buckets) == (2, ())
    assert [line.n_runs for line in newest.versions] == [0, 1]
    [bucket] = older.buckets
    [point] = bucket.runs
    assert (point.run_id, point.n_repeats) == (run.pk, 2)
    assert point.range == (pytest.approx(100 / 3), pytest.approx(200 / 3))
    assert [case.scorer_kind for case in cases_report("colours", version=1).cases] == ["exact"] * 3


@pytest.mark.parametrize("query", ["", "case"])
def test_a_stretch_of_a_suites_cases_is_all_that_is_read(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build.suite("many", [f"case {number}" for number in range(30)])
    n_read, from_db = 0, Case.from_db

    def count(*row: Any) -> Case:
        nonlocal n_read
        n_read += 1
        return from_db(*row)

    monkeypatch.setattr(Case, "from_db", count)
    report = cases_report("many", version=1, query=query, offset=20, limit=4)
    assert ([case.case_id for case in report.cases], report.n_cases) == ([f"case {n}" for n in range(20, 24)], 30)
    assert n_read == 4
    assert cases_report("many", version=1, query=query, offset=28, limit=4).cases[-1].index == 29
    assert cases_report("many", version=1, query=query, offset=30, limit=4).cases == ()


@pytest.mark.parametrize(
    ("query", "indexes"),
    [("SKY", [0]), ("what is", [0, 1]), ("Rød", [1]), ("user", []), ('", "', []), ("[", []), ("warm", [1]), ("%", [2])],
)
def test_words_are_looked_for_in_ids_prompts_and_tags_alone(query: str, indexes: list[int]) -> None:
    cases = [
        {"id": "sky", "prompt": "What is it?", "target": "user", "tags": ["cold", "far"]},
        {"id": "b", "prompt": "What is rød?", "target": "[", "tags": ["warm"]},
        {"id": "c", "messages": [{"role": "user", "content": "100% of?"}], "target": "d"},
    ]
    push_suite(document={"slug": "mixed", "title": "Mixed", "scorer": {"kind": "exact"}, "cases": cases})
    report = cases_report("mixed", version=1, query=query)
    assert ([case.index for case in report.cases], report.n_cases) == (indexes, len(indexes))


@pytest.mark.nightly
def test_runs_of_two_buckets_stand_apart() -> None:
    build.finished_run(by=build.process(build.bucket("float32")))
    build.finished_run(by=build.process(build.bucket("bfloat16")))
    assert [len(bucket.runs) for bucket in suite_report("colours").buckets] == [1, 1]


def test_a_run_of_two_buckets_stands_in_both() -> None:
    float32, bfloat16 = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    run = build.run(repeats=1)
    build.decode(run, 1, ("blue", "blue", "red"), by=[float32, float32, bfloat16])
    points = [point for bucket in suite_report("colours").buckets for point in bucket.runs]
    assert [(point.run_id, point.points, point.range) for point in points] == [
        (run.pk, (100.0,), None),
        (run.pk, (0.0,), None),
    ]


@pytest.mark.nightly
def test_six_runs_in_a_history_cost_as_many_queries_as_one() -> None:
    version, by = build.suite(), build.process()
    build.finished_run(by=by)
    for_one = n_queries(lambda: histories(version))
    for _ in range(5):
        build.finished_run(by=by)
    assert n_queries(lambda: histories(version)) == for_one


@pytest.mark.parametrize(("slug", "version"), [("shapes", None), ("colours", 9)])
def test_a_suite_that_is_not_there_is_said_to_be_missing(slug: str, version: int | None) -> None:
    build.suite()
    with pytest.raises(NotFound):
        suite_report(slug, version=version)


def test_a_fingerprint_lists_its_buckets_and_runs() -> None:
    run = build.finished_run()
    assert run.bucket is not None
    report = fingerprint_report(run.bucket.fingerprint_id)
    assert report.n_runs == 1
    assert [bucket.batch_class for bucket in report.buckets] == ["alone"]
    assert report.manifest["versions"] == {"vllm": "0.32.0"}


def test_an_installation_without_a_runner_is_not_ready() -> None:
    assert what_is_missing().keys() == {"runner"}
    build.worker("old", seen_at="2026-01-01T00:00:00Z")
    assert what_is_missing().keys() == {"runner"}
    build.worker("new")
    assert what_is_missing() == {}
