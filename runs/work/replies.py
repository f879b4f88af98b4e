"""What a scorer reads of stored responses."""

from typing import NamedTuple

from django.db.models import QuerySet, TextField, Value

from evalboard.core.scoring import Plan, reads_thinking
from runs.models import ResponseRecord


class ReplyToScore(NamedTuple):
    """One response, as `core.scoring.score` takes it by these names. thinking: None where no scorer asks for it too."""

    text: str
    is_truncated: bool | None
    thinking: str | None


def read_replies(responses: QuerySet[ResponseRecord], plan: Plan) -> dict[int, ReplyToScore]:
    """Return case index → reply; of what was thought, which may be long, only where a scorer of the plan reads it."""
    thinking = "reasoning" if reads_thinking(plan) else Value(None, output_field=TextField())
    rows = responses.values_list("case_index", "text", "is_truncated", thinking)
    return {index: ReplyToScore(*reply) for index, *reply in rows}
