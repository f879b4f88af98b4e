"""Runs as rows of a list, a fixed number of queries for any number of them."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.db.models import Count, F, Q, QuerySet, Sum

from runs import pair_facts
from runs.imported import NOT_IN_LOG
from runs.models import Repeat, RepeatScore, Response, Run, Shard
from runs.selectors.run import RunRow
from runs.selectors.run_scores import drawn_points, run_range

# What a row reads of the records that a run points at.
RELATED = (
    "suite_version__suite",
    "endpoint",
    "profile",
    "bucket__model",
    "bucket__fingerprint",
)
WITHOUT_SCORE = (Run.Status.INCOMPLETE, Run.Status.FAILED, Run.Status.CANCELLED)
NEWEST_FIRST = ("-ran_at", "-id")
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
LAST_MICROSECOND = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MICROSECOND
ID_ROOM = 10**19  # more than a bigint holds
PLACE_DIGITS = len(str(LAST_MICROSECOND * ID_ROOM))
ANY_PIN_BROKEN = Q(engineprocess__pins__contains=[{"held": False}])


@dataclass(slots=True)
class _Parts:
    """What the rows of other tables say of one run."""

    repeats: list[int] = field(default_factory=list)
    points: dict[int, float | None] = field(default_factory=dict)
    left_out: list[int] = field(default_factory=list)
    bucket_ids: set[int] = field(default_factory=set)
    n_done: int = 0
    pins_held: bool | None = None


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list holds: `label` is `key` or `key=value`; ran from `since`, before `until`."""

    suite: str = ""
    endpoint: str = ""
    status: str = ""
    bucket: int | None = None
    label: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def runs(self) -> "QuerySet[Run]":
        equal = {
            "suite_version__suite__slug": self.suite or None,
            "endpoint__slug": self.endpoint or None,
            "status": self.status or None,
            "bucket": self.bucket,
            "ran_at__gte": self.since,
            "ran_at__lt": self.until,
        }
        runs = Run.objects.filter(**{name: value for name, value in equal.items() if value is not None})
        key, has_value, value = self.label.partition("=")
        if not key:
            return runs
        return runs.filter(labels__contains={key: value}) if has_value else runs.filter(labels__has_key=key)


def run_rows(
    *,
    suite: str = "",
    endpoint: str = "",
    status: str = "",
    bucket: int | None = None,
    label: str = "",
    before: int | None = None,
    limit: int = 50,
) -> tuple[RunRow, ...]:
    """Runs, newest first; `before` is the place to continue below, `label` is `key` or `key=value`."""
    wanted = RunFilter(suite=suite, endpoint=endpoint, status=status, bucket=bucket, label=label)
    return run_page(wanted, before=before, limit=limit)


def run_page(
    wanted: RunFilter, *, before: int | None = None, after: int | None = None, limit: int
) -> tuple[RunRow, ...]:
    """Runs by when they ran, newest first, below the place `before`; or, with `after`, the nearest ones above it."""
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
    """These runs by when they ran; one that is not there is left out."""
    return list(Run.objects.filter(pk__in=set(run_ids)).order_by("ran_at", "id").values_list("id", flat=True))


def place_of(row: RunRow) -> int:
    """A run's place in lists: one number, larger for what ran later, and of one moment for what was made later."""
    return (row.ran_at - EPOCH) // MICROSECOND * ID_ROOM + row.id


def _named(place: int) -> tuple[datetime, int]:
    """The time and the id that a place is made of; one beyond all times is the last of them."""
    microseconds, run_id = divmod(place, ID_ROOM)
    return EPOCH + min(microseconds, LAST_MICROSECOND) * MICROSECOND, run_id


def rows_of(runs: "QuerySet[Run]") -> tuple[RunRow, ...]:
    """A row for each run of a queryset, in its order."""
    found = list(runs.select_related(*RELATED))
    parts = _parts_of([run.pk for run in found])
    for run_id, n_errors in _n_errors([run.pk for run in found if run.status in WITHOUT_SCORE]):
        parts[run_id].n_done -= n_errors
    return tuple(_row(run, parts[run.pk]) for run in found)


