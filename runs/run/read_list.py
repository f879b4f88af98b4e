"""Runs as rows of a list, a fixed number of queries for any number of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery, Sum
from django.urls import reverse
from django.utils import timezone

from evalboard.contract.bucket import weigh_scores
from evalboard.contract.catalogue import name_adapted
from evalboard.contract.parts import Cost, Done, WaitingFor
from evalboard.contract.run import Draws, PinsHeld, RepeatOfRow, RunRow, Sampled, SuiteNamed
from evalboard.core.cost import Usage
from evalboard.wording.run_warnings import WarnedRun, list_warnings
from runs.models import (
    BucketRecord,
    GateRecord,
    RepeatRecord,
    RepeatScore,
    ResponseRecord,
    RunRecord,
    Shard,
)
from runs.pairs import pair_facts
from runs.pairs.pair_facts import read_names
from runs.run.estimates import make_cost
from runs.run.figures import read_served
from runs.run.read_columns import drawn_points, run_range
from runs.store import NOT_IN_LOG, RecordList

# What a row reads of the records that a run points at. Its bucket comes apart (`with_buckets`): PostgreSQL plans two
# statements of a few joins in a tenth of the time that it takes for one of many.
RELATED = ("suite_version__suite", "endpoint", "profile")
WAITING_FOR_ENDPOINT = "waiting_for_endpoint"  # of a filter: runs at work whose endpoint is paused
AT_WORK = (RunRecord.Status.QUEUED, RunRecord.Status.RUNNING)
WITHOUT_SCORE = (RunRecord.Status.INCOMPLETE, RunRecord.Status.FAILED, RunRecord.Status.CANCELLED)
NEWEST_FIRST = ("-ran_at", "-id")
RUN_ORDERS = {
    "ran_at": "ran_at",
    "id": "id",
    "suite": "suite_version__suite__slug",
    "endpoint": "endpoint__slug",
    "status": "status",
}
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
LAST_MICROSECOND = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MICROSECOND
ID_ROOM = 10**19  # more than a bigint holds
PLACE_DIGITS = len(str(LAST_MICROSECOND * ID_ROOM))
ANY_PIN_BROKEN = Q(engineprocess__pins__contains=[{"held": False}])


# By bucket: the points and responses of its part of each repeat; nothing where one bucket served the run.
Served = Mapping[int, Sequence[tuple[float | None, int]]]


@dataclass(slots=True)
class _RunDetails:
    """What other tables' rows add to one run."""

    repeats: list[int] = field(default_factory=list)
    points: dict[int, float | None] = field(default_factory=dict)
    left_out: list[int] = field(default_factory=list)
    bucket_ids: set[int] = field(default_factory=set)
    n_done: int = 0
    n_targeted: int = 0
    pins_held: bool | None = None
    served: Served = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)
    usage: list[Mapping[str, int] | None] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class JudgedLine:
    """One release that a run is part of. `verdict` is "" until it is decided; `suite` is that of the gate."""

    release_id: int
    verdict: str
    is_candidate: bool
    suite: str


@dataclass(frozen=True, slots=True)
class RunFilter:
    """The filter of a list of runs. label: `key` or `key=value`; since, until: when it ran.

    status: of a run, or WAITING_FOR_ENDPOINT.
    """

    suite: str = ""
    endpoint: str = ""
    status: str = ""
    bucket: int | None = None
    label: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def runs(self) -> "QuerySet[RunRecord]":
        waits = self.status == WAITING_FOR_ENDPOINT
        equal = {
            "suite_version__suite__slug": self.suite or None,
            "endpoint__slug": self.endpoint or None,
            "status": None if waits else self.status or None,
            "status__in": AT_WORK if waits else None,
            "endpoint__rests_until__gt": timezone.now() if waits else None,
            "bucket": self.bucket,
            "ran_at__gte": self.since,
            "ran_at__lt": self.until,
        }
        chosen = {name: value for name, value in equal.items() if value is not None}
        runs = RunRecord.objects.filter(is_judge=False, **chosen)
        key, has_value, value = self.label.partition("=")
        if not key:
            return runs
        return runs.filter(labels__contains={key: value}) if has_value else runs.filter(labels__has_key=key)


