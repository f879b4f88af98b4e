"""What the installation has for an experiment, and how long its passes took before."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.db.models import Avg, QuerySet

from evalboard.contract.lab import RunEstimate
from evalboard.core import scoring
from evalboard.core.lab import Choice, Pace, Surroundings, estimate_cost
from evalboard.core.profile import NO_ENGINE
from evalboard.wording.lab import describe_estimate
from runs.lab.engine_time import measure_engine_time
from runs.models import EndpointRecord, EngineProcess, ProfileRecord, RunRecord, SuiteVersionRecord, WorkerRecord
from runs.pairs import draws_of
from runs.run import find_order
from runs.work.workers import able

STARTS_READ = 10
RUNS_LOOKED_AT = 20
GATEWAYS_READ = 3
AVX512 = "avx512f"  # as Linux names the flag


def read_surroundings(
    version: SuiteVersionRecord, endpoint: EndpointRecord, profile: ProfileRecord, *, temperature: float | None
) -> Surroundings:
    """Read what is available around an endpoint. A gateway with a bypass is compared with it, as routing.

    temperature: for the sampler's condition; None: that of the newest sampled run of the suite.
    """
    base = endpoint.bypass or endpoint
    workers = _workers(base.pool)
    return Surroundings(
        endpoint=base.slug,
        settings=profile.settings,
        is_remote=base.is_remote,
        dtype=base.dtype,
        dtypes=tuple(Choice(each.slug, each.dtype) for each in _same_weights(base)),
        gateways=_gateways(endpoint, base),
        temperature=_drawn_at(version) if temperature is None else temperature,
        hardware=frozenset(str(worker.hardware.get("kind")) for worker in workers),
        n_gpus=min((len(worker.hardware.get("gpus", ())) for worker in workers), default=0),
        has_avx512=all(AVX512 in worker.hardware.get("cpu_flags", ()) for worker in workers),
        n_cases=version.n_cases,
        is_recorded=scoring.is_recorded(version.scorer.spec),
    )


def read_pace(version: SuiteVersionRecord, endpoint: EndpointRecord, *, batch_class: str) -> Pace:
    """Return how long a pass took in the newest run of this version, endpoint and batch class.

    Without such a run, one at batch size 1 is used: nothing is slower.
    """
    ended = RunRecord.objects.filter(
        suite_version=version, endpoint=endpoint, status=RunRecord.Status.FINISHED, source=None
    ).select_related("profile")
    starts = EngineProcess.objects.filter(repeats__run__endpoint=endpoint).order_by("-id")[:STARTS_READ]
    start = EngineProcess.objects.filter(pk__in=[each.pk for each in starts]).aggregate(at=Avg("start_seconds"))["at"]
    for wanted in dict.fromkeys((batch_class, "alone")):
        in_class = ended.filter(profile__settings__batch_class=wanted).order_by("-id")[:RUNS_LOOKED_AT]
        for run in in_class:
            time = measure_engine_time(run)
            n_passes = run.repeats.filter(cases=None, status=RunRecord.Status.FINISHED).count()
            if n_passes and time.seconds:
                return Pace(time.seconds / n_passes, time.n_tokens / n_passes, start)
    return Pace(start_seconds=start)


def estimate_run(*, suite: str, endpoint: str, profile: str = "pinned", repeats: int = 5) -> RunEstimate:
    """Estimate what a run would take, from the newest like it, else from another suite's on the endpoint.

    Raises as `find_order` does, which refuses a run that cannot be started.
    """
    order = find_order(suite=suite, endpoint=endpoint, profile=profile, repeats=repeats)
    version, target, batch_class = order.version, order.endpoint, order.profile.settings["batch_class"]
    pace, paced_by = read_pace(version, target, batch_class=batch_class), None
    if pace.pass_seconds is None:
        others = SuiteVersionRecord.objects.filter(runs__endpoint=target, runs__status=RunRecord.Status.FINISHED)
        other = others.select_related("suite").order_by("-runs__id").first()
        if other is not None:
            other_pace = read_pace(other, target, batch_class=batch_class)
            seconds, paced_by = other_pace.pass_seconds, other.suite.slug
            scaled = None if seconds is None else seconds * version.n_cases / other.n_cases
            pace = replace(other_pace, pass_seconds=scaled, pass_tokens=None)  # its answers are of another length
    cost = estimate_cost(repeats, pace=pace, is_restarted=False, has_engine=not target.is_remote)
    known: dict[str, Any] = {
        "n_calls": order.n_responses,
        "tokens": None if cost.tokens is None else round(cost.tokens),
        "minutes": cost.minutes,
        "paced_by": None if cost.minutes is None else paced_by,
    }
    return RunEstimate(**known, sentence=describe_estimate(**known, is_remote=target.is_remote))


def _workers(pool: str) -> list[WorkerRecord]:
    """The pool's living workers that have an engine; while there are none, the one that was seen last."""
    with_engine = WorkerRecord.objects.filter(pool=pool).exclude(hardware__contains={"kind": NO_ENGINE})
    return list(able(pool)) or list(with_engine.order_by("-seen_at")[:1])


def _same_weights(base: EndpointRecord) -> QuerySet[EndpointRecord]:
    names = ("engine", "model_path", "model_repo", "model_revision", "quantization", "max_model_len", "pool")
    same = {name: getattr(base, name) for name in names}
    return EndpointRecord.objects.filter(**same).exclude(dtype=base.dtype).order_by("dtype", "id").distinct("dtype")


def _gateways(endpoint: EndpointRecord, base: EndpointRecord) -> tuple[str, ...]:
    """Return the slugs of gateways to the base: the named one, or all that name it as bypass or reference."""
    if endpoint != base:
        return (endpoint.slug,)
    leading: Iterable[EndpointRecord] = EndpointRecord.objects.filter(bypass=base) | EndpointRecord.objects.filter(
        reference=base
    )
    return tuple(sorted(each.slug for each in leading))[:GATEWAYS_READ]


def _drawn_at(version: SuiteVersionRecord) -> float | None:
    newest = (
        RunRecord.objects.filter(suite_version__suite=version.suite_id, profile__settings__sampling__temperature__gt=0)
        .select_related("profile")
        .order_by("-id")
        .first()
    )
    return None if newest is None else draws_of(newest).temperature
