"""The answers that lists of cases show and search, one statement for a list."""

from collections.abc import Mapping

from django.db.models import Q
from django.db.models.functions import Left

from runs.models import ResponseRecord, RunRecord

ANSWER_SHOWN = 200  # characters; the response's own page has the whole
# Responses; the texts of more are not read for a list of cases.
MAX_SEARCHED = 50_000


def read_answers(run: RunRecord, shown: Mapping[int, int]) -> dict[int, str]:
    """Return case index → the start of an answer, by `shown`: case index → its repeat's index.

    A case whose response is missing is not there.
    """
    by_repeat: dict[int, list[int]] = {}
    for case_index, repeat in shown.items():
        by_repeat.setdefault(repeat, []).append(case_index)
    wanted = Q(pk=None)
    for repeat, indexes in by_repeat.items():
        wanted |= Q(repeat__index=repeat, case_index__in=indexes)
    stored = ResponseRecord.objects.filter(wanted, repeat__run=run, error_code="")
    return dict(stored.annotate(start=Left("text", ANSWER_SHOWN)).values_list("case_index", "start"))


def is_searched(n_cases: int, n_repeats: int) -> bool:
    """Tell whether a search of a run's cases looks into its answers."""
    return n_cases * n_repeats <= MAX_SEARCHED


def search_answers(run: RunRecord, query: str) -> frozenset[int]:
    """Return the indexes of cases of which some answer holds the words, in capitals or not."""
    matches = ResponseRecord.objects.filter(repeat__run=run, repeat__cases=None, text__icontains=words_of_query(query))
    return frozenset(matches.order_by().values_list("case_index", flat=True).distinct())


def words_of_query(query: str) -> str:
    """Return what is looked for in answers: `·` and `⏎` are a space and a newline, as pages draw tokens."""
    return query.replace("\0", "").replace("·", " ").replace("⏎", "\n")
