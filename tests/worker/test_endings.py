"""How the answers of an external server ended: counted for the run, and a filter of its cases."""

from collections.abc import Callable
from typing import Any

import pytest

from evalboard.core.errors import InvalidInput
from runs.compare import compare
from runs.models import EndpointRecord, ResponseRecord, RunRecord
from runs.release import create_release
from runs.run import run_report
from runs.suites import set_endings
from tests import build
from tests.build import case_rows, comparison_report
from tests.scripted import Reply, ScriptedServer, ok, status
from tests.worker.test_remote_runs import endpoint, new_run, new_runner, number, runner, server, worked  # noqa: F401
from worker.runner import Runner

pytestmark = pytest.mark.django_db(transaction=True)


def saying(finish_reason: str, content: str | None, **message: Any) -> Reply:
    """An answer that ends with this word."""
    whole = {"role": "assistant", "content": content, **message}
    return ok(choices=[{"index": 0, "message": whole, "finish_reason": finish_reason}])


ANSWERS = [
    saying("stop", "blue"),
    saying("length", "re"),
    saying("content-filter", None),
    saying("stop", None, refusal="I will not name colours."),
    saying("stop", "", reasoning="The sky, so blue."),
    saying("STOP", "blue"),
]


@pytest.mark.nightly
def test_answers_are_counted_by_how_they_ended_and_listed(
    server: ScriptedServer,  # noqa: F811
    new_run: Callable[..., RunRecord],  # noqa: F811
    runner: Runner,  # noqa: F811
) -> None:
    server.script = lambda received: ANSWERS[number(received)]
    run = worked(runner, new_run(len(ANSWERS)))
    assert run.status == RunRecord.Status.FINISHED
    report = run_report(run.pk)
    assert report.endings == {"cut": 1, "filtered": 1, "refused": 1, "empty": 1}
    assert report.repeats[0].score == pytest.approx(100 * 2 / 6)  # they are answers, and wrong
    [warning] = [each for each in report.warnings if each.code == "ended_otherwise"]
    assert warning.text.startswith("Of 6 answers, 1 was cut, 1 was filtered, 1 was refused and 1 was empty.")
    for ending, name in (("cut", "case-1"), ("filtered", "case-2"), ("refused", "case-3"), ("empty", "case-4")):
        assert [row.case for row in case_rows(run.pk, only=ending)] == [name]
    assert not case_rows(run.pk, only="unknown")
    assert ResponseRecord.objects.get(repeat__run=run, case_index=4).reasoning == "The sky, so blue."


@pytest.mark.nightly
def test_a_comparison_has_a_ledger_line_for_each_ending(
    server: ScriptedServer,  # noqa: F811
    new_run: Callable[..., RunRecord],  # noqa: F811
    runner: Runner,  # noqa: F811
) -> None:
    right = saying("stop", "blue")
    server.script = lambda received: right
    whole = worked(runner, new_run(len(ANSWERS)))
    server.script = lambda received: ANSWERS[number(received)]
    ended = worked(runner, new_run(len(ANSWERS)))
    report = comparison_report(compare(baseline=whole.pk, candidate=ended.pk).pk)
    lines = {line.cause: line.points for line in report.ledger}
    assert lines == pytest.approx(dict.fromkeys(("cut", "filtered", "refused", "empty"), -100 / 6))


def test_an_answer_with_an_unknown_ending_is_kept_and_unscored_until_a_person_says_what_it_means(
    server: ScriptedServer,  # noqa: F811
    new_run: Callable[..., RunRecord],  # noqa: F811
    runner: Runner,  # noqa: F811
    endpoint: EndpointRecord,  # noqa: F811
) -> None:
    server.script = lambda received: saying("wrapped_up" if number(received) < 2 else "stop", "blue")
    run = worked(runner, new_run(5))
    assert (run.status, len(server.requests)) == (RunRecord.Status.FINISHED, 5)  # it is not asked again
    report = run_report(run.pk)
    assert (report.endings, report.repeats[0].score) == ({"unknown": 2}, 100.0)  # of the three that are scored
    assert report.n_cases_unscored == 2
    [warning] = [each for each in report.warnings if each.code == "unknown_ending"]
    assert "evalboard endpoint set hosted --ending wrapped_up=complete" in warning.text
    unscored = case_rows(run.pk, only="unknown")
    assert [(row.case, row.score) for row in unscored] == [("case-0", None), ("case-1", None)]
    set_endings(endpoint=endpoint.slug, endings={"Wrapped-Up": "complete"})
    report = run_report(run.pk)
    assert (report.endings, report.repeats[0].score) == ({}, 100.0)
    assert "unknown_ending" not in {each.code for each in report.warnings}
    for word, meaning in (("stop", "cut"), ("wrapped_up", "failed"), ("-", "complete")):
        with pytest.raises(InvalidInput):
            set_endings(endpoint=endpoint.slug, endings={word: meaning})


