"""How suites, endpoints, profiles, policies, fingerprints and workers look in the API's answers."""

from rest_framework.request import Request

from runs.api import answers, catalogue_answers
from runs.api.shapes import instant, mixed, page_url, pair
from runs.models import Run
from runs.selectors import (
    FingerprintDifference,
    FingerprintReport,
    FingerprintRow,
    SuiteRow,
    WorkerRow,
)
from runs.selectors.catalogue import EndpointRow, PolicyRow, ProfileRow
from runs.selectors.self_test import SelfTestFacts
from runs.selectors.suite import VersionLine
from runs.selectors.suite_history import BucketHistory


def suite_row(row: SuiteRow, request: Request) -> catalogue_answers.SuiteRow:
    return {
        "slug": row.slug,
        "title": row.title,
        "version": row.version,
        "n_cases": row.n_cases,
        "n_runs": row.n_runs,
        "last_run": None if row.last_run is None else str(row.last_run.id),
        "url": page_url(request, "suite", row.slug),
    }


def version(line: VersionLine) -> catalogue_answers.SuiteVersionRow:
    return {
        "version": line.number,
        "digest": line.digest,
        "n_cases": line.n_cases,
        "n_runs": line.n_runs,
        "created_at": instant(line.created_at),
    }


def history(
    buckets: tuple[BucketHistory, ...], *, suite_version: int, request: Request
) -> list[catalogue_answers.HistoryRow]:
    """One row a run and bucket, newest first."""
    rows = [(point, bucket) for bucket in buckets for point in bucket.points]
    rows.sort(key=lambda row: (row[0].run_id, row[0].bucket_id), reverse=True)
    return [
        {
            "run": str(point.run_id),
            "suite_version": suite_version,
            "date": instant(point.at),
            "status": point.status,
            "endpoint": point.endpoint,
            "profile": point.profile_slug,
            "profile_version": point.profile_version,
            "bucket": {
                "id": str(bucket.bucket_id),
                "model": bucket.model_name,
                "fingerprint": bucket.fingerprint_digest,
                "batch_class": bucket.batch_class,
            },
            "repeats": list(point.points),
            "n_buckets": point.n_buckets,
            "warnings": mixed(point.n_buckets),
            "range": pair(point.range) if point.status == Run.Status.FINISHED else None,
            "url": page_url(request, "run", point.run_id),
        }
        for point, bucket in rows
    ]


def endpoint(row: EndpointRow) -> catalogue_answers.Endpoint:
    named: catalogue_answers.ModelAsked = (
        {"repo": row.model, "revision": row.revision} if row.revision else {"path": row.model}
    )
    return {
        "slug": row.slug,
        "engine": row.engine,
        "model": named,
        "dtype": row.dtype,
        "quantization": row.quantization,
        "line": row.line,
        "max_model_len": row.max_model_len,
        "pool": row.pool,
    }


def profile(row: ProfileRow) -> catalogue_answers.Profile:
    return {
        "slug": row.slug,
        "version": row.version,
        "title": row.title,
        "settings": row.settings,
        "digest": row.digest,
        "created_at": instant(row.created_at),
    }


def policy(row: PolicyRow) -> catalogue_answers.Policy:
    return {
        "slug": row.slug,
        "version": row.version,
        "title": row.title,
        "settings": row.settings,
        "digest": row.digest,
        "suites": list(row.suites),
        "created_by": row.created_by or None,
        "created_at": instant(row.created_at),
    }


def fingerprint_row(row: FingerprintRow) -> catalogue_answers.FingerprintRow:
    return {
        "id": str(row.id),
        "digest": row.digest,
        "label": row.label,
        "n_runs": row.n_runs,
        "created_at": instant(row.created_at),
    }


def fingerprint(report: FingerprintReport) -> catalogue_answers.Fingerprint:
    return {
        **fingerprint_row(report.row),
        "manifest": report.manifest,
        "buckets": [
            {
                "id": str(bucket.id),
                "model": {"name": bucket.model_name, "digest": bucket.model_digest},
                "batch_class": bucket.batch_class,
                "n_runs": bucket.n_runs,
            }
            for bucket in report.buckets
        ],
    }


def fingerprint_difference(found: FingerprintDifference, request: Request) -> catalogue_answers.FingerprintDifference:
    """What moved from `a` to `b`, what matters most first; unknown is null, and counted equal on neither side."""
    a, b = found.baseline.row, found.candidate.row
    return {
        "a": fingerprint_row(a),
        "b": fingerprint_row(b),
        "moved": [{"field": each.field, "a": each.baseline, "b": each.candidate} for each in found.fields.moved],
        "n_equal": len(found.fields.equal),
        "n_unknown": len(found.fields.unknown),
        "url": page_url(request, "fingerprint_diff", a.id, b.id),
    }


def worker(row: WorkerRow) -> catalogue_answers.Worker:
    return {
        "id": str(row.id),
        "name": row.name,
        "host": row.host,
        "pool": row.pool,
        "state": row.state,
        "hardware": row.hardware,
        "versions": row.versions,
        "fingerprint": row.fingerprint_digest or None,
        "seats": _seats(row),
        "shard": _shard(row),
        "note": row.note,
        "rests_until": instant(row.rests_until),
        "n_engine_failures": row.n_engine_failures,
        "n_fenced": row.n_fenced,
        "self_test": _self_test(row.self_test),
        "seen_at": instant(row.seen_at),
        "started_at": instant(row.started_at),
    }


def _seats(row: WorkerRow) -> answers.Seats | None:
    seats = row.process.seats if row.process else None
    return None if seats is None else {"asked": seats.asked, "got": seats.got}


def _shard(row: WorkerRow) -> catalogue_answers.ShardHeld | None:
    if row.run_id is None or row.repeat is None or row.shard_first is None or row.shard_last is None:
        return None
    return {"run": str(row.run_id), "repeat": row.repeat, "first": row.shard_first, "last": row.shard_last}


def _self_test(test: SelfTestFacts | None) -> catalogue_answers.SelfTest | None:
    if test is None:
        return None
    return {
        "id": str(test.id),
        "at": instant(test.at),
        "is_invariant": test.is_invariant,
        "findings": [
            {
                "kernels": finding.kernels,
                "operation": finding.operation,
                "dtype": finding.dtype,
                "is_same": finding.is_same,
                "text": finding.text,
            }
            for finding in test.findings
        ],
    }
