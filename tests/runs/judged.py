"""Runs to be judged: a suite of thirty cases, and runs of it whose every score a test decides."""

from collections.abc import Mapping
from typing import Any

from runs.models import BucketRecord, EngineProcess, ReleaseRecord, RunRecord, SuiteVersionRecord
from runs.release import create_release
from runs.suites import push_suite
from runs.work import bind_bucket
from tests import build

N_CASES = 30
RIGHT, WRONG = build.TARGET, "red"
SAMPLE_POLICY = {"slug": "sample", "rule": "paired", "tolerance_points": 5.0, "guard_points": 5.0}

Wrong = Mapping[int, object]  # case → the repeats (from 1) in which it is wrong, or ALWAYS
ALWAYS = range(1, 101)


def document(slug: str = "sample", *, n_cases: int = N_CASES, **changes: Any) -> dict[str, Any]:
    cases = [{"id": f"case-{n:03}", "prompt": f"Which colour is {n}?", "target": RIGHT} for n in range(n_cases)]
    return {"slug": slug, "max_tokens": 24, "scorer": {"kind": "exact"}, "cases": cases, **changes}


def suite(slug: str = "sample", **changes: Any) -> SuiteVersionRecord:
    return push_suite(document=document(slug, **changes))[0]


def run(
    version: SuiteVersionRecord,
    wrong: Mapping[int, Any] | None = None,
    *,
    repeats: int = 5,
    by: EngineProcess | BucketRecord | None = None,
    **changes: Any,
) -> RunRecord:
    """A finished run, right but for `wrong`; bound to its bucket by the service, as a worker binds it."""
    process = by if isinstance(by, EngineProcess) else build.process(by)
    created = build.run(version, repeats=repeats, **changes)
    bind(created, process.bucket)
    for repeat in range(1, repeats + 1):
        build.decode(created, repeat, texts(version.n_cases, repeat, wrong or {}), by=process)
    created.refresh_from_db()
    return created


def bind(of: RunRecord, bucket: BucketRecord) -> None:
    """What a worker does with the first shard of a run."""
    bind_bucket(run_id=of.pk, bucket=bucket)


def more(of: RunRecord, repeats: range, wrong: Mapping[int, Any] | None = None) -> None:
    """Decode queued repeats of a run, as the worker that served it would."""
    process = EngineProcess.objects.filter(bucket=of.bucket).earliest("pk")
    for repeat in repeats:
        build.decode(of, repeat, texts(of.suite_version.n_cases, repeat, wrong or {}), by=process)
    of.refresh_from_db()


def texts(n_cases: int, repeat: int, wrong: Mapping[int, Any]) -> list[str]:
    return [WRONG if repeat in wrong.get(case, ()) else RIGHT for case in range(n_cases)]


def release(baseline: RunRecord, candidate: RunRecord, **changes: Any) -> ReleaseRecord:
    """A decided release of one gate."""
    gate = {"suite": candidate.suite_version.suite.slug, "candidate": candidate.pk, "baseline": baseline.pk}
    return create_release(**{"gates": [gate], **changes})


def codes(lines: list[dict[str, Any]]) -> list[str]:
    return [line["code"] for line in lines]
