"""Count who answered an endpoint per day, in runs and probes, and find when stacks changed.

Runs are read from their packed columns and probes from their calls; unnamed stacks are counted separately.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from evalboard.contract.parts import FingerprintNamed
from evalboard.core.profile import is_serving_known
from evalboard.core.trace import unpack_buckets
from runs.models import BucketRecord, CaseColumns, EndpointRecord, FingerprintRecord
from runs.pairs.pair_facts import describe_fingerprint, name_fingerprints

DAYS_READ, REPEATS_READ, CASES_READ = 60, 500, 2_000_000
NAMELESS = ""

_CALLS = """
SELECT probe.id, probe.finished_at, call->>'backend', call->>'system_fingerprint', call->>'bucket', count(*)
  FROM runs_probe probe, jsonb_array_elements(probe.answers) call
 WHERE probe.endpoint_id = %s AND probe.finished_at > now() - make_interval(days => %s)
   AND coalesce(call->>'error', '') = ''
 GROUP BY 1, 2, 3, 4, 5
 ORDER BY probe.finished_at, probe.id
"""


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack that answered. name: from answers or its fingerprint, "" if not named."""

    name: str
    fingerprint: FingerprintNamed | None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A stack that had not answered before.

    run, probe: which saw it first; one of them is None. share: its part of the answers there. is_beside: others gave
    most of these, so that it came beside them and not after them.
    """

    at: datetime
    stack: Stack
    run: int | None
    probe: int | None
    share: float
    is_beside: bool


@dataclass(frozen=True, slots=True)
class DailyShares:
    """Answers by UTC day and stack. Stacks are in order of first appearance; empty days are left out.

    n_runs, n_probes: how many gave them.
    """

    stacks: tuple[Stack, ...]
    days: tuple[tuple[date, tuple[int, ...]], ...]
    arrivals: tuple[Arrival, ...]
    n_runs: int
    n_probes: int


@dataclass(slots=True)
class _StackCounts:
    """The answers of one run or probe by stack key."""

    at: datetime
    by_day: dict[date, Counter[str]]
    run: int | None = None
    probe: int | None = None

    @property
    def counts(self) -> Counter[str]:
        return sum(self.by_day.values(), Counter())


def daily_shares(endpoint: str, *, first_seen: Mapping[str, datetime]) -> DailyShares:
    """Return who answered in the last 60 days, of the newest repeats and of probes.

    first_seen: by id, when runs first saw each fingerprint of the endpoint; what is older than the days read does not
    arrive in them.
    """
    row = EndpointRecord.objects.only("pk").get(slug=endpoint)
    stacks: dict[str, Stack] = {}
    seen = sorted([*_read_runs(row.pk, stacks), *_read_probes(row.pk, stacks, first_seen)], key=lambda each: each.at)
    names = name_fingerprints({int(stack.fingerprint.id) for stack in stacks.values() if stack.fingerprint})
    for key, stack in stacks.items():
        if stack.fingerprint:
            named = {"backend": names.get((endpoint, int(stack.fingerprint.id)))}
            stacks[key] = replace(stack, fingerprint=stack.fingerprint.model_copy(update=named))
    by_day: dict[date, Counter[str]] = defaultdict(Counter)
    for each in seen:
        for day, counts in each.by_day.items():
            by_day[day] += counts
    order = list(dict.fromkeys(key for each in seen for key in sorted(each.counts, key=lambda key: -each.counts[key])))
    return DailyShares(
        stacks=tuple(stacks[key] for key in order),
        days=tuple((day, tuple(by_day[day][key] for key in order)) for day in sorted(by_day)),
        arrivals=tuple(_arrivals(seen, stacks, first_seen)),
        n_runs=sum(each.run is not None for each in seen),
        n_probes=sum(each.probe is not None for each in seen),
    )


def _arrivals(
    seen: list[_StackCounts], stacks: Mapping[str, Stack], first_seen: Mapping[str, datetime]
) -> Iterator[Arrival]:
    known: set[str] = set()
    for each in seen:
        counts = each.counts
        for key in [key for key in counts if key not in known and key != NAMELESS]:
            stack = stacks[key]
            first = first_seen.get(stack.fingerprint.id) if stack.fingerprint else None
            if known and (first is None or first >= seen[0].at):
                share = counts[key] / counts.total()
                is_beside = key != counts.most_common(1)[0][0]
                yield Arrival(each.at, stack, each.run, each.probe, share, is_beside)
        known |= counts.keys() - {NAMELESS}


def _read_runs(endpoint_id: int, stacks: dict[str, Stack]) -> Iterator[_StackCounts]:
    columns = {row.pk: row for row in _newest_columns(endpoint_id)}
    keys = _name_buckets({bucket for row in columns.values() for bucket in row.bucket_ids}, stacks)
    runs: dict[int, _StackCounts] = {}
    for pk, packed in CaseColumns.objects.filter(pk__in=columns).values_list("pk", "buckets"):
        row = columns[pk]
        repeat, column = row.repeat, unpack_buckets(bytes(packed))
        mine = runs.setdefault(repeat.run_id, _StackCounts(row.begun, defaultdict(Counter), run=repeat.run_id))
        counted = np.bincount(column[column < len(row.bucket_ids)], minlength=len(row.bucket_ids))
        for bucket, n in zip(row.bucket_ids, counted.tolist(), strict=True):
            if n:
                mine.by_day[row.ended.astimezone(UTC).date()][keys[bucket]] += n
    yield from (each for each in runs.values() if each.by_day)


def _newest_columns(endpoint_id: int) -> Iterator[Any]:
    """Yield the newest repeats' columns up to about CASES_READ answers, without packed data."""
    ended = CaseColumns.objects.filter(repeat__run__endpoint=endpoint_id, repeat__run__source=None)
    lately = ended.filter(repeat__finished_at__gt=Now() - timedelta(days=DAYS_READ))
    newest = (
        lately.order_by("-repeat__finished_at", "-repeat_id").select_related("repeat").only("repeat__run", "bucket_ids")
    )
    n_cases = 0
    for row in newest.only("repeat__run", "bucket_ids").annotate(
        ended=F("repeat__finished_at"),
        begun=Coalesce("repeat__run__started_at", "repeat__finished_at"),
        n_cases=F("repeat__run__suite_version__n_cases"),
    )[:REPEATS_READ]:
        if n_cases and n_cases + row.n_cases > CASES_READ:
            return
        n_cases += row.n_cases
        yield row


