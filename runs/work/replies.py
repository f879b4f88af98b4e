"""What a scorer reads of stored responses."""

from typing import NamedTuple

from django.db.models import QuerySet, TextField, Value

from evalboard.core.scoring import Plan, reads_thinking
from runs.models import ResponseRecord


class ReplyToScore(NamedTuple):
    """The arguments of `core.scoring.score` for a response. thinking: None if no scorer reads it."""

    text: str
    is_truncated: bool | None
    thinking: str | None


def read_replies(responses: QuerySet[ResponseRecord], plan: Plan) -> dict[int, ReplyToScore]:
    """Return case index → reply. Thinking, which may be long, is read only if a scorer needs it."""
    thinking = "reasoning" if reads_thinking(plan) else Value(None, output_field=TextField())
    rows = responses.values_list("case_index", "text", "is_truncated", thinking)
    return {index: ReplyToScore(*reply) for index, *reply in rows}
