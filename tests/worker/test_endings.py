"""How the answers of an external server ended: counted for the run, and a filter of its cases."""

from collections.abc import Callable
from typing import Any

import pytest

from runs.compare import compare, comparison_report
from runs.models import Response, Run
from runs.run import case_rows, run_report
from tests.scripted import Reply, ScriptedServer, ok
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


def test_answers_are_counted_by_how_they_ended_and_listed(
    server: ScriptedServer,  # noqa: F811
    new_run: Callable[..., Run],  # noqa: F811
    runner: Runner,  # noqa: F811
) -> None:
    server.script = lambda received: ANSWERS[number(received)]
    run = worked(runner, new_run(len(ANSWERS)))
    assert run.status == Run.Status.FINISHED
    report = run_report(run.pk)
    assert report.endings == {"cut": 1, "filtered": 1, "refused": 1, "empty": 1}
    assert report.repeats[0].score == pytest.approx(100 * 2 / 6)  # they are answers, and wrong
    [warning] = [each for each in report.warnings if each.code == "ended_otherwise"]
    assert warning.text.startswith("Of 6 answers, 1 was cut, 1 was filtered, 1 was refused and 1 was empty.")
    for ending, name in (("cut", "case-1"), ("filtered", "case-2"), ("refused", "case-3"), ("empty", "case-4")):
        assert [row.case for row in case_rows(run.pk, only=ending)] == [name]
    assert not case_rows(run.pk, only="unknown")
    assert Response.objects.get(repeat__run=run, case_index=4).reasoning == "The sky, so blue."


def test_a_comparison_has_a_ledger_line_for_each_ending(
    server: ScriptedServer,  # noqa: F811
    new_run: Callable[..., Run],  # noqa: F811
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
