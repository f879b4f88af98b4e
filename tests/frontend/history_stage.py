"""A suite with a history: several buckets, two rotations, a baseline that expired and one that holds.

Runs, baselines and rotations come from the services; what engines would have brought is written as rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import F

from evalboard.core.digest import digest_json
from evalboard.core.profile import DEFAULT_PROFILES
from evalboard.core.stats import run_points
from evalboard.core.trace import pack_buckets, pack_digests, pack_reasons, pack_scores
from runs.baselines import set_baseline
from runs.catalogue import create_profile
from runs.catalogue.rotations import note_rotation
from runs.models import (
    BaselineRecord,
    BucketRecord,
    CaseColumns,
    FingerprintRecord,
    Model,
    RepeatRecord,
    RepeatScore,
    Rotation,
    RunRecord,
    Shard,
)
from runs.run import create_run
from runs.suites import push_suite
from tests import build

SLUG = "toolcalls"
FIRST_DAY = datetime(2026, 9, 1, 9, 30, tzinfo=UTC)


@dataclass(frozen=True)
class History:
    """`old` expired with the rotation on day 45, `current` holds; `candidate` is the newest run."""

    old: BaselineRecord
    current: BaselineRecord
    candidate: RunRecord
    runs: tuple[RunRecord, ...]


def suite(n_cases: int) -> None:
    plain = {"target": "blue"}
    cases = [plain | {"id": f"tool-{n:03}", "prompt": f"Call {n}.", "reference": n < 20} for n in range(n_cases)]
    document = {"slug": SLUG, "title": "Tool calls", "max_tokens": 64, "scorer": {"kind": "exact"}, "cases": cases}
    push_suite(document=document)
    build.endpoint("prod-router", line="acme-7b-ft")
    build.endpoint("gpu-3", line="acme-7b-ft")
    for slug, base in (("fast", "fast"), ("fixed", "pinned")):
        settings = DEFAULT_PROFILES[base]["settings"]
        create_profile(slug=slug, title=slug.title(), settings=settings)


def bucket(model: str, stack: str, batch_class: str) -> BucketRecord:
    manifest = {"engine": {"dtype": "bfloat16"}, "versions": {"vllm": stack}}
    served, _ = Model.objects.get_or_create(
        digest=digest_json(model), defaults={"name": model, "line": "acme-7b-ft", "template_digest": "c" * 64}
    )
    fingerprint, _ = FingerprintRecord.objects.get_or_create(
        digest=digest_json(manifest), defaults={"label": f"vLLM {stack}, H200", "manifest": manifest}
    )
    return BucketRecord.objects.get_or_create(model=served, fingerprint=fingerprint, batch_class=batch_class)[0]


def run(
    day: float,
    by: BucketRecord,
    *,
    score: float,
    spread: float = 0.4,
    repeats: int = 5,
    on: str = "prod-router",
    under: str = "fast",
    seed: int = 0,
) -> RunRecord:
    """A finished run of about `score` points whose repeats have a standard deviation of about `spread`."""
    asked = create_run(suite=SLUG, endpoint=on, profile=under, repeats=repeats)
    at = FIRST_DAY + timedelta(days=day)
    RunRecord.objects.filter(pk=asked.pk).update(bucket=by, created_at=at, ran_at=at, started_at=at)
    asked.refresh_from_db()
    with transaction.atomic():
        turn = note_rotation(shown_by=asked)
    if turn is not None:
        Rotation.objects.filter(pk=turn.pk).update(at=at)
    seed = seed or RunRecord.objects.filter(suite_version__suite__slug=SLUG).count()  # the same whatever ran before
    scores = _scores(asked.suite_version.n_cases, score / 100, spread / 100, repeats, seed)
    _store(asked, scores, by, at)
    done = Shard.objects.filter(repeat__run=asked)
    done.update(status=Shard.Status.FINISHED, n_done=F("last") - F("first") + 1)
    RunRecord.objects.filter(pk=asked.pk).update(status=RunRecord.Status.FINISHED, finished_at=at + timedelta(hours=1))
    asked.refresh_from_db()
    return asked


def baseline(of: RunRecord, reason: str, *, user: Any, day: float) -> BaselineRecord:
    made = set_baseline(suite=SLUG, run=of.pk, reason=reason, user=user)
    BaselineRecord.objects.filter(pk=made.pk).update(created_at=FIRST_DAY + timedelta(days=day))
    return made


def make(n_cases: int = 120, *, n_old: int = 9) -> History:
    """All of it, by date: ten runs in four buckets, and before them the old ones."""
    suite(n_cases)
    user, _ = get_user_model().objects.get_or_create(username="mira")
    before, now = bucket("acme-7b-ft-0214", "0.31.2", "mixed"), bucket("acme-7b-ft-0330", "0.32.0", "mixed")
    fixed, tuned = bucket("acme-7b-ft-0330", "0.32.0", "fixed-8"), bucket("acme-7b-ft-0412", "0.32.0", "mixed")
    other = bucket("acme-7b-ft-0330", "0.32.1", "fixed-8")
    old = [run(day, before, score=81.9, spread=0.45) for day in (0, 4, 8, 13, 18, 22, 27, 32, 37)[:n_old]]
    expired = baseline(old[-1], "Released in March.", user=user, day=38)
    new = [run(day, now, score=81.4) for day in (45, 49, 53)]
    small = [run(54.5, fixed, score=81.4, spread=0.12, on="gpu-3", under="fixed")]
    new += [run(day, now, score=81.4) for day in (57, 61, 65.5)]
    current = baseline(new[-1], "The rotation of the router to vLLM 0.32 expired the one before.", user=user, day=66)
    small += [run(68.5, other, score=81.3, spread=0.12, on="gpu-3", under="fixed")]
    new += [run(70, now, score=80.9)]
    candidate = run(71.5, tuned, score=80.2)
    return History(expired, current, candidate, (*old, *new, *small, candidate))


def rotated(n_cases: int = 120) -> tuple[BaselineRecord, RunRecord]:
    """A baseline that a rotation made expire, and the run that noticed."""
    suite(n_cases)
    user, _ = get_user_model().objects.get_or_create(username="mira")
    first = run(0, bucket("acme-7b-ft-0330", "0.31.2", "mixed"), score=81.9, repeats=3)
    expired = baseline(first, "Released in March.", user=user, day=1)
    return expired, run(5, bucket("acme-7b-ft-0330", "0.32.0", "mixed"), score=81.0, repeats=3)


def _scores(n_cases: int, score: float, spread: float, repeats: int, seed: int) -> Sequence[np.ndarray]:
    """float64[n_cases] a repeat: sure cases, and as many toss-ups as give the spread."""
    chance = np.random.default_rng(seed)
    n_tossed = min(round(4 * (spread * n_cases) ** 2), n_cases // 2)
    n_sure = max(round(score * n_cases - n_tossed / 2), 0)
    sure = np.concatenate([np.ones(n_sure), np.zeros(n_cases - n_sure - n_tossed)])
    return [np.concatenate([sure, chance.integers(0, 2, n_tossed).astype(float)]) for _ in range(repeats)]


def _store(of: RunRecord, scores: Sequence[np.ndarray], by: BucketRecord, at: datetime) -> None:
    n = of.suite_version.n_cases
    digests = pack_digests([b"1" * 16] * n)
    found = list(of.repeats.order_by("index"))
    kept = {"text_digests": digests, "trace_digests": digests, "buckets": pack_buckets([0] * n)}
    CaseColumns.objects.bulk_create(CaseColumns(repeat=repeat, bucket_ids=[by.pk], **kept) for repeat in found)
    RepeatScore.objects.bulk_create(
        RepeatScore(
            repeat=repeat,
            scorer=of.suite_version.scorer,
            scores=pack_scores(of_repeat),
            reasons=pack_reasons([None] * n),
            n_scored=n,
            n_missing=0,
            points=run_points(of_repeat),
        )
        for repeat, of_repeat in zip(found, scores, strict=True)
    )
    of.repeats.update(status=RepeatRecord.Status.FINISHED, finished_at=at + timedelta(hours=1))
