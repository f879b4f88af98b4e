"""Find cases of a suite version that add little: always or never right, or duplicates."""

import functools
from dataclasses import dataclass

import numpy as np
from django.db import connection
from django.db.models import F
from numpy.typing import NDArray

from evalboard.core.trace import unpack_scores
from runs.models import Case, RepeatScore
from runs.suites.read import SuiteReport

NAMED = 5  # cases of each kind
TAGS_SHOWN = 12
CELLS_READ = 4_000_000  # scores that are read for one page, 32 MB
CASES_READ = 50_000  # prompts compared for one page
SUITES_REMEMBERED = 64

# What is asked, but for spaces and capitals; in JSON a line break is two characters.
ALIKE = r"""
WITH asked AS (
    SELECT index, case_id, (content -> 'target')::text AS target,
           md5(lower(regexp_replace((content - 'target')::text, '(\\[nrt]|\s)+', ' ', 'g'))) AS words
      FROM runs_case
     WHERE suite_version_id = %s AND content -> 'messages' <> '[]'
), compared AS (
    SELECT index, case_id, count(*) OVER alike AS n_alike,
           min(target) OVER alike IS DISTINCT FROM max(target) OVER alike AS is_at_odds
      FROM asked
    WINDOW alike AS (PARTITION BY words)
)
SELECT index, case_id, is_at_odds FROM compared WHERE n_alike > 1 ORDER BY index
"""
TAGS = """
SELECT tag, count(*)
  FROM runs_case, jsonb_array_elements_text(tags) AS tag
 WHERE suite_version_id = %s
 GROUP BY tag
 ORDER BY count(*) DESC, tag
 LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class SomeCases:
    """A number of cases, and the ids of the first of them."""

    n: int
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CasesWorth:
    """Cases that were right in each, or in none, of `n_repeats` repeats; None without repeats.

    alike: cases that ask what another case asks, but for spaces and capitals; at_odds: those of them with another
    target than such a case. None in a suite of more than CASES_READ cases. tags: each with its number of cases.
    """

    n_repeats: int
    always_right: SomeCases | None
    never_right: SomeCases | None
    alike: SomeCases | None
    at_odds: SomeCases | None
    tags: tuple[tuple[str, int], ...]


def cases_worth(report: SuiteReport) -> CasesWorth:
    """Find such cases of the newest version, by the newest repeats under the suite's own scorer."""
    version_id, n_cases = report.version_id, report.suite.n_cases
    own = RepeatScore.objects.filter(
        repeat__run__suite_version=version_id, scorer=F("repeat__run__suite_version__scorer"), repeat__cases=None
    ).exclude(repeat__columns__n_left_out__gt=0)
    newest = tuple(own.order_by("-pk").values_list("pk", "digest")[: CELLS_READ // max(n_cases, 1)])
    always, never = _rights(version_id, n_cases, newest) if newest else (None, None)
    alike, at_odds, tags = _read_asked(version_id, has_few=n_cases <= CASES_READ)
    return CasesWorth(len(newest), always, never, alike, at_odds, tags)


@functools.lru_cache(maxsize=SUITES_REMEMBERED)
def _rights(version_id: int, n_cases: int, scores: tuple[tuple[int, str], ...]) -> tuple[SomeCases, SomeCases]:
    packed = RepeatScore.objects.filter(pk__in=[pk for pk, _ in scores]).values_list("scores", flat=True)
    lowest, highest = np.full(n_cases, np.nan), np.full(n_cases, np.nan)
    for blob in packed.iterator():
        read = unpack_scores(bytes(blob))
        lowest, highest = np.fmin(lowest, read), np.fmax(highest, read)
    return _named(version_id, lowest >= 1), _named(version_id, highest <= 0)


@functools.lru_cache(maxsize=SUITES_REMEMBERED)  # a version never changes
def _read_asked(
    version_id: int, *, has_few: bool
) -> tuple[SomeCases | None, SomeCases | None, tuple[tuple[str, int], ...]]:
    with connection.cursor() as cursor:
        cursor.execute(TAGS, [version_id, TAGS_SHOWN])
        tags = tuple(cursor.fetchall())
        if not has_few:
            return None, None, tags
        cursor.execute(ALIKE, [version_id])
        rows = cursor.fetchall()
    alike, at_odds = ([case for _, case, _ in rows], [case for _, case, is_at_odds in rows if is_at_odds])
    return SomeCases(len(alike), tuple(alike[:NAMED])), SomeCases(len(at_odds), tuple(at_odds[:NAMED])), tags


def _named(version_id: int, are_so: NDArray[np.bool_]) -> SomeCases:
    first = np.flatnonzero(are_so)[:NAMED].tolist()
    cases = Case.objects.filter(suite_version=version_id, index__in=first).order_by("index")
    return SomeCases(int(np.count_nonzero(are_so)), tuple(cases.values_list("case_id", flat=True)))
