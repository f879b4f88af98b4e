"""What must hold of a run after any fault: every case of every repeat once, counted right, its trace exact."""

from evalboard.core.trace import read_trace
from runs.models import ResponseRecord, RunRecord, Shard
from tests.worker import scripted_host


def assert_whole(run: RunRecord) -> None:
    """The run has finished, and each (repeat, case) has exactly one response: the one the scripted engine gives."""
    run.refresh_from_db()
    assert run.status == RunRecord.Status.FINISHED
    assert list(run.events.filter(code="finished").values_list("text", flat=True)) == ["The run ended: finished."]
    assert_once(run)


def assert_once(run: RunRecord) -> None:
    """Each (repeat, case) has exactly one response or says why it is missing; counts and traces are right."""
    keys = sorted(ResponseRecord.objects.filter(repeat__run=run).values_list("repeat__index", "case_index"))
    n_cases = run.suite_version.n_cases
    assert keys == [(repeat, case) for repeat in range(1, run.repeats.count() + 1) for case in range(n_cases)]
    assert_counted(run)
    assert_exact(run)


def assert_counted(run: RunRecord) -> None:
    """No shard is running, and each one's count is that of its responses."""
    for shard in Shard.objects.filter(repeat__run=run):
        assert shard.status != Shard.Status.RUNNING
        stored = ResponseRecord.objects.filter(repeat=shard.repeat_id, case_index__range=(shard.first, shard.last))
        assert shard.n_done == stored.count(), shard


def assert_exact(run: RunRecord) -> None:
    """Every stored trace decodes to exactly what the engine sent for its prompt."""
    word = "blue"
    ids = [scripted_host.TOKENS.index(letter) for letter in word] + [0]
    stored = ResponseRecord.objects.filter(repeat__run=run, error_code="").select_related("trace_block")
    for response in stored:
        assert response.text == word
        assert response.trace_block is not None
        assert response.trace_slot is not None
        trace = read_trace(bytes(response.trace_block.data), response.trace_slot)
        assert trace.digest == bytes(response.trace_digest or b"")
        assert trace.token_ids.tolist() == ids
        assert trace.logprobs.tolist() == [-0.125 * (position + 1) for position in range(len(ids))]
