"""What words of no list mean at the end of a run's answers, decided by all of them."""

from collections import Counter

from django.db.models import Count

from evalboard.core.trace import BY_WORD, Ending, judge_words
from evalboard.wording import run as wording
from runs.models import Event, ResponseRecord, RunRecord
from runs.store import history, imported


def settle_endings(run: RunRecord, *, is_final: bool) -> set[int]:
    """Decide what words of no list mean; return the repeats in which an answer has another ending now.

    is_final: all answers are there, and the run's history says what was decided.
    """
    answers = ResponseRecord.objects.filter(repeat__run=run, error_code="").order_by()
    counted = dict(answers.values_list("finish_reason").annotate(n=Count("pk")))
    changed: set[int] = set()
    for word, ending in judge_words(counted, run.endpoint.endings).items():
        judged = answers.filter(finish_reason=word, ending__in=BY_WORD).exclude(ending=ending)
        changed |= set(judged.values_list("repeat", flat=True).distinct())
        judged.update(ending=ending)
        if is_final and ending is Ending.UNKNOWN:
            text = wording.unknown_ending(word, counted[word], run.endpoint.slug)
            history.note_once(run.pk, imported.UNKNOWN_ENDING, text, level=Event.Level.WARNING)
        elif is_final and word not in run.endpoint.endings:
            text = wording.usual_ending(word, counted[word], Counter(counted).total() - counted.get("", 0))
            history.note_once(run.pk, imported.USUAL_ENDING, text)
    return changed
