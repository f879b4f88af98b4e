"""Find the scorings of a response's answer, with their traces and vocabularies."""

from django.db.models import QuerySet

from evalboard.core.trace import TokenTrace, Vocabulary, read_trace
from runs.models import Case, ForcedAnswerRecord, ResponseRecord
from runs.pairs import stored_words

SAME_TOKENS = (ForcedAnswerRecord.Tokens.SAME, ForcedAnswerRecord.Tokens.BY_BYTES, ForcedAnswerRecord.Tokens.AS_GIVEN)


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


def read_scored(answer: ForcedAnswerRecord) -> tuple[TokenTrace, Vocabulary | None]:
    """Return the trace of an answer that was scored, and the words of the tokenizer that it was scored by.

    A trainer's has no words.
    """
    assert answer.trace_block is not None  # noqa: S101  for the type checker: a scored answer has a trace
    assert answer.trace_slot is not None  # noqa: S101
    process = answer.engine_process
    words = None if process is None or process.vocabulary_id is None else stored_words(process.vocabulary_id)
    return read_trace(bytes(answer.trace_block.data), answer.trace_slot), words
