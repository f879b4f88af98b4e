"""One endpoint: who answered lately, how fast, what failed, and what its newest check says."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from django.db.models import Count, FloatField, Max, Min, QuerySet
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Now, TruncHour
from django.urls import reverse

from evalboard.contract import endpoint as contract
from evalboard.contract.parts import FingerprintNamed
from evalboard.contract.probe import ProbeRow
from evalboard.contract.probe_kinds import ProbeKind
from evalboard.core.profile import is_serving_known
from evalboard.wording.capability import describe_fit, suggest_profile
from runs.baselines import rotation_rows
from runs.catalogue.read import endpoint_fields, read_check_rows
from runs.models import EndpointRecord, FingerprintRecord, RepeatRecord, ResponseRecord, RunRecord
from runs.pairs.pair_facts import describe_fingerprint, name_fingerprints
from runs.probes import newest_probes
from runs.store import require_row
from runs.store.statements import Percentile

RUNS_READ, REPEATS_READ, RESPONSES_READ = 20, 20, 20_000
ERRORS_SHOWN = 10
DAYS_BY_HOUR, REPEATS_BY_HOUR, HOURLY_READ = 7, 500, 100_000


def endpoint_report(slug: str, *, probes: Sequence[ProbeRow] | None = None) -> contract.EndpointReport:
    """Return an endpoint with recent statistics. Raises NotFound. probes: its newest, if loaded."""
    endpoint = require_row(
        EndpointRecord.objects.select_related("reference", "bypass").filter(slug=slug),
        f"There is no endpoint {slug[:80]}. The page Endpoints lists them.",
    )
    newest = newest_probes(endpoint=slug) if probes is None else probes
    rotations = rotation_rows(endpoints=[slug], limit=1)
    check = _newest_check(newest)
    rows = read_check_rows(endpoint.pk) if check is not None and check.finding is not None else []
    return contract.EndpointReport(
        **endpoint_fields(endpoint),
        last=_last_responses(endpoint),
        hours=_hours(endpoint),
        check=check,
        fitting_profile=suggest_profile(rows) if rows else None,
        compared_by=describe_fit(rows) if rows else None,
        rotated=rotations[0] if rotations else None,
        url=reverse("endpoint", args=[slug]),
    )


def newest_check(slug: str) -> ProbeRow | None:
    """Return the newest capability check of an endpoint that has ended."""
    return _newest_check(newest_probes(endpoint=slug))


def _newest_check(probes: Sequence[ProbeRow]) -> ProbeRow | None:
    return next((probe for probe in probes if probe.kind == ProbeKind.CAPABILITY), None)


def _last_responses(endpoint: EndpointRecord) -> contract.LastResponses:
    repeats = _last_repeats(endpoint)
    # A repeat of a very large suite is read in part, so that a page takes no longer for it.
    responses = ResponseRecord.objects.filter(
        repeat__in=[repeat.pk for repeat in repeats], case_index__lt=RESPONSES_READ
    ).order_by()
    answered = responses.filter(error_code="")
    seconds = answered.aggregate(
        median=Percentile("decode_seconds", share=0.5),
        p95=Percentile("decode_seconds", share=0.95),
        clock_low=Max(Cast(KT("call__clock_ahead__0"), FloatField())),
        clock_high=Min(Cast(KT("call__clock_ahead__1"), FloatField())),
    )
    low, high = seconds["clock_low"], seconds["clock_high"]
    ended = [repeat.finished_at for repeat in repeats if repeat.finished_at is not None]
    errors = responses.exclude(error_code="").values_list("error_code").annotate(n=Count("id")).order_by("-n")
    n_missing = [(code, n) for code, n in errors[:ERRORS_SHOWN]]
    backends = _backends(answered, endpoint.slug)
    return contract.LastResponses(
        n_repeats=len(repeats),
        n_responses=sum(each.n_responses for each in backends) + sum(n for _, n in n_missing),
        since=min(ended, default=None),
        until=max(ended, default=None),
        median_seconds=seconds["median"],
        p95_seconds=seconds["p95"],
        clock_ahead=None if low is None or high is None else (low, high),
        backends=backends,
        errors=tuple(contract.ErrorSeen(code=code, n=n) for code, n in n_missing),
    )


def _last_repeats(endpoint: EndpointRecord) -> list[RepeatRecord]:
    """Return the last ended repeats, newest first, up to about RESPONSES_READ responses."""
    runs = RunRecord.objects.filter(endpoint=endpoint).order_by("-id").values_list("pk", flat=True)[:RUNS_READ]
    newest = RepeatRecord.objects.filter(run__in=list(runs), finished_at__isnull=False).order_by("-id")
    chosen: list[RepeatRecord] = []
    n_responses = 0
    for repeat in newest.select_related("run__suite_version")[:REPEATS_READ]:
        if chosen and n_responses + repeat.run.suite_version.n_cases > RESPONSES_READ:
            break
        n_responses += repeat.run.suite_version.n_cases
        chosen.append(repeat)
    return chosen


def _hours(endpoint: EndpointRecord) -> tuple[contract.HourServed, ...]:
    """Return who gave the last days' responses by hour, up to about HOURLY_READ responses."""
    lately = RepeatRecord.objects.filter(run__endpoint=endpoint, run__source=None).exclude(
        finished_at__lt=Now() - timedelta(days=DAYS_BY_HOUR)
    )
    repeats, n_responses = list[int](), 0
    for pk, n_cases in lately.order_by("-id").values_list("pk", "run__suite_version__n_cases")[:REPEATS_BY_HOUR]:
        if repeats and n_responses + n_cases > HOURLY_READ:
            break
        repeats, n_responses = [*repeats, pk], n_responses + n_cases
    answered = ResponseRecord.objects.filter(
        repeat__in=repeats, error_code="", recorded_at__gt=Now() - timedelta(days=DAYS_BY_HOUR)
    )
    by_hour = answered.exclude(engine_process__bucket=None).order_by()
    counted = (
        by_hour.annotate(hour=TruncHour("recorded_at", tzinfo=UTC))
        .values_list("hour", "engine_process__bucket__fingerprint")
        .annotate(n=Count("id"))
    )
    hours: dict[datetime, dict[int, int]] = defaultdict(dict)
    for hour, fingerprint, n in counted:
        hours[hour][fingerprint] = n
    seen = _seen({fingerprint for rows in hours.values() for fingerprint in rows}, endpoint.slug)
    return tuple(
        contract.HourServed(at=hour, n_responses=sum(rows.values()), backends=_share(rows, seen))
        for hour, rows in sorted(hours.items())
    )


