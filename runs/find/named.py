"""Find runs, releases, suites, endpoints, stacks and labels by name."""

from collections.abc import Iterable, Sequence
from urllib.parse import urlencode

from django.db import connection
from django.db.models import Count, Q, QuerySet
from django.urls import reverse

from evalboard.contract.find import Hit
from evalboard.wording import find as words
from evalboard.wording.numbers import counted
from runs.find.wanted import COUNTED, Match, Wanted, ids_from, make_hit, rank_id, rank_name
from runs.models import (
    BucketRecord,
    EndpointRecord,
    FingerprintRecord,
    GateRecord,
    ProfileRecord,
    ReleaseRecord,
    RunRecord,
    Suite,
    SuiteVersionRecord,
)
from runs.release import rows_of as release_rows_of
from runs.release import with_outcome
from runs.run import NEWEST_FIRST
from runs.run import rows_of as run_rows_of

# Every label is looked at: of 10,000 runs that takes a hundredth of a second, which no index would be worth.
LABELS = """
SELECT key, value, count(*), max(run.id), max(run.ran_at)
  FROM runs_run run, jsonb_each_text(run.labels) AS label (key, value)
 WHERE run.labels <> '{}'::jsonb AND key || '=' || value ILIKE ALL (%s)
 GROUP BY key, value ORDER BY max(run.ran_at) DESC, key, value LIMIT %s
"""
WILD = str.maketrans({mark: f"\\{mark}" for mark in "\\%_"})


def match_runs(wanted: Wanted) -> list[Match]:
    """Find runs by id, suite, endpoint, profile or model; every word must be in one of these."""
    runs = RunRecord.objects.filter(is_judge=False).order_by(*NEWEST_FIRST)
    digits = wanted.number
    named = [runs.filter(ids_from(digits))] if digits else []
    ways = [runs.filter(pk=digits), *named] if digits else []
    ways.append(runs.filter(*map(_run_has, wanted.words)))
    rows: dict[int, Match] = {}
    for way in ways:
        for key, at in way.values_list("pk", "ran_at")[: COUNTED + 1]:
            rows.setdefault(key, Match("run", key, rank_id(key, digits), at))
    return list(rows.values())


def _run_has(word: str) -> Q:
    return (
        Q(suite_version__in=SuiteVersionRecord.objects.filter(suite__slug__icontains=word).values("pk"))
        | Q(endpoint__in=_endpoints(word).values("pk"))
        | Q(profile__in=ProfileRecord.objects.filter(slug__icontains=word).values("pk"))
        | Q(bucket__in=BucketRecord.objects.filter(model__name__icontains=word).values("pk"))
    )


def show_runs(matches: Sequence[Match]) -> Iterable[Hit]:
    by_id = {match.key: match for match in matches}
    for row in run_rows_of(RunRecord.objects.filter(pk__in=by_id)):
        about, fact = words.describe_run(row)
        yield make_hit(by_id[int(row.id)], f"run {row.id}", about, fact, row.url, state=row.status)


def match_releases(wanted: Wanted) -> list[Match]:
    """Find releases by id, or by a suite, endpoint or model that they judge."""
    digits = wanted.number
    gates = GateRecord.objects.all()
    for word in wanted.words:
        runs = RunRecord.objects.filter(_run_has(word)).values("pk")
        gates = gates.filter(Q(candidate_run__in=runs) | Q(baseline_run__in=runs))
    judged = Q(pk__in=gates.values("release"))
    releases = ReleaseRecord.objects.filter(ids_from(digits) | judged if digits else judged).order_by("-id")
    rows = releases.values_list("pk", "created_at")[: COUNTED + 1]
    exact = ReleaseRecord.objects.filter(pk=digits).values_list("pk", "created_at") if digits else ()
    return [Match("release", key, rank_id(key, digits), at) for key, at in dict([*exact, *rows]).items()]


def show_releases(matches: Sequence[Match]) -> Iterable[Hit]:
    by_id = {match.key: match for match in matches}
    for row in release_rows_of(with_outcome(ReleaseRecord.objects.filter(pk__in=by_id))):
        about, fact = words.describe_release(row)
        yield make_hit(by_id[int(row.id)], f"release {row.id}", about, fact, row.url, state=row.verdict or "")


