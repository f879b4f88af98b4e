"""Reports as JSON. Ids are strings, times RFC 3339 in UTC, scores points, and no number is non-finite."""

from datetime import UTC, datetime
from typing import Any, overload

from django.urls import reverse
from rest_framework.request import Request

from evalboard.core.draws import Draws
from runs.api import answers, import_answers
from runs.models import Run
from runs.selectors import (
    ResponseRow,
    RunReport,
    RunRow,
)
from runs.selectors.comparison import SideBucket
from runs.selectors.imported import ImportRow
from runs.selectors.replay import ReplayRow
from runs.selectors.run import BucketReport, Noise
from runs.selectors.run_scores import Range
from runs.selectors.run_warnings import several_buckets

Json = dict[str, Any]


@overload
def instant(at: datetime) -> str: ...
@overload
def instant(at: datetime | None) -> str | None: ...
def instant(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def pair(span: Range | None) -> list[float] | None:
    return None if span is None else list(span)


def page_url(request: Request, name: str, *arguments: Any) -> str:
    """The address of the page that shows the same to a person."""
    return request.build_absolute_uri(reverse(name, args=arguments))


def run_row(row: RunRow, request: Request) -> answers.RunRow:
    """A run in a list: the same names as in `run`, fewer of them."""
    return {
        "id": str(row.id),
        "suite": {"slug": row.suite, "version": row.suite_version},
        "endpoint": row.endpoint,
        "profile": row.profile_slug,
        "profile_version": row.profile_version,
        "sampled": _sampled(row.draws),
        "model": row.model_name,
        "status": row.status,
        "progress": {"n_done": row.n_done, "n_total": row.n_total},
        "repeats": [
            {"index": index, "score": points, "n_left_out": n_left_out}
            for index, (points, n_left_out) in enumerate(zip(row.points, row.left_out, strict=True), start=1)
        ],
        "range": pair(row.range) if row.status == Run.Status.FINISHED else None,
        "bucket": None if row.bucket_id is None else str(row.bucket_id),
        "n_buckets": row.n_buckets,
        "warnings": mixed(row.n_buckets),
        "pins": {"held": row.pins_held},
        "labels": row.labels,
        "created_at": instant(row.created_at),
        "ran_at": instant(row.ran_at),
        "finished_at": instant(row.finished_at),
        "url": page_url(request, "run", row.id),
    }


def _sampled(draws: Draws) -> answers.Sampled | None:
    if draws.temperature is None or not draws.is_sampled:
        return None
    return {"temperature": draws.temperature, "seed": draws.seed, "is_one_draw": draws.is_one}


def mixed(n_buckets: int) -> list[answers.Note]:
    """What a list says beside a score; the run's own page has every warning."""
    found = [several_buckets(n_buckets)] if n_buckets > 1 else []
    return [{"code": warning.code, "text": warning.text} for warning in found]


def run(report: RunReport, request: Request) -> answers.Run:
    progress, is_final = report.progress, report.row.status == Run.Status.FINISHED
    return {
        **run_row(report.row, request),
        "suite": {
            "slug": report.row.suite,
            "version": report.row.suite_version,
            "digest": report.suite_digest,
            "n_cases": report.n_cases,
        },
        "progress": {
            "n_done": progress.n_done,
            "n_total": progress.n_total,
            "rate_per_second": progress.rate_per_second,
            "eta_seconds": progress.eta_seconds,
        },
        "repeats": [
            {
                "index": line.index,
                "status": line.status,
                "score": line.points,
                "n_missing": line.n_missing,
                "n_left_out": line.n_left_out,
                "attempts": max((shard.attempt for shard in line.shards), default=0),
                "engine_processes": [str(process) for process in line.process_ids],
            }
            for line in report.repeats
        ],
        "buckets": [_bucket(bucket, is_final=is_final) for bucket in report.buckets],
        "noise": _noise(report.noise, is_final=is_final),
        "pins": {
            "held": report.row.pins_held,
            "broken": [
                {"name": pin.name, "wanted": pin.wanted, "found": pin.found} for pin in report.pins if not pin.held
            ],
        },
        "seats": [
            {"engine_process": str(line.id), "asked": line.seats.asked, "got": line.seats.got}
            for line in report.processes
            if line.seats is not None
        ],
        "warnings": [{"code": warning.code, "text": warning.text} for warning in report.warnings],
        "errors": {"n": report.n_errors, "by_code": report.errors_by_code, "last": report.last_error or None},
        "scores": _scores(report),
        "twin": _twin(report),
        "stored_bytes": report.stored_bytes,
        "created_by": report.created_by or None,
        "started_at": instant(report.started_at),
    }


def bucket_share(bucket: BucketReport | SideBucket) -> answers.BucketShare:
    """Which bucket it is, and how much of a run it served."""
    return {
        "id": str(bucket.id),
        "model": {"name": bucket.model_name, "digest": bucket.model_digest},
        "fingerprint": {
            "id": str(bucket.fingerprint_id),
            "digest": bucket.fingerprint_digest,
            "label": bucket.fingerprint_label,
        },
        "batch_class": bucket.batch_class,
        "n_responses": bucket.n_responses,
        "share": bucket.share,
    }


def _bucket(bucket: BucketReport, *, is_final: bool) -> answers.Bucket:
    return {
        **bucket_share(bucket),
        "repeats": [
            {"index": line.index, "score": line.points, "n_responses": line.n_responses} for line in bucket.repeats
        ],
        "range": pair(bucket.range) if is_final else None,
        "noise": _noise(bucket.noise, is_final=is_final),
    }


def _noise(noise: Noise, *, is_final: bool) -> answers.Noise:
    """What says where the score lies is null until the run is finished, as its range is."""
    resolution = noise.resolution
    return {
        "n_repeats": noise.n_repeats,
        "disagreement_rate": noise.disagreement_rate,
        "sd_points": noise.sd_points,
        "expected_range_points": noise.expected_range_points,
        "range5_points": noise.range5_points if is_final else None,
        "n_unstable": noise.n_unstable,
        "n_likely_to_flip": noise.n_likely_to_flip,
        "interval": pair(noise.interval) if is_final else None,
        "reach": pair(noise.reach) if is_final else None,
        "level": noise.level if is_final else None,
        "overdispersion": noise.overdispersion,
        "is_overdispersed": noise.is_overdispersed,
        "texts_alike": noise.texts_alike,
        "scores_alike": noise.scores_alike,
        "resolution": None
        if resolution is None
        else {
            "repeats": resolution.repeats,
            "points": resolution.points,
            "elsewhere_points": resolution.elsewhere_points,
            "churn": resolution.churn,
        },
    }


def _scores(report: RunReport) -> list[answers.ScoresUnderScorer]:
    """The points under each scorer; the suite's own comes first."""
    is_final = report.row.status == Run.Status.FINISHED
    return [
        {
            "scorer": {"id": str(line.scorer_id), "digest": line.scorer_digest, "is_own": line.is_own},
            "repeats": list(line.points),
            "range": pair(line.range) if is_final else None,
        }
        for line in report.scores
    ]


def _twin(report: RunReport) -> answers.Twin | None:
    twin = report.twin
    if twin is None:
        return None
    return {"run": str(twin.run_id), "n_equal": twin.n_equal, "n_compared": twin.n_compared}


def response(row: ResponseRow) -> answers.Response:
    return {
        "case": row.case_id,
        "case_index": row.case_index,
        "repeat": row.repeat,
        "text": row.text,
        "finish_reason": row.finish_reason or None,
        "error": {"code": row.error_code, "detail": row.error_detail} if row.error_code else None,
        "score": row.score,
        "reason": row.reason or None,
        "flip_chance": row.flip_chance,
        "is_vouched": row.is_vouched,
        "marks": list(row.marks),
        "trace_digest": row.trace_digest or None,
        "provenance": {item.name: item.value for item in row.provenance},
        "recorded_at": instant(row.recorded_at),
    }


def replay(row: ReplayRow, request: Request) -> answers.Replay:
    """A replay; `results` has one entry for each variant that was tried, in their order."""
    return {
        "id": str(row.id),
        "run": str(row.run_id),
        "repeat": row.repeat,
        "case": row.case_id,
        "status": row.status,
        "variants": list(row.variants),
        "results": [{"name": line.variant, "phrase": line.phrase, **line.facts} for line in row.results],
        "reading": list(row.reading),
        "error": row.error or None,
        "created_by": row.created_by or None,
        "created_at": instant(row.created_at),
        "finished_at": instant(row.finished_at),
        "url": page_url(request, "response", row.run_id, row.repeat, row.case_id),
    }


def imported(row: ImportRow, request: Request) -> import_answers.Import:
    """A log that was read, with its runs as lists have them."""
    return {
        "id": str(row.id),
        "format": row.format,
        "tool": row.tool,
        "files": [{"name": file.name, "size": file.size, "sha256": file.sha256} for file in row.files],
        "notes": list(row.notes),
        "runs": [run_row(run, request) for run in row.runs],
        "created_by": row.created_by or None,
        "created_at": instant(row.created_at),
    }
