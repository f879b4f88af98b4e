"""A fingerprint that differs in every answer names calls and not servers, seen through a worker's loop."""

from itertools import count

import pytest

from runs.models import EndpointRecord, EngineProcess, RunRecord
from runs.run import add_repeats, create_run, run_report
from runs.suites import push_suite
from tests.scripted import ScriptedServer, ok
from tests.worker.test_external_seeds import N_CASES, checked, ran, runner, server, suite
from tests.worker.test_remote_runs import worked
from worker.runner import Runner

__all__ = ["runner", "server", "suite"]  # fixtures
pytestmark = pytest.mark.django_db(transaction=True)


def warnings(run: RunRecord) -> dict[str, str]:
    return {warning.code: warning.text for warning in run_report(run.pk).warnings}


@pytest.mark.nightly
def test_where_each_answer_has_its_own_nobody_knows_who_answered(server: ScriptedServer, runner: Runner) -> None:
    numbers = count()
    server.script = lambda _: ok(system_fingerprint=f"fp-{next(numbers)}")
    run = ran(runner, repeats=2)
    report = run_report(run.pk)
    assert [(bucket.n_responses, bucket.model_reported) for bucket in report.buckets] == [(2 * N_CASES, "lab/paint-1b")]
    assert [repeat.score for repeat in report.repeats] == [0.0, 0.0]  # of one bucket, so that each repeat has a score
    said = warnings(run)
    n = 2 * N_CASES
    assert said["call_fingerprints"].startswith(f"{n} answers have {n} different fingerprints.")
    assert "unknown_stack" in said
    assert EngineProcess.objects.filter(repeats__run=run).distinct().count() == 1
    again = worked(runner, add_repeats(run_id=run.pk, n=1))
    assert [bucket.n_responses for bucket in run_report(again.pk).buckets] == [3 * N_CASES]


@pytest.mark.nightly
def test_where_most_answers_have_their_own_it_is_said_and_nothing_is_merged(
    server: ScriptedServer, runner: Runner
) -> None:
    numbers = count()
    server.script = lambda _: ok(system_fingerprint=f"fp-{max(next(numbers), 3)}")
    run = ran(runner, repeats=1)
    n_different = N_CASES - 3
    assert len(run_report(run.pk).buckets) == n_different
    assert warnings(run)["call_fingerprints"].startswith(
        f"{N_CASES} answers have {n_different} different fingerprints. Each counts as a server."
    )


@pytest.mark.nightly
def test_a_check_that_saw_another_one_each_time_tells_it_of_few_answers(server: ScriptedServer, runner: Runner) -> None:
    numbers = count()
    server.script = lambda _: ok(system_fingerprint=f"fp-{next(numbers)}")
    cases = [{"id": f"case-{n}", "prompt": f"Say {n}.", "target": "blue"} for n in range(4)]
    push_suite(document={"slug": "few", "title": "Few", "max_tokens": 24, "scorer": {"kind": "exact"}, "cases": cases})

    def few() -> RunRecord:
        return worked(runner, create_run(suite="few", endpoint="hosted", profile="fast", repeats=1))

    assert len(run_report(few().pk).buckets) == 4
    checked(("system_fingerprint", "honoured"), system_fingerprint={"n": 18, "n_answers": 18, "n_distinct": 18})
    run = few()
    assert [bucket.n_responses for bucket in run_report(run.pk).buckets] == [4]
    assert "who answered is unknown." in warnings(run)["call_fingerprints"]


@pytest.mark.nightly
def test_an_endpoint_that_is_to_ignore_fingerprints_is_one_server_that_nothing_names(
    server: ScriptedServer, runner: Runner
) -> None:
    numbers = count()
    server.script = lambda _: ok(system_fingerprint=f"fp-{next(numbers) % 3}")
    EndpointRecord.objects.update(ignores_fingerprint=True)
    run = ran(runner, repeats=1)
    assert [bucket.n_responses for bucket in run_report(run.pk).buckets] == [N_CASES]
    assert "unknown_stack" in warnings(run)
    EndpointRecord.objects.update(ignores_fingerprint=False)
    assert len(run_report(ran(runner, repeats=1).pk).buckets) == 3


def test_two_servers_that_take_turns_are_two_servers(server: ScriptedServer, runner: Runner) -> None:
    numbers = count()
    server.script = lambda _: ok(system_fingerprint=f"fp-{next(numbers) % 2}")
    run = ran(runner, repeats=1)
    assert len(run_report(run.pk).buckets) == 2
    assert "call_fingerprints" not in warnings(run)