def match_suites(wanted: Wanted) -> list[Match]:
    """Find suites by their slug or by the title of a version."""
    suites = Suite.objects.filter(judged_suite=None)
    for word in wanted.words:
        titled = SuiteVersionRecord.objects.filter(title__icontains=word).values("suite")
        suites = suites.filter(Q(slug__icontains=word) | Q(pk__in=titled))
    rows = suites.values_list("pk", "slug", "created_at")[: COUNTED + 1]
    return [Match("suite", key, rank_name(slug, wanted), at) for key, slug, at in rows]


def show_suites(matches: Sequence[Match]) -> Iterable[Hit]:
    by_id = {match.key: match for match in matches}
    newest = {
        version.suite_id: version for version in SuiteVersionRecord.objects.filter(suite__in=by_id).order_by("number")
    }
    for suite in Suite.objects.filter(pk__in=by_id):
        version = newest.get(suite.pk)
        about, fact = words.describe_suite(version.title, version.number, version.n_cases) if version else ("", "")
        yield make_hit(by_id[suite.pk], suite.slug, about, fact, reverse("suite", args=[suite.slug]))


def match_endpoints(wanted: Wanted) -> list[Match]:
    """Find endpoints by their slug or by the name of their model."""
    rows = EndpointRecord.objects.all()
    for word in wanted.words:
        rows = rows & _endpoints(word)
    known = rows.values_list("pk", "slug", "created_at")[: COUNTED + 1]
    return [Match("endpoint", key, rank_name(slug, wanted), at) for key, slug, at in known]


def _endpoints(word: str) -> "QuerySet[EndpointRecord]":
    is_named = Q(slug__icontains=word) | Q(model_repo__icontains=word) | Q(model_path__icontains=word)
    return EndpointRecord.objects.filter(is_named | Q(line__icontains=word))


def show_endpoints(matches: Sequence[Match]) -> Iterable[Hit]:
    by_id = {match.key: match for match in matches}
    for row in EndpointRecord.objects.filter(pk__in=by_id):
        about = f"{row.model_name}, {row.get_engine_display()}"
        yield make_hit(by_id[row.pk], row.slug, about, f"pool {row.pool}", reverse("endpoint", args=[row.slug]))


def match_stacks(wanted: Wanted) -> list[Match]:
    """Find stacks by their name, such as versions, hardware or what a server calls itself."""
    rows = FingerprintRecord.objects.all()
    for word in wanted.words:
        rows = rows.filter(label__icontains=word)
    known = rows.order_by("-pk").values_list("pk", "label", "created_at")[: COUNTED + 1]
    return [Match("stack", key, rank_name(label, wanted), at) for key, label, at in known]


def show_stacks(matches: Sequence[Match]) -> Iterable[Hit]:
    by_id = {match.key: match for match in matches}
    for row in FingerprintRecord.objects.filter(pk__in=by_id).annotate(n_runs=Count("buckets__runs")):
        url = reverse("fingerprint", args=[row.pk])
        yield make_hit(by_id[row.pk], row.label, f"fp {row}", counted(row.n_runs, "run"), url)


def match_labels(wanted: Wanted) -> list[Match]:
    """Find labels of runs by their key, their value or both as `key=value`."""
    patterns = [f"%{word.translate(WILD)}%" for word in wanted.words]
    with connection.cursor() as cursor:
        cursor.execute(LABELS, [patterns, COUNTED + 1])
        rows = cursor.fetchall()
    return [
        Match(
            "label",
            (key, value, n, newest),
            min(rank_name(each, wanted) for each in (key, value, f"{key}={value}")),
            at,
        )
        for key, value, n, newest, at in rows
    ]


def show_labels(matches: Sequence[Match]) -> Iterable[Hit]:
    for match in matches:
        key, value, n, newest = match.key
        url = f"{reverse('runs')}?{urlencode({'label': f'{key}={value}'})}"
        yield make_hit(match, f"{key}={value}", f"newest run {newest}", counted(n, "run"), url)
