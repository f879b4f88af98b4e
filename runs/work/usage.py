"""Token counts of answers, summed by repeat."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from django.db import connection

from evalboard.core.cost import Usage
from runs.models import RepeatRecord

# By the server's own counts, and for our own engine by those of the responses.
USAGE = """
SELECT run_id, index, count(*), count(*) FILTER (WHERE n_prompt IS NULL OR n_answer IS NULL),
       coalesce(sum(n_prompt), 0)::bigint, coalesce(sum(n_cached), 0)::bigint,
       coalesce(sum(n_answer), 0)::bigint, coalesce(sum(n_reasoning), 0)::bigint
  FROM (SELECT repeat.run_id, repeat.index, repeat.cases IS NOT NULL AS is_targeted,
               CASE WHEN call IS NULL THEN n_prompt_tokens ELSE (call->>'n_prompt_tokens')::bigint END AS n_prompt,
               CASE WHEN call IS NULL THEN n_tokens ELSE (call->>'n_tokens')::bigint END AS n_answer,
               (call->>'n_cached_tokens')::bigint AS n_cached, (call->>'n_reasoning_tokens')::bigint AS n_reasoning
          FROM runs_response JOIN runs_repeat AS repeat ON repeat.id = repeat_id
         WHERE repeat.{where} AND error_code = '') AS answers
 GROUP BY run_id, is_targeted, index ORDER BY run_id, is_targeted, index
"""


def read_usage(run_ids: Iterable[int]) -> dict[int, list[Usage]]:
    """Return the counts of each run's answers by repeat."""
    usage: dict[int, list[Usage]] = {run_id: [] for run_id in run_ids}
    if usage:
        for run_id, counts in _read("run_id = ANY(%s)", list(usage)):
            usage[run_id].append(counts)
    return usage


def sum_usage(repeat: RepeatRecord) -> dict[str, int]:
    """Return the counts of a repeat's answers as `CaseColumns` keeps them: `core.cost.Usage` by its names."""
    return asdict(next((counts for _, counts in _read("id = %s", repeat.pk)), Usage()))


def _read(where: str, value: Any) -> list[tuple[int, Usage]]:
    with connection.cursor() as cursor:
        cursor.execute(USAGE.format(where=where), [value])
        rows = cursor.fetchall()
    names = ("n_calls", "n_uncounted", "n_prompt", "n_cached", "n_tokens", "n_reasoning")
    return [(run_id, Usage(**dict(zip(names, counts, strict=True)))) for run_id, _, *counts in rows]