def _n_errors(run_ids: list[int]) -> Iterable[tuple[int, int]]:
    """(run, responses that came to an error), for runs that ended without all of them."""
    if not run_ids:
        return ()
    missing = Response.objects.filter(repeat__run__in=run_ids).exclude(error_code__in=("", NOT_IN_LOG)).order_by()
    return missing.values_list("repeat__run").annotate(n=Count("id"))


def _parts_of(run_ids: list[int]) -> defaultdict[int, _Parts]:
    parts: defaultdict[int, _Parts] = defaultdict(_Parts)
    repeats = Repeat.objects.filter(run__in=run_ids).order_by("run_id", "index")
    known = repeats.values_list("run", "index", "columns__bucket_ids", "columns__n_left_out")
    for run_id, index, bucket_ids, n_left_out in known:
        parts[run_id].repeats.append(index)
        parts[run_id].left_out.append(n_left_out or 0)
        parts[run_id].bucket_ids.update(bucket_ids or ())
    own = RepeatScore.objects.filter(repeat__run__in=run_ids, scorer=F("repeat__run__suite_version__scorer"))
    for run_id, index, points in own.values_list("repeat__run", "repeat__index", "points"):
        parts[run_id].points[index] = points
    done = Shard.objects.filter(repeat__run__in=run_ids).order_by().values_list("repeat__run")
    for run_id, n_done in done.annotate(n=Sum("n_done")):
        parts[run_id].n_done = n_done
    links = Repeat.engine_processes.through.objects.filter(repeat__run__in=run_ids).values_list("repeat__run")
    for run_id, n_broken in links.annotate(n=Count("id", filter=ANY_PIN_BROKEN)):
        parts[run_id].pins_held = n_broken == 0
    return parts


def row_of(
    run: Run,
    *,
    n_done: int,
    points: tuple[float | None, ...],
    left_out: tuple[int, ...],
    bucket_ids: set[int],
    pins_held: bool | None,
) -> RunRow:
    """The row of a run that came with RELATED; `points` and `left_out` have a value for each repeat."""
    n_buckets = len(bucket_ids | ({run.bucket_id} if run.bucket_id is not None else set()))
    return RunRow(
        id=run.pk,
        suite=run.suite_version.suite.slug,
        suite_version=run.suite_version.number,
        endpoint=run.endpoint.slug,
        profile=str(run.profile),
        profile_slug=run.profile.slug,
        profile_version=run.profile.version,
        model_name=model_name(run),
        status=run.status,
        n_done=n_done,
        n_total=len(points) * run.suite_version.n_cases,
        n_repeats=len(points),
        points=points,
        left_out=left_out,
        range=run_range(status=run.status, points=drawn_points(points, left_out), n_buckets=n_buckets),
        n_buckets=n_buckets,
        batch_class=run.bucket.batch_class if run.bucket else "",
        fingerprint_digest=run.bucket.fingerprint.digest if run.bucket else "",
        pins_held=pins_held,
        labels=run.labels,
        created_at=run.created_at,
        ran_at=run.ran_at,
        finished_at=run.finished_at,
        bucket_id=run.bucket_id,
        draws=pair_facts.draws_of(run),
    )


def _row(run: Run, parts: _Parts) -> RunRow:
    return row_of(
        run,
        n_done=parts.n_done,
        points=tuple(parts.points.get(index) for index in parts.repeats),
        left_out=tuple(parts.left_out),
        bucket_ids=parts.bucket_ids,
        pins_held=parts.pins_held if run.source_id is None else None,
    )


def model_name(run: Run) -> str:
    """What people call the model: as served, else as asked for."""
    if run.bucket is not None:
        return run.bucket.model.name
    other = run.model_override or {}
    named = other.get("repo") or other.get("path") or ""
    return named.rstrip("/").rsplit("/", 1)[-1] or run.endpoint.model_name