def sortable_runs(wanted: RunFilter) -> RecordList[RunRow]:
    """Return the runs of a filter as a list that can be sorted."""
    return RecordList(wanted.runs(), rows_of, RUN_ORDERS)


def run_rows(*, suite: str = "", limit: int = 50) -> tuple[RunRow, ...]:
    """Read runs of all suites or one, newest first."""
    return run_page(RunFilter(suite=suite), limit=limit)


def run_page(
    wanted: RunFilter, *, before: int | None = None, after: int | None = None, limit: int
) -> tuple[RunRow, ...]:
    """Return runs by time, newest first: below the place `before`, or just above `after`."""
    runs = wanted.runs()
    if after is not None:
        at, run_id = _named(after)
        newer = runs.filter(ran_at__gte=at).exclude(ran_at=at, pk__lte=run_id)
        return rows_of(newer.order_by("ran_at", "id")[:limit])[::-1]
    if before is not None:
        at, run_id = _named(before)
        runs = runs.filter(ran_at__lte=at).exclude(ran_at=at, pk__gte=run_id)
    return rows_of(runs.order_by(*NEWEST_FIRST)[:limit])


def oldest_first(run_ids: Iterable[int]) -> list[int]:
    """Sort these runs by when they ran; one that is not there is left out."""
    return list(RunRecord.objects.filter(pk__in=set(run_ids)).order_by("ran_at", "id").values_list("id", flat=True))


def place_of(row: RunRow) -> int:
    """Return a run's sort number in lists, which grows with the time it ran, then with its id."""
    return (row.ran_at - EPOCH) // MICROSECOND * ID_ROOM + int(row.id)


def _named(place: int) -> tuple[datetime, int]:
    """The time and the id that a place is made of; one beyond all times is the last of them."""
    microseconds, run_id = divmod(place, ID_ROOM)
    return EPOCH + min(microseconds, LAST_MICROSECOND) * MICROSECOND, run_id


def rows_of(runs: "QuerySet[RunRecord]") -> tuple[RunRow, ...]:
    """Return a row for each run of a queryset, in its order."""
    rows = list(runs.select_related(*RELATED))
    with_buckets(rows)
    parts = _parts_of([run.pk for run in rows])
    mixed = [run.pk for run in rows if run.status == RunRecord.Status.FINISHED and len(parts[run.pk].bucket_ids) > 1]
    for run_id, served in read_served(mixed).items():
        parts[run_id].served = served
    places = {(run.endpoint_id, bucket) for run in rows for bucket in _bucket_ids(run, parts[run.pk].bucket_ids)}
    names = read_names(places)
    for run in rows:
        own = _bucket_ids(run, parts[run.pk].bucket_ids)
        parts[run.pk].names = {bucket: names[run.endpoint_id, bucket] for bucket in own}
    for run_id, n_errors in _n_errors([run.pk for run in rows if run.status in WITHOUT_SCORE]):
        parts[run_id].n_done -= n_errors
    now = timezone.now()
    return tuple(_row(run, parts[run.pk], now) for run in rows)


def with_buckets(runs: Iterable[RunRecord]) -> None:
    """Put the bucket that each run keeps to in its place, all of them by one statement."""
    bound = [run for run in runs if run.bucket_id is not None]
    related = BucketRecord.objects.select_related("model", "fingerprint").defer("fingerprint__manifest")
    buckets = related.in_bulk({run.bucket_id for run in bound}) if bound else {}
    for run in bound:
        run.bucket = buckets[run.bucket_id]


def _bucket_ids(run: RunRecord, answered: set[int]) -> set[int]:
    """Return the buckets that answered a run, and the one that it keeps to."""
    return answered | ({run.bucket_id} if run.bucket_id is not None else set())


