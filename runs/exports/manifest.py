"""The manifest of a run's archive: what was requested, and which stacks answered."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from evalboard.core.profile import SIZES
from evalboard.core.trace import BLOCK_VERSION
from runs.exports.runs import EndedRun
from runs.models import (
    CHECKPOINT,
    BucketRecord,
    EndpointRecord,
    EngineProcess,
    RepeatRecord,
    RepeatScore,
    RunRecord,
    VocabularyRecord,
)
from runs.pairs import pair_facts
from runs.store import instant

Json = dict[str, Any]


def of(run: EndedRun, processes: Mapping[int, EngineProcess], n_responses: Mapping[int, int], *, n_blocks: int) -> Json:
    """Return the manifest without the members' digests. n_responses: by number of each exported repeat."""
    scores = RepeatScore.objects.filter(repeat__in=run.ended).select_related("scorer").defer("scores", "reasons")
    by_repeat: dict[int, list[RepeatScore]] = {}
    for score in scores.order_by("scorer_id"):
        by_repeat.setdefault(score.repeat_id, []).append(score)
    scorers = {score.scorer.digest: score.scorer for given in by_repeat.values() for score in given}
    own = run.run.suite_version.scorer
    buckets = {process.bucket_id: process.bucket for process in processes.values()}
    return {
        "run": _run(run.run),
        "suite": _suite(run.run),
        "scorers": [
            {"digest": digest, "spec": scorer.spec, "is_own": scorer.pk == own.pk}
            for digest, scorer in sorted({own.digest: own, **scorers}.items())
        ],
        "endpoint": _endpoint(run.run.endpoint),
        "profile": _profile(run.run),
        "repeats": [_repeat(repeat, n_responses, by_repeat.get(repeat.pk, []), run) for repeat in run.repeats],
        "models": list({bucket.model.digest: _model(bucket) for bucket in buckets.values()}.values()),
        "fingerprints": list({bucket.fingerprint_id: _fingerprint(bucket) for bucket in buckets.values()}.values()),
        "buckets": [_bucket(bucket) for bucket in buckets.values()],
        "engine_processes": _processes(processes),
        "traces": {"format_version": BLOCK_VERSION, "n_blocks": n_blocks},
    }


def _run(run: RunRecord) -> Json:
    return {
        "id": str(run.pk),
        "status": run.status,
        "failure": run.failure or None,
        "model": run.model_override,
        "seed": run.seed,
        "is_one_draw": run.is_one_draw,
        "is_reported": run.is_reported,
        "is_log": run.is_log,
        "tool": run.source.tool if run.source is not None and run.is_log else None,
        "settings_seen": run.settings_seen,
        "labels": run.labels,
        "created_by": run.created_by.get_username() if run.created_by else None,
        "created_at": instant(run.created_at),
        "ran_at": instant(run.ran_at),
        "started_at": instant(run.started_at),
        "finished_at": instant(run.finished_at),
    }


def _suite(run: RunRecord) -> Json:
    version = run.suite_version
    return {
        "slug": version.suite.slug,
        "version": version.number,
        "digest": version.digest,
        "title": version.title,
        "n_cases": version.n_cases,
        "scorer": version.scorer.digest,
    }


def _endpoint(endpoint: EndpointRecord) -> Json:
    names = ("slug", "engine", *CHECKPOINT, "dtype", "quantization", "line", "max_model_len", *SIZES)
    return {name: getattr(endpoint, name) for name in (*names, "pool", "base_url", "api")}


def _profile(run: RunRecord) -> Json:
    """Return the profile. `sampling` is what was requested: the profile's with the suite's limits."""
    profile = run.profile
    return {
        "slug": profile.slug,
        "version": profile.version,
        "title": profile.title,
        "digest": profile.digest,
        "settings": profile.settings,
        "sampling": {**profile.settings["sampling"], **pair_facts.limits_of(run)},
    }


def _repeat(repeat: RepeatRecord, n_responses: Mapping[int, int], scores: list[RepeatScore], run: EndedRun) -> Json:
    """Return a repeat. An unfinished one is listed too, so that the export is not taken for the whole run."""
    is_exported = repeat.index in n_responses
    chosen = run.chosen(repeat)
    return {
        "index": repeat.index,
        "status": repeat.status,
        "finished_at": instant(repeat.finished_at),
        "is_exported": is_exported,
        "n_cases": run.n_cases if chosen is None else int(chosen.sum()),
        "cases": None if chosen is None else np.flatnonzero(chosen).tolist(),
        "n_responses": n_responses.get(repeat.index, 0),
        "n_left_out": repeat.columns.n_left_out if is_exported else 0,
        "scores": [
            {
                "scorer": score.scorer.digest,
                "points": score.points,
                "n_scored": score.n_scored,
                "n_missing": score.n_missing,
            }
            for score in scores
        ],
    }


def _model(bucket: BucketRecord) -> Json:
    model = bucket.model
    names = ("digest", "name", "revision", "line", "files", "template_digest")
    return {name: getattr(model, name) for name in names}


def _fingerprint(bucket: BucketRecord) -> Json:
    fingerprint = bucket.fingerprint
    return {
        "id": str(fingerprint.pk),
        "digest": fingerprint.digest,
        "label": fingerprint.label,
        "manifest": fingerprint.manifest,
    }


def _bucket(bucket: BucketRecord) -> Json:
    return {
        "id": str(bucket.pk),
        "model": bucket.model.digest,
        "fingerprint": bucket.fingerprint.digest,
        "batch_class": bucket.batch_class,
    }


def _processes(processes: Mapping[int, EngineProcess]) -> list[Json]:
    words = {process.vocabulary_id for process in processes.values() if process.vocabulary_id is not None}
    digests = dict(VocabularyRecord.objects.filter(pk__in=words).values_list("pk", "digest"))
    return [
        {
            "id": str(process.pk),
            "bucket": str(process.bucket_id),
            "vocabulary": digests.get(process.vocabulary_id) if process.vocabulary_id is not None else None,
            "worker": {
                "name": process.worker.name,
                "host": process.worker.host,
                "pool": process.worker.pool,
                "hardware": process.worker.hardware,
                "versions": process.worker.versions,
            },
            "manifest": process.manifest,
            "pins": process.pins,
            "self_checks": process.self_checks,
            "start_seconds": process.start_seconds,
            "started_at": instant(process.started_at),
            "stopped_at": instant(process.stopped_at),
            "last_words": process.last_words or None,
        }
        for process in processes.values()
    ]