def test_a_word_that_ends_nine_of_ten_answers_means_complete_and_is_said_once(
    server: ScriptedServer,  # noqa: F811
    new_run: Callable[..., RunRecord],  # noqa: F811
    runner: Runner,  # noqa: F811
) -> None:
    server.script = lambda received: saying("length" if number(received) == 1 else "wrapped_up", "blue")
    run = worked(runner, new_run(10, repeats=2))
    report = run_report(run.pk)
    assert (report.endings, [repeat.score for repeat in report.repeats]) == ({"cut": 2}, [100.0, 100.0])
    [note] = [each.text for each in report.warnings if each.code == "usual_ending"]
    assert note == "18 of 20 answers ended with 'wrapped_up', which is read as complete."


@pytest.mark.nightly
def test_a_release_says_where_the_sides_ended_differently_and_leaves_out_prompts_that_both_refuse(
    server: ScriptedServer,  # noqa: F811
    new_run: Callable[..., RunRecord],  # noqa: F811
    runner: Runner,  # noqa: F811
) -> None:
    refused = status(400, words="Blocked by our content management policy.", code="content_filter")
    scripts = (
        {0: refused, 1: saying("length", "re")},
        {0: refused, 1: saying("length", "re"), 2: saying("safety", ""), 3: refused},
    )
    runs = []
    for script in scripts:
        server.script = lambda received, script=script: script.get(
            number(received), saying("stop", "blue" + "\n" * received.number)
        )
        runs.append(worked(runner, new_run(8, repeats=2)))
    assert [run.status for run in runs] == [RunRecord.Status.FINISHED] * 2
    report = run_report(runs[0].pk)
    assert report.errors.by_code == {"prompt_filtered": 2}
    assert [(repeat.score, repeat.n_missing) for repeat in report.repeats] == [(pytest.approx(100 * 6 / 7), 0)] * 2
    assert report.range == pytest.approx([100 * 6 / 7] * 2)
    noise = report.buckets[0].noise
    assert (noise.n_repeats, noise.sd_points, noise.range5_points) == (2, 0.0, 0.0)  # of the seven cases
    [warning] = [each.text for each in report.warnings if each.code == "prompts_filtered"]
    assert warning == "The provider refused 2 of 16 prompts. The score leaves them out."
    gate = {"suite": "words", "candidate": runs[1].pk, "baseline": runs[0].pk}
    release = create_release(gates=[gate], user=build.user())
    assert release.verdict is not None
    document = release.verdict.document
    told = [(each["code"], each["text"]) for each in document["warnings"]]
    who = f"The candidate, run {runs[1].pk}, has"
    assert [text for code, text in told if code == "endings_differ"] == [
        f"{who} 2 of 12 answers cut. The other side has 2 of 14.",
        f"{who} 2 of 12 answers stopped by a content filter. The other side has 0 of 14.",
    ]
    assert [text for code, text in told if code == "prompts_filtered"] == [
        f"The candidate, run {runs[1].pk}, lacks 1 prompt that its provider refused. The other side has answers.",
        "The providers of both sides refused 1 prompt. The verdict leaves it out.",
    ]
    assert document["gates"][0]["n_cases"] == 7


@pytest.mark.nightly
def test_a_run_whose_prompts_are_all_refused_or_that_lost_another_call_is_incomplete(
    server: ScriptedServer,  # noqa: F811
    new_run: Callable[..., RunRecord],  # noqa: F811
    runner: Runner,  # noqa: F811
) -> None:
    refused = status(400, words="Blocked by our content management policy.", code="content_filter")
    server.script = lambda received: refused
    assert worked(runner, new_run(4)).status == RunRecord.Status.INCOMPLETE
    lost = {0: refused, 1: status(400, words="Bad case.")}
    server.script = lambda received: lost.get(number(received), saying("stop", "blue"))
    run = worked(runner, new_run(4))
    assert (run.status, run_report(run.pk).repeats[0].n_missing) == (RunRecord.Status.INCOMPLETE, 1)
