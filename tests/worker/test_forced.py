"""Forced scorings by workers: what is stored, answers that kill an engine, and workers that are lost.

The scripted engine scores letters as it decodes them, and in another dtype as another stack would.
"""

import html
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from evalboard.core.profile import DEFAULT_PROFILES
from evalboard.core.trace import read_trace
from runs.catalogue import create_endpoint, create_profile
from runs.forced import create_forced, create_forced_pair
from runs.forced.read import forced_answers, forced_row, stored_forced_trace
from runs.imports import import_logs
from runs.models import ForcedAnswerRecord, ForcedScoringRecord, ResponseRecord, RunRecord, WorkerRecord
from runs.run import create_run
from tests.importers.openai_logs import body, choice, entry, written
from tests.worker.conftest import Join, Start, Wait, ended, kill_group, stop_after

pytestmark = pytest.mark.django_db
as_processes = pytest.mark.django_db(transaction=True)

NewRun = Callable[..., RunRecord]
COLOURS = ["say blue", "say red", "say green"]
MANY = [f"say {'abcdefghijklmnopqrstuvwxyz'[n % 26] * (1 + n // 26)}" for n in range(70)]


@pytest.fixture
def decoded_run(new_run: NewRun, join_worker: Join, work_until: Wait, settings: Any) -> Callable[..., RunRecord]:
    """A run whose worker is gone, and an endpoint `other` that serves another dtype."""

    def decode(prompts: list[str] = COLOURS, **changes: Any) -> RunRecord:
        run = new_run(prompts, **{"repeats": 1, **changes})
        path = str(settings.MODEL_ROOTS[0] / "scripted")
        create_endpoint(slug="other", model_path=path, dtype="bfloat16", line="scripted")
        worker = join_worker()
        work_until(lambda: ended(run), "the run ends")
        worker.leave()
        return run

    return decode


@pytest.fixture
def scored(work_until: Wait) -> Callable[[ForcedScoringRecord], Any]:
    """Have the workers of this process score until a scoring has ended."""

    def follow(scoring: ForcedScoringRecord) -> Any:
        work_until(lambda: forced_row(scoring.pk).is_terminal, "the scoring has ended")
        return forced_row(scoring.pk)

    return follow


Scored = Callable[[ForcedScoringRecord], Any]


def test_the_stack_that_answered_says_the_same_to_the_bit(
    decoded_run: Callable[..., RunRecord], join_worker: Join, scored: Scored
) -> None:
    run = decoded_run(repeats=3)
    join_worker()
    row = scored(create_forced(run_id=run.pk, endpoint="scripted"))
    assert (row.status, row.error, row.n_done, row.n_answers, row.n_tokens) == ("finished", None, 3, 3, 15)
    assert (row.tokens, row.n_rendered, row.errors) == ({"same": 3}, 0, {})
    assert row.bucket == str(run.bucket_id or RunRecord.objects.get(pk=run.pk).bucket_id)
    assert row.reading == ("Over 15 tokens of 3 answers all logprobs are equal to the bit.",)


def test_another_stack_is_told_from_the_one_that_answered(
    decoded_run: Callable[..., RunRecord], join_worker: Join, scored: Scored
) -> None:
    run = decoded_run()
    before = list(ResponseRecord.objects.order_by("pk").values())
    join_worker()
    row = scored(create_forced(run_id=run.pk, endpoint="other"))
    assert row.reading == (
        "Over 15 tokens of 3 answers the logprobs differ by 0.250 nats (median), at 1 in 100 tokens by more than "
        "0.250 nats, at most by 0.250 nats.",
        "3 of 15 tokens (20 %) are not its first choice.",
    )
    assert [each.figures.n_not_top for each in forced_answers(row_id(row), limit=10)] == [1, 1, 1]
    answer = ForcedAnswerRecord.objects.select_related("trace_block").first()
    assert answer is not None
    trace = read_trace(bytes(answer.trace_block.data), answer.trace_slot)
    response = ResponseRecord.objects.get(case_index=0)
    own = read_trace(bytes(response.trace_block.data), response.trace_slot)
    assert trace.token_ids.tolist() == own.token_ids.tolist()
    assert trace.prompt_token_ids.tolist() == own.prompt_token_ids.tolist()
    assert list(ResponseRecord.objects.order_by("pk").values()) == before


def row_id(row: Any) -> int:
    return int(row.id)


@pytest.mark.nightly
def test_some_cases_and_repeats_are_scored_alone(
    decoded_run: Callable[..., RunRecord], join_worker: Join, scored: Scored
) -> None:
    run = decoded_run(repeats=2)
    join_worker()
    row = scored(create_forced(run_id=run.pk, endpoint="other", cases=["case-2", "case-0"], repeats=[2]))
    assert (row.n_cases, row.repeats, row.n_answers, row.status) == (2, (2,), 2, "finished")
    assert [(each.case, each.repeat) for each in forced_answers(row_id(row), limit=10)] == [
        ("case-0", 2),
        ("case-2", 2),
    ]


