"""Responses by the id of their request, and, where that is wanted, by words of their answers."""

import re
from collections.abc import Iterable, Sequence

from django.db import connection
from django.db.models import QuerySet

from evalboard.contract.find import Hit
from evalboard.path_converters import reverse_case
from evalboard.wording import find as words
from runs.compare import case_ids
from runs.find.wanted import COUNTED, EXACT, PART, PREFIX, Match, Wanted, make_hit
from runs.models import ResponseRecord
from runs.models.response import IS_REQUEST_OF_OTHERS, OWN_REQUEST

MIN_REQUEST, MIN_ANSWER = 4, 3  # characters
# By the index over (repeat, case index), a probe a repeat; OFFSET keeps PostgreSQL from reading all responses instead.
OF_OWN_ENGINE = """
SELECT response.id FROM runs_repeat repeat
 CROSS JOIN LATERAL (
       SELECT id FROM runs_response
        WHERE repeat_id = repeat.id AND case_index = %s AND request_id = %s OFFSET 0) AS response
 ORDER BY repeat.id DESC LIMIT %s
"""


def match_requests(wanted: Wanted) -> list[Match]:
    """Find responses whose request's id begins so; an id of our own engine must be whole."""
    if len(wanted.text) < MIN_REQUEST:
        return []
    if re.fullmatch(OWN_REQUEST[1:-1], wanted.text):
        return _from_own_engine(wanted.text) if "-" in wanted.text else []
    rows = ResponseRecord.objects.filter(IS_REQUEST_OF_OTHERS, request_id__startswith=wanted.text)
    known = rows.order_by("request_id").values_list("pk", "request_id", "recorded_at")[: COUNTED + 1]
    return [Match("request", key, EXACT if name == wanted.text else PREFIX, at) for key, name, at in known]


def _from_own_engine(name: str) -> list[Match]:
    index = int(name.partition("-")[0][:9])
    with connection.cursor() as cursor:
        cursor.execute(OF_OWN_ENGINE, [index, name, COUNTED + 1])
        keys = [key for (key,) in cursor]
    known = ResponseRecord.objects.filter(pk__in=keys).values_list("pk", "recorded_at")
    return [Match("request", key, EXACT, at) for key, at in known]


def match_answers(wanted: Wanted) -> list[Match]:
    """Find responses that contain the text, newest first. It scans all texts, which may take seconds."""
    if len(wanted.text) < MIN_ANSWER:
        return []
    rows = ResponseRecord.objects.filter(text__icontains=wanted.text, repeat__run__is_judge=False).order_by("-pk")
    return [Match("answer", key, PART, at) for key, at in rows.values_list("pk", "recorded_at")[: COUNTED + 1]]


def show_requests(matches: Sequence[Match]) -> Iterable[Hit]:
    for match, row, where, url in _places(matches):
        yield make_hit(match, row.request_id, where, row.repeat.run.endpoint.slug, url)


def show_answers(matches: Sequence[Match]) -> Iterable[Hit]:
    for match, row, where, url in _places(matches):
        yield make_hit(match, where, " ".join(row.text.split())[:400], row.repeat.run.endpoint.slug, url)


def _places(matches: Sequence[Match]) -> Iterable[tuple[Match, ResponseRecord, str, str]]:
    by_id = {match.key: match for match in matches}
    rows: QuerySet[ResponseRecord] = ResponseRecord.objects.filter(pk__in=by_id).select_related("repeat__run__endpoint")
    for row in rows:
        run_id, repeat = row.repeat.run_id, row.repeat.index
        case_id = case_ids(run_id, (row.case_index,))[row.case_index]
        where = words.describe_response(case_id, run_id, repeat)
        yield by_id[row.pk], row, where, reverse_case("response", run_id, repeat, case_id)