def _n_errors(run_ids: list[int]) -> Iterable[tuple[int, int]]:
    """(run, responses that came to an error), for runs that ended without all of them."""
    if not run_ids:
        return ()
    missing = ResponseRecord.objects.filter(repeat__run__in=run_ids).exclude(error_code__in=("", NOT_IN_LOG)).order_by()
    return missing.values_list("repeat__run").annotate(n=Count("id"))


def _parts_of(run_ids: list[int]) -> defaultdict[int, _RunDetails]:
    parts: defaultdict[int, _RunDetails] = defaultdict(_RunDetails)
    own = RepeatScore.objects.filter(repeat=OuterRef("pk"), scorer=OuterRef("run__suite_version__scorer"))
    shards = Shard.objects.filter(repeat=OuterRef("pk")).order_by().values("repeat")
    processes = RepeatRecord.engine_processes.through.objects.filter(repeat=OuterRef("pk"))
    repeats = RepeatRecord.objects.filter(run__in=run_ids).annotate(
        points=Subquery(own.values("points")[:1]),
        n_done=Subquery(shards.annotate(n=Sum("n_done")).values("n")),
        n_chosen=Subquery(shards.annotate(n=Sum("n_chosen")).values("n")),
        has_process=Exists(processes),
        has_broken_pin=Exists(processes.filter(ANY_PIN_BROKEN)),
    )
    names = ("run", "index", "points", "n_done", "n_chosen", "has_process", "has_broken_pin")
    known = repeats.values_list(*names, "columns__bucket_ids", "columns__n_left_out", "columns__usage")
    for (
        run_id,
        index,
        points,
        n_done,
        n_chosen,
        has_process,
        has_broken_pin,
        bucket_ids,
        n_left_out,
        usage,
    ) in known.order_by("run_id", "index"):
        of = parts[run_id]
        of.usage.append(usage)
        of.n_done += n_done or 0
        of.n_targeted += n_chosen or 0
        if n_chosen is None:
            of.repeats.append(index)
            of.points[index] = points
            of.left_out.append(n_left_out or 0)
            of.bucket_ids.update(bucket_ids or ())
        if has_process:
            of.pins_held = of.pins_held is not False and not has_broken_pin
    return parts


def row_of(
    run: RunRecord,
    *,
    n_done: int,
    n_targeted: int,
    indexes: tuple[int, ...],
    points: tuple[float | None, ...],
    left_out: tuple[int, ...],
    bucket_ids: set[int],
    pins_held: bool | None,
    served: Served,
    names: Mapping[int, str],
    cost: Cost | None,
    now: datetime,
) -> RunRow:
    """Return the row of a run loaded with RELATED; index, points and left_out are per complete repeat.

    n_targeted: responses that its targeted repeats are to have. served: read where several buckets served the run.
    names: of its buckets. cost: of all its answers. now: for the pause of its endpoint.
    """
    own = _bucket_ids(run, bucket_ids)
    n_buckets = len(own)
    draws = pair_facts.draws_of(run)
    span = run_range(status=run.status, points=drawn_points(points, left_out), n_buckets=n_buckets)
    is_pooled = n_buckets > 1 and run.status == RunRecord.Status.FINISHED
    ordered = sorted(own, key=lambda bucket: (-sum(n for _, n in served.get(bucket, ())), bucket))
    by_bucket = [served.get(bucket, ()) for bucket in ordered] if is_pooled and served else []
    return RunRow.from_record(
        run,
        id=str(run.pk),
        suite=SuiteNamed(slug=run.suite_version.suite.slug, version=run.suite_version.number),
        endpoint=run.endpoint.slug,
        profile=run.profile.slug,
        profile_version=run.profile.version,
        sampled=_sampled(draws),
        model=model_name(run),
        waiting_for=paused_endpoint(run, now),
        progress=Done(n_done=n_done, n_total=len(points) * run.suite_version.n_cases + n_targeted),
        repeats=tuple(
            RepeatOfRow(index=index, score=score, n_left_out=n_left_out)
            for index, score, n_left_out in zip(indexes, points, left_out, strict=True)
        ),
        range=span if run.status == RunRecord.Status.FINISHED else None,
        bucket=None if run.bucket_id is None else str(run.bucket_id),
        n_buckets=n_buckets,
        backends=tuple(names[bucket] for bucket in ordered),
        bucket_scores=tuple(weigh_scores(part for part in parts if part[0] is not None) for parts in by_bucket),
        pooled=weigh_scores(part for parts in by_bucket for part in parts),
        warnings=list_warnings(WarnedRun(n_buckets=n_buckets, strays=run.strays or (), unsteady=run.unsteady or ())),
        pins=PinsHeld(held=pins_held),
        cost=cost,
        url=reverse("run", args=[run.pk]),
        range_so_far=span,
        draws=draws,
        batch_class=run.bucket.batch_class if run.bucket else "",
        fingerprint_digest=run.bucket.fingerprint.digest if run.bucket else "",
    )