@pytest.mark.nightly
def test_two_runs_are_scored_on_both_stacks(
    decoded_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait, scored: Scored
) -> None:
    run = decoded_run()
    join_worker()
    theirs = create_run(suite="words", endpoint="other", profile="pinned", repeats=1)
    work_until(lambda: ended(theirs), "the other run ends")
    scorings = create_forced_pair(baseline_id=run.pk, candidate_id=theirs.pk)
    run.refresh_from_db()
    buckets = {run.pk: str(run.bucket_id), theirs.pk: str(theirs.bucket_id)}
    assert len(scorings) == 4
    for (_, stack), scoring in scorings.items():
        assert scored(scoring).bucket == buckets[stack]


def test_an_answer_that_kills_its_engine_is_that_answer_s_error(
    decoded_run: Callable[..., RunRecord], join_worker: Join, scored: Scored
) -> None:
    run = decoded_run()
    join_worker(SCRIPTED_FORCE_DIES="red")
    row = scored(create_forced(run_id=run.pk, endpoint="other"))
    assert (row.status, row.n_done, row.errors, row.tokens) == ("finished", 3, {"engine_error": 1}, {"same": 2})
    [failed] = [each for each in forced_answers(row_id(row), limit=10) if each.error]
    assert (failed.case, failed.error.code, failed.figures) == ("case-1", "engine_error", None)
    assert "killed by an answer" in failed.error.detail
    assert row.reading[-1] == "1 answer could not be scored (1: the engine failed on this case)."


@pytest.mark.nightly
def test_an_engine_that_dies_on_every_answer_ends_the_scoring_and_not_the_worker(
    decoded_run: Callable[..., RunRecord], join_worker: Join, scored: Scored
) -> None:
    run = decoded_run(["say blue", "say grue", "say true", "say clue"])
    join_worker(SCRIPTED_FORCE_DIES="ue")
    row = scored(create_forced(run_id=run.pk, endpoint="other"))
    assert (row.status, row.n_done) == ("failed", 0)
    assert row.error.startswith("It was begun 3 times and never came to an end.")
    assert scored(create_forced(run_id=run.pk, endpoint="other", cases=["case-0"])).status == "failed"


@pytest.mark.nightly
@as_processes
def test_a_worker_killed_in_the_middle_is_followed_by_one_that_goes_on(
    decoded_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait, join_worker: Join, scored: Scored
) -> None:
    run = decoded_run(MANY)
    scoring = create_forced(run_id=run.pk, endpoint="other")
    first = start_worker(SCRIPTED_SECONDS="0.05")
    wait_until(lambda: forced_row(scoring.pk).n_done, "a block is stored")
    kill_group(first)
    before = dict(ForcedAnswerRecord.objects.values_list("case_index", "pk"))
    join_worker()
    row = scored(scoring)
    assert (row.status, row.n_done, row.n_answers) == ("finished", 70, 70)
    assert 0 < len(before) < 70
    assert before.items() <= dict(ForcedAnswerRecord.objects.values_list("case_index", "pk")).items()
    assert ForcedScoringRecord.objects.get(pk=scoring.pk).attempt == 2


@pytest.mark.nightly
@as_processes
def test_a_worker_that_slept_through_its_lease_records_nothing_afterwards(
    decoded_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait, join_worker: Join, scored: Scored
) -> None:
    run = decoded_run(MANY)
    scoring = create_forced(run_id=run.pk, endpoint="other")
    zombie = start_worker(SCRIPTED_SECONDS="0.05")
    wait_until(lambda: forced_row(scoring.pk).n_done, "a block is stored")
    zombie.send_signal(signal.SIGSTOP)
    ForcedScoringRecord.objects.filter(pk=scoring.pk).update(lease_until=Now())
    join_worker()
    scored(scoring)
    before = list(ForcedAnswerRecord.objects.order_by("pk").values())
    zombie.send_signal(signal.SIGCONT)
    zombie.send_signal(signal.SIGTERM)
    zombie.wait()
    assert list(ForcedAnswerRecord.objects.order_by("pk").values()) == before
    assert len(before) == 70
    assert ForcedScoringRecord.objects.get(pk=scoring.pk).attempt == 2