def _read_probes(endpoint_id: int, stacks: dict[str, Stack], fingerprints: Iterable[str]) -> Iterator[_StackCounts]:
    with connection.cursor() as cursor:
        cursor.execute(_CALLS, [endpoint_id, DAYS_READ])
        rows = cursor.fetchall()
    buckets = _name_buckets({int(bucket) for *_, bucket, _ in rows if bucket is not None}, stacks)
    known = {_names(row): row for row in FingerprintRecord.objects.filter(pk__in=list(fingerprints)).order_by("pk")}
    probes: dict[int, _StackCounts] = {}
    for probe, at, backend, system_fingerprint, bucket, n in rows:
        names = (backend or "", system_fingerprint or "")
        if bucket is not None:
            key = buckets[int(bucket)]
        elif names in known:
            key = _keep(known[names], stacks)
        else:
            key = " ".join(dict.fromkeys(filter(None, names)))
            stacks.setdefault(key, Stack(key, None))
        mine = probes.setdefault(probe, _StackCounts(at, defaultdict(Counter), probe=probe))
        mine.by_day[at.astimezone(UTC).date()][key] += n
    yield from probes.values()


def _name_buckets(bucket_ids: set[int], stacks: dict[str, Stack]) -> dict[int, str]:
    """Return the key of each bucket's stack."""
    rows = BucketRecord.objects.filter(pk__in=bucket_ids).select_related("fingerprint") if bucket_ids else ()
    return {bucket.pk: _keep(bucket.fingerprint, stacks) for bucket in rows}


def _keep(fingerprint: FingerprintRecord, stacks: dict[str, Stack]) -> str:
    """Return the key of a fingerprint's stack, adding it to `stacks`."""
    if not is_serving_known(fingerprint.manifest):
        stacks[NAMELESS] = Stack(NAMELESS, None)
        return NAMELESS
    stacks[fingerprint.digest] = Stack(fingerprint.label, describe_fingerprint(fingerprint))
    return fingerprint.digest


def _names(fingerprint: FingerprintRecord) -> tuple[str, str]:
    """Return (backend, system fingerprint) of an external server, as a probe's calls name them."""
    source = fingerprint.manifest.get("source", {})
    reported = source.get("system_fingerprint", "")
    return source.get("backend", reported), reported
