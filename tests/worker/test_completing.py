"""A run that ended without all of its responses is completed: what is missing alone is decoded."""

from collections.abc import Callable

import pytest

from evalboard.core.errors import Conflict
from runs.models import ResponseRecord, RunRecord
from runs.run import add_repeats, cancel_run, complete_run, run_report
from tests.nightly import nightly
from tests.scripted import ScriptedServer, ok, status
from tests.worker.test_remote_runs import endpoint, new_run, new_runner, number, runner, server, worked  # noqa: F401
from worker.runner import Runner

pytestmark = pytest.mark.django_db(transaction=True)

BLUE = ok(choices=[{"index": 0, "message": {"role": "assistant", "content": "blue"}, "finish_reason": "stop"}])
GONE = status(413, words="Too much.")


def seeds(server: ScriptedServer) -> dict[int, int]:  # noqa: F811
    return {number(received): received.body["seed"] for received in server.requests}


def test_of_an_incomplete_run_the_missing_cases_alone_are_called_by_their_own_seeds(
    server: ScriptedServer,  # noqa: F811
    new_run: Callable[..., RunRecord],  # noqa: F811
    runner: Runner,  # noqa: F811
) -> None:
    server.script = lambda received: GONE if number(received) in (3, 17) else BLUE
    run = worked(runner, new_run(20))
    assert (run.status, run_report(run.pk).repeats[0].score) == (RunRecord.Status.INCOMPLETE, None)
    before, kept = seeds(server), dict(ResponseRecord.objects.values_list("case_index", "pk"))
    server.requests.clear()
    server.script = lambda received: BLUE
    assert complete_run(run_id=run.pk).status == RunRecord.Status.QUEUED
    assert run_report(run.pk).progress.n_done == 18
    run = worked(runner, run)
    assert seeds(server) == {case: before[case] for case in (3, 17)}
    after = dict(ResponseRecord.objects.values_list("case_index", "pk"))
    assert {case: pk for case, pk in after.items() if case not in (3, 17)} == {
        case: pk for case, pk in kept.items() if case not in (3, 17)
    }
    report = run_report(run.pk)
    assert (run.status, report.repeats[0].score, report.errors.n) == (RunRecord.Status.FINISHED, 100.0, 0)
    with pytest.raises(Conflict, match="has finished"):
        complete_run(run_id=run.pk)


@pytest.mark.nightly
@pytest.mark.parametrize("ending", [RunRecord.Status.CANCELLED, *nightly([RunRecord.Status.FAILED])])
def test_a_run_that_failed_or_was_cancelled_goes_on(
    server: ScriptedServer,  # noqa: F811
    new_run: Callable[..., RunRecord],  # noqa: F811
    runner: Runner,  # noqa: F811
    ending: str,
) -> None:
    server.script = lambda received: BLUE
    run = worked(runner, new_run(5))
    add_repeats(run_id=run.pk, n=1)
    if ending == RunRecord.Status.CANCELLED:
        cancel_run(run_id=run.pk)
    else:
        ResponseRecord.objects.all().delete()  # so that the key is refused before anything was answered
        server.script = lambda received: status(401)
    run = worked(runner, run)
    assert run.status == ending
    server.script = lambda received: BLUE
    complete_run(run_id=run.pk)
    run = worked(runner, run)
    report = run_report(run.pk)
    assert (run.status, run.failure, run.is_cancel_wanted) == (RunRecord.Status.FINISHED, "", False)
    assert [repeat.score for repeat in report.repeats] == [100.0, 100.0]


@pytest.mark.nightly
def test_what_is_still_missing_leaves_the_run_incomplete(
    server: ScriptedServer,  # noqa: F811
    new_run: Callable[..., RunRecord],  # noqa: F811
    runner: Runner,  # noqa: F811
) -> None:
    server.script = lambda received: GONE if number(received) == 3 else BLUE
    run = worked(runner, new_run(5))
    complete_run(run_id=run.pk)
    with pytest.raises(Conflict, match="is queued"):
        complete_run(run_id=run.pk)
    run = worked(runner, run)
    assert run.status == RunRecord.Status.INCOMPLETE
    assert ResponseRecord.objects.exclude(error_code="").count() == 1