def paused_endpoint(run: RunRecord, now: datetime) -> WaitingFor | None:
    """Return the pause that a run waits for, None where its endpoint is called or the run has ended."""
    of = run.endpoint
    if run.is_terminal or of.rests_until is None or of.rests_until <= now:
        return None
    return WaitingFor(
        endpoint=of.slug,
        n_failures=of.n_failures,
        reason=of.rest_reason,
        until=of.rests_until,
        since=of.failing_since or now,
    )


def _sampled(draws: Draws) -> Sampled | None:
    if draws.temperature is None or not draws.is_sampled:
        return None
    return Sampled(temperature=draws.temperature, seed=draws.seed, is_one_draw=draws.is_one)


def _row(run: RunRecord, parts: _RunDetails, now: datetime) -> RunRow:
    return row_of(
        run,
        n_done=parts.n_done,
        n_targeted=parts.n_targeted,
        indexes=tuple(parts.repeats),
        points=tuple(parts.points.get(index) for index in parts.repeats),
        left_out=tuple(parts.left_out),
        bucket_ids=parts.bucket_ids,
        pins_held=parts.pins_held if not run.is_reported else None,
        served=parts.served,
        names=parts.names,
        cost=_cost(run, parts.usage),
        now=now,
    )


def _cost(run: RunRecord, usage: Sequence[Mapping[str, int] | None]) -> Cost | None:
    """Return what an ended run cost; None without a price, or where a repeat keeps no counts."""
    price = run.price or run.endpoint.price
    if not run.is_terminal or run.source_id is not None or not price:
        return None
    known = [Usage(**each) for each in usage if each is not None]
    return make_cost(price, known) if len(known) == len(usage) else None


def model_name(run: RunRecord) -> str:
    """Return the model's name: as served, else as requested."""
    if run.bucket is not None:
        return run.bucket.model.name
    if run.endpoint.is_remote:
        return run.endpoint.model_name
    wanted = run.endpoint.checkpoint(run.model_override)
    return name_adapted(wanted["model_repo"] or wanted["model_path"], wanted["model_adapter"])


def judged(run_ids: Iterable[int]) -> dict[int, tuple[JudgedLine, ...]]:
    """Return release lines by run: as candidate first, then as baseline, newest release first."""
    wanted = set(run_ids)
    if not wanted:
        return {}
    by_run: dict[int, list[JudgedLine]] = defaultdict(list)
    gates = GateRecord.objects.filter(Q(candidate_run__in=wanted) | Q(baseline_run__in=wanted)).order_by(
        "-release_id", "position"
    )
    rows = gates.values_list("release", "release__verdict__word", "candidate_run", "baseline_run", "suite__slug")
    for release, word, candidate, baseline, suite in rows:
        for run_id, is_candidate in ((candidate, True), (baseline, False)):
            if run_id in wanted:
                by_run[run_id].append(JudgedLine(release, word or "", is_candidate, suite))
    return {run_id: tuple(sorted(lines, key=lambda line: not line.is_candidate)) for run_id, lines in by_run.items()}


def runs_of_experiments(run_ids: Iterable[int]) -> set[int]:
    """Return those of these runs that are conditions of an experiment."""
    arms = RunRecord.objects.filter(pk__in=list(run_ids), experiment_arms__isnull=False)
    return set(arms.values_list("pk", flat=True))