def _backends(answered: "QuerySet[ResponseRecord]", endpoint: str) -> tuple[contract.BackendSeen, ...]:
    """Count responses by stack."""
    counted = answered.exclude(engine_process__bucket=None).values_list("engine_process__bucket__fingerprint")
    rows = dict(counted.annotate(n=Count("id")))
    return _share(rows, _seen(rows, endpoint))


def _seen(fingerprints: Collection[int], endpoint: str) -> dict[int, FingerprintNamed]:
    """Return those fingerprints that say who served, as their endpoint calls them."""
    rows = FingerprintRecord.objects.in_bulk(fingerprints)
    names = name_fingerprints(rows)
    return {
        pk: describe_fingerprint(row, names.get((endpoint, pk)))
        for pk, row in rows.items()
        if is_serving_known(row.manifest)
    }


def _share(counts: Mapping[int, int], seen: Mapping[int, FingerprintNamed]) -> tuple[contract.BackendSeen, ...]:
    """Return the share of each; those of unknown stacks share one row."""
    by_name: Counter[int | None] = Counter()
    for pk, n in counts.items():
        by_name[pk if pk in seen else None] += n
    return tuple(
        contract.BackendSeen(fingerprint=seen[pk] if pk is not None else None, n_responses=n, share=n / by_name.total())
        for pk, n in by_name.most_common()
    )
