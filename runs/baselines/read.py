"""Read baselines, rotations and what reference sets showed of them, in a fixed number of queries."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Now

from evalboard.contract import baseline as contract
from evalboard.contract.baseline import ReferenceRescored, RotationSeen
from evalboard.contract.run import RunRow
from evalboard.contract.treatments import MODEL_TREATMENT
from evalboard.core.errors import NotFound
from evalboard.core.profile import find_moved_fields
from runs.models import BaselineRecord, ComparisonRecord, EndpointRecord, Rotation, RunRecord, SuiteVersionRecord
from runs.pairs.pair_facts import describe_fingerprint, name_on
from runs.run import rows_of
from runs.store import newest_page, require_first

KEY = ("suite_id", "line", "profile_slug")  # one current baseline for each
NO_RUNS: Mapping[int, RunRow] = {}
WITHIN = timedelta(days=1)  # of a rotation: an older one is done, or not wanted


def require_suite(slug: str) -> None:
    """Raise NotFound where no version of a suite is stored."""
    if not SuiteVersionRecord.objects.filter(suite__slug=slug).exists():
        raise NotFound(f"There is no suite {slug}.")


def baseline_rows(
    suite: str = "", *, after: int | None = None, before: int | None = None, limit: int = 200
) -> tuple[contract.Baseline, ...]:
    """Return the baselines of a suite, or of all, newest first.

    Those older than `after`, or the nearest ones newer than `before`.
    """
    return newest_page(_baselines(suite), _rows, after=after, before=before, limit=limit)


def baselines_beside(run: RunRow) -> tuple[contract.Baseline | None, tuple[contract.Baseline, ...]]:
    """Return the current baseline that a run is compared with, and those that the run was set as.

    The first is None without one, or if it is the run. The others are sorted newest first.
    """
    endpoint = EndpointRecord.objects.filter(slug=run.endpoint)
    alike = BaselineRecord.objects.filter(
        suite__slug=run.suite.slug, profile_slug=run.profile, line__in=endpoint.values("line")
    )
    wanted = Q(run=int(run.id)) | Q(pk__in=alike.order_by("-id").values("pk")[:1])
    rows = _rows(BaselineRecord.objects.filter(wanted).order_by("-id"), runs={int(run.id): run})
    others = (row for row in rows if row.run.id != run.id)
    return next(others, None), tuple(row for row in rows if row.run.id == run.id)


def baselines_on(endpoint: str, *, limit: int) -> tuple[contract.Baseline, ...]:
    """Return the newest baselines whose runs were on an endpoint."""
    newest = BaselineRecord.objects.filter(run__endpoint__slug=endpoint).order_by("-id").values("pk")[:limit]
    return _rows(BaselineRecord.objects.filter(pk__in=newest).order_by("-id"))


def baseline_row(baseline_id: int) -> contract.Baseline:
    """Return one baseline. Raises NotFound."""
    return require_first(_rows(BaselineRecord.objects.filter(pk=baseline_id)), f"There is no baseline {baseline_id}.")


def current_baselines(suite: str = "") -> tuple[contract.Baseline, ...]:
    """Return the current baseline per suite, model line and profile, of one suite or all."""
    newest = _baselines(suite).order_by(*KEY, "-id").distinct(*KEY).values("pk")
    return _rows(BaselineRecord.objects.filter(pk__in=newest).order_by("suite__slug", "line", "profile_slug"))


def baseline_runs(suite: str, profile: str) -> tuple[int, ...]:
    """Return the runs of the current baselines of a suite under a profile that have not expired."""
    baselines = _baselines(suite).filter(profile_slug=profile)
    newest = baselines.order_by(*KEY, "-id").distinct(*KEY).values_list("run", "rotation")
    return tuple(run for run, rotation in newest if rotation is None)


def _baselines(suite: str) -> "QuerySet[BaselineRecord]":
    """Return the baselines of a suite; of all where it is ""."""
    return BaselineRecord.objects.filter(suite__slug=suite) if suite else BaselineRecord.objects.all()


def _rows(
    baselines: "QuerySet[BaselineRecord]", *, runs: Mapping[int, RunRow] = NO_RUNS
) -> tuple[contract.Baseline, ...]:
    """Return a row for each, in their order. `runs`: the rows of runs that are at hand."""
    newer = BaselineRecord.objects.filter(**{name: OuterRef(name) for name in KEY}, pk__gt=OuterRef("pk"))
    stored = list(baselines.select_related("suite", "set_by").annotate(is_current=~Exists(newer)))
    if wanted := {each.run_id for each in stored} - runs.keys():
        runs = {**runs, **{int(row.id): row for row in rows_of(RunRecord.objects.filter(pk__in=wanted))}}
    ids = {each.rotation_id for each in stored if each.rotation_id is not None}
    rotations = rotations_by_id(ids) if ids else {}
    return tuple(
        contract.Baseline.from_record(
            each,
            id=str(each.pk),
            suite=each.suite.slug,
            profile=each.profile_slug,
            run=runs[each.run_id],
            set_by=each.set_by.get_username() if each.set_by else None,
            expired=None if each.rotation_id is None else rotations[each.rotation_id],
        )
        for each in stored
    )


def rotation_rows(
    *, since: datetime | None = None, endpoints: Iterable[str] | None = None, limit: int = 200
) -> tuple[RotationSeen, ...]:
    """Return rotations, newest first; from `since` on, and on some endpoints where they are named."""
    rotations = Rotation.objects.all()
    if since is not None:
        rotations = rotations.filter(at__gte=since)
    if endpoints is not None:
        rotations = rotations.filter(endpoint__slug__in=set(endpoints))
    return tuple(_row(each) for each in _light(rotations).order_by("-id")[:limit])


def rotations_by_id(ids: Collection[int]) -> dict[int, RotationSeen]:
    """Return rotations by their ids, as `rotation_rows` does."""
    return {each.pk: _row(each) for each in _light(Rotation.objects.filter(pk__in=ids))}


def rotations_in_full(ids: Collection[int]) -> tuple[RotationSeen, ...]:
    """Return rotations, newest first, with changed manifest fields and reference-set runs."""
    rotations = list(_counted(Rotation.objects.filter(pk__in=ids)).order_by("-id"))
    rescored, waiting = _rescored(rotations), set(unattended_rotations())
    return tuple(
        _row(each).model_copy(
            update={
                "moved": find_moved_fields(each.before.manifest, each.after.manifest),
                "rescored": rescored[each.pk],
                "problem": each.problem,
                "is_to_rescore": each.pk in waiting,
            }
        )
        for each in rotations
    )


def unattended_rotations() -> list[int]:
    """Return the rotations after which reference sets are still to run, by id, oldest first."""
    wanted = Rotation.objects.filter(endpoint__engine=EndpointRecord.Engine.OPENAI, endpoint__rescores=True)
    waiting = wanted.filter(attended_at=None, at__gt=Now() - WITHIN)
    return list(waiting.order_by("id").values_list("id", flat=True))


def references_to_compare() -> list[tuple[int, int]]:
    """Return (earlier run, run) of the reference sets that ended lately and are not compared yet."""
    links = Rotation.reference_runs.through.objects.filter(
        run__status=RunRecord.Status.FINISHED, run__finished_at__gt=Now() - WITHIN
    )
    rotations = Rotation.objects.filter(pk__in=links.values("rotation")).select_related("endpoint")
    rescored = _rescored(list(rotations))
    return [
        (each.against, int(each.run.id))
        for several in rescored.values()
        for each in several
        if each.run.status == RunRecord.Status.FINISHED and each.against is not None and not each.is_compared
    ]


def held_against(rotation: Rotation, run: RunRecord) -> int | None:
    """Return the previous stack's run with which a reference set's run after a rotation is compared.

    That is the newest run of the same set, else the run of the baseline that expired, which has the same cases.
    """
    return _against([rotation], {run.pk: run})[rotation.pk, run.pk]


def _rescored(rotations: list[Rotation]) -> dict[int, tuple[ReferenceRescored, ...]]:
    links = Rotation.reference_runs.through.objects.filter(rotation__in=rotations).order_by("run")
    pairs = list(links.values_list("rotation", "run"))
    started = RunRecord.objects.filter(pk__in={run for _, run in pairs})
    if not pairs:
        return {rotation.pk: () for rotation in rotations}
    runs = {run.pk: run for run in started.select_related("suite_version__suite__reference_of", "profile")}
    rows = {int(row.id): row for row in rows_of(started)}
    against = _against(rotations, runs)
    scores = _compared({(earlier, run) for (_, run), earlier in against.items() if earlier is not None})
    rescored: dict[int, list[ReferenceRescored]] = {rotation.pk: [] for rotation in rotations}
    for rotation_id, run_id in pairs:
        earlier = against[rotation_id, run_id]
        before, after = scores.get((earlier, run_id), (None, None))
        rescored[rotation_id].append(
            ReferenceRescored(
                run=rows[run_id], against=earlier, before=before, after=after, is_compared=(earlier, run_id) in scores
            )
        )
    return {rotation_id: tuple(several) for rotation_id, several in rescored.items()}


def _against(rotations: Iterable[Rotation], runs: Mapping[int, RunRecord]) -> dict[tuple[int, int], int | None]:
    """Return for each rotation and run what `held_against` does."""
    by_id = {rotation.pk: rotation for rotation in rotations}
    same = RunRecord.objects.filter(
        suite_version__in={run.suite_version_id for run in runs.values()},
        endpoint__in={run.endpoint_id for run in runs.values()},
        bucket__fingerprint__in={rotation.before_id for rotation in by_id.values()},
        status=RunRecord.Status.FINISHED,
    )
    earlier: dict[tuple[int, int, str, int | None], list[int]] = defaultdict(list)
    place = ("suite_version", "endpoint", "profile__slug", "bucket__fingerprint")
    for pk, *where in same.order_by("id").values_list("pk", *place):
        earlier[tuple(where)].append(pk)
    expired = BaselineRecord.objects.filter(rotation__in=by_id).order_by("id")
    baselines = {
        (rotation, suite, profile): run
        for rotation, suite, profile, run in expired.values_list("rotation", "suite", "profile_slug", "run")
    }
    earlier_runs: dict[tuple[int, int], int | None] = {}
    for rotation in by_id.values():
        for run in runs.values():
            suite, profile = run.suite_version.suite, run.profile.slug
            whole = suite.reference_of.suite_id if suite.reference_of else suite.pk
            baseline_run = baselines.get((rotation.pk, suite.pk, profile), baselines.get((rotation.pk, whole, profile)))
            alike = earlier[run.suite_version_id, run.endpoint_id, profile, rotation.before_id]
            earlier_runs[rotation.pk, run.pk] = max((pk for pk in alike if pk < run.pk), default=baseline_run)
    return earlier_runs


def _compared(pairs: Collection[tuple[int, int]]) -> dict[tuple[int | None, int], tuple[float | None, float | None]]:
    """Return each compared pair's points on both sides, over the cases that both have."""
    stored = ComparisonRecord.objects.filter(
        baseline__in={baseline for baseline, _ in pairs},
        candidate__in={candidate for _, candidate in pairs},
        baseline_repeat=None,
        treatment=MODEL_TREATMENT,
    )
    rows = stored.filter(status=ComparisonRecord.Status.FINISHED).annotate(score=KeyTransform("score", "summary"))
    known: dict[tuple[int | None, int], tuple[float | None, float | None]] = {}
    for baseline, candidate, score in rows.order_by("id").values_list("baseline", "candidate", "score"):
        if (baseline, candidate) in pairs:
            known[baseline, candidate] = (score["baseline"], score["candidate"]) if score else (None, None)
    return known


def _counted(rotations: "QuerySet[Rotation]") -> "QuerySet[Rotation]":
    """Add related rows, and the number of baselines that each rotation ended."""
    named = rotations.select_related("endpoint", "before", "after")
    called = {f"{side}_name": name_on("endpoint", side) for side in ("before", "after")}
    return named.annotate(n_expired=Count("expired_baselines"), **called)


def _light(rotations: "QuerySet[Rotation]") -> "QuerySet[Rotation]":
    return _counted(rotations).defer("before__manifest", "after__manifest")


def _row(row: Rotation) -> RotationSeen:
    return RotationSeen(
        at=row.at,
        endpoint=row.endpoint.slug,
        profile=row.profile_slug or None,
        run=None if row.run_id is None else str(row.run_id),
        probe=None if row.probe_id is None else str(row.probe_id),
        before=describe_fingerprint(row.before, row.before_name),  # type: ignore[attr-defined]  # _counted
        after=describe_fingerprint(row.after, row.after_name),  # type: ignore[attr-defined]
        id=row.pk,
        n_expired=row.n_expired,  # type: ignore[attr-defined]
    )