@pytest.mark.nightly
def test_a_worker_that_is_told_to_stop_gives_its_scoring_back(
    decoded_run: Callable[..., RunRecord], join_worker: Join
) -> None:
    run = decoded_run(MANY)
    scoring = create_forced(run_id=run.pk, endpoint="other")
    join_worker(on_answer=stop_after(40)).work()
    row = ForcedScoringRecord.objects.get(pk=scoring.pk)
    assert (row.status, row.owner_id, row.error) == ("queued", None, "The worker was stopped.")
    assert 0 < row.n_done < 70
    assert not ForcedAnswerRecord.objects.exclude(error_code="").exists()


@pytest.mark.nightly
def test_what_another_stack_scored_is_not_gone_on_with(
    decoded_run: Callable[..., RunRecord], join_worker: Join
) -> None:
    run = decoded_run(MANY)
    scoring = create_forced(run_id=run.pk, endpoint="other")
    first = join_worker(on_answer=stop_after(40))
    first.work()
    first.leave()
    n_done = forced_row(scoring.pk).n_done
    assert n_done
    join_worker(SCRIPTED_DTYPE="float16").work()
    assert "another serving stack" in forced_row(scoring.pk).error
    assert forced_row(scoring.pk).n_done == n_done


def test_a_profile_that_no_worker_can_honour_is_refused_in_words(
    decoded_run: Callable[..., RunRecord], join_worker: Join, scored: Scored
) -> None:
    run = decoded_run()
    create_profile(slug="invariant", title="", settings=DEFAULT_PROFILES["invariant"]["settings"])
    WorkerRecord.objects.update(stopped_at=Now())  # none of them is heard of any more
    scoring = create_forced(run_id=run.pk, endpoint="other", profile="invariant")
    join_worker()
    row = scored(scoring)
    assert row.status == "failed"
    assert row.error.startswith("No worker can honour the profile invariant.")


def logged(case: str, answer: str, *tokens: str) -> dict[str, Any]:
    """A line of a server's log; each token a little less likely than the one before, as the engine scores letters."""
    content = [entry(token, -0.125 * (place + 1)) for place, token in enumerate(tokens)]
    asked = {"model": "acme", "messages": [{"role": "user", "content": "A colour?"}], "temperature": 0}
    return {"case_id": case, "request": asked, "response": body(choice(answer, *content), id=case)}


@pytest.mark.nightly
def test_answers_of_a_log_are_scored_token_by_token(
    join_worker: Join, scored: Scored, tmp_path: Path, settings: Any, admin_client: Client
) -> None:
    path = str(settings.MODEL_ROOTS[0] / "scripted")
    create_endpoint(slug="other", model_path=path, dtype="bfloat16", line="scripted")
    create_profile(slug="pinned", title="", settings=DEFAULT_PROFILES["pinned"]["settings"])
    lines = [logged("letters", "blue", *"blue"), logged("syllables", "green", "gr", "een"), logged("text", "red")]
    _, [run], _ = import_logs(files=[written(tmp_path, "log.jsonl", lines)], format="auto", suite=None, user=None)
    join_worker()
    row = scored(create_forced(run_id=run.pk, endpoint="other"))

    assert (row.status, row.profile, row.n_done, row.errors) == ("finished", "pinned", 3, {})
    assert (row.tokens, row.n_rendered) == ({"by_bytes": 1, "retokenised": 2}, 3)
    assert (row.figures.n_positions, row.figures.n_compared) == (12, 4)
    letters, syllables, text = forced_answers(row_id(row), limit=10)
    assert [each.tokens for each in (letters, syllables, text)] == ["by_bytes", "retokenised", "retokenised"]
    assert (letters.figures.n_compared, letters.figures.gap_mean) == (4, 0.25)
    assert [(each.figures.n_compared, each.figures.n_not_top) for each in (syllables, text)] == [(0, 1), (0, 1)]
    for answer, word in ((letters, "blue"), (syllables, "green"), (text, "red")):
        trace, words = stored_forced_trace(row_id(row), repeat=1, case_id=answer.case)
        assert words is not None
        assert words.many_bytes(trace.token_ids) == [letter.encode() for letter in word]
        assert trace.logprobs.tolist() == [-0.125 * (place + 1) - 0.25 for place in range(len(word))]
        assert trace.prompt_token_ids.tolist() == [7, 7], "what the target's own template makes"
    page = html.unescape(admin_client.get(row.url).content.decode())
    for sentence in (
        "Over 4 of the 12 tokens of 3 answers, those with a logprob on both sides, the logprobs differ by 0.250 nats ",
        "1 answer is scored by tokens with the same bytes",
        "3 of 12 tokens (25 %) are not its first choice.",
        "2 answers are retokenised: ",
        "3 prompts are rendered with the chat template of endpoint other: ",
    ):
        assert sentence in " ".join(row.reading)
        assert sentence in page
