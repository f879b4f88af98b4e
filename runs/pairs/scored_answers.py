"""Find the scorings of a response's answer, with their traces and vocabularies.

They are evidence of the response, whoever scores: comparisons and pages read them by this.
"""

from dataclasses import dataclass

from django.db.models import QuerySet

from evalboard.core.trace import TokenTrace, Vocabulary, read_trace
from runs.models import Case, ForcedAnswerRecord, ForcedScoringRecord, ResponseRecord, RunRecord
from runs.pairs.pair_facts import stored_words

SAME_TOKENS = (ForcedAnswerRecord.Tokens.SAME, ForcedAnswerRecord.Tokens.BY_BYTES, ForcedAnswerRecord.Tokens.AS_GIVEN)


@dataclass(frozen=True, slots=True)
class LentWords:
    """The words of a tokenizer that scored an answer, for ids of an unknown one.

    prompt: in these words, "" if its ids are unknown.
    """

    scoring: str
    endpoint: str
    words: Vocabulary
    prompt: str


def has_forced(*run_ids: int) -> bool:
    """Tell whether anything was scored of these runs: most have nothing, and their pages look no further."""
    return ForcedScoringRecord.objects.filter(run__in=run_ids).exists()


def responses_at(run_id: int, *, repeat: int, case_id: str) -> QuerySet[ResponseRecord]:
    """Return the response to a case in a repeat of a run: one, or none."""
    index = Case.objects.filter(suite_version__runs=run_id, case_id=case_id).values("index")
    return ResponseRecord.objects.filter(repeat__run=run_id, repeat__index=repeat, case_index__in=index)


def answers_of_response(run_id: int, response: ResponseRecord) -> QuerySet[ForcedAnswerRecord]:
    """Return a response's answer in each scoring of its run, newest first, for `read_scored`."""
    answers = ForcedAnswerRecord.objects.filter(
        scoring__run=run_id, case_index=response.case_index, trace_digest=response.trace_digest
    )
    return answers.select_related("scoring__endpoint", "trace_block", "engine_process").order_by("-scoring")


def in_same_tokens(answers: QuerySet[ForcedAnswerRecord]) -> QuerySet[ForcedAnswerRecord]:
    """Return those that were scored in the very tokens of the response, so that positions are positions."""
    return answers.filter(tokens__in=SAME_TOKENS, error_code="")


def find_scored(run: RunRecord, repeat: int, case_id: str, *, other: RunRecord) -> ForcedAnswerRecord | None:
    """Return a response's newest scoring on another run's stack, in the response's own tokens."""
    if other.bucket_id is None or run.bucket_id == other.bucket_id:
        return None
    response = responses_at(run.pk, repeat=repeat, case_id=case_id).first()
    if response is None or response.trace_block_id is None:
        return None
    return in_same_tokens(answers_of_response(run.pk, response)).filter(scoring__bucket=other.bucket_id).first()


def lend_words(run_id: int, response: ResponseRecord) -> LentWords | None:
    """Return the words of the newest stack that scored a response by its ids; None without one."""
    for answer in in_same_tokens(answers_of_response(run_id, response)):
        trace, words = read_scored(answer)
        if words is not None and answer.scoring.endpoint is not None:
            prompt = [] if trace.prompt_token_ids is None else words.many_bytes(trace.prompt_token_ids)
            text = b"".join(each or b"" for each in prompt).decode(errors="replace")
            return LentWords(str(answer.scoring_id), answer.scoring.endpoint.slug, words, text)
    return None


def read_scored(answer: ForcedAnswerRecord) -> tuple[TokenTrace, Vocabulary | None]:
    """Return the trace of an answer that was scored, and the words of the tokenizer that it was scored by.

    A trainer's has no words.
    """
    assert answer.trace_block is not None  # noqa: S101  for the type checker: a scored answer has a trace
    assert answer.trace_slot is not None  # noqa: S101
    process = answer.engine_process
    words = None if process is None or process.vocabulary_id is None else stored_words(process.vocabulary_id)
    return read_trace(bytes(answer.trace_block.data), answer.trace_slot), words
